# SPDX-License-Identifier: Apache-2.0
"""sass_test.py CUOBJDUMP OBJECTS: what the machine code of our kernels is like (OBJECTS: one word, `;` between). No kernel has
memory of its own for each thread (spills, arrays, a stack); where rows are a multiple of 8 elements long, tensors move by 16 bytes.
A kernel for compute capability 9.0 waits for the launch before it (ACQBULK), always, before it touches memory or lets others begin."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

# Kernels that have a form for 8 neighbours, as `name<storage, 8, ...>`: what they load and what they store apart from 16
# bytes. Masks of a ReLU take a bit per element (a byte per pack), places of a maximum a byte per element.
# The end of a reduction adds sums of blocks in double and finishes norms, one channel per thread; a pass that begins with a
# norm's sums reads numbers of the step.
MASK, PLACES, ENDS = {8}, {64}, {16, 32, 64}
PACKED = {
    "pointwise": {"apply_kernel": (set(), MASK)},
    "pointwise_gradient": {"apply_kernel": (MASK | {32, 64}, set()), "reduce_kernel": (MASK | {32, 64}, {32, 64})},
    "batch_norm": {"statistics_kernel": ({32, 64}, ENDS)},
    "concatenation": {"parts_kernel": (set(), set())},
    "convolution": {"column_kernel": ({32, 64}, {32, 64})},
    "pooled_norm": {"apply_pooled_kernel": (PLACES, set()), "reduce_pooled_kernel": (PLACES | {32}, {32, 64})},
    "pool": {"max_kernel": (set(), PLACES), "max_backward_kernel": (PLACES, set()), "average_kernel": (set(), set()),
             "average_backward_kernel": (set(), set())},
    "global_average_pool": {"global_kernel": (set(), set()), "global_backward_kernel": (set(), set())},
}
STORES_SUMS_ONLY = {"statistics_kernel", "column_kernel", "reduce_pooled_kernel"}
# Flat blocks: 16 bytes, and a last part that is no multiple of it.
FLAT = {"flat_kernel"}
ARCHITECTURES = ("sm_80", "sm_90")
# Global memory, shared memory and barriers, other kernels, the end. (Arguments are constants: LDC reads them.)
TOUCHING = {"LDG", "STG", "LD", "ST", "LDS", "STS", "LDL", "STL", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "BAR", "SHFL", "PREEXIT", "EXIT", "RET",
            "BRA", "CALL", "WARPSYNC", "MEMBAR", "LDGSTS"}


def dump(tool, what, architecture, objekt):
    words = [tool, what, "-arch", architecture, objekt]
    beside = {**os.environ, "PATH": f"{pathlib.Path(tool).parent}:{os.environ['PATH']}"}  # it runs nvdisasm
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=60, env=beside).stdout


def short(mangled):
    """`apply_kernel<float, 8, 2>` of each mangled name."""
    names = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True).stdout
    names = re.sub(r"convoy::(cuda::)?|\(anonymous namespace\)::|^void ", "", names, flags=re.MULTILINE)
    names = re.sub(r"\(\w+\)(\d)", r"\1", names)
    return dict(zip(mangled, [re.sub(r"\(.*", "", name) for name in names.splitlines()]))


def resources(text):
    """Kernel -> bytes of stack and of local memory."""
    found = re.findall(r"Function (\S+):\s+REG:\d+ STACK:(\d+) .*?LOCAL:(\d+)", text)
    return {name: (int(stack), int(local)) for name, stack, local in found}


def accesses(text):
    """Kernel -> instruction -> widths in bits, of global and local memory."""
    kernels, kernel = {}, None
    for line in text.splitlines():
        if "Function :" in line:
            kernel = kernels.setdefault(line.split()[-1], {})
        elif match := re.search(r"\s(LDG|STG|LDL|STL)((?:\.\w+)*)\s", line):
            parts = match[2].split(".")
            width = next((int(part.lstrip("US")) for part in parts if re.fullmatch(r"[US]?(8|16|64|128)", part)), 32)
            kernel.setdefault(match[1], set()).add(width)
    return kernels


def waits(text):
    """Kernel -> what it does before it waits for the launch before it that may not be done before; None: it waits first."""
    found, kernel, waited = {}, None, False
    for line in text.splitlines():
        if "Function :" in line:
            kernel, waited = line.split()[-1], False
            found[kernel] = "ends"
        elif match := re.search(r"/\*[0-9a-f]{4,}\*/ +(@\S+ )? *([A-Z][A-Z0-9_]*)", line):
            instruction = match[2]
            if waited or kernel is None:
                continue
            if instruction == "ACQBULK":
                found[kernel], waited = "waits under a condition" if match[1] else None, True
            elif instruction in TOUCHING:
                found[kernel], waited = instruction, True
    return found


def check_packed(name, kernel, seen, problems):
    """`seen`: widths of one kernel for packs, by instruction."""
    loads, stores = PACKED[name][kernel.split("<")[0]]
    storing = kernel.split("<")[0] not in STORES_SUMS_ONLY
    if 128 not in seen.get("LDG", ()):
        problems.append(f"{name}: {kernel} loads nothing by 16 bytes: {seen}")
    if storing and 128 not in seen.get("STG", ()):
        problems.append(f"{name}: {kernel} stores nothing by 16 bytes: {seen}")
    if odd := seen.get("LDG", set()) - {128} - loads:
        problems.append(f"{name}: {kernel} loads by {sorted(odd)} bits")
    if odd := seen.get("STG", set()) - {128} - stores:
        problems.append(f"{name}: {kernel} stores by {sorted(odd)} bits")


def check(tool, architecture, objekt):
    """(problems, kernels, kernels whose accesses were looked at)"""
    name, problems = pathlib.Path(objekt).name.split(".")[0], []
    used = resources(dump(tool, "-res-usage", architecture, objekt))
    names = short(list(used))
    problems += [f"{name}: {names[kernel]} has {stack} bytes of stack, {local} of local memory"
                 for kernel, (stack, local) in used.items() if stack or local]
    code = dump(tool, "-sass", architecture, objekt)
    if architecture == "sm_90":
        found = waits(code)
        problems += [f"{name}: {names[kernel]} does not wait first ({what})" for kernel, what in found.items() if what]
        problems += [f"{name}: no code of {names[kernel]}" for kernel in set(used) - set(found)]
    wanted = set(PACKED.get(name, ())) | (FLAT if name == "flat" else set())
    if not wanted:
        return problems, len(used), 0
    looked_at = set()
    for mangled, seen in accesses(code).items():
        kernel = names[mangled]
        if "LDL" in seen or "STL" in seen:
            problems.append(f"{name}: {kernel} uses local memory")
        base, arguments = kernel.split("<")[0], re.findall(r"[\w.]+", kernel.partition("<")[2])
        if base in FLAT and name == "flat":
            looked_at.add(kernel)
            for instruction, widths in seen.items():
                if 128 not in widths:
                    problems.append(f"{name}: {kernel} has {instruction} of {sorted(widths)} bits only")
        elif (name, base) == ("pointwise", "apply_kernel") and arguments[3:4] in (["true"], ["1"]):
            continue  # finishes norms of small tensors, one channel per thread; the pass itself is the other form's
        elif base in wanted and "8" in arguments[1:2]:
            looked_at.add(kernel)
            check_packed(name, kernel, seen, problems)
    bases = {kernel.split("<")[0] for kernel in looked_at}
    problems += [f"{name}: no form of {base} for packs" for base in wanted - bases]
    return problems, len(used), len(looked_at)


def main():
    tool, objects = sys.argv[1], sys.argv[2].split(";")
    if not pathlib.Path(tool).exists():
        print("skipped: no cuobjdump was found when the build was configured (scripts/install-deps.sh)")
        sys.exit(77)
    missing = set(PACKED) | {"flat"}
    missing -= {pathlib.Path(objekt).name.split(".")[0] for objekt in objects}
    assert not missing, f"no objects of {missing}"
    jobs = [(tool, architecture, objekt) for objekt in objects for architecture in ARCHITECTURES]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda job: check(*job), jobs))
    problems = [f"{job[1]}, {text}" for job, result in zip(jobs, results) for text in result[0]]
    kernels, looked_at = sum(result[1] for result in results), sum(result[2] for result in results)
    assert kernels > 200 and looked_at > 100, (kernels, looked_at)
    assert not problems, "\n" + "\n".join(problems)
    print(f"{kernels} kernels without local memory, {looked_at} of them by 16 bytes")


main()
