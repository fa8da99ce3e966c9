# SPDX-License-Identifier: Apache-2.0
"""What can be checked of packaging/ without Apptainer and Spack: an installation has both programs, the image's own test passes with
them, and the recipes name scripts, options and libraries that the build knows."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types

ROOT, BUILD = pathlib.Path(os.environ["CONVOY_SOURCE"]), pathlib.Path(os.environ["CONVOY_BUILD"])
SECTIONS = {"files", "post", "environment", "runscript", "test", "labels"}
# What CMake looks for -> package of Spack; those of GCC and the CUDA toolkit come with compiler and +cuda.
PACKAGES = {"MPI": "openmpi", "HDF5": "hdf5", "DNNL": "onednn", "Boost": "boost", "fmt": "fmt",
            "nlohmann_json": "nlohmann-json", "Protobuf": "protobuf", "JPEG": "libjpeg-turbo", "PNG": "libpng", "WEBP": "libwebp", "WEBPDEMUX": "libwebp",
            "CURL": "curl", "LibArchive": "libarchive", "ZLIB": "zlib-api", "ISAL": "isa-l", "HWLOC": "hwloc", "Eigen3": "eigen", "GTest": "googletest", "Threads": None, "OpenMP": None}
problems = []


def sections():
    """Of the Apptainer definition: name -> text; the head has the name ''."""
    text = (ROOT / "packaging/convoy.def").read_text(encoding="utf-8")
    parts = re.split(r"^%(\w+)\n", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}


def image(found):
    if set(found) - {""} != SECTIONS or "Bootstrap: docker\n" not in found[""]:
        problems.append(f"packaging/convoy.def has the sections {sorted(found)}")
    for script, options in re.findall(r"^ *(scripts/\S+)(.*)$", found["post"], re.MULTILINE):
        usage = (ROOT / script).read_text(encoding="utf-8") if (ROOT / script).exists() else ""
        if not usage:
            problems.append(f"packaging/convoy.def: {script} does not exist")
        for option in re.findall(r"(?<!\S)--[a-z-]+", options):
            if f"{option})" not in usage:
                problems.append(f"packaging/convoy.def: {script} has no option {option}")
        cmake(re.findall(r"-D(CONVOY_\w+)=", options), "packaging/convoy.def")


def cmake(options, where):
    known = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    for option in options:
        if not re.search(rf"(option|set)\({option} ", known):
            problems.append(f"{where}: CMakeLists.txt has no {option}")


def installation(found, folder):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder], check=True, stdout=subprocess.DEVNULL)
    environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", OMP_NUM_THREADS="1")
    script = found["test"].replace("/tmp/convoy-test", f"{folder}/work")
    done = subprocess.run(["bash", "-euc", script], text=True, capture_output=True, env=environment, timeout=100, check=False)
    if done.returncode != 0 or not (folder / "bin/convoy-preprocess").exists():
        problems.append(f"packaging/convoy.def: its test fails in an installation: {done.stdout[-500:]}{done.stderr[-500:]}")


def recipe():
    """The Spack recipe, read with stand-ins for Spack's own words."""
    needs = {}

    class Package:
        def define(self, name, value):
            return f"-D{name}={value}"

        define_from_variant = define
        spec = types.SimpleNamespace(satisfies=lambda words: words == "+cuda")

    words = types.ModuleType("spack.package")
    words.CMakePackage, words.CudaPackage = Package, type("CudaPackage", (), {})
    words.depends_on = lambda spec, **how: needs.update({re.match(r"[\w-]+", spec)[0]: how})
    for name in ("version", "variant", "license", "generator"):
        setattr(words, name, lambda *_, **__: None)
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": words})
    scope = {}
    exec((ROOT / "packaging/spack/packages/convoy/package.py").read_text(encoding="utf-8"), scope)  # noqa: S102
    cmake([argument[2:].partition("=")[0] for argument in scope["Convoy"]().cmake_args()], "package.py")
    looked_for = (ROOT / "cmake/ConvoyDependencies.cmake").read_text(encoding="utf-8")
    for name in sorted(set(re.findall(r"find_package\((\w+)", looked_for) + re.findall(r"find_library\((\w+)_LIBRARY", looked_for))):
        if name not in PACKAGES or (PACKAGES[name] and PACKAGES[name] not in needs):
            problems.append(f"package.py has no depends_on for {name}")
    for name in set(needs) - set(PACKAGES.values()) - {"c", "cxx", "cmake", "ninja", "cudnn", "nccl"}:
        problems.append(f"package.py depends on {name}, which CMake does not look for")


def main():
    found = sections()
    image(found)
    recipe()
    with tempfile.TemporaryDirectory(prefix="convoy-test-") as folder:
        installation(found, pathlib.Path(folder))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
