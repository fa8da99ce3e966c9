# SPDX-License-Identifier: Apache-2.0
"""What PBS runs on each host of the complex: starts commands for others, and ends what runs there. Usage: mom.py NAME FOLDER"""
import array
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading


def ask(folder, host, request, files=()):
    """Sends a request to a host's mom; returns its answer, and None where the host is gone. `files` are handed over."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(str(pathlib.Path(folder) / f"run/mom.{host}"))
            line.sendmsg([json.dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])
            answer = line.recv(4096)
        except OSError:
            return None
    return json.loads(answer) if answer else None


def run(line, request, files):
    """A command with the asker's standard input, output and error; it ends with its asker."""
    child = subprocess.Popen(request["run"], env=request["env"], cwd=request["cwd"], stdin=files[0], stdout=files[1],
                             stderr=files[2], start_new_session=True)
    for file in files:
        os.close(file)

    def end_with_asker():
        if line.recv(1) == b"" and child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)

    threading.Thread(target=end_with_asker, daemon=True).start()
    code = child.wait()
    try:
        line.sendall(json.dumps({"exit": code if code >= 0 else 128 - code}).encode())
    except OSError:
        pass


def signal_all(number):
    """PBS signals every process of a job on its first host, the shells included."""
    own = {1, os.getpid()}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in own and not is_of_host(entry):
            try:
                os.kill(int(entry.name), number)
            except ProcessLookupError:
                pass


def is_of_host(entry):
    """host.py and its children that aren't jobs."""
    try:
        return b"host.py" in (entry / "cmdline").read_bytes()
    except OSError:
        return True


def answer(line):
    data, ancillary, _, _ = line.recvmsg(1 << 20, socket.CMSG_SPACE(3 * 4))
    if not data:
        return
    files = array.array("i")
    for _, _, content in ancillary:
        files.frombytes(content)
    request = json.loads(data)
    if "signal" in request:
        signal_all(request["signal"])
        line.sendall(b"{}")
    else:
        run(line, request, list(files))
    line.close()


def main():
    path = pathlib.Path(sys.argv[2]) / f"run/mom.{sys.argv[1]}"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    main()
