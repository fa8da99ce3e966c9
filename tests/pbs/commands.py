# SPDX-License-Identifier: Apache-2.0
"""qsub, qstat, qdel and pbs_tmrsh as jobs of OpenPBS 23 see them, and mpirun of an Open MPI without tm as far as hosts go. program() makes
such commands. What the server is set to is in FOLDER/server.json."""
import json
import os
import pathlib
import re
import signal
import sys
import time

SERVER = "pbs"
DEFAULTS = {
    "flatuid": True,  # OpenPBS' own default is False
    "resources": ["ngpus"],  # those of this site
    "queues": {"workq": {}, "express": {}},  # a routing queue has "to", the queue behind it may have "from_route_only"
    "qstat_fails": 0,  # so many times, then it answers
    "stime_after": 0,  # so many answers about a running job don't have it yet
}
SHOWN = {"A": "Account_Name", "j": "Join_Path", "p": "Priority", "m": "Mail_Points", "M": "Mail_Users"}
CHUNK = ("ncpus", "mpiprocs", "mem", "ompthreads")
WHOLE = ("walltime", "cput", "pmem", "software")


def fail(text, code=1):
    print(text, file=sys.stderr)
    sys.exit(code)


def settings(folder):
    path = folder / "server.json"
    return DEFAULTS | (json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})


def counts_down(folder, name, first):
    """True for the first `first` calls."""
    path = folder / f"{name}.count"
    calls = int(path.read_text(encoding="utf-8")) if path.exists() else 0
    path.write_text(str(calls + 1), encoding="utf-8")
    return calls < first


def read_options(words):
    """qsub's: (letter, value) pairs, and what follows."""
    options = []
    words = list(words)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if len(word) < 2 or word[1] not in "ACJMNPWelmjkopqrv":
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


def take_attribute(job, value):
    """-W."""
    name, _, what = value.partition("=")
    after = re.fullmatch(r"after(?:any|ok|notok):(\d+(?:\[\])?\.\S+)", what)
    if name == "group_list":
        job["shown"]["group_list"] = what
    elif name == "depend" and after:  # nothing waits for one element of an array
        job["after"] = after[1]
    else:
        fail("qsub: illegal -W value\nusage: qsub [-a date_time] [-A account_string] ...", 2)


def indices_of(value):
    found = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?(?:%\d+)?", value)
    if not found or int(found[1]) >= int(found[2]):
        fail("qsub: illegal -J value", 2)
    return list(range(int(found[1]), int(found[2]) + 1, int(found[3] or 1)))


def job_of(options, environment, server):
    job = {"resources": {}, "variables": {}, "after": None, "queue": "workq", "name": None, "rerunnable": True,
           "account": None, "project": "_pbs_project_default", "shown": {}, "paths": {}, "indices": None}
    for letter, value in options:
        if letter in SHOWN:
            job["shown"][SHOWN[letter]] = value
        if letter == "l":
            name, _, what = value.partition("=")
            job["resources"][name] = what
        elif letter == "v":
            for item in re.split(r"(?<!\\),", value):
                name, given, what = item.partition("=")
                if given or name in environment:
                    job["variables"][name] = what.replace("\\,", ",") if given else environment[name]
        elif letter == "W":
            take_attribute(job, value)
        elif letter == "J":
            job["indices"] = indices_of(value)
        elif letter in "oe":
            job["paths"][letter] = value
        elif letter == "r":
            job["rerunnable"] = value == "y"
        elif letter in "NqAP":
            job[{"N": "name", "q": "queue", "A": "account", "P": "project"}[letter]] = value
    if "nodes" in job["resources"]:
        if "select" in job["resources"] or "place" in job["resources"]:
            fail('qsub: "-lplace=" or "-lselect=" cannot be used with old "resource" syntax')
        hosts, _, ranks = job["resources"]["nodes"].partition(":ppn=")
        job["resources"].update(select=f"{hosts}:ncpus={ranks}:mpiprocs={ranks}", place="scatter")
    for name in job["resources"]:
        if name in (*CHUNK, "ngpus"):
            fail(f"qsub: Cannot be used with select or place: {name}")
        if name not in ("select", "place", "nodes", *WHOLE, *server["resources"]):
            fail(f"qsub: Unknown resource: {name}")
    for _, asked in chunks_of(job):
        for name in asked:
            if name not in (*CHUNK, *server["resources"]):
                fail(f"qsub: Unknown resource: {name}")
    return job


def chunks_of(job):
    """(number, resources) of each kind of chunk."""
    found = []
    for chunk in job["resources"].get("select", "1:ncpus=1").split("+"):
        number, *asked = chunk.split(":")
        if not number.isdigit() or not all(re.fullmatch(r"\w+=\w+", item) for item in asked):
            fail("qsub: Illegal attribute or resource value Resource_List.select")
        found.append((int(number), dict(item.split("=") for item in asked)))
    return found


def node_lines(job, hosts):
    """PBS_NODEFILE: a line for each rank, each chunk on a host of its own."""
    each = [int(asked.get("mpiprocs", 1)) for number, asked in chunks_of(job) for _ in range(number)]
    return [host for host, ranks in zip(hosts, each) for _ in range(ranks)]


def environment_of(job, nodefile, home):
    """Of a job's login shell."""
    ncpus = chunks_of(job)[0][1].get("ncpus", "1")
    return {"HOME": str(home), "USER": "root", "LOGNAME": "root", "SHELL": "/bin/bash", "PATH": "/usr/local/bin:/usr/bin:/bin",
            "PBS_JOBID": job["id"], "PBS_JOBNAME": job["name"], "PBS_O_WORKDIR": job["workdir"], "PBS_O_HOME": str(home),
            "PBS_O_HOST": "login", "PBS_O_QUEUE": job["asked_queue"], "PBS_NODEFILE": str(nodefile), "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_QUEUE": job["queue"], "PBS_JOBDIR": str(home), "NCPUS": ncpus, "OMP_NUM_THREADS": ncpus, **job["variables"]}


def qsub(folder, words):
    server = settings(folder)
    if "PBS_ENVIRONMENT" in os.environ and not server["flatuid"]:
        fail("qsub: Bad UID for job execution")
    options, rest = read_options(words)
    if len(rest) != 1:
        fail("qsub: one script, please")
    text = pathlib.Path(rest[0]).read_text(encoding="utf-8")
    job = job_of([*directives_of(text), *options], os.environ, server)  # the command line wins
    queue = server["queues"].get(job["queue"]) if job["queue"] in server["queues"] else fail("qsub: Unknown queue")
    if queue.get("from_route_only"):
        fail("qsub: Access to queue is denied")
    number = 0
    while True:  # the first number that is free
        try:
            (folder / f"jobs/{number}").mkdir()
            break
        except FileExistsError:
            number += 1
    array = "[]" if job["indices"] else ""
    job.update(id=f"{number}{array}.{SERVER}", state="Q", workdir=os.getcwd(), arguments=" ".join(words), text=text, ctime=time.time(),
               name=job["name"] or pathlib.Path(rest[0]).name, asked_queue=job["queue"], queue=queue.get("to", job["queue"]))
    write(folder, job)
    print(job["id"])


def path_of(folder, identity):
    return folder / f"jobs/{identity.partition('.')[0].replace('[]', '')}/job.json"


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


def log_path(job, letter):
    """Where -o or -e lead, as it is shown."""
    number, name = job["id"].partition(".")[0], f"{job['name']}.{letter}"
    if "[" in number:
        name += number.partition("[")[0] + ".^array_index^"
    else:
        name += number
    given = job["paths"].get(letter, "")
    path = os.path.join(job["workdir"], given) if given else f"{job['workdir']}/"
    return f"login:{path.partition(':')[2] or path}" + (name if not given else "")


def qstat(folder, words):
    server = settings(folder)
    if words == ["-Bf"]:
        print(f"Server: {SERVER}", "    server_state = Active", *["    flatuid = True"] * server["flatuid"], "    pbs_version = 23.06.06",
              sep="\n")
        return
    if len(words) != 2 or words[0] != "-f":
        fail("qstat: this one knows -f JOB and -Bf")
    if counts_down(folder, "qstat", server["qstat_fails"]):
        fail("Connection refused\nqstat: cannot connect to server pbs (errno=111)", 111)
    job = read(folder, words[1])
    if job["state"] == "F":
        fail(f"qstat: {job['id']} Job has finished, use -x or -H to obtain historical job information")
    date = lambda seconds: time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(seconds))
    lines = [f"Job_Name = {job['name']}", f"Job_Owner = root@{SERVER}", f"job_state = {job['state']}", f"queue = {job['queue']}",
             f"server = {SERVER}", f"ctime = {date(job['ctime'])}", f"Rerunable = {job['rerunnable']}",
             f"Output_Path = {log_path(job, 'o')}", f"Error_Path = {log_path(job, 'e')}"]
    lines += [f"{name} = {value}" for name, value in {"Priority": "0", "Mail_Points": "a", "Join_Path": "n", **job["shown"]}.items()]
    sums = {"nodect": sum(number for number, _ in chunks_of(job))}
    for name in ("ncpus", "mpiprocs", "ngpus"):
        sums[name] = sum(number * int(asked.get(name, 0)) for number, asked in chunks_of(job))
    lines += [f"Resource_List.{name} = {value}" for name, value in sorted({**sums, **job["resources"]}.items()) if value]
    lines.append(f"project = {job['project']}")
    if "stime" in job:
        if not counts_down(folder, f"stime-{job['id']}", server["stime_after"]):
            lines.append(f"stime = {date(job['stime'])}")
        lines.append("exec_host = " + "+".join(f"{host}/0" for host in job["hosts"]))
    variables = {"PBS_O_WORKDIR": job["workdir"], "PBS_O_QUEUE": job["asked_queue"], **job["variables"]}
    lines.append("Variable_List = " + ",".join(f"{name}={value}" for name, value in variables.items()).replace("\n", " "))
    lines.append(f"Submit_arguments = {job['arguments']}")
    print(f"Job Id: {job['id']}", *(fold(f"    {line}") for line in lines), sep="\n")


def qdel(folder, words):
    import mom  # here, since it takes a while to load

    job = read(folder, words[0])
    mom.ask(folder, job["hosts"][0], {"signal": signal.SIGTERM})
    time.sleep(2)
    mom.ask(folder, job["hosts"][0], {"signal": signal.SIGKILL})


def pbs_tmrsh(folder, words):
    """An argument vector on another host of the job: no shell, a bare environment, the home folder."""
    import mom  # here, since it takes a while to load

    environment = {"PATH": "/bin:/usr/bin", "HOME": os.environ["HOME"], "PBS_JOBID": os.environ["PBS_JOBID"]}
    answer = mom.ask(folder, words[0], {"run": words[1:], "env": environment, "cwd": os.environ["HOME"]}, [0, 1, 2])
    sys.exit(answer["exit"] if answer else 254)


CORES = 4  # of every host


def mpirun(folder, words):
    """Where Open MPI's `mpirun` without tm puts the ranks, and an end as server.json says. Notes both in FOLDER/launches."""
    words, given = list(words), {}
    while words and words[0].startswith("-"):
        name = words.pop(0).lstrip("-")
        given.setdefault(name, []).append([words.pop(0) for _ in range({"mca": 2, "version": 0}.get(name, 1))])
    slots = {}
    if "hostfile" in given:
        lines = pathlib.Path(given["hostfile"][0][0]).read_text(encoding="utf-8").split()
        slots = {host: lines.count(host) if lines.count(host) > 1 else CORES for host in lines}
    for host in given["host"][0][0].split(",") if "host" in given else []:
        name, _, number = host.partition(":")
        slots[name] = slots.get(name, 0) + int(number or 1)
    places = [host for host, number in slots.items() for _ in range(number)] or [os.uname().nodename] * CORES
    ranks = int(given["np"][0][0])
    if ranks > len(places):
        fail("There are not enough slots available in the system")
    parameters = dict(given.get("mca", []))
    # Each daemon looks for the agent's first word; what follows is seen where mpirun runs, unless daemons start others.
    agent = parameters.get("plm_rsh_agent", "ssh").split()
    alone = parameters.get("plm_rsh_no_tree_spawn") == "1"
    if len(slots) > 1 and not (agent[0].startswith("/") and os.access(agent[0], os.X_OK) and
                               all(os.path.exists(word) and (alone or word.startswith("/")) for word in agent[1:])):
        fail(f"plm_rsh_agent: set to a path that could not be found: {agent[0]}", 243)
    program = settings(folder).get("program", {})
    with open(folder / "launches", "a", encoding="utf-8") as notes:
        notes.write(json.dumps({"job": os.environ["PBS_JOBID"], "hosts": places[:ranks], "words": words}) + "\n")
    for _ in range(program.get("partitions", 0)):
        (pathlib.Path(os.environ["DATA"]) / f"train-{time.time_ns() % 100000:05}-of-00009.h5").touch()
    if program.get("told"):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(0.05)  # the shell hears of it before this ends
    sys.exit(program.get("code", 75))


def program(folder, name):
    """Text of a command of this name. A module is compiled once, a script each time."""
    call = f'import sys; sys.path.insert(0, "{pathlib.Path(__file__).parent}"); import commands; commands.main()'
    return f"#!/bin/sh\nexec {sys.executable} -S -c '{call}' {folder} {name} \"$@\"\n"


def main():
    globals()[sys.argv[2]](pathlib.Path(sys.argv[1]), sys.argv[3:])
