# SPDX-License-Identifier: Apache-2.0
"""Whole preparations from S3 and from web servers, good and bad, against the one from disk: the same bytes."""
import os
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)
import servers  # noqa: E402
from preparation import check, prepare  # noqa: E402


def same(work, out, expected, what):
    check(sets.digest(f"{work}/{out}") == expected, what)


with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
    train, val = sets.make_set(10), sets.make_set(3, first=50)
    # Names that have to be encoded in addresses, lists and pages.
    odd = ("a b+c", "%41", "#1?x&y=;", "ü 日本", "q'\"<>", "[b]{1}", "~!$,@")
    for i, (name, word) in enumerate(zip(list(train), odd)):
        data, c = train.pop(name)
        train[f"{sets.CLASSES[c]}/{word}.JPEG"] = (data, c)
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
        os.rename(f"{work}/data/folder", f"{work}/data/my föl der")
        for number, place in enumerate((f"{web}/my föl der", f"{web}/my%20f%C3%B6l%20der/")):
            prepare(work, f"web4{number}", "folder", "--source", place, *base)
            same(work, f"web4{number}", of_folder, "an address with spaces and letters, encoded or not")
        os.rename(f"{work}/data/my föl der", f"{work}/data/folder")
        text = prepare(work, "web3", "folder", "--source", f"{web}/nothing", *base, expect=3, ranks=2)
        check("HTTP 404" in text and text.count("error:") == 1, "a folder that isn't there")

    with servers.nginx(f"{work}/data", f"{work}/nginx-tls", encrypted=True) as web:
        bundles = dict.fromkeys(("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"), "")
        text = prepare(work, "tls1", "folder", "--source", f"{web}/folder", *base, expect=3, ranks=2, env=bundles)
        check("certificate" in text.lower() and text.count("error:") == 1, "an unknown certificate is refused")
        for variable in bundles:
            prepare(work, f"tls-{variable}", "folder", "--source", f"{web}/folder", *base,
                    env={**bundles, variable: f"{work}/nginx-tls/certificate.pem"})
            same(work, f"tls-{variable}", of_folder, f"but not where {variable} has it")

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
    faults = {"n01440764.tar": ["ok", "ok", "cut:40000", "500", "cut:9000"], "n01443537.tar": ["503", "ok", "ok", "stall:20000"],
              "n01484850.tar": ["cut:30000", "ok", "norange", "ok"], "n02085620.tar": ["ok", "ok", "cut:1", "500", "500", "500"]}
    with servers.Faulty(objects, faults) as server:
        text = prepare(work, "bad1", "folder", "--train", f"{server.address}/{{{names}}}.tar", *base,
                       "--timeout-seconds", 1, ranks=2, timeout=100)
        same(work, "bad1", expected, "a server that cuts, stalls and fails is survived")
        check("trying again" in text, "and one hears of it")
    faults = {"n01484850.tar": ["ok"] * 2 + ["500"] * 20}
    with servers.Faulty(objects, faults) as server:
        where = f"{server.address}/{{{names}}}.tar"
        text = prepare(work, "bad2", "folder", "--train", where, *base, "--retries", 1, ranks=2, expect=3)
        check(f"{server.address}/n01484850.tar' (HTTP 500" in text, "an object that can't be had is named")
        check(not [n for n in os.listdir(f"{work}/bad2") if n.endswith(".h5")], "no partition is made")
        server.faults.clear()
        text = prepare(work, "bad2", "folder", "--train", where, *base, ranks=2)
        same(work, "bad2", expected, "the next run goes on")
        check("continuing: about" in text, "where this one was")
    short = {**objects, "n01484850.tar": objects["n01484850.tar"][:30000]}
    with servers.Faulty(short, {}) as server:
        text = prepare(work, "bad3", "folder", "--train", f"{server.address}/{{{names}}}.tar", *base, expect=3)
        check("n01484850.tar' is truncated" in text, "an archive that ends early is named")
    moved = {"n01440764.tar": ["301:/n01440764.tar?again", "ok"], "n01443537.tar": ["301:/n01443537.tar"] * 40}
    objects["n01440764.tar?again"] = objects["n01440764.tar"]
    with servers.Faulty(objects, {"n01440764.tar": moved["n01440764.tar"]}) as server:
        prepare(work, "moved1", "folder", "--train", f"{server.address}/{{{names}}}.tar", *base)
        same(work, "moved1", expected, "an object that was moved is followed")
    with servers.Faulty(objects, moved) as server:
        text = prepare(work, "moved2", "folder", "--train", f"{server.address}/{{{names}}}.tar", *base, expect=3, ranks=2)
        check("n01443537.tar' (" in text and "redirects" in text and text.count("error:") == 1, "a circle of redirections is named")
        os.environ.update(AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s")
        listing = "gate/images/?delimiter=/&encoding-type=url&list-type=2&max-keys=1000&prefix="
        server.objects[listing] = b""
        server.faults[listing] = ["301:/elsewhere"] * 3
        text = prepare(work, "moved3", "folder", "--train", "s3://images", "--endpoint", f"{server.address}/gate", *base, expect=3)
        check("(HTTP 301" in text and "/gate/images/" in text, "a signed request is not sent elsewhere")

    # What a list says of names, encoded as forms are or not at all; an endpoint below a path.
    strange = {"c 1/a b+c.JPEG": train["n01440764/n01440764_9.JPEG"][0], "d%41/%42.JPEG": train["n01443537/n01443537_9.JPEG"][0]}
    for name, data in strange.items():
        sets.write(f"{work}/strange/{name}", data)
    prepare(work, "strange1", "folder", "--train", f"{work}/strange", *base[:2], "--keep-names")
    for form, encode in (("url", urllib.parse.quote_plus), ("", lambda text: text)):
        pages = {f"gate/images/{name}": data for name, data in strange.items()}
        kind = f"<EncodingType>{form}</EncodingType>" if form else ""
        folders = "".join(f"<CommonPrefixes><Prefix>{encode(n.split('/')[0])}/</Prefix></CommonPrefixes>" for n in strange)
        pages[listing] = f"<ListBucketResult>{kind}{folders}</ListBucketResult>".encode()
        for name in strange:
            key = encode(name).replace("%2F", "/")
            pages[listing + name.split("/")[0] + "/"] = (f"<ListBucketResult>{kind}<Contents><Key>{key}</Key><Size>1</Size>"
                                                         "</Contents></ListBucketResult>").encode()
        with servers.Faulty(pages, {}) as server:
            prepare(work, f"strange-{form}", "folder", "--train", "s3://images", "--endpoint", f"{server.address}/gate/", *base[:2],
                    "--keep-names", "--anonymous", ranks=2)
            same(work, f"strange-{form}", sets.digest(f"{work}/strange1"), f"names in a list, encoding '{form}'")
            check(not any(server.signed), "nothing is signed with --anonymous")
