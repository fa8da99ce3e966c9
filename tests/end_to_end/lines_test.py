# SPDX-License-Identifier: Apache-2.0
"""Runs that go on after their files were moved, copied, damaged, edited or dated otherwise: with the same numbers, or saying what differs. One
case an argument."""
import json
import os
import shutil
import subprocess
import sys
import time

from runner import CONVOY, PREPROCESS, check, everything, last, records, run, same_bits, train, work_folder

# Epochs of 10 steps of 2 replicas.
JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 160, "--model", "resnet8", "--batch-size", 8, "--lr", 0.05, "--seed", 5,
       "--epochs", 3, "--print-freq", 1, "--skip-eval", "--replicas", 2, "--reproducible", "--sync", "gradients",
       "--lr-schedule", "constant"]
SAVES = ["--save-every", 0, "--save-every-steps", 5, "--keep-checkpoints", 9]
AUTO = ["--resume", "auto"]


def resumes(folder):
    return [record["step"] for record in records(folder, "run") if record["event"] == "resume"]


def straight(work):
    train(1, f"{work}/straight", *JOB)
    return everything(last(f"{work}/straight"))


def elsewhere(work):
    """The newest attempt continued a file beside the checkpoints, and saved nothing: auto must not take an older one of the folder."""
    folder, keep = f"{work}/run", f"{work}/run/keep.h5"
    train(2, folder, *JOB, *SAVES, "--max-steps", 13)
    os.rename(last(folder), keep)
    train(2, folder, *JOB, "--resume", keep, "--max-steps", 1, "--no-checkpoints")
    for copy in ("damaged", "other", "gone"):
        shutil.copytree(folder, f"{work}/{copy}")
        with open(f"{work}/{copy}/attempts/0002.json", encoding="utf-8") as file:
            record = json.load(file)
        record["from"]["file"] = f"{work}/{copy}/keep.h5"
        with open(f"{work}/{copy}/attempts/0002.json", "w", encoding="utf-8") as file:
            json.dump(record, file)
    said = "".join(train(3, folder, *AUTO))
    check(f"resumed from '{keep}': epoch 2, step 13" in said and "going back" not in said, "auto takes the file that the newest attempt continued")
    check(same_bits(everything(last(folder)), straight(work)), "and ends with the same bits")

    with open(f"{work}/damaged/keep.h5", "r+b") as file:
        file.truncate(9000)
    shutil.copy(f"{work}/other/checkpoints/step-00000005.h5", f"{work}/other/keep.h5")
    os.remove(f"{work}/gone/keep.h5")
    for copy, reason in (("damaged", "keep.h5"), ("other", "it is of step 5 now, and was of step 13"), ("gone", "it is gone")):
        said = "".join(train(3, f"{work}/{copy}", *AUTO, "--max-steps", 1))
        check(resumes(f"{work}/{copy}")[-1] == 10, f"{copy}: the newest of the folder")
        check(reason in said and "going back to" in said and "of step 10" in said, f"{copy}: and that is said")


def places(work):
    """Copies: of the checkpoints alone, and of the whole run; the numbers of ranks change from 1 to 3 to 2."""
    expected = straight(work)
    train(1, f"{work}/run", *JOB, "--max-steps", 7)
    shutil.copytree(f"{work}/run/checkpoints", f"{work}/copied checkpoints")
    shutil.copytree(f"{work}/run", f"{work}/copied run")
    train(3, f"{work}/run", *AUTO, "--max-steps", 9)
    train(2, f"{work}/run", *AUTO)
    check(resumes(f"{work}/run") == [7, 16] and same_bits(everything(last(f"{work}/run")), expected), "1, 3 and 2 ranks: the same bits")
    shutil.rmtree(f"{work}/run")  # nobody reads what was copied
    train(3, f"{work}/copied run", *AUTO)
    check(resumes(f"{work}/copied run") == [7] and same_bits(everything(last(f"{work}/copied run")), expected), "a copy of the run: the same bits")
    train(2, f"{work}/new", *JOB, *AUTO, "--checkpoint-dir", f"{work}/copied checkpoints")
    check(resumes(f"{work}/new") == [7] and same_bits(everything(f"{work}/copied checkpoints/last.h5"), expected), "copied checkpoints: the same bits")


def states(work):
    """A state.json that a power cut damaged, with the checkpoints in another place."""
    expected, folder, elsewhere_ = straight(work), f"{work}/run", ["--checkpoint-dir", f"{work}/checkpoints"]
    train(1, folder, *JOB, *elsewhere_, "--max-steps", 7)
    with open(f"{folder}/state.json", "w", encoding="utf-8") as file:
        file.write('{"run": ')
    err = train(3, folder, *AUTO, expect=2)[1]
    check(f"knows '{work}/checkpoints/last.h5' of step 7" in err and "--restart" in err, "without the place: refused, and told where they are")
    said = "".join(train(3, folder, *AUTO, *elsewhere_))
    check(f"options that are left out are those of '{folder}/config.cfg'" in said, "with it: the options are the run's")
    check(same_bits(everything(f"{work}/checkpoints/last.h5"), expected), "and so are the bits")
    with open(f"{folder}/state.json", "w", encoding="utf-8"):
        pass
    shutil.rmtree(f"{work}/checkpoints")
    said = "".join(train(1, folder, *AUTO, "--restart", "--max-steps", 1))
    check("starting afresh" in said, "--restart begins anew beside a damaged state.json")


def copies(work):
    """A copied run directory whose checkpoints lie outside of it: they are the other run's."""
    folder, copy, outside = f"{work}/run", f"{work}/copy", f"{work}/checkpoints"
    train(1, folder, *JOB, "--checkpoint-dir", outside, "--max-steps", 3)
    train(1, folder, *AUTO, "--checkpoint-dir", outside, "--max-steps", 4)
    shutil.copytree(folder, copy)
    told = f"'{copy}' holds no checkpoint (it is a copy of '{folder}', whose checkpoints lie in '{outside}')"
    check(told in run(1, "inspect", "checkpoint", copy, expect=3)[1], "another command finds none there")
    check("step 7" in run(1, "inspect", "checkpoint", folder)[0], "and those of the run as before")
    said = "".join(train(1, copy, *AUTO, "--max-steps", 1))
    check(f"'{copy}' is a copy of '{folder}': this run goes on from the original's checkpoint '{outside}/last.h5'" in said, "a copy that goes on from the other's checkpoint says so")
    check(resumes(copy)[-1] == 7 and os.path.exists(last(copy)), "and saves in its own folder")
    check("is a copy of" not in "".join(train(1, copy, *AUTO, "--max-steps", 1)), "where it goes on without a word")
    shutil.copytree(folder, f"{work}/second")
    said = "".join(train(1, f"{work}/second", *AUTO, "--checkpoint-dir", outside, "--max-steps", 1))
    check(f"'{work}/second' is a copy of '{folder}', and both save in '{outside}'" in said, "one that replaces the other's checkpoints is warned")
    os.rename(f"{work}/second", f"{work}/moved")
    check("step 8" in run(1, "inspect", "checkpoint", f"{work}/moved")[0], "a run directory that was moved still leads to its checkpoints")


def edits(work):
    """The run's configuration is edited before it goes on."""
    folder = f"{work}/run"
    train(1, folder, *JOB, "--max-steps", 7)
    for ranks, words in ((1, (*JOB[:9], "--epochs", 3, "--resume", last(folder))), (3, (*AUTO, "--output-dir", folder))):
        said, _ = run(ranks, "train", *words, "--dry-run", "--dry-run-seconds", 0)
        check("peak learning rate   0.05\n" in said and f"last.h5, step 7\n" in said and ", 2 replicas, " in said, f"a dry run on {ranks} ranks shows the run's rate and replicas")
    with open(f"{folder}/config.cfg", encoding="utf-8") as file:
        text = file.read()
    with open(f"{folder}/config.cfg", "w", encoding="utf-8") as file:
        file.write(text.replace("\nlr = 0.05\n", "\nlr = 0.02\n").replace("\n# momentum = 0.9\n", "\nmomentum = 0.8\n"))
    said = "".join(train(3, folder, *AUTO, "--max-steps", 1))
    check(said.count("optimiser changed: momentum 0.9 then, 0.8 now; lr 0.05 then, 0.02 now, since") == 1, "what was edited counts, and is told")
    check(said.count("0.05 then") == 1 and "differs" not in said, "once")
    rate = [r["lr"] for r in records(folder, "train")]
    check(rate[:8] == [0.05] * 7 + [0.02], f"the rates of the steps: {rate}")
    said = "".join(train(2, folder, *AUTO, "--max-steps", 1, "--threads", 2))
    check("the way to compute (threads 1 then, 2 now) differs" in said and "not bit for bit" in said and "changed:" not in said,
          "what only rounds is told apart")


def remains(work):
    """What tells of the run is gone or damaged: its configuration, its attempts."""
    expected, folder = straight(work), f"{work}/run"
    train(1, folder, *JOB, "--max-steps", 13)
    for copy in ("empty", "gone", "attempts"):
        shutil.copytree(folder, f"{work}/{copy}")
    with open(f"{work}/empty/config.cfg", "w", encoding="utf-8"):
        pass
    os.remove(f"{work}/gone/config.cfg")
    for copy in ("empty", "gone"):
        said = "".join(train(3, f"{work}/{copy}", *AUTO))
        check(f"config.cfg' is empty or gone: the configuration in '{last(f'{work}/{copy}')}' stands in for it" in said, f"{copy}: what stands in is told")
        check(same_bits(everything(last(f"{work}/{copy}")), expected), f"{copy}: the same bits")
    for name in os.listdir(f"{work}/attempts/attempts"):
        with open(f"{work}/attempts/attempts/{name}", "w", encoding="utf-8") as file:
            file.write('{"run": 5, "result": 7}')
    with open(f"{work}/attempts/metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"split": 5}\n[]\n')
    check(f"{work}/attempts" in run(1, "summary", f"{work}/attempts")[0], "damaged lines: summary leaves them out")
    train(2, f"{work}/attempts", *AUTO)
    check(resumes(f"{work}/attempts") == [13] and same_bits(everything(last(f"{work}/attempts")), expected), "damaged records of attempts: the same bits")


def dates(work):
    """All files have dates in the future: of a copy, or of a clock that was set back."""
    expected, folder = straight(work), f"{work}/run"
    train(1, folder, *JOB, *SAVES, "--max-steps", 13)
    later = time.time() + 400 * 86400
    with open(f"{folder}/state.json", encoding="utf-8") as file:
        state = json.load(file)
    state.update(updated=later, started=later, progressed=later)
    with open(f"{folder}/state.json", "w", encoding="utf-8") as file:
        json.dump(state, file)
    for path, _, names in os.walk(folder):
        for name in names:
            os.utime(f"{path}/{name}", (later, later))
    train(3, folder, *AUTO, "--keep-checkpoints", 2)
    check(resumes(folder) == [13] and same_bits(everything(last(folder)), expected), "the run goes on to the same bits")
    kept = sorted(name for name in os.listdir(f"{folder}/checkpoints") if name.startswith("step-") and name.endswith(".h5"))
    check(kept == ["step-00000025.h5", "step-00000030.h5"], f"and keeps its newest checkpoints: {kept}")


def sets(work):
    """A set of the same size in the place of the run's, and other labels for the same images: refused within an epoch."""
    words = ["--data", f"{work}/set", "--model", "resnet8", "--batch-size", 8, "--epochs", 3, "--lr", 0.05]
    make = ["synthetic", "--samples", 80, "--val-samples", 16, "--image-size", 16, "--partitions", 2, "--overwrite"]
    run(1, *make, "--out", f"{work}/set", program=PREPROCESS)
    run(1, *make, "--out", f"{work}/other", "--seed", 9, program=PREPROCESS)
    train(1, f"{work}/run", *words, "--max-steps", 13)
    shutil.copytree(f"{work}/set", f"{work}/kept")
    name = "train-00001-of-00002.h5"
    shutil.copy(f"{work}/other/{name}", f"{work}/set/{name}")
    err = train(3, f"{work}/run", *AUTO, "--replicas", 1, expect=3)[1]
    check("belong to different data sets" in err and err.count("error:") == 1, "one partition of another set: refused")
    shutil.rmtree(f"{work}/set")
    shutil.copytree(f"{work}/other", f"{work}/set")
    err = train(3, f"{work}/run", *AUTO, "--replicas", 1, expect=3)[1]
    check("stands in the middle of an epoch of other samples" in err and err.count("error:") == 1, "another set: refused")
    shutil.rmtree(f"{work}/set")
    shutil.copytree(f"{work}/kept", f"{work}/set")
    train(3, f"{work}/run", *AUTO, "--replicas", 1, "--max-steps", 1)
    check(resumes(f"{work}/run") == [13], "the set as it was: goes on")


def unsaved(work):
    """A start that ended before its first checkpoint: its options count if the command names no data set, and only then."""
    folder, nan = f"{work}/run", ["--inject-fault", "nan@0@4"]
    for ranks in (1, 3):
        err = train(ranks, folder, *JOB, *nan, expect=1)[1]
        check("--resume auto" in err and not os.path.exists(last(folder)), f"{ranks} ranks: a run that ends in its first epoch has saved nothing")
        shutil.copytree(folder, f"{work}/lower-{ranks}")
        shutil.copytree(folder, f"{work}/words-{ranks}")
        said = "".join(train(ranks, folder, *AUTO))
        check(f"options that are left out are those of '{folder}/config.cfg'" in said and "starting afresh" in said, "it starts with its own options, said")
        check(same_bits(everything(last(folder)), straight(work)), "and ends with the bits of a run that was left alone")
        shutil.rmtree(folder)
        train(ranks, f"{work}/lower-{ranks}", *AUTO, "--lr", 0.01, "--max-steps", 1)
        check([r["lr"] for r in records(f"{work}/lower-{ranks}", "train")] == [0.01], "what the command says counts more")
        said = "".join(train(ranks, f"{work}/words-{ranks}", *JOB[:7], *AUTO, "--max-steps", 1))
        check("options that are left out" not in said, "a command that names its data names all")
    train(1, folder, *JOB, "--max-steps", 3)
    os.remove(last(folder))
    err = train(1, folder, *AUTO, expect=2)[1]
    check("of step 3" in err and "--restart" in err, "a run whose checkpoints are lost is refused as before")


def beyond(work):
    """An end that lies before where the run stands: refused, and the record stays."""
    folder, files = f"{work}/run", ("metrics.jsonl", "config.cfg", "checkpoints/last.h5")
    train(2, folder, *JOB, "--max-steps", 25)

    def record():
        return [open(f"{folder}/{name}", "rb").read() for name in files]

    before = record()
    for ranks in (1, 3):
        said = "".join(train(ranks, folder, *AUTO, "--epochs", 2, expect=2))
        check("beyond --epochs 2 (20 steps)" in said and "has done 25 steps, in epoch 3" in said and "epoch 3, step 25" in said, "the place is told")
        check("end of epoch" not in said and record() == before, "nothing of the record changes")
    check("stopped by --max-steps" in run(1, "status", folder)[0], "nor what status says")
    train(3, folder, *AUTO)
    check(same_bits(everything(last(folder)), straight(work)), "and the run goes on to the same bits")
    said = "".join(train(1, folder, *AUTO, "--epochs", 2, expect=2))
    check("has done 30 steps, in epoch 3" in said, "a finished run, too")


def twice(work):
    """Two equal starts at once: the second waits, sees that the first has done its work, and leaves it."""
    words = ["train", "--output-dir", f"{work}/run", "--threads", "1", "--no-tensorboard", *map(str, JOB)]
    first = subprocess.Popen([CONVOY, *words, "--inject-fault", "slow-data@0@0@0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while not os.path.exists(f"{work}/run/metrics.jsonl") and time.monotonic() < until:
        time.sleep(0.02)
    said = "".join(run(2, *words))
    check(first.wait(60) == 0 and "attempt 1 has finished this run with the same configuration" in said and "nothing is left to do" in said,
          "the second trains nothing")
    check(same_bits(everything(last(f"{work}/run")), straight(work)) and not os.path.exists(f"{work}/run/checkpoints.old-1"), "and leaves the result")
    check(len(records(f"{work}/run", "train")) == 30, "and its record")
    said = "".join(train(1, f"{work}/run", *JOB, "--max-steps", 1))
    check("nothing is left" not in said and os.path.exists(f"{work}/run/checkpoints.old-1"), "a later start trains anew")


if __name__ == "__main__":
    with work_folder() as work_:
        {case.__name__: case for case in (elsewhere, places, states, copies, edits, remains, dates, sets, unsaved, beyond, twice)}[sys.argv[1]](work_)
