# SPDX-License-Identifier: Apache-2.0
"""What lines for bench/results.md call the machine."""
import os


def _describe():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    load = os.getloadavg()[0]  # of the last minute, before the benchmark
    return f"{len(models)} x {models[0]}" + (f", shared, load {load:.0f}" if load > 1 else "")


MACHINE = _describe()
