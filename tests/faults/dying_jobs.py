# SPDX-License-Identifier: Apache-2.0
"""Kinds of deaths and stalls that happen to a running job, and what must come of each. Used by stall_test.py (one of each) and
bench/stalls.py (many)."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
from runner import CONVOY, PREPROCESS, mpirun, run  # noqa: E402

ABORT, WATCHDOG = 3, 2
PATIENCE = 10  # beyond the deadline, from the fault to the end of the last process
slowness = 1  # of this machine: all times above are multiplied by it
TRAIN = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 4000, "--model", "lenet", "--batch-size", 8, "--epochs", 99,
         "--lr", 0.01, "--skip-eval", "--no-checkpoints", "--threads", 1, "--no-tensorboard"]
Ended = collections.namedtuple("Ended", "code seconds said beats left")


def deadlines(abort=ABORT):
    return ["--stall-warning-seconds", slowness, "--stall-abort-seconds", slowness * abort]


def heartbeats(folder, where="heartbeats"):
    """rank -> newest heartbeat, from RUN_DIR/heartbeats."""
    beats = {}
    where = os.path.join(folder, where)
    for name in os.listdir(where) if os.path.isdir(where) else []:
        with open(os.path.join(where, name), encoding="utf-8") as file:
            for line in file:
                try:
                    beat = json.loads(line.strip("\0 \n"))
                    beats[beat["rank"]] = beat
                except (ValueError, KeyError):
                    pass  # being written
    return beats


def processes_of(folder):
    return subprocess.run(["pgrep", "-f", f"{folder}( |$)"], capture_output=True, text=True, check=False).stdout.split()


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # ended, though its parent hasn't heard of it yet
    except OSError:
        return False


def wait_for_steps(job, folder, ranks, first):
    end = time.time() + 90
    while job.poll() is None and time.time() < end:
        beats = heartbeats(folder)
        if len(beats) == ranks and all(b["step"] >= first for b in beats.values()):
            return
        time.sleep(0.05)


def run_until(ranks, folder, words, strike, env=None):
    """Starts a job; strike(pid by rank) once all ranks train; waits for its end. Without strike time counts from the first
    heartbeats on."""
    command = mpirun(ranks) + [CONVOY] + [str(w) for w in words]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           env=dict(os.environ, OMP_NUM_THREADS="1", **(env or {})))
    try:
        wait_for_steps(job, folder, ranks, first=1 if strike else 0)
        begin = time.time()
        if strike:
            strike({rank: beat["pid"] for rank, beat in heartbeats(folder).items()})
        _, said = job.communicate(timeout=60 * slowness)
        seconds = time.time() - begin
        time.sleep(0.3)
        return Ended(job.returncode, seconds, said, heartbeats(folder), processes_of(folder))
    finally:
        job.kill()
        for pid in processes_of(folder):  # ours alone: the folder is this job's
            os.kill(int(pid), signal.SIGKILL)


def errors(ended):
    return [line for line in ended.said.splitlines() if "] error: " in line]


def problem_of(ended, code, *patterns, limit=ABORT + PATIENCE, deadline=0):
    """None if all is as it must be. The patterns are looked for in the last line that our program printed. The seconds that they
    name are the deadline at least, and less than a second more than twice of it."""
    lines, limit, deadline = errors(ended), slowness * limit, slowness * deadline
    latest = 2 * deadline + slowness
    if ended.code != code:
        return f"exit code {ended.code}, expected {code}"
    if ended.seconds > limit:
        return f"ended after {ended.seconds:.1f} s, more than {limit}"
    if ended.left:
        return f"processes {ended.left} are left"
    for pattern in patterns:
        found = re.search(pattern, lines[-1]) if lines else None
        if not found:
            return f"the last error does not match '{pattern}'"
        for name, seconds in found.groupdict().items():
            if not deadline <= float(seconds) < latest:
                return f"{name}: {seconds} s, not between {deadline} and {latest}"
    if patterns and len(lines) != 1:
        return f"{len(lines)} ranks speak"
    return None


POSITION = r"epoch \d+, step \d+"
WAITED = r"waited (?P<waited>\d+\.\d) s"


def frozen(work, rank, ranks=4):
    """SIGSTOP: the lowest rank that waits names it."""
    folder = f"{work}/frozen-{rank}"
    ended = run_until(ranks, folder, ["train", "--output-dir", folder, *TRAIN, *deadlines()],
                      lambda pids: os.kill(pids[rank], signal.SIGSTOP))
    speaker = 1 if rank == 0 else 0
    return ended, problem_of(ended, 5, rf"^\[rank {speaker}/{ranks} \S+\] error: {WAITED} in \S+ for \S+",
                             rf"did not arrive: rank {rank} on \S+: in \S+, {POSITION}.*its heartbeats stopped \d+ s ago",
                             rf"\(at {POSITION}, \S+\)$", deadline=ABORT)


def frozen_without_run_directory(_, rank=1, ranks=3):
    """A command that has none: ranks of one host know of each other by its memory, and leave nothing there."""
    shared = f"/dev/shm/convoy-{os.getuid()}"
    words = [CONVOY, "bench", "comm", "--megabytes", "0.01", "--steps", "1000000000", *deadlines()]
    job = subprocess.Popen([str(w) for w in mpirun(ranks) + words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    pids = {}
    try:
        end, beats = time.time() + 60, []
        while len(beats) < ranks and time.time() < end:
            time.sleep(0.1)
            # Other jobs of this user may be under way.
            beats = [rank for rank, beat in heartbeats(shared, ".").items() if pids.get(rank) == beat["pid"]]
            for pid in subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True, check=False).stdout.split():
                with open(f"/proc/{pid}/environ", "rb") as file:
                    number = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", file.read())
                if number:
                    pids[int(number.group(1))] = int(pid)
        time.sleep(2)  # the sums are under way
        begin = time.time()
        os.kill(pids[rank], signal.SIGSTOP)
        _, said = job.communicate(timeout=60 * slowness)
        seconds = time.time() - begin
        time.sleep(0.3)
        ended = Ended(job.returncode, seconds, said, {}, [pid for pid in pids.values() if lives(pid)])
    finally:
        job.kill()
    problem = problem_of(ended, 5, rf"^\[rank 0/{ranks} \S+\] error: {WAITED} in \S+ for ",
                         rf"did not arrive: rank {rank} on \S+: in .*its heartbeats stopped \d+ s ago", deadline=ABORT)
    # Other jobs of this user may be under way: ours are named by the process of a rank.
    left = [name for name in os.listdir(shared) if any(f"-{pid:07}-" in name for pid in pids.values())]
    return ended, problem or (f"{left} are left in {shared}" if left else None)


def unwritable_heartbeats(work):
    """No place for them: the run goes on, says so once, and ends well."""
    folder = f"{work}/no-heartbeats"
    os.makedirs(folder)
    open(f"{folder}/heartbeats", "w", encoding="utf-8").close()
    out, err = run(2, "train", "--output-dir", folder, *TRAIN, "--max-steps", 5)
    problem = None if err.count("the run continues without heartbeats") == 1 else "it does not say so once"
    return Ended(0, 0, out + err, {}, []), problem


def lost_heartbeats(work):
    """Their folder goes while the job runs: nothing comes of it, and nothing comes back, as when a newer start removed it."""
    folder = f"{work}/lost-heartbeats"
    ended = run_until(2, folder, ["train", "--output-dir", folder, *TRAIN, "--max-steps", 400],
                      lambda _: shutil.rmtree(f"{folder}/heartbeats"))
    problem = problem_of(ended, 0, limit=60)
    return ended, problem or ("heartbeats came back" if ended.beats else None)


def killed(work, rank, ranks=4):
    """kill -9: the launcher ends the job; the heartbeats tell who died and who was ended."""
    folder = f"{work}/killed-{rank}"
    ended = run_until(ranks, folder, ["train", "--output-dir", folder, *TRAIN, *deadlines()],
                      lambda pids: os.kill(pids[rank], signal.SIGKILL))
    problem = problem_of(ended, 137)
    unexplained = [r for r, b in ended.beats.items() if b["signal"] == 0 and b["exit"] < 0]
    if problem is None and unexplained != [rank]:
        problem = f"by their heartbeats ranks {unexplained} died first, and it was {rank}"
    if problem is None and ended.beats[rank]["step"] < 1:
        problem = "its heartbeat tells no step"
    return ended, problem


def on_hosts(hosts, name, strike, codes, *patterns, abort=ABORT):
    """A job of one rank a host, started by mpirun; strike() once all train. The patterns are looked for in all that was said."""
    folder = str(hosts.work / name)
    places = hosts.folder / "hostfile"
    places.write_text("".join(f"{host} slots=1\n" for host in hosts.addresses), encoding="utf-8")
    # mpirun asks after its daemons: docs/cluster.md. Its files are away from those of other tests.
    asks = {"OMPI_MCA_oob_tcp_keepalive_time": "2", "OMPI_MCA_oob_tcp_keepalive_intvl": "1", "OMPI_MCA_oob_tcp_keepalive_probes": "2"}
    command = ["mpirun", "--mca", "plm_rsh_agent", hosts.remote_shell(), "--hostfile", str(places), "--bind-to", "none", "-np",
               str(len(hosts.addresses)), CONVOY, "train", "--output-dir", folder, *TRAIN, *deadlines(abort)]
    with open(f"{folder}.log", "w+", encoding="utf-8") as log:
        job = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=log, env=dict(os.environ, **asks))
        try:
            wait_for_steps(job, folder, len(hosts.addresses), first=1)
            begin = time.time()
            strike()
            job.wait(timeout=60 * slowness)
        finally:
            job.kill()
        ours = ("convoy", "orted")
        while hosts.processes(*ours) and time.time() < begin + slowness * (abort + PATIENCE):
            time.sleep(0.1)
        left = hosts.processes(*ours)
        log.seek(0)
        ended = Ended(job.returncode, time.time() - begin, log.read(), heartbeats(folder), left)
    problem = problem_of(ended, ended.code if ended.code in codes else codes[0], limit=abort + PATIENCE)
    for pattern in patterns:
        if problem is None and not re.search(pattern, ended.said):
            problem = f"nobody says '{pattern}'"
    return ended, problem


def host_frozen(hosts, name="n2"):
    """Every process of ours on a host but Open MPI's daemon."""
    def strike():
        for host, process, _ in hosts.processes("convoy"):
            if host == name:
                os.kill(process, signal.SIGSTOP)
    return on_hosts(hosts, f"frozen-{time.time():.2f}", strike, [5], rf"error: waited \d\.\d s in \S+ for .*rank {name[1]} on {name}: in \S+, "
                    rf"{POSITION}.*its heartbeats stopped")


def host_crashed(hosts, name="n2"):
    """Power failure. mpirun ends the job: with 205 where it misses its daemon first, with 9 where the remote shell that started it
    ends first, as it does here. By its heartbeats the lost rank is the one that was not asked to stop."""
    ended, problem = on_hosts(hosts, f"crashed-{time.time():.2f}", lambda: hosts.crash(name), [205, 9])
    unexplained = [r for r, b in ended.beats.items() if b["signal"] == 0 and b["exit"] < 0]
    # mpirun may end a rank before it can say so.
    if problem is None and (int(name[1]) not in unexplained or len(unexplained) > 2):
        problem = f"by their heartbeats ranks {unexplained} died first"
    hosts.start(name)
    return ended, problem


def network_cut(hosts, name="n2"):
    """The cable out; the file system, as here, may still be there. The ranks warn; mpirun must give up before they do, since it then
    waits for the lost host's daemon to obey. What runs on that host ends by its own deadline."""
    ended, problem = on_hosts(hosts, f"cut-{time.time():.2f}", lambda: hosts.cut(name), [205], rf"daemon.*on node {name}",
                              "network between them may be cut|did not arrive: ",
                              abort=10)
    hosts.heal(name)
    return ended, problem


def prepared(work):
    data = f"{work}/data"
    if not os.path.isdir(data):
        run(1, "synthetic", "--out", data, "--samples", 90, "--val-samples", 20, "--image-size", 16, "--partitions", 3,
            program=PREPROCESS)
    return data


def on_data(work, name, how, *words):
    """Rank 1 of 3 cannot read its samples in partition 1."""
    folder = f"{work}/{name}"
    shim = os.environ["CONVOY_STUCK_READS"]
    env = {"LD_PRELOAD": shim, "STUCK_RANK": "1", "STUCK_PATH": "train-00001-of-00003", "STUCK_HOW": how}
    return run_until(3, folder, ["train", "--output-dir", folder, "--data", prepared(work), "--model", "lenet", "--batch-size", 8,
                                 "--epochs", 1, "--threads", 1, "--no-tensorboard", *words], None, env)


def stuck(work):
    """A read that never returns: the watchdog of that rank ends it, naming the file."""
    ended = on_data(work, "stuck", "hang", "--watchdog-seconds", slowness * WATCHDOG)
    return ended, problem_of(ended, 5, r"^\[rank 1/3 \S+\] error: no progress for (?P<quiet>\d+\.\d) s in phase \S+ \(",
                             r"read of '\S+train-00001-of-00003.h5' for (?P<read>\d+\.\d) s; main thread in state [SD]\)", deadline=WATCHDOG)


def stuck_unwatched(work):
    """The same without watchdog: the others name it."""
    ended = on_data(work, "stuck-unwatched", "hang", "--watchdog-seconds", 0, *deadlines())
    return ended, problem_of(ended, 5, rf"^\[rank 0/3 \S+\] error: {WAITED} in \S+ for loading the samples",
                             r"did not arrive: rank 1 on \S+: alive in \S+, .*no progress for \d+ s", deadline=ABORT)


def unreadable(work):
    """EIO on one rank: one message, of that rank."""
    ended = on_data(work, "unreadable", "eio")
    return ended, problem_of(ended, 3, r"^\[rank 1/3 \S+\] error: .*train-00001-of-00003.h5.*Input/output error")


def thrown(work, rank, ranks=4):
    """An exception in a step."""
    folder = f"{work}/thrown-{rank}"
    ended = run_until(ranks, folder, ["train", "--output-dir", folder, *TRAIN, "--inject-fault", f"throw@{rank}@2"], None)
    return ended, problem_of(ended, 1, rf"^\[rank {rank}/{ranks} \S+\] error: injected fault.*\(at epoch 1, step 3, \S+\)$")
