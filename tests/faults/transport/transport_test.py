# SPDX-License-Identifier: Apache-2.0
"""Streams from servers that fail, and from S3. One case an argument; the probe program comes first."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
import servers  # noqa: E402  (the path is set above)

PROBE = sys.argv[1]


def probe(*words, expect=0, **settings):
    env = {**os.environ, **servers.LOCAL, **{k: str(v) for k, v in settings.items()}}
    done = subprocess.run([PROBE, *map(str, words)], capture_output=True, timeout=60, check=False, env=env)
    text = done.stderr.decode()
    if done.returncode != expect:
        sys.exit(f"{words} ended with {done.returncode}, expected {expect}\n{text}")
    return done.stdout if expect == 0 else text


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print("ok", what, flush=True)


def faulty_case():
    data = os.urandom(3_000_000)
    plans = {
        "cut": ["cut:1000000", "cut:0", "500", "cut:700001"],
        "stall": ["stall:123456", "stall:5"],
        "many": ["503"] * 4,
        "norange": ["cut:2000000", "norange"],
        "refused": ["404"],
        "broken": ["500"] * 50,
        "silent": ["stall:10"] + ["stall:0"] * 50,
        "changed": ["cut:1000000", "changed"],
        "shrunk": ["cut:1000000", "short:5"],
    }
    with servers.Faulty({name: data for name in [*plans, "good", "a b/é+&=%.bin"]}, plans) as server:
        at = server.address
        for name in ("good", "cut", "stall", "many", "norange", "a b/é+&=%.bin"):
            check(probe("cat", at, name) == data, f"{name}: all bytes arrive")
        ranges = [asked for _, path, asked in server.requests if path == "cut"]
        check(ranges == ["", "bytes=1000000-", "bytes=1000000-", "bytes=1000000-", "bytes=1700001-"],
              f"broken transfers go on where they were: {ranges}")
        check(probe("cat", at, "good", 1000, 2000) == data[1000:2000], "a range")
        check(probe("cat", at, "good", 2999999) == data[2999999:], "the last byte")
        check(probe("skip", at, "good", 1000, 100) == data[:1000] + data[1100:], "a short skip")
        before = len(server.requests)
        check(probe("skip", at, "good", 1000, 2_000_000) == data[:1000] + data[2_001_000:], "a long skip")
        check(server.requests[before:][-1][2] == "bytes=2001000-", "is a new request")
        check(probe("look", at, "good") == b"3000000\n", "its size")
        for name, parts in (("refused", ["HTTP 404", "/refused'"]), ("missing", ["HTTP 404", "/missing'"]),
                            ("broken", ["HTTP 500", "after 5 attempts", "/broken'"]),
                            ("silent", ["no byte for 0.4 s", "at byte 10", "/silent'"]),
                            ("changed", ["changed while it was read"])):
            text = probe("cat", at, name, expect=3)
            check(all(part in text for part in parts) and text.count("error:") == 1, f"{name}: {text.splitlines()[-1]}")
        server.objects["page/"] = b"<html><a href='../'>up</a></html>"
        check("gives no index of files" in probe("list", at, "page", expect=3), "a page without links")
        check(any(path == "broken" for _, path, _ in server.requests[-60:]), "and it was asked")
    begin = time.monotonic()
    text = probe("cat", at, "good", expect=3)
    check("at byte 0 after 5 attempts" in text and time.monotonic() - begin < 20, "a server that is gone is named")
    with tempfile.TemporaryDirectory() as work:
        os.makedirs(f"{work}/site/sub/x&y")
        for name in ("b 1.tar", "a&é.tar", "sub/c"):
            with open(f"{work}/site/{name}", "wb") as file:
                file.write(name.encode())
        with servers.nginx(f"{work}/site", f"{work}/nginx") as web:
            check(probe("list", web).decode() == "sub/\na&é.tar\nb 1.tar\n", "an index page")
            check(probe("list", f"{web}/sub/").decode() == "x&y/\nc\n", "of a folder")
            check(probe("cat", web, "a&é.tar").decode() == "a&é.tar", "and a file of it")
            check("HTTP 404" in probe("list", f"{web}/none", expect=3), "no such folder")
            check("HTTP 404" in probe("list", web, "sub/c", expect=3), "a file is no folder")


def s3_case():
    with servers.moto(servers.Bucket.SET_UP_ACTIONS) as endpoint:
        bucket = servers.Bucket(endpoint)
        count = 1005
        for i in range(count):
            bucket.put(f"many/{i:04}.txt", str(i))
        odd = "many/a b+c&d=e%é/f.bin"
        data = os.urandom(100_000)
        bucket.put(odd, data)
        settings = {"ENDPOINT": endpoint, "TIMEOUT": 20, **bucket.environment()}
        listed = probe("list", "s3://images/many", **settings).decode().splitlines()
        check(listed == ["a b+c&d=e%é/"] + [f"{i:04}.txt" for i in range(count)], f"{count} keys and a folder are listed")
        check(probe("list", "s3://images", **settings) == b"many/\n", "the bucket's top")
        check(probe("cat", "s3://images/many", odd[5:], **settings) == data, "a key of odd characters")
        check(probe("cat", "s3://images", odd, 5, 50_000, **settings) == data[5:50_000], "a range of it")
        wrong = {**settings, "AWS_SECRET_ACCESS_KEY": "wrong"}
        text = probe("list", "s3://images/many", expect=3, **wrong)
        check("HTTP 403" in text and "SignatureDoesNotMatch" in text, f"a wrong secret: {text.strip()}")
        text = probe("cat", "s3://images", odd, expect=3, **{**settings, "AWS_ACCESS_KEY_ID": "AKIANOBODY"})
        check("HTTP 403" in text, "an unknown key")
        check("HTTP 404" in probe("cat", "s3://images", "none", expect=3, **settings), "a missing object")
        check("NoSuchBucket" in probe("list", "s3://nobody", expect=3, **settings), "a missing bucket")
        with tempfile.TemporaryDirectory() as home:
            os.makedirs(f"{home}/.aws")
            with open(f"{home}/.aws/credentials", "w", encoding="utf-8") as file:
                file.write(f"[other]\naws_access_key_id = no\n\n[lab]\naws_access_key_id = {bucket.key}\n"
                           f"aws_secret_access_key={bucket.secret}\n")
            with open(f"{home}/.aws/config", "w", encoding="utf-8") as file:
                file.write(f"[profile lab]\nregion = eu-central-1\nendpoint_url = {endpoint}\n")
            profile = {"HOME": home, "AWS_PROFILE": "lab", "TIMEOUT": 20}
            check(len(probe("list", "s3://images/many", **profile).splitlines()) == count + 1, "a profile")
            check("no credentials" in probe("list", "s3://images/many", expect=2, HOME=home, ENDPOINT=endpoint),
                  "none at all")
    with servers.Faulty({"public/a": b"content"}, {}) as server:
        settings = {"ENDPOINT": server.address, "HOME": "/nonexistent", "TIMEOUT": 20}
        check(probe("cat", "s3://public", "a", ANONYMOUS=1, **settings) == b"content", "an anonymous request")
        check(probe("cat", "s3://public", "a", AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s", **settings) == b"content",
              "and one that is not")
        check(server.signed == [False, True], "only that one is signed")
    text = probe("list", "gs://images/many", expect=2)
    check("unknown scheme 'gs'" in text, "another scheme")


{"faulty": faulty_case, "s3": s3_case}[sys.argv[2]]()
