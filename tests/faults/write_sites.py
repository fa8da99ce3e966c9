# SPDX-License-Identifier: Apache-2.0
"""Where the programs change a file system. SITES: places in their sources; tests/structure finds a new one that isn't here. FILES:
what each command writes; write_test.py finds a file that isn't here, and lets every call on every file fail."""
import collections
import re

# Calls that make, write, rename or remove, and our own functions that do.
CALLS = re.compile(
    r"std::ofstream|\bfopen\(|std::(fwrite|rename)\(|(?<![\w:])::(open|creat|openat|write|pwrite|fwrite|rename|fsync|ftruncate|mkdir|unlink|link|symlink)\(|H5Fcreate\(|"
    r"(fs|filesystem)::(create_\w+|rename|remove|remove_all|copy\w*|resize_file)\(|\bmkstemp\(|fallocate\(|\bfdopen\(|"
    r"Access::(create|update)\b|\bAppendFile::Start::|\b(replace|create|write)_text_file\(|\brename_file\(|\bsync_folder\(|\bmake_folder\(|"
    r"\bpublish_(file|text)\(|\bseal_file\(|\bwrite_and_seal\(|\b(fence|fence_)\.(replace|rename)\(|\balso_to_file\(")

# File: how many such calls it has, and the cases of write_test.py (or the unit test) that let them fail.
SITES = {
    "src/checkpoint/fence.cpp": (9, "start (attempts), goes_on (files that a fence guards), checkpoints; tests/unit/checkpoint/fence_test.cpp"),
    "src/checkpoint/file.cpp": (5, "checkpoints; tests/unit/checkpoint/write_faults_test.cpp"),
    "src/checkpoint/checkpoint.cpp": (7, "no_removal, checkpoints, aside"),
    "src/checkpoint/resume.cpp": (1, "no_removal"),
    "src/checkpoint/saver.cpp": (3, "checkpoints, start"),
    "src/cli/compute_bench.cpp": (1, "others"),
    "src/cli/preflight.cpp": (7, "others"),
    "src/cli/stress.cpp": (2, "others"),
    "src/cli/predict_scale.cpp": (2, "others"),
    "src/cli/report.cpp": (1, "others"),
    "src/cli/tune.cpp": (2, "others"),
    "src/config/read_text.cpp": (1, "reads"),
    "src/core/log.cpp": (3, "goes_on, start"),
    "src/core/log.hpp": (1, "a declaration"),
    "src/core/standard_output.cpp": (2, "lost_output of tests/end_to_end/cli_test.py; opens /dev/null"),
    "src/scaling/machine.cpp": (1, "others"),
    "src/run/watchdog.cpp": (2, "stderr, and reads; tests/unit/run/watchdog_test.cpp"),
    "src/data/stage.cpp": (5, "others"),
    "src/io/append_file.cpp": (3, "goes_on, each_call_alone, passing_trouble"),
    "src/io/file.cpp": (22, "all"),
    "src/io/file.hpp": (5, "declarations"),
    "src/io/folder.cpp": (2, "start, checkpoints, synthetic, images"),
    "src/io/folder.hpp": (1, "a declaration"),
    "src/io/hdf5.cpp": (2, "checkpoints, synthetic, images"),
    "src/io/seal.cpp": (12, "checkpoints, synthetic, images"),
    "src/io/seal.hpp": (4, "declarations"),
    "src/metrics/event_file.cpp": (2, "goes_on, each_call_alone, passing_trouble"),
    "src/run/heartbeats.cpp": (3, "goes_on; stall_test.py"),
    "src/metrics/journal.cpp": (3, "goes_on, each_call_alone, passing_trouble"),
    "src/metrics/metrics.cpp": (1, "goes_on, each_call_alone"),
    "src/run/attempt.cpp": (3, "goes_on, start"),
    "src/infer/evaluate.cpp": (3, "evaluation"),
    "src/infer/confusion.cpp": (2, "evaluation"),
    "src/infer/preview.cpp": (1, "others"),
    "src/infer/export.cpp": (1, "exports"),
    "src/interchange/published_file.cpp": (3, "exports"),
    "src/infer/predict.cpp": (5, "evaluation; the end of tests/end_to_end/predict_test.py"),
    "src/train/trial.cpp": (1, "removes a folder of its own; what is in it is as of a run"),
    "src/train/step_trace.cpp": (1, "goes_on, each_call_alone"),
    "src/train/run_folder.cpp": (6, "goes_on, start"),
    "src/run/state_file.cpp": (1, "goes_on, each_call_alone"),
    "src/run/liveness_monitor.cpp": (1, "goes_on; stall_test.py"),
    "src/run/excluded_hosts.cpp": (1, "others"),
    "src/run/observe.cpp": (3, "others"),
    "src/run/supervisor.cpp": (3, "goes_on; stall_test.py"),
    "preprocess/images/folder_lock.cpp": (2, "images"),
    "preprocess/spill/journal.cpp": (9, "images"),
    "preprocess/images/report.cpp": (1, "images"),
    "preprocess/output.cpp": (2, "synthetic, images"),
    "preprocess/partition_writer.cpp": (7, "synthetic, images"),
    "preprocess/spill/run_file.cpp": (3, "images"),
}

# needle: what all paths of the file have in common, as in the rules of tests/support/failing_calls.cpp. fate: `told`: the run goes on
# and names the file once; `silent`: the run goes on, nothing is lost that a user would miss; `ends`: the command ends with the code
# and names file, reason and remedy.
File = collections.namedtuple("File", "needle fate code", defaults=(3,))

EVERY = [File("/dev/shm/", "silent")]  # heartbeats of ranks on one host, where there is no run directory
TRAIN = [
    File("/metrics.jsonl", "told"), File("/monitor.jsonl", "told"), File("/tensorboard", "told"), File("/trace.json", "told"), File("/summary.csv", "told"),
    File("/config.cfg", "told"), File("/command.txt", "told"), File("/environment.json", "told"), File("/state.json", "told"),
    File(".end.json", "told"), File("/log.txt", "told"), File("/heartbeats", "silent"), File("/attempts", "ends"),
    File("/checkpoints", "ends"), File("/straight$", "ends"),
]
EVALUATE = [File("/worst.json", "ends"), File("/confusion.csv", "ends"), File("/per_class.csv", "ends"), File("/result.json", "ends"), File("/out$", "ends")]
PREDICT = [File("/out", "ends")]
BENCH = [File("/out", "ends")]
EXPORT = [File("/out", "ends")]
SYNTHETIC = [File("/train-0000", "ends"), File("/val-0000", "ends"), File("/unfinished", "ends"), File("/report.tsv", "ends"), File("/preparation.json", "ends"), File("/out$", "ends")]
IMAGES = [File("/train-0000", "ends"), File("/unfinished", "ends"), File("/report.tsv", "ends"), File("/preparation.json", "ends"), File("/out$", "ends")]
STAGE = [File(".lock", "ends"), File(".h5.tmp", "ends"), File(".h5$", "ends"), File("/run", "silent"), File("/stage", "ends"), File("/out$", "silent")]
PREFLIGHT = [File("/.stress-", "ends"), File("/out", "ends")]
