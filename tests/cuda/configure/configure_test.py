# SPDX-License-Identifier: Apache-2.0
"""CONVOY_CUDA=AUTO|ON|OFF where parts are missing, too old or all there: one line says what is missing."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

FRONTEND, NVCC, CUDNN = sys.argv[1:]
HERE = pathlib.Path(__file__).parent
HIDDEN = ";".join({folder for folder in [*os.get_exec_path(), str(pathlib.Path(NVCC).parent), "/usr/local/cuda/bin"]
                   if pathlib.Path(folder, "nvcc").exists()})


def configure(*options):
    """(exit code, lines of ours, all that was said)"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["cmake", "-S", str(HERE), "-B", folder, *options], capture_output=True, text=True, timeout=60)
    text = done.stdout + " ".join(done.stderr.split())  # messages of errors are broken into lines
    return done.returncode, [line for line in text.splitlines() if "CUDA module:" in line or "CONVOY_CUDA" in line], text


def check(options, code, *texts, lines_of_ours=1):
    found, lines, text = configure(*options)
    assert found == code, (options, text)
    for part in texts:
        assert part in text, (options, part, text)
    assert len(lines) == lines_of_ours, (options, lines)


check(["-DCONVOY_CUDA=OFF"], 0, "with CUDA: FALSE", lines_of_ours=0)
check([], 0, "CUDA module: not built, missing: the headers of nvidia-cudnn-frontend (scripts/install-deps.sh)\n", "with CUDA: FALSE")
check(["-DCONVOY_CUDA=ON"], 1, "CONVOY_CUDA=ON, but missing: the headers of nvidia-cudnn-frontend", "or take CONVOY_CUDA=AUTO")
hidden = f"-DCMAKE_IGNORE_PATH={HIDDEN}"
check([hidden], 0, "CUDA module: not built, missing: the CUDA toolkit (nvcc)\n")
check([hidden, "-DCONVOY_CUDA=ON"], 1, "CONVOY_CUDA=ON, but missing: the CUDA toolkit (nvcc).")
check(["-DCONVOY_CUDA=yes"], 1, "CONVOY_CUDA is AUTO, ON or OFF, not 'yes'")
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "cudnn_version.h").write_text("#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 7\n#define CUDNN_PATCHLEVEL 1\n")
    check([f"-DCONVOY_CUDNN_INCLUDE={folder}", f"-DCONVOY_CUDNN_FRONTEND_INCLUDE={FRONTEND}"], 0,
          "missing: cuDNN 9.8 or newer (9.7.1 is here)\n", "with CUDA: FALSE")
check([f"-DCONVOY_CUDNN_FRONTEND_INCLUDE={FRONTEND}", f"-DCONVOY_CUDNN_INCLUDE={CUDNN}"], 0,
      "CUDA module: CUDA ", "with CUDA: TRUE")


def would_install(*options):
    """What scripts/install-deps.sh says on a machine with nvcc, from a clone without .venv; nothing where it knows no packages."""
    with tempfile.TemporaryDirectory() as clone:
        pathlib.Path(clone, "scripts").mkdir()
        shutil.copy(HERE / "../../../scripts/install-deps.sh", pathlib.Path(clone, "scripts"))
        pathlib.Path(clone, "nvcc").touch(0o755)
        done = subprocess.run([f"{clone}/scripts/install-deps.sh", "--build-only", "--dry-run", *options], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, PATH=f"{clone}:{os.environ['PATH']}"))
    assert done.returncode in (0, 2), (done.stdout, done.stderr)
    return done.stdout if done.returncode == 0 else ""


if would_install():
    assert "nvidia-cudnn-frontend" in would_install(), would_install()
    assert "nvidia" not in would_install("--no-cuda"), would_install("--no-cuda")
