# SPDX-License-Identifier: Apache-2.0
"""Every call that writes fails, on every file that the programs write (write_sites.py): training goes on where it can and says so once, a
checkpoint that was good stays good, what can't be done ends with file, reason and remedy, and nothing half-written is left.
Usage: write_test.py CASE."""
import collections
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "end_to_end"), os.path.join(HERE, "..", "support")]
import image_sets  # noqa: E402
import write_sites as sites  # noqa: E402
from runner import CONVOY, PREPROCESS, check, everything, last, mpirun, records, same_bits, train  # noqa: E402

SHIM = os.path.join(os.environ["CONVOY_BUILD"], "tests", "libconvoy_failing_calls_preload.so")
REASONS = {"ENOSPC": "No space left on device", "EIO": "Input/output error", "EROFS": "Read-only file system"}
JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 160, "--model", "lenet", "--batch-size", 16, "--epochs", 3, "--lr", 0.05,
       "--print-freq", 2, "--seed", 5, "--monitor", 10, "--trace-steps", "2:3"]
AT_ONCE = 3  # short programs that wait for each other's start more than they compute


def run(words, rules=(), ranks=1, program=CONVOY, log=None):
    """Exit code and stderr (where that is empty, stdout) of a command whose calls fail by the rules (tests/support/failing_calls.cpp)."""
    env = dict(os.environ, OMP_NUM_THREADS="1", LD_PRELOAD=SHIM, CONVOY_FAILING_CALLS=",".join(rules))
    if log:
        env["CONVOY_CALLS_LOG"] = log
    command = (mpirun(ranks) if ranks > 1 else []) + [program] + [str(w) for w in words]
    with tempfile.TemporaryDirectory(prefix="mpi-") as own:  # Open MPI's programs remove the folder that another one is just making
        env["OMPI_MCA_orte_tmpdir_base"] = own
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=100, check=False)
    return done.returncode, done.stderr or done.stdout


def train_words(folder, *words):
    return ["train", "--output-dir", folder, "--threads", 1, *JOB, *words]


def expect(condition, name, said):
    check(condition, name + ("" if condition else "\n" + said))


def calls_of(work, words, files, **kwargs):
    """needle -> calls that the command makes on it. A file that is not in `files`, or that is not written, is a failure: the table is
    complete."""
    log = f"{work}/calls.log"
    code, said = run(words, log=log, **kwargs)
    expect(code == 0, f"{words[0]}: writes", said)
    found = collections.defaultdict(set)
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            call, _, path = line.rstrip("\n").partition(" ")
            if call == "read" or not path.startswith((work, "/dev/shm/convoy")) or path == log:
                continue
            names = [f.needle for f in [*files, *sites.EVERY] if (path.endswith(f.needle[:-1]) if f.needle[-1] == "$" else f.needle in path)]
            check(names, f"{words[0]}: {call} of {path} is in tests/faults/write_sites.py") if not names else found[names[0]].add(call)
    os.remove(log)
    missing = [f.needle for f in files if f.needle not in found]
    check(not missing, f"{words[0]}: all files of write_sites.py are written {missing}")
    return found


def writes_of_a_run(work, folder, *words):
    found = calls_of(work, train_words(folder, *words), sites.TRAIN)
    found["/log.txt"].remove("open")  # the first file of all: a folder that can't take it is refused (case `start`)
    return found


def goes_on(work):
    """All that only tells about the run fails for good: the run goes on to the same weights and names each file once."""
    straight = f"{work}/straight"
    found = writes_of_a_run(work, straight)
    told = [f.needle for f in sites.TRAIN if f.fate == "told"]
    rules = [(call, needle) for needle in [*told, *(f.needle for f in sites.TRAIN if f.fate == "silent")] for call in sorted(found[needle])]
    for error, reason in REASONS.items():
        folder = f"{work}/{error}"
        code, said = run(train_words(folder), [f"{call}:{needle}:{error}:0" for call, needle in rules])
        expect(code == 0, f"{error}: the run goes on", said)
        expect(same_bits(everything(last(folder)), everything(last(straight))), f"{error}: the same bits", said)
        for needle in told:
            lines = [line for line in said.splitlines() if needle.strip("/") in line]
            expect(len(lines) == 1 and reason in lines[0] and "; " in lines[0], f"{error}: '{needle}', reason and remedy are named once", said)


def each_call_alone(work):
    """One call on one file fails for good, the others don't: a rename that fails is no reason to lose an earlier log, and so on."""
    straight, short = f"{work}/straight", ["--epochs", 1]
    found = writes_of_a_run(work, straight, *short)
    jobs = [(f.needle, call, error) for f in sites.TRAIN if f.fate == "told"
            for (call, error) in zip(sorted(found[f.needle]), [*REASONS, *REASONS])]

    def one(job):
        needle, call, error = job
        folder = f"{work}/{jobs.index(job)}"
        code, said = run(train_words(folder, *short), [f"{call}:{needle}:{error}:0"])
        return job, code, said, folder
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for (needle, call, error), code, said, folder in pool.map(one, jobs):
            lines = [line for line in said.splitlines() if needle.strip("/") in line]
            expect(code == 0 and len(lines) == 1 and REASONS[error] in lines[0] and same_bits(everything(last(folder)), everything(last(straight))),
                   f"{call} of {needle} fails with {error}: named once, the same bits", said)


def passing_trouble(work):
    """A disk that is full for a while: records are missing, none is torn, and later ones are there."""
    folder = f"{work}/passing"
    code, said = run(train_words(folder), ["write:metrics.jsonl:ENOSPC:3:2", "write:tensorboard:EIO:2:3", "write:epoch-0001:EDQUOT", "rename:summary:EROFS"])
    expect(code == 0, "passing trouble: the run goes on", said)
    steps = [r["step"] for r in records(folder, "train")]
    expect(0 < len(steps) < 15 and steps[-1] == 30, f"passing trouble: steps {steps}", said)
    expect(said.count("metrics.jsonl") == 1, "passing trouble: said once", said)
    expect("'epoch-0001' was not saved, the one before stays" in said, "passing trouble: the checkpoint is named", said)
    names = sorted(os.path.basename(p) for p in glob.glob(f"{folder}/checkpoints/*.h5"))
    expect(names == ["best.h5", "epoch-0002.h5", "epoch-0003.h5", "last.h5"], f"passing trouble: {names}", said)
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    events = list(EventFileLoader(glob.glob(f"{folder}/tensorboard/*")[0]).Load())
    check(len(events) > 10, f"passing trouble: {len(events)} events are whole")


def no_removal(work):
    """Files can't be removed or renamed: an old checkpoint stays and is named, a damaged one is passed over."""
    folder = f"{work}/run"
    words = ["--save-every-steps", 5, "--keep-checkpoints", 1, "--save-every", 0]
    code, said = run(train_words(folder, *words, "--max-steps", 20), ["unlink:/checkpoints/step-:EROFS:0"])
    steps = len(glob.glob(f"{folder}/checkpoints/step-*.h5"))
    expect(code == 0 and steps > 1 and "cannot remove" in said and REASONS["EROFS"] in said, f"{steps} checkpoints stay, named", said)
    with open(last(folder), "r+b") as file:
        file.truncate(3000)
    code, said = run(train_words(folder, *words, "--resume", "auto"), ["rename:.damaged:EROFS:0"])
    expect(code == 0 and "last.h5' is damaged" in said and "cannot be renamed (Read-only file system)" in said, "a damaged one is passed over", said)
    resumed = [r["step"] for r in records(folder, "run") if r["event"] == "resume"]
    expect(resumed == [20], f"gone on from step-00000020: {resumed}", said)


def checkpoints(work):
    """Checkpoints can't be written any more, nor their shards: the last good one stays and is gone on from. Each save meets another
    error; after three in a row the run ends."""
    modes = {"gradients": ["--sync", "gradients"], "weights": ["--sync", "weights", "--local-steps", 13, "--replicas", 2]}  # no average at a save
    failing = {"gradients": (".h5", "/checkpoints$"), "weights": (".shard-", ".h5")}
    for mode, words in modes.items():
        train(1, f"{work}/good-{mode}", *JOB, *words, "--max-steps", 7)
        train(1, f"{work}/straight-{mode}", *JOB, *words)
    jobs = [(mode, call, target) for mode in modes for target in failing[mode]
            for call in (("fsync",) if target[-1] == "$" else ("open", "write", "fsync", "rename"))]

    def one(job):
        mode, call, target = job
        folder = f"{work}/{jobs.index(job)}"
        shutil.copytree(f"{work}/good-{mode}", folder)
        if target[-1] == "$":  # one call a save
            rules = [f"{call}:{target}:{error}:{int(turn < 2)}:{turn}" for turn, error in enumerate(REASONS)]
        else:
            names = [f"step-{step:08}" for step in range(8, 30, 2)] + ["best", "last"]
            rules = [f"{call}:{name}{target}:{error}:0" for name, error in zip(names, [*REASONS, *["EROFS"] * len(names)])]
        return job, folder, *run(train_words(folder, *modes[mode], "--resume", "auto", "--save-every-steps", 2, "--save-every", 0), rules)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for (mode, call, target), folder, code, said in pool.map(one, jobs):
            name = f"{mode}, {call} of {target}"
            lines = [line for line in said.splitlines() if target.strip("$") in line and "make room" in line and "was not saved, the one before stays" in line]
            expect(code == 3 and len(lines) >= 3 and all(any(reason in line for line in lines) for reason in REASONS.values()) and "error:" in said,
                   f"{name} fails with {', '.join(REASONS)}: code {code}, each with file, reason and remedy", said)
            expect(not glob.glob(f"{folder}/checkpoints/*.tmp"), f"{name}: nothing half-written", said)
            if call != "write":
                continue
            status = subprocess.run([CONVOY, "status", folder], capture_output=True, text=True, check=False)
            expect(status.returncode == 3 and "could not be saved" in status.stdout, f"{name}: convoy status says why", status.stdout + status.stderr)
            train(1, folder, *JOB, *modes[mode], "--resume", "auto")
            expect(same_bits(everything(last(folder)), everything(last(f"{work}/straight-{mode}"))), f"{name}: goes on to the same bits", said)

    # The fourth save has begun when the third fails, and gets through: the run goes on.
    folder = f"{work}/over"
    shutil.copytree(f"{work}/good-gradients", folder)
    rules = [f"fsync:step-{step:08}.h5:EIO:0" for step in (8, 10, 12)] + [f"fsync:step-{step:08}.h5:300ms" for step in (12, 14)]
    code, said = run(train_words(folder, *modes["gradients"], "--resume", "auto", "--save-every-steps", 2, "--save-every", 0), rules)
    expect(code == 0 and said.count("was not saved, the one before stays") == 3, "trouble that is over: three saves are missing", said)
    expect(same_bits(everything(last(folder)), everything(last(f"{work}/straight-gradients"))), "trouble that is over: goes on to the same bits", said)


def aside(work):
    """What an earlier run left can't move aside: the start says so and changes nothing, instead of a first save that fails after an hour."""
    folder = f"{work}/run"
    saves = ["--save-every-steps", 5, "--save-every", 0]
    train(1, folder, *JOB, *saves, "--max-steps", 10)
    names = sorted(os.listdir(f"{folder}/checkpoints"))
    for call, needle, error in (("mkdir", ".old-1", "EROFS"), ("mkdir", ".way-aside", "ENOSPC"), ("rename", ".way-aside", "EIO")):
        for how in ([], ["--resume", f"{folder}/checkpoints/step-00000005.h5"]):
            code, said = run(train_words(folder, *saves, *how), [f"{call}:{needle}:{error}:0"])
            expect(code == 3 and REASONS[error] in said and "choose another --checkpoint-dir" in said and said.count("error:") == 1,
                   f"{call} of {needle} fails with {error}: refused, code {code}", said)
            left = sorted(os.listdir(f"{folder}/checkpoints"))
            expect(left == names and not os.path.exists(f"{folder}/checkpoints.old-1"), f"nothing has moved: {left}", said)
    code, said = run(train_words(folder, *saves, "--resume", "auto"), ["mkdir:.old-1:EROFS:0"])
    resumed = [r["step"] for r in records(folder, "run") if r["event"] == "resume"]
    expect(code == 0 and resumed == [10], f"a run that goes on moves nothing, and the line is the one before: {resumed}", said)


def refuses(work, words, files, **kwargs):
    """Each call on each file fails with each error: the command ends with the code, file, reason and remedy, and leaves nothing
    half-written in its folder. Returns each job with its folder."""
    def out(name):
        os.makedirs(f"{work}/{name}")
        return f"{work}/{name}/out"
    found = calls_of(work, words(out("whole")), files, **kwargs)
    jobs = [(f, call, error) for f in files if f.fate == "ends" for call in sorted(found[f.needle] - {"unlink"}) for error in REASONS]

    def one(job):
        file, call, error = job
        folder = out(str(jobs.index(job)))
        code, said = run(words(folder), [f"{call}:{file.needle}:{error}:0"], **kwargs)
        return job, code, said, folder
    folders = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for (file, call, error), code, said, folder in pool.map(one, jobs):
            name = f"{call} of {file.needle} fails with {error}"
            lines = [line for line in said.splitlines() if "error:" in line or "FAILED:" in line]
            expect(code in (file.code if isinstance(file.code, tuple) else (file.code,)) and lines and REASONS[error] in lines[-1] and file.needle.strip("/$") in lines[-1] and "; " in lines[-1],
                   f"{name}: code {code}, with file, reason and remedy", said)
            left = glob.glob(f"{folder}/**/*.tmp", recursive=True)
            expect(not left, f"{name}: nothing half-written {left}", said)
            folders.append((name, folder))
    return folders


def start(work):
    """What a run can't do without: it ends at once with a message."""
    for error, reason in REASONS.items():
        for call in ("mkdir", "open", "write"):
            code, said = run(train_words(f"{work}/start-{error}-{call}"), [f"{call}:attempts:{error}:0"])
            expect(code == 3 and reason in said and "attempts" in said and "; " in said, f"{call} of attempts, {error}: refused with {code}", said)
        for call, name in (("mkdir", "folder-"), ("mkdir", "/checkpoints"), ("open", "/log.txt")):
            code, said = run(train_words(f"{work}/folder-{error}-{call}"), [f"{call}:{name}:{error}:0"])
            expect(code == 3 and reason in said and name in said and "choose a writable --" in said, f"{call} of {name}, {error}: refused with {code}", said)


def evaluation(work):
    """The figures are said even where no file of them can be written."""
    train(1, f"{work}/run", *JOB, "--max-steps", 10)

    def words(folder):
        return ["evaluate", f"{work}/run", "--output-dir", folder, "--synthetic", "--synthetic-size", 16, "--threads", 1]
    refuses(f"{work}/evaluate", words, sites.EVALUATE)
    subprocess.run([PREPROCESS, "synthetic", "--samples", "24", "--image-size", "16", "--partitions", "1", "--out", f"{work}/data"],
                   check=True, capture_output=True)
    refuses(f"{work}/predict", lambda out: ["predict", f"{work}/run", f"{work}/data", "--output", out, "--threads", 1], sites.PREDICT)


def exports(work):
    """Files of weights are whole or not there."""
    train(1, f"{work}/run", *JOB, "--max-steps", 10)
    for form in ("onnx", "safetensors", "pth"):
        refuses(f"{work}/{form}", lambda out, form=form: ["export", f"{work}/run", "--format", form, "--output", out], sites.EXPORT)
    refuses(f"{work}/average", lambda out: ["average", last(f"{work}/run"), f"{work}/run", "--output", out], sites.EXPORT)


def others(work):
    """Tables of benchmarks, copies of partitions, the count of launches; the folder that preflight tries."""
    refuses(f"{work}/bench", lambda out: ["bench", "scaling", "--model", "lenet", "--image-size", 16, "--batch-size", 4, "--steps", 2, "--csv", out],
            sites.BENCH)
    subprocess.run([PREPROCESS, "synthetic", "--samples", "48", "--image-size", "16", "--partitions", "1", "--out", f"{work}/data"],
                   check=True, capture_output=True)
    refuses(f"{work}/copies", lambda out: ["train", "--data", f"{work}/data", "--data-cache", "stage", "--stage-dir", f"{out}/stage", "--model", "lenet",
                                          "--batch-size", 16, "--max-steps", 1, "--output-dir", f"{out}/run", "--threads", 1, "--no-checkpoints"],
            sites.STAGE)
    refuses(f"{work}/preflight", lambda out: ["preflight", "--synthetic", "--output-dir", out, "--threads", 1, "--stress", 0.1], sites.PREFLIGHT)

    run_folder = f"{work}/launches"
    train(1, run_folder, *JOB, "--max-steps", 1)
    for call in ("open", "write", "rename"):
        for error, reason in REASONS.items():
            code, said = run(["report", run_folder], [f"{call}:report.html:{error}:0"])
            expect(code == 3 and reason in said and "report.html" in said, f"report, {call}, {error}: code {code}, names file and reason", said)
            code, said = run(["preview", "--synthetic", "--samples", 1, "--appearances", 1, "-o", f"{work}/sheet.html"], [f"{call}:sheet.html:{error}:0"])
            expect(code == 3 and reason in said and "sheet.html" in said, f"preview, {call}, {error}: code {code}, names file and reason", said)
    tune = ["tune", "lr", "--synthetic", "--synthetic-size", 16, "--synthetic-samples", 64, "--model", "lenet", "--batch-size", 16, "--threads", 1, "--steps", 20,
            "--output-dir", f"{work}/tune", "--csv", f"{work}/range.csv", "--plot", f"{work}/range.html"]
    for call in ("open", "write", "rename"):
        for error, reason in REASONS.items():
            for name in ("range.csv", "range.html"):
                code, said = run(tune, [f"{call}:{name}:{error}:0"])
                expect(code == 3 and reason in said and name in said, f"tune lr: {name}, {call}, {error}: code {code}, names file and reason", said)
    machine, job = f"{work}/machine.json", ["--model", "lenet", "--image-size", 16, "--batch-size", 4]
    measure = ["bench", "compute", "--no-gradients", *job, "--steps", 1, "--threads", 1, "--machine", machine]
    code, said = run(measure)
    expect(code == 0, "a machine is described", said)
    predict = ["predict-scale", "--machine", machine, *job, "--nodes", 1, "--csv", f"{work}/table.csv", "--plot", f"{work}/plot.html"]
    for call in ("open", "write", "rename"):
        for error, reason in REASONS.items():
            for name, words in (("machine.json", measure), ("table.csv", predict), ("plot.html", predict)):
                code, said = run(words, [f"{call}:{name}:{error}:0"])
                expect(code == 3 and reason in said and name in said, f"{name}, {call}, {error}: code {code}, names file and reason", said)
    wrong = ["--sync", "gradients", "--check-arithmetic", 1, "--inject-fault", "flip-convolution@1@1", "--no-checkpoints", "--max-steps", 2]
    for number, (call, (error, reason)) in enumerate((call, item) for call in ("open", "write", "rename") for item in REASONS.items()):
        code, said = run(train_words(f"{work}/wrong-{number}", *wrong), [f"{call}:excluded-hosts:{error}:0"], ranks=2)
        expect(code == 7 and reason in said and "excluded-hosts" in said and "will not leave out" in said,
               f"excluded-hosts, {call}, {error}: code {code}, names file and reason", said)
    ask = ["status", run_folder, "--after", 137, "--attempts-before", 1]
    code, said = run(ask)
    expect(code == 75, "launch that failed: counted, and started again", said)
    for call in ("open", "write", "rename"):
        for error, reason in REASONS.items():
            code, said = run(ask, [f"{call}:failed-launches:{error}:0"])
            expect(code not in (0, 75) and reason in said and "failed-launches" in said, f"count of launches, {call}, {error}: code {code}, not started again", said)
    with open(f"{run_folder}/state.json", encoding="utf-8") as file:
        state = json.load(file)
    with open(f"{run_folder}/state.json", "w", encoding="utf-8") as file:
        json.dump({**state, "result": "running"}, file)
    os.remove(f"{run_folder}/attempts/0001.end.json")
    for call in ("open", "write", "rename"):
        for error, reason in REASONS.items():
            code, said = run(["status", run_folder, "--after", 137, "--attempts-before", 0], [f"{call}:0001.launcher:{error}:0"])
            expect(code == 75 and reason in said and "will not know the launcher's code" in said, f"code of a launcher, {call}, {error}: code {code}, it continues", said)


def synthetic(work):
    refuses(work, lambda f: ["synthetic", "--samples", 60, "--val-samples", 20, "--image-size", 8, "--partitions", 3, "--out", f],
            sites.SYNTHETIC, program=PREPROCESS)


def images(work):
    """Journal, runs, partitions and report of image sets; what failed goes on where it was."""
    image_sets.write_folder(image_sets.make_set(2, side=24), f"{work}/source/train")

    def words(folder):
        return ["folder", "--source", f"{work}/source", "--out", folder, "--partitions", 2]
    folders = refuses(work, words, sites.IMAGES, program=PREPROCESS)

    def partitions(folder):
        return {os.path.basename(p): open(p, "rb").read() for p in glob.glob(f"{folder}/*.h5")}
    for name, folder in folders[::7]:
        code, said = run(words(folder), program=PREPROCESS)
        expect(code == 0 and partitions(folder) == partitions(f"{work}/whole/out"), f"{name}: made in the end, the same bytes", said)
    folder = f"{work}/whole/out"
    whole = partitions(folder)
    for name in ("/preparation.json", "/train-00001"):
        code, said = run([*words(folder), "--overwrite"], [f"unlink:{name}:EROFS:1"], program=PREPROCESS)
        expect(code == 3 and "cannot remove" in said and REASONS["EROFS"] in said, f"{name} can't be replaced", said)
        code, said = run([*words(folder), "--overwrite"], program=PREPROCESS)
        expect(code == 0 and partitions(folder) == whole, "and is replaced in the end", said)


if __name__ == "__main__":
    cases = {f.__name__: f for f in (goes_on, each_call_alone, passing_trouble, no_removal, checkpoints, aside, start, evaluation, exports, others, synthetic, images)}
    # In memory where there is room for it: what a disk does here is what the rules say.
    with tempfile.TemporaryDirectory(prefix="convoy-test-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as work_path:
        for case in sys.argv[1:] or cases:
            os.makedirs(f"{work_path}/{case}")
            cases[case](f"{work_path}/{case}")
