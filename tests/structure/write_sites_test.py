# SPDX-License-Identifier: Apache-2.0
"""Every place that changes a file system is in the table of those that a test lets fail (tests/faults/write_sites.py)."""
import os
import pathlib
import sys

ROOT = pathlib.Path(os.environ.get("CONVOY_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "tests/faults"))
import write_sites  # noqa: E402


def found_below(root):
    """File -> number of calls in its code; comments don't count."""
    found = {}
    for folder in ("src", "preprocess"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            code = "\n".join(line.split("//")[0] for line in path.read_text(encoding="utf-8").splitlines())
            count = sum(1 for _ in write_sites.CALLS.finditer(code))
            if count:
                found[path.relative_to(root).as_posix()] = count
    return found


def problems(found, table):
    for name in sorted(found.keys() | table.keys()):
        count, known = found.get(name, 0), table.get(name, (0, ""))[0]
        if count != known:
            yield (f"{name}: {count} calls that change a file system, {known} in SITES of tests/faults/write_sites.py; let the new one fail in "
                   "tests/faults/write_test.py (ENOSPC, EIO, EROFS), and enter it")


def main():
    # It can fail: a call more, a file more, a file less.
    assert list(problems({"a": 2}, {"a": (1, "")})) and list(problems({"a": 1}, {})) and list(problems({}, {"a": (1, "")}))
    assert write_sites.CALLS.search('  std::ofstream file(path);') and write_sites.CALLS.search("::rename(a, b)")
    found = found_below(ROOT)
    if "--print" in sys.argv:
        for name, count in found.items():
            print(f'    "{name}": ({count}, "{write_sites.SITES.get(name, (0, ""))[1]}"),')
        return
    wrong = list(problems(found, write_sites.SITES))
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
