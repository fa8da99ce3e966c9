# SPDX-License-Identifier: Apache-2.0
"""Kernel namespaces for one-machine clusters. A process that enters its own network, processes, mounts and names can use
any port, name and address, and when its first process ends, by whatever cause, the kernel ends all that were started in it
and takes its devices and mounts along: nothing is left, also after kill -9."""
import ctypes
import os
import signal
import sys

NEW_MOUNTS, NEW_NAME, NEW_IPC, NEW_PROCESSES, NEW_NETWORK = 0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000
MOUNT_PRIVATE = 1 << 18 | 1 << 14  # recursive
BIND = 4096
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source, target, kind=None, flags=0, data=None):
    texts = [str(text).encode() if text is not None else None for text in (source, target, kind)]
    _check(_libc.mount(*texts, flags, data.encode() if data is not None else None), f"mount {target}")


def _reap_until_gone(child):
    """What the first process of a PID namespace must do: collect every orphan. Returns the exit code of `child`."""
    while True:
        process, status = os.wait()
        if process == child:
            return os.waitstatus_to_exitcode(status)


def enter(tell=lambda process: None, clean=lambda: None):
    """Returns in a new process, a child of the first process of new namespaces, with a /proc of its own. The caller's process
    tells the number of that first process, waits, cleans up, and leaves with the exit code; where one of them is killed,
    everything in the namespaces ends."""
    ready, is_ready = os.pipe()
    _check(_libc.unshare(NEW_PROCESSES), "unshare")
    first = os.fork()
    if first != 0:
        os.close(is_ready)
        if os.read(ready, 1) == b"":
            os.waitpid(first, 0)
            raise OSError("its first process could not be set up")
        tell(first)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: os.kill(first, signal.SIGKILL))
        code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
        clean()
        os._exit(abs(code))
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")
    try:
        _check(_libc.unshare(NEW_MOUNTS | NEW_NAME | NEW_IPC | NEW_NETWORK), "unshare")
        mount(None, "/", flags=MOUNT_PRIVATE)
        mount("proc", "/proc", "proc")
    except OSError as error:
        print(error, file=sys.stderr)
        os._exit(1)
    os.write(is_ready, b"1")
    worker = os.fork()
    if worker != 0:
        os._exit(abs(_reap_until_gone(worker)))


def set_host_name(name):
    data = name.encode()
    _check(_libc.sethostname(data, len(data)), "sethostname")
