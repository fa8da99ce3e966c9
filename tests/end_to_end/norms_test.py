# SPDX-License-Identifier: Apache-2.0
"""Batch norms have the published network's epsilon and momentum. A run that began with others goes on with them, and exports tell of them."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from runner import CONVOY, check, everything, last, same_bits, tensors, train, work_folder  # noqa: E402  (the path is set above)
from state_files import write_pth  # noqa: E402

JOB = ["--synthetic", "--synthetic-size", 32, "--synthetic-samples", 40, "--synthetic-classes", 5, "--batch-size", 8, "--epochs", 1, "--lr", 0.01,
       "--model", "mobilenet_v3_small", "--skip-eval"]
EARLIER = ["--norm-epsilon", "1e-5", "--norm-momentum", 0.1]  # the defaults before


def epsilon_and_momentum(folder):
    with open(f"{folder}/config.cfg", encoding="utf-8") as file:
        values = dict(line.lstrip("# ").rstrip("\n").split(" = ") for line in file if " = " in line)
    return float(values["norm-epsilon"]), float(values["norm-momentum"])


def export(folder, name):
    done = subprocess.run([CONVOY, "export", folder, "--output", f"{folder}/{name}"], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


with work_folder() as work:
    now, old, stopped = f"{work}/now", f"{work}/old", f"{work}/stopped"
    train(1, now, *JOB)
    check(epsilon_and_momentum(now) == (0.001, 0.01), "mobilenet_v3_small has torchvision's epsilon and momentum")
    train(1, old, *JOB, *EARLIER)
    train(1, stopped, *JOB, *EARLIER, "--max-steps", 2)
    with open(f"{stopped}/config.cfg", encoding="utf-8") as file:
        lines = file.read().replace("\nnorm-epsilon =", "\n# norm-epsilon =").replace("\nnorm-momentum =", "\n# norm-momentum =")
    with open(f"{stopped}/config.cfg", "w", encoding="utf-8") as file:
        file.write(lines)  # as an earlier version wrote it, whose defaults these were
    said = "".join(train(1, stopped, *JOB, "--resume", "auto"))
    check("the batch norms keep the epsilon of 1e-05 that the run began with (mobilenet_v3_small begins with 0.001 now)" in said, "a resumed run says what it keeps")
    check("changed" not in said and same_bits(everything(last(stopped)), everything(last(old))), "and ends with the bits of one that was never stopped")
    check(not same_bits(everything(last(now)), everything(last(old))), "which are others than those of the new defaults")
    said = "".join(train(1, f"{work}/other", *JOB, "--resume", last(old), "--epochs", 2, "--norm-epsilon", 0.001, "--max-steps", 1))
    check("model changed: norm-epsilon 1e-05 then, 0.001 now" in said, "another epsilon that is given is told")
    said = "".join(train(1, f"{work}/fine", *JOB, "--weights", old, "--max-steps", 1))
    check("learned with an epsilon of 1e-05, not 0.001; give --norm-epsilon 1e-05" in said, "so are weights that learned with another")
    # timm's MobileNet v3 has another epsilon than torchvision's; its names of modules tell the file from one of torchvision.
    state = {**tensors(last(now)), **tensors(last(now), "statistics")}
    of_timm = {name.replace("features.0.0.", "conv_stem.").replace("features.0.1.", "bn1."): value for name, value in state.items()}
    for name, values, words, text in (("torchvision", state, (), ""), ("torchvision", state, ("--norm-epsilon", "1e-5"), "norms of the published mobilenet_v3_small have an epsilon of 0.001, not 1e-05; give --norm-epsilon 0.001"),
                                      ("timm", of_timm, (), "norms of timm's mobilenet_v3_small have an epsilon of 1e-05, not 0.001; give --norm-epsilon 1e-05"), ("timm", of_timm, ("--norm-epsilon", "1e-5"), "")):
        write_pth(f"{work}/{name}.pth", values)
        said = "".join(train(2, f"{work}/{name}", *JOB, "--weights", f"{work}/{name}.pth", "--max-steps", 1, *words))
        check((said.count(text) == 1 if text else "epsilon" not in said), f"weights of {name} {' '.join(words)}: {text or 'nothing to say'}")
    for name in ("a.pth", "a.safetensors"):
        check("have 0.001, which the file can't change; set eps there" in export(old, name), f"{name} of another epsilon than torchvision's: a warning")
        check("eps" not in export(now, name), "none for torchvision's")
    check("eps" not in export(old, "a.onnx"), "none for a graph, which holds it")
