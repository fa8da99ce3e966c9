# SPDX-License-Identifier: Apache-2.0
"""qsub, qstat, qdel and pbs_tmrsh as jobs of OpenPBS 23 see them. Usage: commands.py FOLDER NAME ARGUMENT ..."""
import json
import os
import pathlib
import re
import signal
import sys
import time

import mom

SERVER = "pbs"


def fail(text):
    sys.exit(text)


def read_options(words):
    """qsub's: (letter, value) pairs, and what follows."""
    options = []
    words = list(words)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if len(word) < 2 or word[1] not in "ACJNPWelojkqrv":
            fail(f"qsub: illegal option {word}")
        value = word[2:] or (words.pop(0) if words else fail(f"qsub: option {word} needs a value"))
        options.append((word[1], value))
    return options, words


def directives_of(text):
    """#PBS lines up to the first command."""
    for line in text.splitlines():
        if line.startswith("#PBS"):
            yield from read_options(line.split()[1:])[0]
        elif line.strip() and not line.startswith("#"):
            return


def job_of(options, environment):
    job = {"resources": {}, "variables": {}, "after": None, "queue": "workq", "name": None, "rerunnable": True,
           "account": None, "project": "_pbs_project_default"}
    for letter, value in options:
        if letter == "l":
            name, _, what = value.partition("=")
            job["resources"][name] = what
        elif letter == "v":
            for item in value.split(","):
                name, given, what = item.partition("=")
                if given or name in environment:
                    job["variables"][name] = what if given else environment[name]
        elif letter == "W":
            found = re.fullmatch(r"depend=after(?:any|ok|notok):(\S+)", value)
            job["after"] = found[1] if found else fail(f"qsub: illegal -W {value}")
        elif letter == "N":
            job["name"] = value
        elif letter == "q":
            job["queue"] = value
        elif letter == "A":
            job["account"] = value
        elif letter == "P":
            job["project"] = value
    if "nodes" in job["resources"]:
        if "select" in job["resources"] or "place" in job["resources"]:
            fail('qsub: "-lplace=" or "-lselect=" cannot be used with old "resource" syntax')
        hosts, _, ranks = job["resources"]["nodes"].partition(":ppn=")
        job["resources"].update(select=f"{hosts}:ncpus={ranks}:mpiprocs={ranks}", place="scatter")
    if not re.fullmatch(r"\d+(?::(?:ncpus|mpiprocs|ngpus|mem)=\w+)+", job["resources"].get("select", "")):
        fail("qsub: Illegal attribute or resource value Resource_List.select")
    return job


def qsub(folder, words):
    options, rest = read_options(words)
    if len(rest) != 1:
        fail("qsub: one script, please")
    text = pathlib.Path(rest[0]).read_text(encoding="utf-8")
    job = job_of([*directives_of(text), *options], os.environ)  # the command line wins
    number = 0
    while True:  # the first number that is free
        try:
            (folder / f"jobs/{number}").mkdir()
            break
        except FileExistsError:
            number += 1
    job.update(id=f"{number}.{SERVER}", state="Q", workdir=os.getcwd(), arguments=" ".join(words), text=text,
               ctime=time.time(), name=job["name"] or pathlib.Path(rest[0]).name)
    write(folder, job)
    print(job["id"])


def path_of(folder, identity):
    return folder / f"jobs/{identity.partition('.')[0]}/job.json"


def write(folder, job):
    path = path_of(folder, job["id"])
    path.with_suffix(".tmp").write_text(json.dumps(job), encoding="utf-8")
    path.with_suffix(".tmp").rename(path)


def read(folder, identity):
    try:
        return json.loads(path_of(folder, identity).read_text(encoding="utf-8"))
    except OSError:
        fail(f"qstat: Unknown Job Id {identity}")


def fold(line):
    """Long attributes go on after a tab, as in OpenPBS."""
    pieces = [line[:79]]
    rest = line[79:]
    while rest:
        pieces.append("\t" + rest[:71])
        rest = rest[71:]
    return "\n".join(pieces)


def qstat(folder, words):
    if len(words) != 2 or words[0] != "-f":
        fail("qstat: this one knows -f JOB")
    job = read(folder, words[1])
    if job["state"] == "F":
        fail(f"qstat: {job['id']} Job has finished, use -x or -H to obtain historical job information")
    date = lambda seconds: time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(seconds))
    lines = [f"Job_Name = {job['name']}", f"Job_Owner = root@{SERVER}", f"job_state = {job['state']}", f"queue = {job['queue']}",
             f"server = {SERVER}", f"ctime = {date(job['ctime'])}", f"Rerunable = {job['rerunnable']}"]
    lines += [f"Resource_List.{name} = {value}" for name, value in sorted(job["resources"].items())]
    if job["account"]:
        lines.append(f"Account_Name = {job['account']}")
    lines.append(f"project = {job['project']}")
    if "stime" in job:
        lines += [f"stime = {date(job['stime'])}", "exec_host = " + "+".join(f"{host}/0" for host in job["hosts"])]
    variables = {"PBS_O_WORKDIR": job["workdir"], "PBS_O_QUEUE": job["queue"], **job["variables"]}
    lines.append("Variable_List = " + ",".join(f"{name}={value}" for name, value in variables.items()))
    lines.append(f"Submit_arguments = {job['arguments']}")
    print(f"Job Id: {job['id']}", *(fold(f"    {line}") for line in lines), sep="\n")


def qdel(folder, words):
    job = read(folder, words[0])
    mom.ask(folder, job["hosts"][0], {"signal": signal.SIGTERM})
    time.sleep(2)
    mom.ask(folder, job["hosts"][0], {"signal": signal.SIGKILL})


def pbs_tmrsh(folder, words):
    """An argument vector on another host of the job: no shell, a bare environment, the home folder."""
    environment = {"PATH": "/bin:/usr/bin", "HOME": os.environ["HOME"], "PBS_JOBID": os.environ["PBS_JOBID"]}
    answer = mom.ask(folder, words[0], {"run": words[1:], "env": environment, "cwd": os.environ["HOME"]}, [0, 1, 2])
    sys.exit(answer["exit"] if answer else 254)


if __name__ == "__main__":
    globals()[sys.argv[2]](pathlib.Path(sys.argv[1]), sys.argv[3:])
