# SPDX-License-Identifier: Apache-2.0
"""The rules of job scripts: short, one launch line, directives that the schedulers accept and that let a job go on."""
import re

LONGEST = 40

SLURM_OPTIONS = {"job-name", "array", "nodes", "ntasks-per-node", "cpus-per-task", "gpus-per-node", "time", "requeue", "signal",
                 "open-mode", "output", "mem", "exclusive", "partition", "account", "gpus-per-task", "mem-per-cpu"}

TIME = r"(?:\d+:)?\d{1,2}:\d{2}"
# What may follow #PBS, by OpenPBS 23's qsub(1B) and pbs_resources(7B).
CHUNK = r"(?:\d+:)?(?:ncpus|mpiprocs|ompthreads|ngpus|mem)=\w+(?::(?:ncpus|mpiprocs|ompthreads|ngpus|mem)=\w+)*"
PBS_DIRECTIVES = (
    r"-N [A-Za-z0-9_.+-]{1,236}",
    rf"-l select={CHUNK}(?:\+{CHUNK})*",
    r"-l place=(?:free|pack|scatter|vscatter)(?::(?:excl|exclhost|shared))?",
    rf"-l walltime={TIME}",
    r"-j (?:oe|eo|n)",
    r"-r [yn]",
    r"-q [\w@.-]+",
    r"-J \d+-\d+(?::\d+)?(?:%\d+)?",
    r"-[AoeP] \S+",
    r"-k (?:[eod]+|n)",
)


def directives_of(text, prefix):
    """(number, rest of the line) of the directives, and whether one stands behind the first command, where schedulers no
    longer look."""
    found, late, commands = [], False, False
    for line in text.splitlines():
        if line.startswith(prefix):
            found.append(line.removeprefix(prefix).strip())
            late |= commands
        elif line.strip() and not line.startswith("#"):
            commands = True
    return found, late


def slurm_violations(name, text):
    directives, late = directives_of(text, "#SBATCH")
    if late:
        yield f"{name}: an #SBATCH line stands behind the first command, where sbatch ignores it"
    options = {}
    for directive in directives:
        match = re.fullmatch(r"--([a-z-]+)(?:=(\S+))?", directive)
        if not match or match[1] not in SLURM_OPTIONS:
            yield f"{name}: '#SBATCH {directive}' is not of the form --OPTION=VALUE with a known option"
        else:
            options[match[1]] = match[2]
    for needed in ("job-name", "nodes", "time", "output", "requeue"):
        if needed not in options:
            yield f"{name}: no #SBATCH --{needed}"
    if options.get("open-mode") != "append":
        yield f"{name}: without --open-mode=append a requeued job overwrites its log"
    if "run_directory=" in text:
        signal = re.fullmatch(r"B:USR1@(\d+)", options.get("signal") or "")
        if not signal or int(signal[1]) < 60:
            yield f"{name}: needs --signal=B:USR1@SECONDS, 60 or more, since Slurm looks every 30 s"


def pbs_violations(name, text):
    directives, late = directives_of(text, "#PBS")
    if late:
        yield f"{name}: a #PBS line stands behind the first command, where qsub ignores it"
    for directive in directives:
        if not any(re.fullmatch(pattern, directive) for pattern in PBS_DIRECTIVES):
            yield f"{name}: '#PBS {directive}' is nothing that OpenPBS takes"
    for needed in (r"-N .*", r"-l select=.*", r"-l walltime=.*", r"-r y", r"-j oe"):
        if not any(re.fullmatch(needed, directive) for directive in directives):
            yield f"{name}: no #PBS {needed.removesuffix('.*')}"
    for variable in re.findall(r"\$\{?(SLURM_\w+)", text):
        yield f"{name}: uses {variable}, which PBS does not set"


def violations(name, text):
    lines = text.splitlines()
    if len(lines) >= LONGEST:
        yield f"{name}: {len(lines)} lines, and a job script has less than {LONGEST}"
    if lines[0] != "#!/bin/bash":
        yield f"{name}: does not begin with #!/bin/bash"
    launches = re.findall(r"^\s*(?:exec )?(?:launch|srun|mpirun|mpiexec)\b", text, re.MULTILINE)
    if len(launches) != 1:
        yield f"{name}: {len(launches)} launch lines, and it should have one"
    if f" && . scripts/batch.sh {name}; }} ||\n" not in text:
        yield f"{name}: does not source scripts/batch.sh with its own name"
    if "run_directory=" in text and not ("--resume auto" in text and '--end-time "$(end_time)"' in text):
        yield f"{name}: trains without --resume auto or --end-time, so it can't go on by itself"
    yield from (slurm_violations if name.startswith("slurm/") else pbs_violations)(name, text)
