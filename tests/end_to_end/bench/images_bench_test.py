# SPDX-License-Identifier: Apache-2.0
"""bench/compare_images.py on a few photographs: the ratios are a benchmark's, but they must be there, and no nonsense."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(__file__)
sys.path.insert(0, os.path.join(HERE, "../../support"))
import image_sets as sets  # noqa: E402  (the path is set above)

with tempfile.TemporaryDirectory(prefix="convoy-test-") as work:
    sets.write(f"{work}/photographs.tar", sets.tar_of([(n, d) for n, (d, _) in sets.make_set(2, side=260).items()]))
    done = subprocess.run([sys.executable, os.path.join(HERE, "../../../bench/compare_images.py"), f"{work}/photographs.tar",
                           "--rounds", "1", "--build", sys.argv[1]], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert len(lines) == 4, done.stdout
    for line in lines:
        ours, other = (float(line[i].split(" ")[0]) for i in (3, 4))
        assert ours > 0 and other > 0 and 0.05 < float(line[5]) < 20, line
    print(done.stdout)
