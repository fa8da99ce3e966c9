#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden values of the parity tests with PyTorch in fp64: operations.json (operations, losses), optimisers.json, one
file a network, and steps.json (three steps of SGD of each family of networks).

Weights, inputs and labels come from formula.py, which the tests repeat, so only results are stored. A tensor's result is
  norm        its Euclidean norm
  projection  its dot product with the formula's vector `NAME/projection`
  entries     up to 8 of its values (4 of a network's), evenly spread: index = i * count // len(entries)
Needs torch, torchvision, timm and numpy, takes minutes: python3 make_golden.py [NAME ...] (writes beside itself).
"""

import json
import pathlib
import sys

import numpy as np
import torch
from torch.nn import functional as F

import formula
import models

HERE = pathlib.Path(__file__).parent


def round32(x):
    return float(np.float32(x))


def summarise(name, values, entries=8):
    flat = values.detach().double().numpy().ravel()
    count = min(entries, flat.size)
    return {
        "norm": float(np.linalg.norm(flat)),
        "projection": float(flat @ formula.uniform(name + "/projection", flat.size).astype(np.float64)),
        "entries": [float(flat[i * flat.size // count]) for i in range(count)],
    }


def tensor(name, shape, scale=1.0, offset=0.0):
    return torch.from_numpy(formula.spread(name, int(np.prod(shape)), scale, offset).astype(np.float64).reshape(shape)).requires_grad_()


def apply(case):
    """Output and the tensors whose gradients count, of one operation."""
    op, shape = case["op"], [case["n"], case["c"], case["h"], case["w"]]
    name = case["name"]
    x = tensor(name + "/x", shape, 2)
    if op == "convolution":
        weight = tensor(name + "/weight", [case["k"], case["c"] // case["groups"], case["r"], case.get("s", case["r"])])
        bias = tensor(name + "/bias", [case["k"]]) if case["bias"] else None
        y = F.conv2d(x, weight, bias, case["stride"], (case["pad"], case.get("pad_w", case["pad"])), groups=case["groups"])
        return y, {"x": x, "weight": weight, **({"bias": bias} if case["bias"] else {})}
    if op == "linear":
        weight = tensor(name + "/weight", [case["k"], case["c"] * case["h"] * case["w"]])
        bias = tensor(name + "/bias", [case["k"]]) if case["bias"] else None
        return F.linear(x.flatten(1), weight, bias), {"x": x, "weight": weight, **({"bias": bias} if case["bias"] else {})}
    if op == "batch_norm":
        scale, shift = tensor(name + "/weight", [case["c"]]), tensor(name + "/bias", [case["c"]])
        mean, variance = (tensor(name + "/mean", [case["c"]]).detach(), tensor(name + "/variance", [case["c"]], 0.5, 1).detach())
        training = not case["running"]
        y = F.batch_norm(x, None if training else mean, None if training else variance, scale, shift, training, eps=models.EPSILON)
        return y, {"x": x, "weight": scale, "bias": shift}
    if op == "activation":
        curves = {"relu": F.relu, "relu6": F.relu6, "tanh": torch.tanh, "gelu": F.gelu, "silu": F.silu, "hard_swish": F.hardswish,
                  "leaky_relu": lambda v: F.leaky_relu(v, round32(case["slope"]))}
        return curves[case["curve"]](x), {"x": x}
    if op == "pool":
        if case["mode"] == "max":
            return F.max_pool2d(x, case["r"], case["stride"], case["pad"], ceil_mode=case.get("ceil", False)), {"x": x}
        return F.avg_pool2d(x, case["r"], case["stride"], case["pad"], count_include_pad=case["count_padding"]), {"x": x}
    if op == "global_average_pool":
        return x.mean((2, 3)), {"x": x}
    if op == "adaptive_average_pool":
        return F.adaptive_avg_pool2d(x, case["r"]), {"x": x}
    if op == "local_response":
        return F.local_response_norm(x, case["r"], round32(case["alpha"]), round32(case["beta"]), round32(case["k"])), {"x": x}
    if op == "add":
        other = tensor(name + "/other", shape)
        return x + other, {"x": x, "other": other}
    if op == "concatenation":
        other = tensor(name + "/other", [case["n"], case["other"], case["h"], case["w"]])
        return torch.cat([x, other], 1), {"x": x, "other": other}
    if op == "channel_gate":
        other = tensor(name + "/other", [case["n"], case["c"], 1, 1])
        return x * (models.hard_sigmoid if case["hard"] else torch.sigmoid)(other), {"x": x, "other": other}
    if op == "flatten":
        return x.flatten(1), {"x": x}
    raise ValueError(op)


def cross_entropy(logits, name, smoothing, mixed, weighted=False):
    """Loss of each sample; with `mixed` two labels, weighted; with `weighted` by class weights."""
    n, classes = logits.shape
    a = torch.from_numpy(formula.labels(name + "/a", n, classes))
    of_classes = torch.from_numpy(formula.spread(name + "/weights", classes, 0.75, 1).astype(np.float64)) if weighted else None
    loss = F.cross_entropy(logits, a, of_classes, reduction="none", label_smoothing=smoothing)
    if not mixed:
        return loss
    b = torch.from_numpy(formula.labels(name + "/b", n, classes))
    weight = torch.from_numpy(formula.weights(name + "/lambda", n)).to(logits.dtype)
    return weight * loss + (1 - weight) * F.cross_entropy(logits, b, of_classes, reduction="none", label_smoothing=smoothing)


def convolution(name, n, c, h, w, k, r, stride, pad, groups=1, bias=False):
    return dict(name=name, op="convolution", n=n, c=c, h=h, w=w, k=k, r=r, stride=stride, pad=pad, groups=groups, bias=bias)


def pool(name, mode, n, c, h, w, r, stride, pad, count_padding=True):
    return dict(name=name, op="pool", mode=mode, n=n, c=c, h=h, w=w, r=r, stride=stride, pad=pad, count_padding=count_padding)


def simple(name, op, n, c, h, w, **rest):
    return dict(name=name, op=op, n=n, c=c, h=h, w=w, **rest)


OPERATIONS = [
    convolution("conv3x3", 2, 3, 7, 5, 4, 3, 1, 1),
    convolution("conv3x3_stride2_odd", 2, 5, 9, 7, 3, 3, 2, 1),
    convolution("conv3x3_stride2_even", 1, 2, 8, 6, 3, 3, 2, 1, bias=True),
    convolution("conv1x1", 2, 6, 4, 4, 5, 1, 1, 0),
    convolution("conv1x1_stride2", 2, 4, 7, 7, 3, 1, 2, 0),
    convolution("conv5x5_no_padding", 2, 1, 9, 8, 3, 5, 1, 0, bias=True),
    convolution("conv7x7_stride2", 1, 3, 15, 13, 4, 7, 2, 3),
    convolution("conv3x3_groups", 2, 6, 5, 6, 4, 3, 1, 1, groups=2),
    convolution("conv3x3_depthwise", 2, 4, 6, 5, 4, 3, 2, 1, groups=4, bias=True),
    convolution("conv1x7", 2, 3, 5, 8, 4, 1, 1, 0) | dict(s=7, pad_w=3),
    convolution("conv3x1_stride2", 2, 4, 8, 5, 6, 3, 2, 1, groups=2, bias=True) | dict(s=1, pad_w=0),
    simple("linear", "linear", 3, 2, 3, 4, k=7, bias=True),
    simple("linear_without_bias", "linear", 4, 9, 1, 1, k=5, bias=False),
    simple("batch_norm", "batch_norm", 3, 4, 5, 3, running=False),
    simple("batch_norm_running", "batch_norm", 2, 5, 3, 3, running=True),
    simple("relu", "activation", 2, 3, 5, 4, curve="relu", slope=0),
    simple("leaky_relu", "activation", 2, 3, 5, 4, curve="leaky_relu", slope=0.1),
    simple("tanh", "activation", 2, 3, 5, 4, curve="tanh", slope=0),
    pool("max_pool", "max", 2, 3, 8, 6, 2, 2, 0),
    pool("max_pool_padded", "max", 2, 2, 9, 7, 3, 2, 1),
    pool("max_pool_overlapping", "max", 1, 2, 6, 5, 3, 1, 1),
    pool("max_pool_ceil", "max", 2, 2, 8, 7, 3, 2, 0) | dict(ceil=True),
    pool("max_pool_ceil_padded", "max", 2, 2, 8, 5, 3, 2, 1) | dict(ceil=True),
    pool("average_pool", "average", 2, 3, 8, 6, 2, 2, 0),
    pool("average_pool_padded", "average", 2, 2, 9, 7, 3, 2, 1),
    pool("average_pool_inside_only", "average", 2, 2, 9, 7, 3, 2, 1, count_padding=False),
    simple("global_average_pool", "global_average_pool", 2, 5, 3, 7),
    simple("local_response", "local_response", 2, 7, 3, 4, r=5, alpha=0.5, beta=0.75, k=2),
    simple("local_response_even", "local_response", 1, 9, 2, 3, r=4, alpha=1, beta=0.6, k=1),
    simple("add", "add", 2, 3, 4, 5),
    simple("flatten", "flatten", 2, 3, 4, 5),
    simple("gelu", "activation", 2, 3, 5, 4, curve="gelu", slope=0),
    simple("silu", "activation", 2, 3, 5, 4, curve="silu", slope=0),
    simple("relu6", "activation", 2, 3, 5, 4, curve="relu6", slope=0),
    simple("concatenation", "concatenation", 2, 3, 4, 5, other=6),
    simple("hard_swish", "activation", 2, 3, 5, 4, curve="hard_swish", slope=0),
    simple("gate", "channel_gate", 2, 3, 4, 5, hard=False),
    simple("hard_gate", "channel_gate", 2, 5, 3, 4, hard=True),
    simple("adaptive_average_pool", "adaptive_average_pool", 2, 3, 14, 9, r=4),
    simple("adaptive_average_pool_larger", "adaptive_average_pool", 2, 3, 2, 5, r=4),
]
LOSSES = [
    dict(name="loss", n=4, classes=7, smoothing=0, mixed=False, scale=0.25),
    dict(name="loss_smoothed", n=3, classes=10, smoothing=0.1, mixed=False, scale=1),
    dict(name="loss_mixed", n=5, classes=6, smoothing=0, mixed=True, scale=0.5),
    dict(name="loss_mixed_smoothed", n=5, classes=11, smoothing=0.125, mixed=True, scale=0.2),
    dict(name="loss_weighted", n=6, classes=5, smoothing=0, mixed=False, scale=0.25, weighted=True),
    dict(name="loss_weighted_mixed_smoothed", n=6, classes=9, smoothing=0.125, mixed=True, scale=0.5, weighted=True),
]


def make_operations():
    results = []
    for case in OPERATIONS:
        y, tensors = apply(case)
        dy = tensor(case["name"] + "/dy", list(y.shape)).detach()
        y.backward(dy)
        result = {"y": summarise(case["name"] + "/y", y)}
        result |= {"d" + key: summarise(f'{case["name"]}/d{key}', value.grad) for key, value in tensors.items()}
        results.append(case | {"shape": list(y.shape), "results": result})
    losses = []
    for case in LOSSES:
        logits = tensor(case["name"] + "/logits", [case["n"], case["classes"]], 4)
        loss = cross_entropy(logits, case["name"], round32(case["smoothing"]), case["mixed"], case.get("weighted", False))
        (loss.sum() * round32(case["scale"])).backward()
        results_of = {"loss": summarise(case["name"] + "/loss", loss), "dlogits": summarise(case["name"] + "/dlogits", logits.grad)}
        losses.append(case | {"results": results_of})
    return {"torch": torch.__version__, "operations": results, "losses": losses}


# Two tensors: weights a of 40 (or of `shape`) with decay and rate 1, biases b of 3 x 7 without decay and twice the rate. The rate changes on the way.
# `skipped`: steps whose gradients are not finite, so that PyTorch's optimiser does not see them.
RATES = [0.25, 0.25, 0.125, 0.0625, 0.5]
LOW_RATES = [rate / 64 for rate in RATES] * 20
OPTIMISERS = [
    dict(name="plain", rule="sgd", options=[0], decay=0.0625, clip=0, rates=RATES, skipped=[]),
    dict(name="sgd", rule="sgd", options=[0.875], decay=0.0625, clip=0, rates=RATES, skipped=[]),
    dict(name="nesterov", rule="nesterov", options=[0.875], decay=0.0625, clip=0, rates=RATES, skipped=[]),
    dict(name="clipped", rule="nesterov", options=[0.875], decay=0.0625, clip=1.5, rates=RATES, skipped=[]),
    dict(name="hardly_clipped", rule="sgd", options=[0.5], decay=0, clip=100, rates=RATES, skipped=[]),
    dict(name="adamw", rule="adamw", options=[0.9, 0.999, 1e-8], decay=0.0625, clip=0, rates=LOW_RATES, skipped=[]),
    dict(name="adamw_clipped", rule="adamw", options=[0.875, 0.99, 1e-3], decay=0.5, clip=1.5, rates=LOW_RATES, skipped=[]),
    dict(name="adamw_skipping", rule="adamw", options=[0.9, 0.999, 1e-8], decay=0.0625, clip=1.5, rates=LOW_RATES, skipped=[0, 7, 8, 40, 99]),
    dict(name="adam", rule="adam", options=[0.9, 0.999, 1e-8], decay=0.0625, clip=0, rates=LOW_RATES, skipped=[]),
    dict(name="adam_skipping", rule="adam", options=[0.875, 0.99, 1e-3], decay=0.5, clip=1.5, rates=LOW_RATES, skipped=[0, 7, 99]),
    dict(name="rmsprop", rule="rmsprop", options=[0.9, 0.9, 0.0316], decay=0.0625, clip=0, rates=LOW_RATES, skipped=[]),
    dict(name="rmsprop_plain", rule="rmsprop", options=[0, 0.99, 1e-8], decay=0.5, clip=1.5, rates=LOW_RATES, skipped=[3]),
    dict(name="adagrad", rule="adagrad", options=[1e-10], decay=0.0625, clip=0, rates=LOW_RATES, skipped=[]),
    dict(name="signum", rule="signum", options=[0.9], decay=0.0625, clip=0, rates=LOW_RATES, skipped=[]),
    dict(name="signum_clipped", rule="signum", options=[0], decay=0.5, clip=1.5, rates=LOW_RATES, skipped=[5]),
    dict(name="lars", rule="lars", options=[0.9, 0.001, 0], decay=0.0625, clip=0, rates=RATES * 20, skipped=[]),
    dict(name="lars_of_all", rule="lars", options=[0.5, 0.01, 1], decay=0.5, clip=1.5, rates=RATES * 20, skipped=[1]),
    dict(name="lamb", rule="lamb", options=[0.9, 0.999, 1e-6, 0], decay=0.0625, clip=0, rates=LOW_RATES, skipped=[]),
    dict(name="lamb_of_all", rule="lamb", options=[0.875, 0.99, 1e-3, 1], decay=0.5, clip=1.5, rates=LOW_RATES, skipped=[0, 50]),
    dict(name="muon", rule="muon", options=[0.9, 0.999, 1e-8, 0.95, 1, 1], decay=0.0625, clip=0, rates=LOW_RATES, skipped=[], shape=[4, 10]),
    dict(name="muon_original", rule="muon", options=[0.875, 0.99, 1e-3, 0.875, 0, 0.5], decay=0.5, clip=1.5, rates=LOW_RATES, skipped=[0, 50], shape=[10, 4]),
]


class Written(torch.optim.Optimizer):
    """The formulas of MXNet's Signum, and of LARS and LAMB as their papers state them."""

    def __init__(self, groups, rule, options):
        super().__init__(groups, {"lr": 1, "bias": False})
        self.rule, self.options = rule, options

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                state = self.state[w]
                if not state:
                    state |= {"m": torch.zeros_like(w), "v": torch.zeros_like(w), "t": 0}
                state["t"] += 1
                w -= group["lr"] * getattr(self, self.rule)(w, w.grad, state, group["weight_decay"], group["bias"])

    def signum(self, w, g, state, decay, bias):
        momentum = self.options[0]
        state["m"] = momentum * state["m"] + (1 - momentum) * (g + decay * w)
        return state["m"].sign()

    def ratio(self, bias, w, other, of_norms):
        adapts = (not bias or self.options[-1] == 1) and w.norm() > 0 and other.norm() > 0
        return of_norms(w.norm(), other.norm()) if adapts else 1

    def lars(self, w, g, state, decay, bias):
        momentum, trust, _ = self.options
        ratio = self.ratio(bias, w, g, lambda of_w, of_g: trust * of_w / (of_g + decay * of_w))
        state["m"] = momentum * state["m"] + ratio * (g + decay * w)
        return state["m"]

    def lamb(self, w, g, state, decay, bias):
        beta1, beta2, epsilon, _ = self.options
        state["m"] = beta1 * state["m"] + (1 - beta1) * g
        state["v"] = beta2 * state["v"] + (1 - beta2) * g**2
        mean, square = state["m"] / (1 - beta1 ** state["t"]), state["v"] / (1 - beta2 ** state["t"])
        u = mean / (square.sqrt() + epsilon) + decay * w
        return self.ratio(bias, w, u, lambda of_w, of_u: of_w / of_u) * u


class MuonAndAdamW:
    """torch.optim.Muon of the matrix and AdamW of the biases. PyTorch makes the matrix orthogonal in the type torch.bfloat16; here this name
    means float64 meanwhile, so that the results are those of the formula."""

    def __init__(self, groups, options):
        beta1, beta2, epsilon, momentum, match_rms, self.other = options
        adjust = "match_rms_adamw" if match_rms else "original"
        self.muon = torch.optim.Muon(groups[:1], lr=1, momentum=momentum, nesterov=True, adjust_lr_fn=adjust)
        self.adamw = torch.optim.AdamW(groups[1:], lr=1, betas=(beta1, beta2), eps=epsilon)
        self.param_groups = self.muon.param_groups + self.adamw.param_groups

    def step(self):
        self.adamw.param_groups[0]["lr"] *= self.other
        bfloat16, torch.bfloat16 = torch.bfloat16, torch.float64
        try:
            self.muon.step()
        finally:
            torch.bfloat16 = bfloat16
        self.adamw.step()


def make_optimiser(case, groups):
    rule, options = case["rule"], case["options"]
    if rule in ("adam", "adamw"):
        return (torch.optim.Adam if rule == "adam" else torch.optim.AdamW)(groups, lr=1, betas=options[:2], eps=options[2])
    if rule == "rmsprop":
        return torch.optim.RMSprop(groups, lr=1, momentum=options[0], alpha=options[1], eps=options[2])
    if rule == "adagrad":
        return torch.optim.Adagrad(groups, lr=1, eps=options[0])
    if rule in ("sgd", "nesterov"):
        return torch.optim.SGD(groups, lr=1, momentum=options[0], nesterov=rule == "nesterov")
    if rule == "muon":
        return MuonAndAdamW(groups, options)
    return Written(groups, rule, options)


def optimise(case):
    a, b = tensor("optimiser/a", case.get("shape", [40])), tensor("optimiser/b", [3, 7])
    groups = [dict(params=[a], weight_decay=case["decay"], bias=False), dict(params=[b], weight_decay=0, bias=True)]
    optimiser = make_optimiser(case, groups)
    for step, rate in enumerate(case["rates"]):
        if step in case["skipped"]:
            continue
        optimiser.param_groups[0]["lr"], optimiser.param_groups[1]["lr"] = rate, 2 * rate
        for name, value in [("a", a), ("b", b)]:
            value.grad = tensor(f"optimiser/d{name}{step}", list(value.shape)).detach()
        if case["clip"]:
            torch.nn.utils.clip_grad_norm_([a, b], case["clip"])
        optimiser.step()
    return case | {"results": {"a": summarise("optimiser/a", a), "b": summarise("optimiser/b", b)}}


NETWORKS = [
    dict(model="lenet", n=3, channels=1, image=28, classes=10, smoothing=0.1, mixed=True, batches=1),
    dict(model="alexnet", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1, step=dict(seed=3, step=5)),
    dict(model="alexnet_ray", n=2, channels=3, image=64, classes=10, smoothing=0.1, mixed=True, batches=1, step=dict(seed=3, step=5)),
    dict(model="mlp", n=5, channels=3, image=6, classes=7, smoothing=0, mixed=False, batches=1),
    dict(model="resnet20_tanh", n=4, channels=3, image=32, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="resnet32_v2_tanh", n=4, channels=3, image=32, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="resnet20", n=4, channels=3, image=32, classes=10, smoothing=0, mixed=False, batches=2),
    dict(model="resnet32_v2", n=4, channels=3, image=32, classes=10, smoothing=0, mixed=False, batches=2),
    dict(model="resnet50", n=4, channels=3, image=48, classes=20, smoothing=0.1, mixed=False, batches=1),
    dict(model="vgg11_bn", n=4, channels=3, image=32, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="densenet121", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="googlenet", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="googlenet_aux", n=2, channels=3, image=64, classes=10, smoothing=0.1, mixed=True, batches=1),
    dict(model="inception_v3_aux", n=4, channels=3, image=299, classes=10, smoothing=0, mixed=False, batches=0),  # for its steps alone
    dict(model="mobilenet_v2", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="squeezenet1_1", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="inception_v3", n=2, channels=3, image=111, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="inception_v4", n=2, channels=3, image=139, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="inception_resnet_v2", n=2, channels=3, image=107, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="inception_bn", n=2, channels=3, image=96, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="mobilenet_v3_small", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="efficientnet_b0", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="mnasnet0_5", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="efficientnet_v2_s", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="regnet_y_400mf", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="airbench94", n=4, channels=3, image=32, classes=10, smoothing=0.2, mixed=False, batches=1),
    dict(model="alexnet_owt", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="vgg11", n=2, channels=3, image=32, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="mobilenet_v1", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="resnet18", n=2, channels=3, image=64, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="resnext50_32x4d", n=2, channels=3, image=40, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="wide_resnet50_2", n=2, channels=3, image=40, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="seresnet50", n=2, channels=3, image=40, classes=10, smoothing=0, mixed=False, batches=1),
    dict(model="wrn16_4", n=2, channels=3, image=32, classes=10, smoothing=0, mixed=False, batches=1),
]


def steps(model, rate, n=0, image=0, tanh=False):
    """A network of the list above, from its weights, with momentum and a decay that shows in three steps. The rate is one that keeps fp32
    near fp64. With `tanh`: in place of ReLU, whose ties a second step would meet with other signs (docs/adr/0007). More images (`n`) give
    a batch norm of the last layers more than a handful of values."""
    case = next(case for case in NETWORKS if case["model"] == model)
    case = {key: value for key, value in case.items() if key != "batches"}
    changes = {"rates": [rate, rate, rate / 2], "momentum": 0.875, "decay": 0.0625, "norm_momentum": 0.125}
    return case | changes | ({"n": n} if n else {}) | ({"image": image} if image else {}) | ({"activation": "tanh"} if tanh else {})


STEPS = [
    steps("lenet", 2**-8),
    steps("mlp", 2**-8),
    steps("alexnet", 2**-10),
    steps("alexnet_ray", 2**-10),
    steps("alexnet_owt", 2**-11),
    steps("vgg11", 2**-11),
    steps("vgg11_bn", 2**-10, tanh=True),
    steps("resnet20_tanh", 2**-8),
    steps("resnet32_v2_tanh", 2**-8),
    steps("resnet20", 2**-10),
    steps("wrn16_4", 2**-9, tanh=True),
    steps("resnet18", 2**-10, tanh=True),
    steps("resnet50", 2**-13, n=8, tanh=True),
    steps("resnext50_32x4d", 2**-13, n=8, tanh=True),
    steps("wide_resnet50_2", 2**-13, n=8, tanh=True),
    steps("seresnet50", 2**-10, tanh=True),
    steps("densenet121", 2**-10, tanh=True),
    steps("googlenet", 2**-13, n=16, image=32, tanh=True),
    steps("googlenet_aux", 2**-13, n=16, image=32, tanh=True),
    steps("inception_v3", 2**-14, n=8, tanh=True),
    steps("inception_v3_aux", 2**-14, tanh=True),
    steps("inception_v4", 2**-14, n=8, tanh=True),
    steps("inception_resnet_v2", 2**-14, n=8, tanh=True),
    steps("inception_bn", 2**-11, tanh=True),
    steps("squeezenet1_1", 2**-10),
    steps("mobilenet_v1", 2**-10, tanh=True),
    steps("mobilenet_v2", 2**-10, tanh=True),
    steps("mobilenet_v3_small", 2**-10),
    steps("efficientnet_b0", 2**-12),
    steps("mnasnet0_5", 2**-10, tanh=True),
    steps("efficientnet_v2_s", 2**-12, n=4),
    steps("regnet_y_400mf", 2**-11, n=8, tanh=True),
    steps("airbench94", 2**-8),
]


def kind_of(net, name, shape):
    if len(shape) > 1:
        return "weight"
    is_norm = isinstance(net.get_submodule(name.rpartition(".")[0]), torch.nn.BatchNorm2d)
    return ("norm_scale" if name.endswith("weight") else "norm_shift") if is_norm else "bias"


def prepare(case, norm_momentum, dtype=torch.float64):
    """The network with the formula's parameters."""
    net = models.build(case["model"], case["channels"], case["image"], case["classes"])
    with torch.no_grad():
        for name, value in net.named_parameters():
            value.copy_(torch.from_numpy(formula.parameter(name, kind_of(net, name, list(value.shape)), list(value.shape))))
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = norm_momentum
    return net.to(dtype)


def forward(net, case, batch, step=0):
    """Input, logits and loss of each sample. `step`: how many steps later than the case says."""
    images = formula.images(f"x{batch}", case["n"], case["image"], case["image"], case["channels"]).astype(np.float64)
    x = torch.from_numpy((images - 128) / 64).permute(0, 3, 1, 2).contiguous().to(next(net.parameters()).dtype).requires_grad_()
    if "step" in case:
        net.step, net.positions = case["step"] | {"step": case["step"]["step"] + step}, formula.positions(case["n"])
    with models.rectified_by(case.get("activation")):
        found = net(x)
    loss_of = lambda logits: cross_entropy(logits, f"labels{batch}", round32(case["smoothing"]), case["mixed"])
    if not case["model"].endswith("_aux"):
        return x, found, loss_of(found)
    weight = round32(models.AUX_WEIGHTS[case["model"]])
    logits, *heads = found
    return x, logits, loss_of(logits) + weight * sum(loss_of(head) for head in heads)


def run(case, batch):
    net = prepare(case, 1.0)  # so the running statistics are this batch's
    x, logits, loss = forward(net, case, batch)
    (loss.sum() * round32(1 / case["n"])).backward()
    results = {"logits": logits, "loss": loss, "dx": x.grad}
    gradients = {name: value.grad for name, value in net.named_parameters() if value.requires_grad}
    statistics = {name: value for name, value in net.named_buffers() if "running" in name}
    return results, gradients, statistics


def train(case, dtype=torch.float64):
    """Mean loss of each step; by how much the steps changed each parameter; the running statistics after them."""
    net = prepare(case, case["norm_momentum"], dtype)
    parameters = {name: value for name, value in net.named_parameters() if value.requires_grad}
    start = {name: value.detach().clone() for name, value in parameters.items()}
    groups = [dict(params=[v for v in parameters.values() if (v.dim() > 1) == decays], weight_decay=case["decay"] * decays) for decays in (True, False)]
    optimiser = torch.optim.SGD(groups, lr=1, momentum=case["momentum"])
    losses = []
    for step, rate in enumerate(case["rates"]):
        for group in optimiser.param_groups:
            group["lr"] = rate
        _, _, loss = forward(net, case, step, step)
        optimiser.zero_grad()
        (loss.sum() * round32(1 / case["n"])).backward()
        optimiser.step()
        losses.append(float(loss.detach().double().mean()))
    changes = {name: value.detach().double() - start[name].double() for name, value in parameters.items()}
    statistics = {name: value for name, value in net.named_buffers() if "running" in name}
    return losses, changes, statistics


def make_steps(case):
    """Of each tensor its projection, in the order of the names."""
    losses, *tensors = train(case)
    changes, statistics = ([summarise(name, of[name])["projection"] for name in sorted(of)] for of in tensors)
    return case | {"losses": losses, "changes": changes, "statistics": statistics}


def make_network(case):
    batches = []
    for batch in range(case["batches"]):
        found = zip(["results", "gradients", "statistics"], run(case, batch))
        batches.append({key: {name: summarise(name, value, 4) for name, value in values.items()} for key, values in found})
    return {"torch": torch.__version__} | case | {"batches": batches}


def write(name, golden, digits=0):
    """With `digits`: a large file, in one line, with as many significant digits."""
    path = HERE / (name + ".json")
    text = json.dumps(golden, indent=None if digits else 1)
    if digits:
        text = json.dumps(json.loads(text, parse_float=lambda number: float(f"{float(number):.{digits}g}")), separators=(",", ":"))
    path.write_text(text + "\n")
    print(f"{path}: {path.stat().st_size} bytes")


def main(names):
    """`names`: of files to write, all where empty."""
    # One thread: PyTorch's sums depend on the number of threads.
    torch.set_num_threads(1)
    if not names or "operations" in names:
        write("operations", make_operations())
    if not names or "optimisers" in names:
        write("optimisers", {"torch": torch.__version__, "optimisers": [optimise(case) for case in OPTIMISERS]})
    for case in NETWORKS:
        if case["batches"] and (not names or case["model"] in names):
            write(case["model"], make_network(case), digits=12)
    if not names or "steps" in names:
        write("steps", {"torch": torch.__version__, "networks": [make_steps(case) for case in STEPS]}, digits=8)


if __name__ == "__main__":
    main(sys.argv[1:])
