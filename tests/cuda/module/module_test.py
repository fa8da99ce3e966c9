# SPDX-License-Identifier: Apache-2.0
"""What a start says of a missing GPU, driver or library, and that a CPU start opens no library of CUDA."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CONVOY = os.environ["CONVOY"]
FAKES, STUBS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
CUDA_LIBRARY = re.compile(r"/(lib(?:cuda|cudart|cudnn|nccl|nvrtc|cublas|convoy_cuda)[\w.]*)\.so")
failures = []


def check(condition, what, seen=""):
    if not condition:
        failures.append(f"{what}: {seen}")


def run(device, **environment):
    """(exit code, stdout, stderr) of a small job of one rank."""
    keep = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")}
    done = subprocess.run([CONVOY, "bench", "comm", "--device", device, "--megabytes", "0.001", "--steps", "1"],
                          env={**keep, **environment}, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


def refused(what, *texts, **environment):
    """--device cuda is exit 4 and one line that says all of the texts."""
    code, out, err = run("cuda", **environment)
    check(code == 4, f"{what}: exit code 4", code)
    check(err.count("\n") == 1 and "[rank 0/1 " in err, f"{what}: one line with the rank", err)
    for text in ("--device cuda is not possible", *texts, "or use --device cpu"):
        check(text in err, f"{what}: says '{text}'", err)
    check(out == "", f"{what}: no work was begun", out)


def opened(device):
    """Libraries of CUDA that a job opened, found or not."""
    with tempfile.TemporaryDirectory() as folder:
        code, _, err = run(device, LD_DEBUG="libs", LD_DEBUG_OUTPUT=f"{folder}/log")
        check(code == 0, f"--device {device} works", err)
        text = "".join(path.read_text() for path in pathlib.Path(folder).iterdir())
    check("libmpi" in text, "the loader's log is read")
    return sorted(set(CUDA_LIBRARY.findall(text)))


def computes_nothing():
    """The other part of a GPU that `convoy bench` measures is refused in the same way."""
    words = ["bench", "compute", "--device", "cuda", "--model", "resnet8", "--batch-size", "2", "--steps", "1"]
    done = subprocess.run([CONVOY, *words], capture_output=True, text=True, timeout=30, env={**os.environ, "LD_LIBRARY_PATH": "", "CUDA_VISIBLE_DEVICES": ""})
    check(done.returncode == 4 and done.stderr.count("\n") == 1, "bench compute: exit code 4 and one line", (done.returncode, done.stderr))


fake = {"LD_LIBRARY_PATH": str(FAKES / "driver")}
has_gpu = os.path.exists("/dev/nvidiactl")

version = subprocess.run([CONVOY, "--version"], capture_output=True, text=True, timeout=30).stdout
check(re.search(r"^CUDA [\d.]+, cuDNN [\d.]+, NCCL [\d.]+", version, re.M), "--version names what is built in", version)

# A CPU start.
check(opened("cpu") == [], "--device cpu opens no library of CUDA", opened("cpu"))
if not has_gpu:
    computes_nothing()
    check(opened("auto") == [], "--device auto opens no library of CUDA without a GPU", opened("auto"))
    _, out, _ = run("auto")
    check("cpu (this machine has no NVIDIA device" in out, "--device auto says what it took and why", out)
    refused("no driver", "no NVIDIA driver", "libcuda.so.1 was not found")

# A driver that says no.
refused("no device", "sees no GPU; see nvidia-smi", FAKE_INIT="100", **fake)
refused("hidden devices", "sees no GPU; CUDA_VISIBLE_DEVICES is '7'", FAKE_INIT="100", CUDA_VISIBLE_DEVICES="7", **fake)
refused("zero devices", "sees no GPU", FAKE_DEVICES="0", **fake)
refused("old driver", "for CUDA 12.4, this build needs 1", "update the driver", FAKE_VERSION="12040", **fake)
refused("mismatch", "kernel module and library don't match", FAKE_INIT="803", **fake)
refused("other failure", "cuInit gives 999", FAKE_INIT="999", **fake)
with tempfile.TemporaryDirectory() as folder:
    if (STUBS / "libcuda.so").exists():
        os.symlink(STUBS / "libcuda.so", f"{folder}/libcuda.so.1")
        refused("stub", "is the CUDA toolkit's stub", LD_LIBRARY_PATH=folder)
    pathlib.Path(folder, "empty").mkdir()
    refused("no module", "libconvoy_cuda.so is neither beside the program", CONVOY_MODULE_DIR=f"{folder}/empty", **fake)

# A module that does not fit.
refused("other build", "is of another build than the program", CONVOY_MODULE_DIR=str(FAKES / "other"), **fake)
refused("missing library", "libconvoy_absent.so: cannot open shared object file", "put its folder on LD_LIBRARY_PATH",
        CONVOY_MODULE_DIR=str(FAKES / "needy"), **fake)

# The module itself is opened, with all its libraries, and its runtime sees through the fake driver.
if not has_gpu:
    code, _, err = run("cuda", **fake)
    check(code == 4 and "counting the GPUs failed" in err and err.count("\n") == 1, "the real module is opened", err)

for failure in failures:
    print(failure, file=sys.stderr)
sys.exit(1 if failures else 0)
