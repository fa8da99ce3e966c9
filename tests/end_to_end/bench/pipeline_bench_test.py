# SPDX-License-Identifier: Apache-2.0
"""bench/pipeline.py and bench/prepare.py on a few photographs: the ratios are a benchmark's, but they must be there, and no nonsense."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(__file__)
sys.path.insert(0, os.path.join(HERE, "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)


def bench(name, *words):
    done = subprocess.run([sys.executable, os.path.join(HERE, "../../../bench", name), *words, "--rounds", "1", "--build", sys.argv[1]],
                          capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return done.stdout.splitlines()[-1].split(" | ")


with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
    photographs = f"{work}/photographs.tar"
    sets.write(photographs, sets.tar_of([(n, d) for n, (d, _) in sets.make_set(20, side=160).items()]))
    line = bench("pipeline.py", photographs, "--model", "resnet20", "--precision", "fp32", "--size", "64", "--batch", "8", "--steps", "8", "--copies", "2")
    io, compute, training = (float(line[i].split(" ")[0]) for i in (2, 3, 4))
    ratio = float(line[5].split(",")[0])
    assert training < io and 0.3 < ratio < 2, line
    assert abs(ratio - training * (1 / io + 1 / compute)) < 0.02, line
    line = bench("prepare.py", photographs, "--ranks", "2", "--copies", "2")
    one, several, separate = (tuple(map(float, re.fullmatch(r"([\d.]+) \(([\d.]+)\)", line[i]).groups())) for i in (2, 4, 5))
    assert abs(float(line[6]) - one[0] / several[0]) < 0.05 and abs(float(line[7]) - one[0] / separate[0]) < 0.05, line
    assert all(0 < cpu < 2 * os.cpu_count() * wall for wall, cpu in (one, several, separate)), line
