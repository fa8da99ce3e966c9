# SPDX-License-Identifier: Apache-2.0
"""What a job script hands on to qsub when it submits itself again, for jobs as qstat of OpenPBS and Torque prints them. Usage:
resubmission_test.py"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../end_to_end"))
from commands import fold  # noqa: E402
from runner import SOURCE, check, work_folder  # noqa: E402

LONG = "an_account_with_a_name_that_is_far_too_long_for_a_line_of_qstat_which_folds_what_is_longer_than_79"
# Name of the case, the job's attributes in the order in which the server prints them, options that must and must not be handed on.
CASES = [
    ("directives alone",
     ["Job_Name = resnet152", "queue = workq", "project = _pbs_project_default", "Resource_List.ncpus = 128", "Resource_List.mpiprocs = 16",
      "Resource_List.nodect = 4", "Resource_List.place = scatter", "Resource_List.select = 4:ncpus=32:mpiprocs=4:ngpus=4",
      "Resource_List.walltime = 24:00:00", "stime = Sat Nov 28 10:00:00 2026"],
     {"-q workq", "-l place=scatter", "-l select=4:ncpus=32:mpiprocs=4:ngpus=4", "-l walltime=24:00:00"}),
    ("account, project and other resources",
     ["Account_Name = climate-7", "queue = express", "project = long names", "Resource_List.ncpus = 8", "Resource_List.place = free",
      "Resource_List.select = 8:ncpus=1:mpiprocs=1:mem=2gb", "Resource_List.walltime = 00:20:00"],
     {"-A climate-7", "-P long names", "-q express", "-l place=free", "-l select=8:ncpus=1:mpiprocs=1:mem=2gb", "-l walltime=00:20:00"}),
    ("a folded line", [f"Account_Name = {LONG}", "queue = workq", "Resource_List.select = 1:ncpus=4", "Resource_List.walltime = 01:00:00"],
     {f"-A {LONG}", "-q workq", "-l select=1:ncpus=4", "-l walltime=01:00:00"}),
    ("nodes, as OpenPBS takes it",  # it prints the chunks that it made of them, but takes no select beside nodes
     ["queue = workq", "project = _pbs_project_default", "Resource_List.mpiprocs = 4", "Resource_List.ncpus = 4", "Resource_List.nodect = 2",
      "Resource_List.nodes = 2:ppn=2", "Resource_List.place = scatter", "Resource_List.select = 2:ncpus=2:mpiprocs=2",
      "Resource_List.walltime = 01:00:00"],
     {"-q workq", "-l nodes=2:ppn=2", "-l walltime=01:00:00"}),
    ("nodes, as Torque prints it", ["queue = batch", "Account_Name = x", "Resource_List.nodect = 4", "Resource_List.nodes = 4:ppn=4:gpus=4",
                                    "Resource_List.walltime = 24:00:00"],
     {"-q batch", "-A x", "-l nodes=4:ppn=4:gpus=4", "-l walltime=24:00:00"}),
]


def executable(path, text):
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(0o755)


def resubmitted(work, attributes):
    """The options that qsub gets, each with its value, and what follows them."""
    work.mkdir()
    shown = "\n".join(["Job Id: 7.server", *(fold(f"    {line}") for line in attributes), ""])
    (work / "qstat.txt").write_text(shown, encoding="utf-8")
    executable(work / "qstat", f'[ "$*" = "-f 7.server" ] && cat {work}/qstat.txt\n')
    executable(work / "qsub", f'for word; do echo "$word"; done >{work}/words\n')
    executable(work / "mpirun", "exit 75\n")
    executable(work / "ompi_info", "true\n")
    (work / "nodes").write_text("a\nb\n", encoding="utf-8")
    environment = {"PATH": f"{work}:/usr/bin:/bin", "HOME": str(work), "PBS_JOBID": "7.server", "PBS_NODEFILE": str(work / "nodes"),
                   "PBS_O_WORKDIR": str(work), "DATA": "/data", "CONVOY_RESUBMITTED": "3"}
    done = subprocess.run(["bash", "-c", ". scripts/batch.sh pbs/train.pbs; launch true"], cwd=SOURCE, env=environment, text=True,
                          capture_output=True, timeout=30, check=False)
    check(done.returncode == 75, f"the script ends with {done.returncode}" + ("" if done.returncode == 75 else done.stderr))
    words = (work / "words").read_text(encoding="utf-8").splitlines()
    pairs = [f"{words[i]} {words[i + 1]}" for i in range(0, len(words) - 1, 2)]
    return pairs, words[-1]


def main():
    with work_folder() as work:
        for number, (name, attributes, wanted) in enumerate(CASES):
            options, script = resubmitted(pathlib.Path(work) / str(number), attributes)
            check("-W depend=afterany:7.server" in options and script == f"{SOURCE}/pbs/train.pbs", f"{name}: after this job, the same script")
            variables = next(option for option in options if option.startswith("-v "))
            check(set(variables[3:].split(",")) >= {"DATA", "CONVOY_RESUBMITTED"}, f"{name}: the variables")
            found = {option for option in options if option[:2] not in ("-W", "-v")}
            check(found == wanted and len(options) == len(wanted) + 2, f"{name}: {sorted(found)}")


if __name__ == "__main__":
    main()
