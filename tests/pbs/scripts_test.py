# SPDX-License-Identifier: Apache-2.0
"""What job scripts ask of a scheduler and make of its answers: no hosts, no MPI, no waiting. The PBS is that of commands.py, with one
job at a time; Slurm's commands say the little that is needed. F1 to F10 are the failures of "Jobs under PBS" in bench/results.md.
Usage: scripts_test.py"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../slurm"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../end_to_end"))
import commands  # noqa: E402
from runner import CONVOY, SOURCE, work_folder  # noqa: E402

HOUR = ["-l", "select=1:ncpus=2:mpiprocs=2", "-l", "walltime=01:00:00"]
failed = []


def check(good, text, found=""):
    """All are tried, so that a run with other scripts shows everything that these fail."""
    print(("ok   " if good else "FAIL ") + text + ("" if good else f": {found}"), flush=True)
    if not good:
        failed.append(text)


def executable(path, text):
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}", encoding="utf-8")
    path.chmod(0o755)


class Desk:
    """A PBS whose jobs run when told to."""

    def __init__(self, folder, tree=SOURCE, **server):
        self.folder, self.tree = pathlib.Path(folder), pathlib.Path(tree)
        for name in ("jobs", "bin", "home", "spool"):
            (self.folder / name).mkdir(parents=True)
        self.set(**server)
        for name in ("qsub", "qstat", "mpirun"):
            executable(self.folder / "bin" / name, commands.program(self.folder, name))
        for name in ("ompi_info", "pbs_tmrsh", "sleep"):
            executable(self.folder / "bin" / name, "true\n")

    def set(self, **server):
        self.server = server
        (self.folder / "server.json").write_text(json.dumps(server), encoding="utf-8")

    def qsub(self, *words, cwd=None, script=None, **variables):
        """Returns the job's id, or what qsub said. Variables are the job's own."""
        variables = {"CONVOY": CONVOY, "CONVOY_HOME": str(self.tree), "CONVOY_DEVICE": "cpu", "OUTPUT": str(self.folder / "run"), **variables}
        environment = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "HOME": str(self.folder / "home"), **variables}
        done = subprocess.run(["qsub", *words, "-v", ",".join(variables), script or f"{self.tree}/pbs/train.pbs"], cwd=cwd or self.folder,
                              env=environment, text=True, capture_output=True, timeout=30, check=False)
        return done.stdout.strip() or done.stderr.strip()

    def job(self, number):
        return json.loads((self.folder / f"jobs/{number}/job.json").read_text(encoding="utf-8"))

    def run(self, most=9, age=0):
        """Runs what is queued, `age` seconds after PBS had started it, until nothing is. Returns the outputs."""
        outputs = []
        for number in range(100):
            if not (self.folder / f"jobs/{number}/job.json").exists() or len(outputs) >= most:
                break
            job = self.job(number)
            if job["state"] == "F":
                continue
            for index in job["indices"] or [None]:
                one = dict(job)
                if index is not None:
                    one["id"] = job["id"].replace("[]", f"[{index}]")
                    one["variables"] = job["variables"] | {"PBS_ARRAY_INDEX": str(index), "PBS_ARRAY_ID": job["id"]}
                    commands.path_of(self.folder, one["id"]).parent.mkdir()
                outputs.append(self.start(one, age))
            commands.write(self.folder, {**job, "state": "F"})
        return outputs

    def start(self, job, age):
        script, nodes = self.folder / f"spool/{job['id']}.SC", self.folder / f"spool/{job['id']}.nodes"
        script.write_text(job["text"], encoding="utf-8")
        script.chmod(0o700)
        hosts = [f"n{i}" for i in range(sum(number for number, _ in commands.chunks_of(job)))]
        nodes.write_text("".join(f"{line}\n" for line in commands.node_lines(job, hosts)), encoding="utf-8")
        job.update(state="R", stime=time.time() - age, hosts=hosts)
        commands.write(self.folder, job)
        environment = commands.environment_of(job, nodes, self.folder / "home")
        environment.update(PATH=f"{self.folder}/bin:/usr/bin:/bin", SECONDS=str(age))
        done = subprocess.run(["bash"], input=f"{script}\n", cwd=self.folder / "home", env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=30, check=False)
        commands.write(self.folder, {**job, "state": "F"})
        return done.stdout

    def launches(self):
        path = self.folder / "launches"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def end_time(self):
        """As the program of the first job was told."""
        words = self.launches()[0]["words"]
        return words[words.index("--end-time") + 1]


def places_ranks(work):
    shapes = {"2:ncpus=1:mpiprocs=1": "n0 n1", "3:ncpus=4": "n0 n1 n2", "1:ncpus=1:mpiprocs=1+1:ncpus=2:mpiprocs=2": "n0 n1 n1",
              "2:ncpus=2:mpiprocs=2": "n0 n0 n1 n1"}
    for number, (select, wanted) in enumerate(shapes.items()):
        desk = Desk(work / str(number), program={"code": 0})
        desk.qsub("-l", f"select={select}")
        text = desk.run()
        found = " ".join(desk.launches()[0]["hosts"]) if desk.launches() else text
        check(found == wanted, f"F1 select={select}: ranks on {wanted}", found)


def leaves_hosts_out(work):
    """RUN/excluded-hosts: no ranks there, whether PBS names hosts in full or not; nothing starts where all are in it."""
    edited = "# n0 is repaired\r\n\r\n10.0.0.7\n  n1.cluster.local\t4\tx\r\n"
    for number, (listed, wanted) in enumerate((("n1\t3\trank 1: arithmetic\n", "n0 n0 n2 n2"), ("n0.cluster\t1\tx\nn2\t2\tx\n", "n1 n1"),
                                               (edited, "n0 n0 n2 n2"))):
        desk = Desk(work / str(number), program={"code": 0})
        (desk.folder / "run").mkdir()
        (desk.folder / "run/excluded-hosts").write_text(listed, encoding="utf-8")
        desk.qsub("-l", "select=3:ncpus=2:mpiprocs=2")
        text = desk.run()
        found = " ".join(desk.launches()[0]["hosts"]) if desk.launches() else text
        check(found == wanted, f"excluded {listed.split()[0]}: ranks on {wanted}", found)
    desk = Desk(work / "all", program={"code": 0})
    (desk.folder / "run").mkdir()
    (desk.folder / "run/excluded-hosts").write_text("n0\n", encoding="utf-8")
    desk.qsub("-l", "select=1:ncpus=2:mpiprocs=2")
    text = "".join(desk.run())
    check("all hosts of this job are in" in text and not desk.launches(), "all excluded: says so", text)


def continues_elements(work):
    """With the script's own name left in a copy, as a user makes it."""
    desk = Desk(work)
    copy = (desk.tree / "pbs/train.pbs").read_text(encoding="utf-8").replace("#PBS -N resnet152", "#PBS -N sweep\n#PBS -J 0-2")
    (work / "sweep.pbs").write_text(copy.replace("${OUTPUT:-runs/resnet152}", "$OUTPUT/$PBS_ARRAY_INDEX"), encoding="utf-8")
    first = desk.qsub(*HOUR, script="sweep.pbs")
    text = desk.run(most=1)
    check(first == "0[].pbs" and len(text) == 3, "an array of three runs", (first, text))
    found = sorted(path.name for path in (work / "jobs").iterdir() if path.name.isdigit() and path.name != "0")
    again = [desk.job(number)["indices"] for number in found]
    check(again == [[0], [1], [2]], "F2 each element of an array continues alone", (again, text[0][-600:]))
    check(all(desk.job(number)["text"] == desk.job(0)["text"] for number in found) and found, "F2 with the user's own script, under any name",
          again)


def goes_through_a_route(work):
    queues = {"workq": {}, "route": {"to": "small"}, "small": {"from_route_only": True}}
    desk = Desk(work, queues=queues)
    desk.qsub(*HOUR, "-q", "route", CONVOY_RESUBMISSIONS="1")
    text = desk.run()
    check(len(text) == 2 and desk.job(1)["queue"] == "small", "F3 a job of a routing queue submits itself there again", text[0][-300:])


def stops_in_vain(work):
    data = work / "data"
    data.mkdir(parents=True)
    for name, partitions, jobs in (("none", 0, 3), ("one a job", 1, 4)):
        desk = Desk(work / name.replace(" ", "-"), program={"partitions": partitions})
        desk.qsub(*HOUR, script=f"{desk.tree}/pbs/preprocess.pbs", SOURCE="/raw", DATA=str(data), CONVOY_RESUBMISSIONS="3",
                  CONVOY_PREPROCESS="true")
        text = desk.run()
        check(len(text) == jobs, f"F4 a preparation of {name} partitions: {jobs} jobs", (len(text), text[-1][-300:]))
        if partitions == 0:
            check("3 jobs in a row made no progress" in text[-1], "F4 the last one says why it stops", text[-1][-300:])
    desk = Desk(work / "killed", program={"code": 137})
    desk.qsub(*HOUR, script=f"{desk.tree}/pbs/evaluate.pbs", RUN="/run", DATA=str(data), CONVOY_RESUBMISSIONS="4")
    text = desk.run()
    check(len(text) == 3, "F4 an evaluation that is killed each time: 3 jobs", (len(text), text[-1][-300:]))


def knows_its_end(work):
    for name, server in (("stime that comes late", {"stime_after": 99}), ("a server that is busy once", {"qstat_fails": 1})):
        desk = Desk(work / name.replace(" ", "-"), program={"code": 0}, **server)
        desk.qsub(*HOUR)
        begin = time.time()
        desk.run(age=600)
        found = desk.end_time()
        check(found.isdigit() and abs(int(found) - (begin + 3000)) < 10, f"F5 {name}: the end is known", found)
    desk = Desk(work / "down", qstat_fails=99, program={"told": True})
    desk.qsub(*HOUR)
    text = desk.run()[0]
    check("does not tell the wall time" in text and "cannot connect to server" in text, "F5 no answer at all is said, with the reason", text)
    check("before its time was up" not in text and "not known" in text and not (work / "down/jobs/1").exists(),
          "F5 nobody claims to know whether that job's time was up", text[-300:])


def tells_qdel_from_the_limit(work):
    for name, age, jobs in (("in the last minute", 3570, 1), ("in the middle", 1000, 1), ("after the limit, as PBS kills", 3615, 2)):
        desk = Desk(work / str(age), program={"told": True})
        desk.qsub(*HOUR, CONVOY_RESUBMISSIONS="1")
        text = desk.run(most=1, age=age)[0]
        found = len(list((work / str(age) / "jobs").iterdir()))
        check(found == jobs, f"F7 told to end {name}: {'goes on' if jobs == 2 else 'ends for good'}", text[-300:])


def has_a_blank(work):
    tree = work / "two words"
    tree.mkdir(parents=True)
    for name in ("pbs", "scripts", "configs"):
        (tree / name).symlink_to(f"{SOURCE}/{name}")
    desk = Desk(work / "desk", tree=tree, program={"code": 0})
    desk.qsub("-l", "select=2:ncpus=2:mpiprocs=2")
    text = desk.run()[0]
    check(len(desk.launches()) == 1, "F8 a tree with a blank in its path: ranks start on two hosts", text[-300:])


def keeps_what_was_asked(work):
    (work / "logs").mkdir(parents=True)
    desk = Desk(work / "desk")
    asked = {"-N": "mychain", "-p": "5", "-m": "n", "-M": "me@here,you@there", "-j": "eo", "-A": "climate", "-P": "long"}
    words = [word for pair in asked.items() for word in pair]
    desk.qsub(*HOUR, *words, "-l", "software=licence", "-r", "n", "-W", "group_list=users", "-o", f"{work}/logs/", "-e", "err.txt",
              CONVOY_RESUBMISSIONS="1", OMPI_MCA_btl="self,vader,tcp")
    text = desk.run()
    if len(text) != 2:
        check(False, "F9 a follower runs", text)
        return
    first, second = desk.job(0), desk.job(1)
    for name in ("name", "shown", "resources", "rerunnable", "account", "project", "queue", "workdir"):
        check(first[name] == second[name], f"F9 a follower keeps {name}", (first[name], second[name]))
    logs = [commands.log_path(desk.job(number), letter) for number in (0, 1) for letter in "oe"]
    check(logs[0] == logs[2] == f"login:{work}/logs/" and logs[1] == logs[3] == f"login:{desk.folder}/err.txt", "F9 its logs go to the same places", logs)
    found = second["variables"].get("OMPI_MCA_btl")
    check(found == "self,vader,tcp", "F9 a value with commas arrives", found)
    usual = Desk(work / "usual")
    usual.qsub(*HOUR, CONVOY_RESUBMISSIONS="1")
    usual.run()
    check(usual.job(1)["paths"] == {} and usual.job(1)["shown"] == usual.job(0)["shown"], "F9 and what was not asked for stays as PBS has it",
          usual.job(1))


def meets_a_site(work):
    desk = Desk(work / "default", flatuid=False, resources=[], program={"code": 0})
    check(desk.qsub() == "qsub: Unknown resource: ngpus", "a site without ngpus refuses the GPUs")
    job = desk.qsub("-l", "select=2:ncpus=2:mpiprocs=2", CONVOY_RESUBMISSIONS="1")
    text = desk.run()
    check(job == "0.pbs" and len(text) == 1 and "may refuse that jobs submit themselves" in text[0], "F6 a job says at its start that qsub may be refused there",
          (job, text))
    desk = Desk(work / "elsewhere", program={"code": 0})
    desk.qsub(*HOUR, CONVOY_HOME="", cwd=work)
    text = desk.run()[0]
    check("CONVOY_HOME" in text, "F10 submitted from another folder: what to do is said", text)
    desk = Desk(work / "no-mpi", program={"code": 0})
    (desk.folder / "bin/mpirun").unlink()
    desk.qsub(*HOUR)
    text = desk.run()[0] if shutil.which("mpirun", path="/usr/bin:/bin") is None else "not in PATH"
    check("not in PATH" in text, "no mpirun: one clear line", text)


def by_hand(_):
    for script in (*sorted(pathlib.Path(SOURCE, "slurm").glob("*.sh")), *sorted(pathlib.Path(SOURCE, "pbs").glob("*.pbs"))):
        done = subprocess.run(["bash", script], cwd=SOURCE, env={"PATH": "/usr/bin:/bin", "HOME": "/"}, text=True, capture_output=True, timeout=30,
                              check=False)
        name = f"{script.parent.name}/{script.name}"
        command = "sbatch" if script.parent.name == "slurm" else "qsub"
        check(done.stderr.count("\n") == 1 and f"'{command} {name}'" in done.stderr and done.returncode == 2,
              f"F10 bash {name}: one line that says how to start it", done.stderr)


def knows_states(work):
    """An element of an array that has ended while others run is in state X."""
    work.mkdir()
    state = dict.fromkeys(("format", "attempt", "pid", "ranks", "epoch", "epochs", "step", "steps", "start_step", "steps_per_epoch",
                           "images_per_second", "eta_seconds", "end_time", "stop_time", "started", "exit", "rank"), 1)
    state |= {"run": "r", "scheduler": "pbs", "job": "0[1].pbs", "host": "elsewhere", "phase": "train", "stop": "", "message": "", "result": "running",
              "checkpoint": {"file": "", "step": 0, "time": 0, "seconds": 0}, "progressed": time.time(), "updated": time.time()}
    (work / "state.json").write_text(json.dumps(state), encoding="utf-8")
    for letter, code in (("R", 0), ("X", 75)):
        executable(work / "qstat", f"echo '    job_state = {letter}'\n")
        done = subprocess.run([CONVOY, "status", work], env={"PATH": f"{work}:/usr/bin:/bin"}, text=True, capture_output=True, timeout=30, check=False)
        check(done.returncode == code, f"status of a job in state {letter}: {code}", (done.returncode, done.stdout, done.stderr))


def stops_in_vain_under_slurm(work):
    """Slurm starts the same job again, with a count of restarts."""
    programs, data = work / "bin", work / "data"
    for folder in (programs, data):
        folder.mkdir(parents=True)
    executable(programs / "squeue", f"[ -e {work}/asked ] || {{ touch {work}/asked; exit 1; }}\ndate -d '1 hour' +%FT%T\n")
    executable(programs / "sleep", "true\n")
    executable(programs / "srun", 'case "$*" in *" true") exit 0 ;; esac\nexit 75\n')
    executable(programs / "scontrol", f"touch {work}/again\nkill -TERM $PPID\n")
    starts = 0
    while starts < 6:
        environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(work), "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(starts),
                       "SLURM_SUBMIT_DIR": SOURCE, "CONVOY": CONVOY, "SOURCE": "/raw", "DATA": str(data), "CONVOY_PREPROCESS": "true"}
        done = subprocess.run(["bash", f"{SOURCE}/slurm/preprocess_imagenet.sh"], env=environment, text=True, capture_output=True, timeout=30,
                              check=False)
        check(re.search(r"--end-time \d+", done.stderr), "F5 under Slurm: the end is known, also if squeue fails once", done.stderr)
        starts += 1
        if not (work / "again").exists():
            break
        (work / "again").unlink()
    check(starts == 3, "F4 under Slurm: a preparation of none partitions: 3 starts", (starts, done.stderr[-400:]))


# Jobs as the servers print them. Name of the case, the job's attributes in their order, options that must and must not be handed on.
LONG = "an_account_with_a_name_that_is_far_too_long_for_a_line_of_qstat_which_folds_what_is_longer_than_79"
CASES = [
    ("directives alone",
     ["Job_Name = resnet152", "queue = workq", "project = _pbs_project_default", "Resource_List.ncpus = 128", "Resource_List.mpiprocs = 16",
      "Resource_List.nodect = 4", "Resource_List.place = scatter", "Resource_List.select = 4:ncpus=32:mpiprocs=4:ngpus=4",
      "Resource_List.walltime = 24:00:00", "stime = Sat Nov 28 10:00:00 2026"],
     {"-N resnet152", "-q workq", "-l place=scatter", "-l select=4:ncpus=32:mpiprocs=4:ngpus=4", "-l walltime=24:00:00"}),
    ("account, project and other resources",
     ["Account_Name = climate-7", "queue = express", "project = long names", "Resource_List.mem = 16gb", "Resource_List.ncpus = 8", "Resource_List.place = free",
      "Resource_List.select = 8:ncpus=1:mpiprocs=1:mem=2gb", "Resource_List.walltime = 00:20:00"],
     {"-A climate-7", "-P long names", "-q express", "-l place=free", "-l select=8:ncpus=1:mpiprocs=1:mem=2gb", "-l walltime=00:20:00"}),
    ("a folded line", [f"Account_Name = {LONG}", "queue = workq", "Resource_List.select = 1:ncpus=4", "Resource_List.walltime = 01:00:00"],
     {f"-A {LONG}", "-q workq", "-l select=1:ncpus=4", "-l walltime=01:00:00"}),
    ("nodes, as OpenPBS takes it",  # it prints the chunks that it made of them, but takes no select beside nodes
     ["queue = workq", "project = _pbs_project_default", "Resource_List.mpiprocs = 4", "Resource_List.ncpus = 4", "Resource_List.nodect = 2",
      "Resource_List.nodes = 2:ppn=2", "Resource_List.place = scatter", "Resource_List.select = 2:ncpus=2:mpiprocs=2",
      "Resource_List.walltime = 01:00:00"],
     {"-q workq", "-l nodes=2:ppn=2", "-l walltime=01:00:00"}),
    ("a site's name for GPUs, as OpenPBS prints it",
     ["queue = workq", "Resource_List.gpus = 16", "Resource_List.ncpus = 128", "Resource_List.nodect = 4",
      "Resource_List.select = 4:ncpus=32:gpus=4", "Resource_List.software = x", "Resource_List.walltime = 01:00:00"],
     {"-q workq", "-l select=4:ncpus=32:gpus=4", "-l software=x", "-l walltime=01:00:00"}),
    ("nodes, as Torque prints it", ["queue = batch", "Account_Name = x", "Resource_List.mem = 8gb", "Resource_List.nodect = 4", "Resource_List.neednodes = 4:ppn=4",
                                    "Resource_List.nodes = 4:ppn=4:gpus=4", "Resource_List.walltime = 24:00:00"],
     {"-q batch", "-A x", "-l mem=8gb", "-l nodes=4:ppn=4:gpus=4", "-l walltime=24:00:00"}),
]


def hands_on(work, attributes):
    """The options that qsub gets, each with its value, and what follows them."""
    work.mkdir(parents=True)
    shown = "\n".join(["Job Id: 7.server", *(commands.fold(f"    {line}") for line in attributes), ""])
    (work / "qstat.txt").write_text(shown, encoding="utf-8")
    executable(work / "qstat", f'[ "$*" = "-f 7.server" ] && cat {work}/qstat.txt\n')
    executable(work / "qsub", f'for word; do echo "$word"; done >{work}/words\n')
    executable(work / "mpirun", "exit 75\n")
    executable(work / "ompi_info", "true\n")
    (work / "nodes").write_text("a\nb\n", encoding="utf-8")
    environment = {"PATH": f"{work}:/usr/bin:/bin", "HOME": str(work), "PBS_JOBID": "7.server", "PBS_NODEFILE": str(work / "nodes"),
                   "PBS_O_WORKDIR": str(work), "DATA": "/data", "CONVOY_RESUBMITTED": "3", "CONVOY": CONVOY}
    done = subprocess.run(["bash", "-c", ". scripts/batch.sh pbs/train.pbs; launch true"], cwd=SOURCE, env=environment, text=True,
                          capture_output=True, timeout=30, check=False)
    check(done.returncode == 75, "the script ends with 75", (done.returncode, done.stderr))
    words = (work / "words").read_text(encoding="utf-8").splitlines()
    pairs = [f"{words[i]} {words[i + 1]}" for i in range(0, len(words) - 1, 2)]
    return pairs, words[-1]


def forms(work):
    for number, (name, attributes, wanted) in enumerate(CASES):
        options, script = hands_on(work / str(number), attributes)
        check("-W depend=afterany:7.server" in options and script == f"{SOURCE}/pbs/train.pbs", f"{name}: after this job, the same script", script)
        variables = next(option for option in options if option.startswith("-v "))
        check(set(variables[3:].split(",")) >= {"DATA", "CONVOY_RESUBMITTED"}, f"{name}: the variables", variables)
        found = {option for option in options if option[:2] not in ("-W", "-v")}
        check(found == wanted and len(options) == len(wanted) + 2, name, sorted(found))


def main():
    with work_folder() as folder:
        work = pathlib.Path(folder)
        tests = (stops_in_vain, places_ranks, leaves_hosts_out, continues_elements, goes_through_a_route, knows_its_end, tells_qdel_from_the_limit, has_a_blank,
                 keeps_what_was_asked, meets_a_site, knows_states, stops_in_vain_under_slurm, forms, by_hand)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # each has a folder of its own
            for done in [pool.submit(test, work / test.__name__) for test in tests]:
                done.result()
    findings = sorted({name for text in failed for name in re.findall(r"^F\d+", text)}, key=lambda name: int(name[1:]))
    if failed:
        sys.exit(f"{len(failed)} failed, of findings: {' '.join(findings)}")


if __name__ == "__main__":
    main()
