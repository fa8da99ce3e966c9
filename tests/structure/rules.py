# SPDX-License-Identifier: Apache-2.0
"""The rules of the source tree, as functions from a tree to its violations."""
import pathlib
import re

import job_script_rules
import type_rules

# Folders of the sentence and those whose headers each may include, besides its own.
MAY_INCLUDE = {
    "core": set(),
    "options": {"core"},
    "io": {"core"},
    "image": {"core"},
    "comm": {"core"},
    "network": {"core"},
    "optim": {"core"},
    "backend": {"core", "network", "optim"},
    "data": {"core", "io", "image", "network", "backend"},
    "sync": {"core", "comm", "network", "backend"},
    "scaling": {"core", "io", "sync"},
    "checkpoint": {"core", "io", "comm", "network", "backend"},
    "metrics": {"core", "io"},
    "run": {"core", "io", "comm", "checkpoint", "metrics"},
    "report": {"core", "io", "metrics", "run"},
    "config": {"core", "options", "io", "comm", "network", "backend", "data", "optim", "sync", "interchange"},
    "interchange": {"core", "io", "network"},
    "engine": {"core", "options", "io", "image", "comm", "network", "backend", "data", "checkpoint", "metrics", "config", "interchange"},
    "infer": {"core", "options", "io", "image", "comm", "network", "backend", "data", "checkpoint", "metrics", "config", "engine", "interchange"},
    "train": {"core", "options", "io", "image", "comm", "network", "backend", "data", "optim", "sync", "checkpoint", "metrics", "config",
              "engine", "run", "interchange"},
    "cli": {"core", "options", "io", "image", "comm", "network", "backend", "data", "optim", "sync", "checkpoint", "metrics", "config",
            "run", "report", "engine", "infer", "train", "interchange", "scaling"},
    "preprocess": {"core", "options", "io", "image", "comm", "data", "network", "backend", "run"},
}

# Libraries that only some folders may know. tests/support has the main function of tests under mpirun.
LIBRARIES = {
    r"(mpi|mpi-ext|nccl)\.h": ("src/comm/", "tests/mpi/", "tests/cuda/", "tests/support/mpi_main.cpp",
                                "tests/support/host_nccl/"),
    r"(cuda|cudnn|cublas|nvrtc)\w*\.h(pp)?": ("src/backend/cuda/", "src/comm/nccl/", "tests/cuda/", "tests/support/host_cuda/",
                                             "tests/support/host_nccl/"),
    r".*dnnl.*": ("src/backend/cpu/", "tests/unit/backend/", "bench/"),
    r"hdf5\.h": ("src/io/",),
    r"(jpeglib|jerror|turbojpeg|png|webp/\w+)\.h": ("src/image/", "bench/"),
    r"(archive|archive_entry|curl/.*)\.h": ("preprocess/",),
    r"boost/program_options.*": ("src/options/",),
    r"hwloc.*": ("src/core/",),
    r"nlohmann/.*": ("src/core/json.cpp", "tests/"),  # 5 to 14 s of compiling
}

LONGEST = 600
# Files that may be longer, each with its reason.
LONG_FILES = {}

# What an addition touches (CONTRIBUTING.md): a word that stands in every file of src that knows one of its kind, and how many files
# those are, lists of CMake and networks aside.
TOUCHES = {
    "LocalResponseNorm": 6,  # an operation
    "Concatenation": 6,
    "Dropout": 6,
    "ChannelGate": 6,
    "gelu": 3,  # an activation
    "silu": 3,
    "relu6": 3,
    "hard_swish": 3,
    "adamw": 2,  # an optimiser
    r"sums\[Counter::topk": 3,  # a device counter, beside its row
    "two_bits": 4,  # a compression, beside its own source and the declaration of it
    "top_k": 4,
    "power_sgd": 4,
}
# Files that know such a word for a reason of their own, which another addition of its kind does not have.
MENTIONS = {
    ("Concatenation", "src/backend/cuda/filter_copies.cpp"),  # its channels are not padded
    ("Dropout", "src/backend/cuda/lowering/layouts.cpp"),  # it takes any layout
    ("Dropout", "src/interchange/onnx_network.cpp"),  # how a graph of evaluation is told from one of training
    ("ChannelGate", "src/network/builder.cpp"),  # a block that several families have
    ("ChannelGate", "src/network/operations/activation_kind.hpp"),  # its kinds of gates
    ("adamw", "src/config/foreign_names.cpp"),  # a rival's switch
}
# Words that only some folders may know.
KNOWN_IN = {"SyncMode": ("src/sync/", "src/config/"), "alexnet": ("src/network/models/",), "densenet": ("src/network/models/",)}

VAGUE_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "registry"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
CODE = {".cpp", ".hpp", ".cu", ".cuh"}


def files_below(root, folders, suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in suffixes or path.name in suffixes):
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def folder_of(name):
    parts = name.split("/")
    return parts[1] if parts[0] == "src" else parts[0]


def include_violations(root):
    for name, text in files_below(root, ["src", "preprocess", "tests", "bench"], CODE):
        for _, header in INCLUDE.findall(text):
            for library, places in LIBRARIES.items():
                if re.fullmatch(library, header) and not name.startswith(places):
                    yield f"{name}: includes {header}, which only {', '.join(places)} may"
            own, other = folder_of(name), header.split("/")[0]
            if own in MAY_INCLUDE and "/" in header and other in MAY_INCLUDE:
                if other != own and other not in MAY_INCLUDE[own]:
                    yield f"{name}: includes {header}; {own} does not build on {other}"


def header_violations(root):
    """A header is self-contained: the first include of its source, or (in CMake) compiled alone."""
    for name, text in files_below(root, ["src", "preprocess"], {".hpp"}):
        if "#pragma once" not in text:
            yield f"{name}: no #pragma once"
        twin = root / name.replace(".hpp", ".cpp")
        if twin.exists():
            first = INCLUDE.search(twin.read_text(encoding="utf-8"))
            wanted = name.removeprefix("src/")
            if first is None or first.group(2) != wanted:
                yield f"{name}: the first include of {twin.name} is not {wanted}, so nothing shows that it compiles alone"


def source_violations(root):
    everywhere = ["src", "preprocess", "tests", "bench", "scripts", "slurm", "pbs", "cmake", "configs", ".ci"]
    kinds = CODE | {".py", ".sh", ".pbs", ".cmake", ".cfg", ".proto", ".in", "CMakeLists.txt", "run"}
    for name, text in files_below(root, everywhere, kinds):
        if "/__pycache__/" in name:
            continue
        lines = text.count("\n")
        if text.count("SPDX-License-Identifier:") != 1 and "/structure/" not in name:
            yield f"{name}: needs one SPDX line"
        if lines > LONGEST and name not in LONG_FILES:
            yield f"{name}: {lines} lines; split it, or give a reason in LONG_FILES"
        stem = name.rsplit("/", 1)[-1].split(".")[0]
        if VAGUE_NAMES & set(re.split(r"[_-]", stem)):
            yield f"{name}: the name does not say what is in it"
    for name in LONG_FILES:
        if not (root / name).exists() or (root / name).read_text().count("\n") <= LONGEST:
            yield f"{name}: is listed in LONG_FILES and not long"


def type_violations(root):
    files = list(files_below(root, ["src", "preprocess"], CODE))  # convoy-preprocess links libraries of src
    yield from type_rules.duplicate_types(files)
    for name, text in files:
        for line in type_rules.switches_with_default(text):
            yield f"{name}:{line}: a switch over an enumeration has a default; name every value"
    headers = [file for file in files if file[0].endswith((".hpp", ".cuh"))]
    sources = [file for file in files if file[0].endswith((".cpp", ".cu"))]
    for name, classes in type_rules.foreign_members(headers, sources):
        yield f"{name}: defines members of {classes}; a class lives in the source of its header's name"


def addition_violations(root):
    files = list(files_below(root, ["src"], CODE))
    for word, count in TOUCHES.items():
        # A network that uses an operation is not touched by its addition.
        found = [name for name, text in files
                 if re.search(rf"\b{word}\b", text) and not name.startswith("src/network/models/")]
        mentions = [name for named, name in MENTIONS if named == word]
        yield from (f"{name}: does not know {word}, as MENTIONS says" for name in mentions if name not in found)
        found = [name for name in found if name not in mentions]
        if len(found) != count:
            yield f"src: {word} stands in {len(found)} files, {count} should know it: {', '.join(found)}"
    for word, places in KNOWN_IN.items():
        for name, text in files:
            if re.search(rf"\b{word}\b", text) and not name.startswith(places):
                yield f"{name}: knows {word}, which only {', '.join(places)} may"


def job_script_violations(root):
    scripts = list(files_below(root, ["slurm", "pbs"], {".sh", ".pbs"}))
    if len(scripts) < 2:
        yield "slurm, pbs: job scripts are missing"
    for name, text in scripts:
        yield from job_script_rules.violations(name, text)


def config_violations(root):
    configs = list(files_below(root, ["configs"], {".cfg"}))
    if not configs:
        yield "configs: no configuration"
    for name, text in configs:
        for heading in ("Target:", "Source:", "Run here:"):
            if not re.search(rf"^# {heading} *\S", text, re.MULTILINE):
                yield f"{name}: no '# {heading}' line"


def test_violations(root):
    """Tests that can't fail, and helpers dressed as tests."""
    idle = re.compile(r"\bcheck\(True\b|_TRUE\(true\)|\bSUCCEED\(|\bDISABLED_|_GE\([^;\n]*seconds[^;\n]*, 0(\.0)?\)")
    for name, text in files_below(root, ["tests"], CODE | {".py"}):
        if "/structure/" not in name:
            for match in idle.finditer(text):
                yield f"{name}: {match[0]} can't fail"


def all_violations(root):
    root = pathlib.Path(root)
    for rule in (include_violations, header_violations, source_violations, type_violations, addition_violations, test_violations,
                 job_script_violations, config_violations):
        yield from rule(root)
