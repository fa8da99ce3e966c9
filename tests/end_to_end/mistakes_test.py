# SPDX-License-Identifier: Apache-2.0
"""Typical mistakes of the first days: each is answered with the problem, its reason and a remedy, and with the exit code of its kind."""
import concurrent.futures
import os
import shlex
import shutil
import subprocess
import sys
import time

import h5py
import numpy as np
from PIL import Image
from runner import CONVOY, PREPROCESS, SOURCE, check, mpirun, train, work_folder

SMALL = "--model lenet --image-size 28 --batch-size 10 --threads 1 --no-tensorboard --max-steps 1"

# (mistake, ranks (0: without mpirun), command, exit code, words of the answer: problem, reason, remedy)
MISTAKES = [
    # Data.
    ("a folder that is not there", 0, f"train --data nope {SMALL}", 3, "'nope'", "No such file or directory", "convoy-preprocess"),
    ("photos instead of a prepared set", 0, f"train --data photos {SMALL}", 3, "'photos'", "no partition", "convoy-preprocess"),
    ("one partition instead of its folder", 0, f"train --data set/train-00000-of-00001.h5 {SMALL}", 3, "set/train-00000-of-00001.h5'", "Not a directory", "folder"),
    ("a partition that another program changed", 0, f"train --data edited {SMALL}", 3, "edited/train-00000-of-00001.h5'", "sealed with", "convoy-preprocess verify"),
    ("no data set", 0, f"train {SMALL}", 2, "no data set is given", "--data DIR", "convoy-preprocess"),
    ("two sources of data", 0, f"train --data set --synthetic {SMALL}", 2, "--synthetic and a data folder", "both given", "keep one"),
    ("no val split", 0, f"train --data only-train {SMALL}", 0, "no val split", "nothing is evaluated", "--val-data"),
    ("more ranks than images", 3, f"train --data tiny {SMALL}", 2, "3 replicas share 2 training images", "would never see one", "start fewer ranks"),
    ("a batch larger than the set", 0, f"train --data set --model lenet --image-size 28 --batch-size 1000 --threads 1 --max-steps 1", 0, "the batch of 1000", "larger than the set", "lower --batch-size"),
    ("drawing more than the set has", 0, "train --data set --model lenet --image-size 28 --batch-size 1000 --threads 1 --max-steps 1 --epoch-mode resample", 0,
     "a step draws 1000 images from a set of ", "times on average", "lower --batch-size"),
    ("a crop that is larger than the image", 0, "train --data set --model lenet --crop window --image-size 64 --max-steps 1", 2, "64x64", "32x32", "--image-size"),
    ("--scaled-decoding of pixels", 0, f"train --data set --crop resized --scaled-decoding {SMALL}", 0, "--scaled-decoding has no effect", "holds pixels", "drop it"),
    # Options.
    ("a misspelt option", 0, "train --data set --wieght-decay 1", 2, "--wieght-decay", "no option", "did you mean '--weight-decay'?"),
    ("two misspelt options", 0, "train --data set --momentm 1 --epoch 3", 2, "--momentm", "--epoch", "did you mean '--epochs'?"),
    ("a least learning rate above a scaled peak", 2, f"train --data set --lr 0.1 --lr-scaling linear --min-lr 0.05 -o above {SMALL}", 0, "--min-lr 0.05", "above the peak learning rate of 0.0078125 (--lr after --lr-scaling)", "lower --min-lr"),
    ("a misspelt value", 0, "train --data set --lr-schedule cosin", 2, "--lr-schedule cosin", "not one of the choices", "cosine"),
    ("a negative learning rate", 0, "train --data set --lr -0.1", 2, "--lr -0.1", "out of range", "allowed: > 0"),
    ("no learning rate", 0, "train --data set --lr 0", 2, "--lr 0", "out of range", "allowed: > 0"),
    ("a learning rate that is 0 in fp32", 0, "train --data set --lr 1e-50", 2, "--lr 1e-50", "is 0 in fp32", "allowed: > 0"),
    ("a learning rate near 0", 0, "train --data set --lr 1e-400", 2, "--lr 1e-400", "too close to 0", "allowed: > 0"),
    ("epochs without end", 0, "train --data set --epochs 1e18", 2, "--epochs 1e18", "out of range", "<= 1000000000"),
    ("more steps than a number counts", 0, "train --synthetic --synthetic-samples 100000000 --model lenet --batch-size 1 --epochs 1e9 --dry-run --dry-run-seconds 0", 2, "--epochs 1000000000", "more steps than can be counted", "give fewer epochs"),
    ("a name that leaves its folder", 0, "train --data set --name ../../evil", 2, "--name ../../evil", "is a path", "without '/'"),
    ("a network larger than the memory", 0, "train --data set --model mlp --hidden 16777216,16777216 --batch-size 10 --threads 1 --max-steps 1 -o huge", 4, "the network needs", "million parameters alone", "smaller network"),
    ("threads beyond the cores", 0, "train --data set --model lenet --image-size 28 --batch-size 10 --threads 64 --no-tensorboard --skip-eval --no-checkpoints --max-steps 1", 0, "runs 64 threads on", "take turns", "lower --threads"),
    ("a fault of no rank", 2, f"train --data set --inject-fault nan@7@1 {SMALL}", 0, "--inject-fault nan@7@1", "no effect", "2 ranks"),
    ("a huge preview", 0, "preview --data set --image-size 16384 -o sheet.html", 2, "million pixels", "minutes", "smaller --image-size"),
    ("a machine that is a photo", 0, "predict-scale --machine photos/cat/0.png --model lenet", 2, "describes no machine (parse error", "convoy bench comm --machine FILE", "docs/scaling.md"),
    ("an empty batch", 0, "train --data set --batch-size 0", 2, "--batch-size 0", "allowed", "1"),
    ("a word for a number", 0, "train --data set --epochs many", 2, "--epochs many", "not a number", "allowed"),
    ("a value is missing", 0, "train --data set --epochs --lr 1", 2, "--epochs", "needs a value", "--epochs"),
    ("another program's optimiser", 0, "train --data set --adam", 2, "--adam", "no option", "use --optimizer"),
    ("another program's GPUs", 0, "train --data set --gpus 2", 2, "--gpus", "no option", "one rank per GPU"),
    ("another program's weights", 0, "train --data set --pretrained", 2, "--pretrained", "no option", "--weights PATH"),
    ("an option without effect", 0, "train --data set --lr-power 3", 2, "--lr-power 3", "no effect", "--lr-schedule poly"),
    ("colours of noise without noise", 0, "train --data set --pca-noise-source data", 2, "--pca-noise-source data", "no effect", "--pca-noise"),
    ("norms of a network without", 0, f"train --data set --norm-epsilon 1e-3 {SMALL}", 2, "--norm-epsilon 1e-3", "no effect", "a network with batch norms"),
    ("a depth of a network from a file", 0, "train --data set --model-file small.net --num-layers 3", 2, "--num-layers 3", "no effect", "small.net", "drop it"),
    ("a decay of frozen parameters", 2, f"train --data set --decay-mult conv1=2 --freeze conv1 -o frozen-decay {SMALL}", 0, "--decay-mult 'conv1'", "no effect",
     "--freeze"),
    ("a rate of frozen parameters", 2, f"train --data set --lr-mult conv1=2 --freeze conv1 -o frozen {SMALL}", 0, "--lr-mult 'conv1'", "no effect", "--freeze"),
    ("torchvision's name of weights", 3, "train --data set --model resnet18 --weights IMAGENET1K_V1", 2, "--weights IMAGENET1K_V1", "Convoy downloads nothing", "torch.save(model.state_dict()"),
    ("timm's checkpointing", 0, "train --data set --grad-checkpointing", 2, "--grad-checkpointing", "no option", "use --recompute auto or all"),
    ("an initialiser of MXNet", 0, "train --data set --initializer msra", 2, "--initializer msra", "not one of the choices", "use he"),
    ("LBSGD of MXNet", 0, "train --data set --optimizer lbsgd", 2, "--optimizer lbsgd", "SGD with a warm-up", "use sgd with --lr-scaling linear"),
    # 40 images in batches of 10 are 4 steps per epoch, 16 in the run; torchvision: 1 - (1 - 0.99998) * 10 / 4.
    ("torchvision's decay of an average", 0, f"train --data set --epochs 4 --lr 0.01 --ema-decay 0.99998 {SMALL}", 0, "averages over 50000 steps, but the run has 16 steps", "--ema-decay 0.375 averages over a tenth of the run", "corresponds to --ema-decay 0.99995"),
    ("both batches", 0, "train --data set -b 48 --global-batch 100", 2, "--batch-size 48 and --global-batch 100", "no number of replicas", "give one of them"),
    ("--sync-bn with weights", 0, "train --data set --sync-bn", 2, "--sync-bn", "own ways", "--sync gradients"),
    ("a stray word", 0, "train set other", 2, "'other'", "1", "option"),
    ("an unknown network", 0, "train --data set --model resnett50", 2, "'resnett50'", "unknown model", "did you mean 'resnet50'?"),
    ("a family without a depth", 3, "train --data set --network vgg", 2, "unknown model 'vgg'", "networks of this family are vgg11, vgg13", "vgg19_bn"),
    ("a network's file as model", 0, "train --data set --model small.net", 2, "'small.net'", "unknown model", "--model-file small.net"),
    ("a network's file as configuration", 0, "train --config small.net", 2, "'small.net' describes a network", "--config takes options", "give it as --model-file"),
    ("a network's file that is not there", 0, "train --data set --model-file none.net", 2, "--model-file none.net", "No such file or directory", "check the path"),
    ("a device that is not there", 0, "train --data set --device gpu", 2, "--device gpu", "not one of", "cuda"),
    ("16 bits on one replica", 0, f"train --data set --wire bf16 {SMALL}", 0, "--wire bf16 has no effect", "one replica", "drop it"),
    ("too few class weights", 0, f"train --data set --class-weights 1,2 {SMALL}", 2, "--class-weights has 2 numbers", "10 classes", "one number for each class"),
    ("a file of class weights that is not there", 3, f"train --data set --class-weights none.txt {SMALL}", 2, "--class-weights none.txt", "No such file or directory", "check the path"),
    ("balanced epochs of partitions", 0, f"train --data set --balance classes --shuffle partition {SMALL}", 2, "--balance classes", "each replica draws from all samples", "--shuffle global"),
    ("rare classes twice", 3, f"train --data set --class-weights auto --balance classes {SMALL}", 0, "--class-weights auto and --balance classes", "rare classes twice", "drop one"),
    # Configuration files.
    ("a configuration that is not there", 0, "train --config none.cfg", 2, "'none.cfg'", "No such file or directory", "check --config"),
    ("a folder as configuration", 0, "train --config set", 2, "'set'", "is a folder", "check --config"),
    ("a checkpoint as configuration", 0, "train --config run/checkpoints/last.h5", 2, "last.h5'", "not a text file", "give the file that was meant"),
    ("a quote without an end", 0, "train --config quote.cfg", 2, 'quote.cfg:1: name = "a', "begins with a double quote", "close it"),
    ("quotes in a configuration", 0, "train --config quotes.cfg", 2, "quotes.cfg:1: model = 'lenet'", "in quotes", "write 'model = lenet'"),
    ("YAML", 0, "train --config yaml.cfg", 2, "yaml.cfg:1: model: lenet", "neither", "write 'key = value'"),
    ("a key twice", 0, "train --config twice.cfg", 2, "'epochs' is set twice", "twice.cfg:2", "keep one"),
    ("an unknown key", 0, "train --config key.cfg", 2, "key.cfg:1: learning = 1", "unknown key", "'convoy train --help-all' lists them"),
    ("an unknown section", 0, "train --config section.cfg", 2, "section.cfg:1: [train]", "unknown section", "[phase.1]"),
    # Runs and checkpoints.
    ("an image as checkpoint", 0, "predict photos/cat/0.png run", 3, "'photos/cat/0.png' is a PNG image", "not a checkpoint", "give a run directory"),
    ("PyTorch's weights to go on from", 0, f"train --data set --resume model.pth {SMALL}", 3, "'model.pth' is a ZIP archive, as PyTorch's", "not a checkpoint", "give a run directory"),
    ("an image as weights", 0, f"train --data set --weights photos/cat/0.png {SMALL}", 3, "'photos/cat/0.png' is a PNG image", "file of weights", ".pth file of PyTorch"),
    ("other bytes as weights", 3, f"train --data set --weights noise.bin {SMALL}", 3, "'noise.bin' is of no known format", "file of weights", ".safetensors file"),
    ("an empty file as weights", 0, f"train --data set --weights empty.pth {SMALL}", 3, "'empty.pth' is empty", "file of weights", "give a run directory"),
    ("a damaged header", 0, f"train --data set --weights broken.safetensors {SMALL}", 3, "'broken.safetensors' is damaged", "first bytes", "download it again"),
    ("half of an ONNX model as weights", 0, f"train --data set --weights half.onnx {SMALL}", 3, "'half.onnx'", "ONNX", "export it again"),
    ("half of an ONNX model to evaluate", 0, "evaluate half.onnx --data set", 3, "'half.onnx'", "ONNX", "export it again"),
    ("an ONNX model as a configuration", 0, "train --config whole.onnx", 2, "'whole.onnx' describes a network", "--config takes options", "give it as --model-file"),
    ("half of an ONNX model as a network", 0, "train --data set --model-file half.onnx", 2, "'half.onnx'", "ONNX", "export it again"),
    ("a text file as checkpoint", 0, "evaluate key.cfg --data set", 3, "'key.cfg' is a text file", "not a checkpoint", "give a run directory"),
    ("a run that is not there", 0, "evaluate runs/none --data set", 3, "'runs/none'", "No such file or directory", "check"),
    ("a zero of validation's size", 0, "evaluate run --data set --val-resize 0", 2, "--val-resize 0", "0 keeps the checkpoint's own", "drop it"),
    ("another network of an equal name", 0, "evaluate small --data set --model-file other.net", 2, "'small'", "another network that is called small", "leave --model-file out"),
    ("the weights of a network from a file", 0, "train --data set --weights small --max-steps 1", 3, "is of small", "since no --model is given", "give --model-file with the file that describes small"),
    ("half a checkpoint to evaluate", 0, "evaluate cut --data set", 3, "best.h5' is truncated", "sealed with", "('last.h5'), or train on with --resume auto"),
    ("half a checkpoint to predict with", 0, "predict cut photos", 3, "best.h5' is truncated", "sealed with", "give another checkpoint of its folder"),
    ("half a checkpoint to export", 0, "export cut -o cut.pth", 3, "best.h5' is truncated", "sealed with", "give another checkpoint of its folder"),
    ("a flipped byte in a checkpoint to average", 0, "average run flipped/checkpoints/last.h5 -o mean.h5", 3, "last.h5' is damaged", "CRC32C", "restore it from a copy"),
    ("a folder without checkpoints", 0, "evaluate photos --data set", 3, "'photos'", "holds no checkpoint", "--output-dir of a training run"),
    ("the checkpoint of another network", 0, f"train --data set --model mlp --image-size 28 --weights run --max-steps 1", 3, "is of lenet", "this run trains mlp", "give --model lenet"),
    ("weights without a network", 0, "train --data set --weights run --max-steps 1", 3, "is of lenet", "since no --model is given", "give --model lenet"),
    ("an export without a network", 0, "train --data set --weights whole.pth --max-steps 1", 3, "'whole.pth' is of lenet", "since no --model is given", "give --model lenet"),
    ("--resume auto without a folder", 0, f"train --data set --resume auto {SMALL}", 2, "--resume auto needs --output-dir", "looks there", "--output-dir"),
    ("a run directory that is a file", 0, f"train --data set -o model.pth {SMALL}", 3, "'model.pth'", "Not a directory", "choose a writable --output-dir"),
    ("an image that is missing", 0, "predict run photos/cat/none.png", 3, "none.png'", "doesn't exist", "give image files"),
    ("the status of no run", 0, "status photos", 2, "'photos'", "no state.json", "give a run directory"),
    ("a summary of nothing", 0, "summary photos", 2, "'photos' is left out", "it has no metrics.jsonl", "give run directories"),
    ("a rank too many", 3, f"train --data set --replicas 2 {SMALL}", 0, "rank 2 has no replica", "2 replicas on 3 ranks", "start 2 ranks"),
    # Commands.
    ("another program's command", 0, "eval run", 2, "no command 'eval'", "convoy has", "use 'convoy evaluate'"),
    ("no command", 0, "--data set", 2, "'--data' is not a command", "options follow the command", "'convoy --help'"),
    ("nothing to predict", 0, "predict run", 2, "needs a checkpoint and images", "image files, folders of them", "'convoy predict CHECKPOINT IMAGE ...'"),
    # Preparation.
    ("another program's kind", 0, "PREPROCESS imagefolder --source photos --out o1", 2, "'imagefolder'", "unknown kind", "did you mean"),
    ("nowhere to write", 0, "PREPROCESS folder --source photos", 2, "no --out given", "partitions", "name the folder"),
    ("photos that are not there", 0, "PREPROCESS folder --source none --out o2", 3, "'none'", "No such file or directory", "check"),
    ("photos without class folders", 0, "PREPROCESS folder --train photos/cat --out o3", 3, "photos/cat", "class", "folder"),
    ("a set made with other options", 0, "PREPROCESS synthetic --out set --samples 50 --val-samples 20 --seed 9", 2, "set", "other options", "--out"),
    ("a damaged set", 0, "PREPROCESS verify edited", 3, "edited/train-00000-of-00001.h5'", "sealed with", "run convoy-preprocess again"),
]


def make_places(work):
    def prepared(name, *words):
        subprocess.run([PREPROCESS, "synthetic", "--out", f"{work}/{name}", "--partitions", "1", "--val-partitions", "1", *words], check=True,
                       capture_output=True)

    prepared("set", "--samples", "40", "--val-samples", "20")
    prepared("edited", "--samples", "40", "--val-samples", "20")
    prepared("only-train", "--samples", "40", "--val-samples", "20")
    for name in [n for n in os.listdir(f"{work}/only-train") if n.startswith("val-")]:
        os.remove(f"{work}/only-train/{name}")
    prepared("tiny", "--samples", "2", "--val-samples", "2", "--classes", "2")
    with h5py.File(f"{work}/edited/train-00000-of-00001.h5", "r+") as file:
        file.attrs["source"] = "mine"
    for name in ("cat", "dog"):
        os.makedirs(f"{work}/photos/{name}")
        for i in range(3):
            Image.fromarray(np.random.default_rng(i).integers(0, 255, (40, 40, 3), np.uint8)).save(f"{work}/photos/{name}/{i}.png")
    train(1, f"{work}/run", "--data", f"{work}/set", "--model", "lenet", "--image-size", 28, "--batch-size", 10, "--max-steps", 1)
    for name in ("cut", "flipped"):
        shutil.copytree(f"{work}/run", f"{work}/{name}")
    shutil.copy(f"{work}/cut/checkpoints/last.h5", f"{work}/cut/checkpoints/best.h5")
    os.truncate(f"{work}/cut/checkpoints/best.h5", 1000)
    for file_name in os.listdir(f"{work}/flipped/checkpoints"):
        if file_name != "last.h5":
            os.remove(f"{work}/flipped/checkpoints/{file_name}")
    with open(f"{work}/flipped/checkpoints/last.h5", "r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    for name, text in {"quote": 'name = "a\n', "quotes": "model = 'lenet'\n", "yaml": "model: lenet\n", "twice": "epochs = 1\nepochs = 2\n", "key": "learning = 1\n",
                       "section": "[train]\n"}.items():
        with open(f"{work}/{name}.cfg", "w", encoding="utf-8") as file:
            file.write(text)
    for name in ("half.onnx", "whole.onnx", "broken.safetensors", "whole.pth"):
        subprocess.run([CONVOY, "export", f"{work}/run", "-o", f"{work}/{name}"], check=True, capture_output=True)
    os.truncate(f"{work}/half.onnx", os.path.getsize(f"{work}/half.onnx") // 2)
    with open(f"{work}/broken.safetensors", "r+b") as file:
        file.seek(8)
        file.write(b"\0")
    for name, width in (("small", 4), ("other", 5)):
        with open(f"{work}/{name}.net", "w", encoding="utf-8") as file:
            file.write(f"name = small\n[network]\nconv = convolution out={width} kernel=3\npool = global_average_pool\nflatten = flatten\nfc = linear out=classes bias=true\n")
    train(1, f"{work}/small", "--data", f"{work}/set", "--model-file", f"{work}/small.net", "--batch-size", 10, "--max-steps", 1)
    with open(f"{work}/noise.bin", "wb") as file:
        file.write(np.random.default_rng(1).bytes(4000))
    with open(f"{work}/empty.pth", "wb"):
        pass
    with open(f"{work}/model.pth", "wb") as file:
        file.write(b"PK\3\4" + bytes(600))


def answer(work, mistake):
    """What is wrong with the answer; nothing if it is as expected."""
    name, ranks, command, code, *wanted = mistake
    words = shlex.split(command)
    program = [PREPROCESS] + words[1:] if words[0] == "PREPROCESS" else [CONVOY] + words
    done = subprocess.run((mpirun(ranks) if ranks else []) + program, cwd=work, capture_output=True, text=True, timeout=50, check=False,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    said = done.stdout + done.stderr
    missing = [words for words in wanted if words not in said]
    boxes = said.count("MPI_ABORT was invoked")
    if done.returncode == code and not missing and not boxes:
        return ""
    return f"{name}: convoy {command}\nexit {done.returncode}, wanted {code}; missing: {missing}{'; an MPI_ABORT box' if boxes else ''}\n{done.stderr[-900:]}"


def main():
    check(len(MISTAKES) >= 50 and len({m[0] for m in MISTAKES}) == len(MISTAKES), f"{len(MISTAKES)} mistakes")
    with work_folder() as work:
        make_places(work)
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            wrong = [text for text in pool.map(lambda mistake: answer(work, mistake), MISTAKES) if text]
        print(f"{len(MISTAKES)} mistakes in {time.monotonic() - begin:.0f} s")
        for text in wrong:
            print(text)
        check(not wrong, f"{len(MISTAKES) - len(wrong)} of {len(MISTAKES)} are answered with problem, reason and remedy")


main()
