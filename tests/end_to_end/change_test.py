# SPDX-License-Identifier: Apache-2.0
"""Going on in another way: other rank counts, replicas, batches, ways of averaging; weights only; a used run directory."""
import glob
import os
import shutil

from runner import PREPROCESS, check, everything, last, records, run, same_bits, tensors, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 165, "--model", "resnet8", "--batch-size", 8, "--lr", 0.05,
       "--seed", 5, "--epochs", 3, "--save-every", 0, "--print-freq", 1, "--skip-eval", "--shuffle", "global"]


def resumed(work, name, ranks, *words):
    """From 13 steps of 2 replicas (epochs of 11), in the middle of an epoch and of a period, to the end."""
    folder = f"{work}/{name}"
    shutil.copytree(f"{work}/start", folder)
    return folder, "".join(train(ranks, folder, *JOB, "--sync", "weights", "--local-steps", 4, "--resume", "auto", *words))


def shards(work):
    """Beside the checkpoint of local SGD in the middle of a period: no command takes one, and `*.h5` names none."""
    folder = f"{work}/start/checkpoints"
    names = sorted(name for name in os.listdir(folder) if "shard" in name)
    check(len(names) == 2 and not glob.glob(f"{folder}/*shard*.h5"), f"shards are not .h5: {names}")
    shutil.copy(f"{folder}/{names[1]}", f"{work}/shard.h5")
    for ranks, words in ((3, ("evaluate", f"{work}/shard.h5", *JOB[:5])), (1, ("predict", f"{work}/shard.h5", f"{folder}/last.h5")),
                         (1, ("train", *JOB, "--output-dir", f"{work}/none", "--weights", f"{work}/shard.h5")),
                         (3, ("train", *JOB, "--output-dir", f"{work}/none", "--resume", f"{folder}/{names[1]}"))):
        err = run(ranks, *words, expect=3)[1]
        check("is no checkpoint but the shard of replica 1 (of 2)" in err, f"{words[0]} refuses a shard")
    check("shard         of replica 1" in run(1, "inspect", "checkpoint", f"{work}/shard.h5")[0], "inspect shows that it is one")


def other_samples(work):
    """A set that is made again with other images: a run goes on after an epoch, says so, and not within one."""
    data, words = f"{work}/set", ["--data", f"{work}/set", "--model", "resnet8", "--batch-size", 8, "--lr", 0.05, "--epochs", 3]
    make = ["synthetic", "--out", data, "--samples", 80, "--val-samples", 16, "--image-size", 16, "--partitions", 1, "--overwrite"]
    run(1, *make, program=PREPROCESS)
    for name, steps in (("border", 10), ("middle", 15)):
        train(1, f"{work}/{name}", *words, "--max-steps", steps)
    run(1, *make, "--seed", 9, program=PREPROCESS)
    err = train(3, f"{work}/middle", *words, "--resume", "auto", "--replicas", 1, expect=3)[1]
    check("stands in the middle of an epoch of other samples" in err and err.count("error:") == 1, "in the middle of an epoch: refused")
    said = "".join(train(3, f"{work}/border", *words, "--resume", "auto", "--replicas", 1))
    check("are not those that" in said and "it continues with the new ones" in said, "after an epoch: said")
    check("another val split" in said, "the best accuracy begins anew")
    top = max(r["top1"] for r in records(f"{work}/border", "val") if r["step"] > 10)
    check(f"best held-out accuracy: {top:.2f} %" in said, f"it is that of the new val split, {top:.2f} %")


def main():
    with work_folder() as work:
        other_samples(work)
        local = ["--sync", "weights", "--local-steps", 4]
        train(2, f"{work}/straight", *JOB, *local, "--reproducible")
        train(2, f"{work}/start", *JOB, *local, "--reproducible", "--max-steps", 13)
        shards(work)
        for ranks in (1, 2, 3):
            folder, _ = resumed(work, f"ranks-{ranks}", ranks, "--reproducible")
            same = same_bits(everything(last(folder)), everything(last(f"{work}/straight")))
            check(same, f"2 replicas went on exactly on {ranks} ranks")
            told, whole = (records(f, "epoch") for f in (folder, f"{work}/straight"))
            names = ("epoch", "images", "top1", "lr")
            worst = max(abs(a["loss"] - b["loss"]) for a, b in zip(told, whole))
            check(worst == 0 if ranks == 2 else worst < 1e-7, f"{ranks} ranks: the loss of the epoch that was stopped is all its steps' ({worst:.1e})")
            check([[r[n] for n in names] for r in told] == [[r[n] for n in names] for r in whole], "and so is the rest of its record")

        folder, said = resumed(work, "replicas", 4, "--replicas", 4)
        check("continues from the averaged model" in said and "4 replicas" in said, "4 replicas: says how it goes on")
        steps = [r["step"] for r in records(folder, "train")]
        check(max(steps) == 18, f"4 replicas: the run ends after 3 epochs of 6 steps, at {max(steps)}")

        folder, said = resumed(work, "batch", 2, "--batch-size", 16)
        check("continues from the averaged model" in said, "another batch: says how it goes on")
        check(max(r["step"] for r in records(folder, "train") if r["epoch"] == 3) == 18, "another batch: the run ends after 3 epochs of 6 steps")
        check([r["epoch"] for r in records(folder, "epoch")] == [1, 2, 3] and records(folder, "epoch")[0] == records(f"{work}/start", "epoch")[0],
              "another batch: records of finished epochs stay")
        check("optimiser changed: batch-size 8 then, 16 now" in said, "another batch: is told as a change")

        folder = f"{work}/gradients"
        shutil.copytree(f"{work}/start", folder)
        said, _ = train(2, folder, *JOB, "--sync", "gradients", "--resume", "auto", "--check-weights", 1)
        check("continues from the averaged model" in said, "another way of averaging: goes on from the averaged model, ranks agree")

        best = f"{work}/straight/checkpoints/best.h5"
        shutil.copy(last(f"{work}/start"), best)
        still = ["--max-steps", 1, "--lr", 1e-9, "--lr-schedule", "constant", "--weight-decay", 0]
        said, _ = train(1, f"{work}/weights", *JOB, "--weights", f"{work}/straight", *still)
        a, b = tensors(best), tensors(last(f"{work}/weights"))
        worst = max(abs(a[k] - b[k]).max() for k in a)
        check(worst < 1e-6, f"--weights starts from the best model of a run directory ({worst:.1e})")
        said, _ = train(1, f"{work}/head", *JOB, "--weights", f"{work}/straight", "--synthetic-classes", 7, *still)
        check("/parameters/fc.weight, /parameters/fc.bias start anew" in said, "a head for other classes is new, and that is said")
        b = tensors(last(f"{work}/head"))
        worst = max(abs(a[k] - b[k]).max() for k in a if not k.startswith("fc."))
        check(worst < 1e-6 and b["fc.weight"].shape[0] == 7 and abs(b["fc.weight"]).min() > 0, f"all else is the model's ({worst:.1e})")
        _, err = run(1, "train", *JOB, "--output-dir", f"{work}/other", "--weights", f"{work}/straight", "--model", "resnet14", expect=3)
        check("is of resnet8 v1, and this run trains resnet14 v1; give --model resnet8\n" in err, "another network: both, and what to do")

        # A run that is through.
        folder = f"{work}/straight"
        before = os.stat(last(folder)).st_mtime_ns
        said = "".join(train(2, folder, *JOB, *local, "--reproducible", "--resume", "auto", "--momentum", 0.8))
        check("end of epoch 3, step 33" in said and "nothing is left to do" in said, "a finished run: nothing is left to do")
        check("optimiser changed: momentum 0.9 then, 0.8 now" in said, "and which options differ")
        train(2, folder, "--resume", f"{work}/nope", *JOB, expect=3)
        text, _ = run(1, "status", folder)
        check("finished" in text and "refused     attempt 3 failed before it began" in text, "a start that is refused leaves it finished, and is told")
        with open(f"{folder}/state.json", "w", encoding="utf-8"):
            pass
        run(1, "status", folder, expect=3)
        os.remove(f"{folder}/state.json")
        os.mkdir(f"{folder}/state.json")
        _, err = run(1, "status", folder, expect=3)
        check("/state.json'" in err, "a folder in its place: named")
        text, err = run(1, "summary", folder, f"{work}/start")
        check("state.json" in err and f"{work}/start" in text, "an empty state.json ends neither status nor summary")
        check(os.stat(last(folder)).st_mtime_ns == before, "its checkpoint stays")
        state = tensors(last(f"{work}/weights"), "/")["state"]
        check(state.reshape(-1)[0] == 1, "--weights leaves the loss scale at its start")

        train(1, f"{work}/weights", *JOB, "--weights", f"{work}/nope", expect=3)
        check(os.path.exists(last(f"{work}/weights")) and not os.path.exists(f"{work}/weights/checkpoints.old-1"),
              "a fresh run that is refused leaves older checkpoints alone")
        train(1, f"{work}/weights", *JOB, "--max-steps", 2)
        check(os.path.exists(f"{work}/weights/checkpoints.old-1/last.h5"), "a fresh run puts older checkpoints aside")
        train(1, f"{work}/weights", *JOB, "--resume", "auto", "--max-steps", 1)
        check(max(r["step"] for r in records(f"{work}/weights", "train")) == 3, "--resume auto goes on from the fresh run")
        check(not glob.glob(f"{work}/*/checkpoints/*.tmp"), "no temporary files are left")
        _, err = run(1, "train", *JOB, "--output-dir", f"{work}/nccl", "--backend", "nccl", expect=4)
        check("rank 0 has no GPU" in err, "--backend nccl without CUDA is an error, not MPI in silence")


def lines_of_checkpoints():
    """Going back to an older checkpoint, on 3 ranks in epochs of 7 steps; what is left then; what a resumed run takes from its own configuration."""
    with work_folder() as work:
        folder = f"{work}/run"
        job = JOB + ["--sync", "gradients", "--save-every-steps", 5, "--keep-checkpoints", 9]
        auto = ["--resume", "auto", "--max-steps"]
        train(3, folder, *job, "--max-steps", 20)
        said = "".join(train(3, folder, *job, "--resume", f"{folder}/checkpoints/step-00000010.h5", "--max-steps", 2))
        check("were moved to" in said and sorted(os.listdir(f"{folder}/checkpoints.old-1")) == ["last.h5", "step-00000015.h5", "step-00000020.h5"],
              "checkpoints of the steps that were left move aside")
        said, _ = train(3, folder, *job, *auto, 1)
        check("last.h5': epoch 2, step 12" in said, "--resume auto follows the new line")
        train(3, folder, *JOB, "--sync", "gradients", "--resume", f"{folder}/checkpoints/step-00000005.h5", "--max-steps", 1, "--no-checkpoints")
        shutil.copytree(folder, f"{work}/same")
        said, _ = train(3, folder, *job, *auto, 3)
        check("step-00000005.h5': epoch 1, step 5" in said, "also if that has saved nothing")
        train(3, f"{work}/same", *auto, 3)
        check(same_bits(everything(last(folder)), everything(last(f"{work}/same"))), "--resume auto alone takes the run's own configuration")
        with open(f"{work}/same/config.cfg", encoding="utf-8") as file:
            text = file.read()
        check("\nlr = 0.05\n" in text and "\n# momentum = 0.9\n" in text and "max-steps = 3" in text, "which holds what was said")

        shutil.rmtree(f"{folder}/checkpoints")
        _, err = train(3, folder, *auto, 1, expect=2)
        check("checkpoints.old-1" in err and "--restart" in err, "nothing to continue from beside what was moved aside: refused")
        os.makedirs(f"{work}/damaged/checkpoints")
        with open(last(f"{work}/damaged"), "w", encoding="utf-8") as file:
            file.write("damaged")
        _, err = train(1, f"{work}/damaged", *job, *auto, 1, expect=2)
        check("last.h5.damaged is damaged" in err and "--restart" in err, "only damaged ones: refused")
        os.makedirs(f"{work}/linked/checkpoints")
        os.symlink("not mounted", last(f"{work}/linked"))
        _, err = train(1, f"{work}/linked", *job, *auto, 1, expect=3)
        check("can't be opened (No such file or directory), so it may be whole; mount" in err and os.path.islink(last(f"{work}/linked")),
              "one that can't be opened is no damaged one")
        said, _ = train(1, f"{work}/damaged", *job, *auto, 1, "--restart")
        check("starting afresh" in said and os.path.exists(last(f"{work}/damaged")), "--restart begins anew")


if __name__ == "__main__":
    main()
    lines_of_checkpoints()
