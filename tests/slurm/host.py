# SPDX-License-Identifier: Apache-2.0
"""One host: own network, processes, mounts, name and shared memory; files are shared, as on a cluster's file system. Usage:
host.py NAME ADDRESS FOLDER DAEMON ... Prints the number of its first process and waits for a line on stdin: by then it has
a network device eth0."""
import pathlib
import subprocess
import sys
import time

import namespaces


def main():
    name, address, folder, daemon = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]
    namespaces.enter(tell=lambda process: print(process, flush=True))
    sys.stdin.readline()
    namespaces.set_host_name(name)
    namespaces.mount("tmpfs", "/dev/shm", "tmpfs", data="mode=1777")  # Open MPI names its files by local rank
    namespaces.mount("tmpfs", folder / "private", "tmpfs", data="mode=1777")
    for words in ("link set lo up", f"addr add {address}/24 dev eth0", "link set eth0 up"):
        subprocess.run(["ip", *words.split()], check=True)
    again = folder / f"run/start.{name}"
    with open(folder / f"log/{name}.out", "a", encoding="utf-8") as log:
        while True:  # a host outlives its daemon
            subprocess.run(daemon, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
            while not again.exists():
                time.sleep(0.05)
            again.unlink()


if __name__ == "__main__":
    main()
