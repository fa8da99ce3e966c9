# SPDX-License-Identifier: Apache-2.0
"""A start on a host that the run excludes: one warning that names file, host and remedy, also in preflight; status lists such hosts."""
import json
import os
import socket
import subprocess

from runner import CONVOY, check, run, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 16, "--model", "resnet8", "--batch-size", 8, "--skip-eval", "--resume", "auto"]


def status(*words):
    return subprocess.run([CONVOY, "status", *words], capture_output=True, text=True, timeout=30, check=True).stdout


def main(work):
    folder, host = f"{work}/run", socket.gethostname().split(".")[0]
    _, err = train(2, folder, *JOB, "--epochs", 1)
    check("excluded" not in err and "excluded" not in status(folder), "no word of it without such hosts")
    path = f"{folder}/excluded-hosts"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"# {host} is repaired\r\n\r\nelsewhere\t1\trank 1: arithmetic\n")
    _, err = train(2, folder, *JOB, "--epochs", 2)
    check("this job runs on" not in err, "nor on other hosts, or in a comment")
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{host}.cluster.local\t2\trank 0: arithmetic, step 5\r\n")
    _, err = train(2, folder, *JOB, "--epochs", 3)
    lines = [line for line in err.splitlines() if "excluded" in line]
    check(len(lines) == 1 and "warning: this job runs on" in lines[0], f"one warning: {lines}")
    for part in (f"{host}.cluster.local (attempt 2, rank 0: arithmetic, step 5)", f"'{path}'", f"sbatch --exclude={host})", "repaired"):
        check(part in lines[0], f"it says {part}")
    out, _ = run(2, "preflight", "--synthetic", "--output-dir", folder)
    check(sum("this job runs on" in line for line in out.splitlines()) == 1 and "FAILED" not in out, "preflight warns, too")
    out, _ = run(2, "preflight", "--synthetic", "--output-dir", f"{work}/other")
    check("this job runs on" not in out, "and not of another run")
    text = status(folder)
    check(f"excluded    elsewhere (attempt 1, rank 1: arithmetic) and {host}.cluster.local (attempt 2" in text, "status lists the hosts")
    listed = json.loads(status("--json", folder))["excluded_hosts"]
    check([own["host"] for own in listed] == ["elsewhere", f"{host}.cluster.local"] and listed[0]["attempt"] == 1, "in JSON, too")
    os.remove(path)
    check(json.loads(status("--json", folder))["excluded_hosts"] == [], "until the file is gone")


with work_folder() as scratch:
    main(scratch)
