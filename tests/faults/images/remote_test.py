# SPDX-License-Identifier: Apache-2.0
"""Whole preparations from S3 and from web servers, good and bad, against the one from disk: the same bytes."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
import servers  # noqa: E402
from preparation import check, prepare  # noqa: E402


def same(work, out, expected, what):
    check(sets.digest(f"{work}/{out}") == expected, what)


with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
    train, val = sets.make_set(10), sets.make_set(3, first=50)
    sets.write_folder(train, f"{work}/data/folder/train")
    sets.write_folder(val, f"{work}/data/folder/val")
    for name, data in sets.class_tars(train).items():
        sets.write(f"{work}/data/tars/{name}.tar", data)
    sets.write(f"{work}/data/train.txt", "".join(f"{name} {c}\n" for name, (_, c) in train.items()))
    base = ("--sizes", 48, "--partitions", 3, "--keep-names")
    tars = (*base, "--key-prefix", "n01")
    prepare(work, "folder", "folder", "--source", f"{work}/data/folder", *base)
    prepare(work, "tars", "imagenet", "--train", f"{work}/data/tars", "--label-file", f"{work}/data/train.txt", *tars)
    of_folder, of_tars = sets.digest(f"{work}/folder"), sets.digest(f"{work}/tars")
    check(len(of_folder) == 5 and len(of_tars) == 4, "from disk")

    with servers.nginx(f"{work}/data", f"{work}/nginx") as web:
        prepare(work, "web1", "folder", "--source", f"{web}/folder", *base, ranks=2)
        same(work, "web1", of_folder, "class folders behind nginx")
        prepare(work, "web2", "imagenet", "--train", f"{web}/tars/", "--label-file", f"{web}/train.txt", *tars, ranks=3)
        same(work, "web2", of_tars, "class archives behind nginx")
        text = prepare(work, "web3", "folder", "--source", f"{web}/nothing", *base, expect=3, ranks=2)
        check("HTTP 404" in text and text.count("error:") == 1, "a folder that isn't there")

    with servers.moto(servers.Bucket.SET_UP_ACTIONS) as endpoint:
        bucket = servers.Bucket(endpoint)
        bucket.put_folder(f"{work}/data", "set 1")
        env = bucket.environment()
        s3 = ("--endpoint", endpoint)
        prepare(work, "s1", "folder", "--source", "s3://images/set 1/folder", *base, *s3, ranks=2, env=env)
        same(work, "s1", of_folder, "class folders in S3")
        prepare(work, "s2", "imagenet", "--train", "s3://images/set 1/tars", "--label-file", "s3://images/set 1/train.txt",
                *tars, ranks=2, env={**env, "AWS_ENDPOINT_URL": endpoint})
        same(work, "s2", of_tars, "class archives in S3 with prefix and label file")
        text = prepare(work, "s3", "folder", "--source", "s3://images/set 1/folder", *base, *s3, ranks=2, expect=3,
                       env={**env, "AWS_SECRET_ACCESS_KEY": "x"})
        check("SignatureDoesNotMatch" in text and text.count("error:") == 1, "a wrong secret")

        # A page of a list has 1,000 keys at most: the images come on the second.
        for i in range(1005):
            bucket.put(f"many/a/{i:04}.txt", b"")
        few = {f"{c}/z{i}.JPEG": data for c, label in (("a", 0), ("b", 1))
               for i, data in enumerate(d for d, number in train.values() if number == label)}
        for name, data in few.items():
            bucket.put(f"many/{name}", data)
            sets.write(f"{work}/few/{name}", data)
        prepare(work, "few1", "folder", "--train", f"{work}/few", *base)
        prepare(work, "s4", "folder", "--train", "s3://images/many", *base, *s3, ranks=2, env=env)
        same(work, "s4", sets.digest(f"{work}/few1"), "a folder of more keys than a page lists")

    objects = {f"{name}.tar": sets.tar_of([(n, d) for n, (d, _) in train.items() if n.startswith(name)])
               for name in sets.CLASSES}
    names = ",".join(sets.CLASSES)
    plain = {f: d for f, d in objects.items()}
    for name, data in plain.items():
        sets.write(f"{work}/data/archives/{name}", data)
    prepare(work, "plain", "folder", "--train", f"{work}/data/archives/{{{names}}}.tar", *base)
    expected = sets.digest(f"{work}/plain")
    faults = {"n01440764.tar": ["ok", "cut:40000", "500", "cut:9000"], "n01443537.tar": ["503", "ok", "stall:20000"],
              "n01484850.tar": ["ok", "norange", "ok"], "n02085620.tar": ["ok", "cut:1", "500", "500", "500"]}
    with servers.Faulty(objects, faults) as server:
        text = prepare(work, "bad1", "folder", "--train", f"{server.address}/{{{names}}}.tar", *base,
                       "--timeout-seconds", 1, ranks=2, timeout=100)
        same(work, "bad1", expected, "a server that cuts, stalls and fails is survived")
        check("trying again" in text, "and one hears of it")
    faults = {"n01484850.tar": ["ok"] + ["500"] * 20}
    with servers.Faulty(objects, faults) as server:
        where = f"{server.address}/{{{names}}}.tar"
        text = prepare(work, "bad2", "folder", "--train", where, *base, "--retries", 1, ranks=2, expect=3)
        check(f"{server.address}/n01484850.tar' (HTTP 500" in text, "an object that can't be had is named")
        check(not [n for n in os.listdir(f"{work}/bad2") if n.endswith(".h5")], "no partition is made")
        server.faults.clear()
        text = prepare(work, "bad2", "folder", "--train", where, *base, ranks=2)
        same(work, "bad2", expected, "the next run goes on")
        check("going on: about" in text, "where this one was")
    short = {**objects, "n01484850.tar": objects["n01484850.tar"][:30000]}
    with servers.Faulty(short, {}) as server:
        text = prepare(work, "bad3", "folder", "--train", f"{server.address}/{{{names}}}.tar", *base, expect=3)
        check("n01484850.tar' is truncated" in text, "an archive that ends early is named")
