# SPDX-License-Identifier: Apache-2.0
"""Servers that tests of data preparation read from: moto (S3), nginx, and one that misbehaves as it is told."""
import contextlib
import http.server
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(600):
        if process.poll() is not None:
            sys.exit(f"a server ended with {process.returncode} before it answered")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    sys.exit("a server did not start in 30 s")


# Proxies of the machine must not see what is meant for 127.0.0.1.
LOCAL = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


@contextlib.contextmanager
def moto(set_up_actions):
    """An S3 server that checks signatures once `set_up_actions` requests have been made."""
    port = free_port()
    env = dict(os.environ, INITIAL_NO_AUTH_ACTION_COUNT=str(set_up_actions), **LOCAL)
    with subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], env=env,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)


class Bucket:
    """A bucket with a user who may read it."""

    SET_UP_ACTIONS = 4  # create_user, create_access_key, put_user_policy, create_bucket

    def __init__(self, endpoint, name="images"):
        import boto3

        os.environ.update(LOCAL)
        anyone = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
        iam = boto3.client("iam", endpoint_url=endpoint, **anyone)
        iam.create_user(UserName="reader")
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        policy = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
        iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=policy)
        boto3.client("s3", endpoint_url=endpoint, **anyone).create_bucket(Bucket=name)
        self.name, self.key, self.secret = name, key["AccessKeyId"], key["SecretAccessKey"]
        self.client = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id=self.key,
                                   aws_secret_access_key=self.secret, region_name="us-east-1")

    def put(self, key, data):
        self.client.put_object(Bucket=self.name, Key=key, Body=data)

    def put_folder(self, folder, prefix):
        for path, _, names in os.walk(folder):
            for name in names:
                full = os.path.join(path, name)
                with open(full, "rb") as file:
                    self.put(f"{prefix}/{os.path.relpath(full, folder)}", file.read())

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret, "HOME": "/nonexistent", **LOCAL}


@contextlib.contextmanager
def nginx(root, work, encrypted=False):
    """Serves `root` with index pages; `work` takes its own files. encrypted: by a certificate of its own, work/certificate.pem."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not os.path.exists(program):
        print("nginx is not installed")
        sys.exit(77)
    port = free_port()
    os.makedirs(work, exist_ok=True)
    listen = f"127.0.0.1:{port}"
    if encrypted:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", f"{work}/key.pem", "-out", f"{work}/certificate.pem"],
                       check=True, capture_output=True)
        listen += f" ssl; ssl_certificate {work}/certificate.pem; ssl_certificate_key {work}/key.pem"
    with open(f"{work}/nginx.conf", "w", encoding="utf-8") as file:
        file.write(f"""daemon off; master_process off; pid {work}/pid; error_log {work}/error.log;
events {{}}
http {{
  access_log off; client_body_temp_path {work}/a; proxy_temp_path {work}/b; fastcgi_temp_path {work}/c;
  uwsgi_temp_path {work}/d; scgi_temp_path {work}/e;
  server {{ listen {listen}; root {root}; autoindex on; }}
}}
""")
    with subprocess.Popen([program, "-c", f"{work}/nginx.conf", "-p", work], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port, process)
            yield f"{'https' if encrypted else 'http'}://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=20)


class Faulty:
    """A web server over a dict of objects. `faults` maps a path to a list, one entry a request: `ok`, `500`, `503`, `404`,
    `cut:N` (N bytes, then the connection ends), `stall:N` (N bytes, then nothing), `norange` (all, whatever was asked for),
    `changed` (another ETag), `short:N` (announces and sends only N bytes), `301:PATH` (moved there). After the list: `ok`."""

    def __init__(self, objects, faults):
        self.objects, self.faults, self.requests = objects, {k: list(v) for k, v in faults.items()}, []
        self.signed = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer(body=False)

            def do_GET(self):
                self.answer(body=True)

            def answer(self, body):
                path = urllib.request.unquote(self.path.lstrip("/"))
                asked = self.headers.get("Range", "")
                outer.requests.append((self.command, path, asked))
                outer.signed.append("Authorization" in self.headers)
                plan = outer.faults.get(path, [])
                fault = plan.pop(0) if plan and body else "ok"
                data = outer.objects.get(path)
                if data is None or fault in ("404", "500", "503"):
                    code = 404 if data is None else int(fault)
                    self.send_response(code)
                    self.send_header("Content-Length", "5")
                    self.end_headers()
                    self.wfile.write(b"fault")
                    return
                if fault.startswith("301:"):
                    self.send_response(301)
                    self.send_header("Location", fault[4:])
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                total = len(data)
                match = re.fullmatch(r"bytes=(\d+)-(\d*)", asked)
                kind, _, number = fault.partition(":")
                if kind == "short":
                    data = data[: int(number)]
                if match and fault != "norange":
                    begin, end = int(match[1]), int(match[2]) + 1 if match[2] else total
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{total}")
                    data = data[begin:end]
                else:
                    self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("ETag", '"new"' if fault == "changed" else '"one"')
                self.end_headers()
                if not body:
                    return
                if kind in ("cut", "stall"):
                    self.wfile.write(data[: int(number)])
                    self.wfile.flush()
                    if kind == "stall":
                        outer.released.wait(60)
                    self.close_connection = True
                    return
                self.wfile.write(data)

        self.released = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients that leave are what is tested
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
