# SPDX-License-Identifier: Apache-2.0
"""Every sbatch line of the documents, as it stands there, is accepted by Slurm and starts what it says with options that the
program takes. The hosts claim the cores and GPUs that the scripts ask for."""
import os
import subprocess

from cluster import Cluster, enter_or_skip
from document_lines import finish, lines, make_tree, report


def main():
    failures = 0
    with Cluster(enter_or_skip(), hosts=8, cpus=64, memory=64000) as cluster:
        tree, stand_in, programs = make_tree(cluster.work, os.environ["CONVOY"], os.environ["CONVOY_PREPROCESS"])
        environment = dict(os.environ, CONVOY=str(stand_in), CONVOY_PREPROCESS=str(stand_in), CONVOY_DEVICE="cpu", PATH=f"{programs}:{os.environ['PATH']}")
        submitted = []
        for where, line in lines("sbatch"):
            log = cluster.work / f"log-{len(submitted)}"
            done = subprocess.run(["bash", "-c", line], cwd=tree, text=True, capture_output=True, timeout=30, check=False,
                                  env=dict(environment, SBATCH_OUTPUT=f"{log}-%a"))
            submitted.append((where, line, log, done))
        cluster.until(lambda: cluster.ask("squeue", "-h") == "", 120, "the end of all jobs")
        for where, line, log, done in submitted:
            text = done.stderr + "".join(path.read_text() for path in sorted(cluster.work.glob(f"{log.name}-*")))
            good = done.returncode == 0 and "accepted: " in text and "error" not in text
            good = good and ("--gpus" not in line or "--device cpu" in text)  # CONVOY_DEVICE; else cuda
            failures += report(where, line, good, text)
    finish(len(submitted), 10, failures)


if __name__ == "__main__":
    main()
