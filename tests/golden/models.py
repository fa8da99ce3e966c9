# SPDX-License-Identifier: Apache-2.0
"""PyTorch forms of the networks of src/network/models, with the same parameter names. Where torchvision or timm has the network, it is
theirs."""

import contextlib
from unittest import mock

import numpy as np
import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

import formula

EPSILON = 9.999999747378752e-06  # 1e-5 in fp32, which is what a graph holds


def norm(channels):
    return nn.BatchNorm2d(channels, eps=EPSILON)


class Lenet(nn.Module):
    def __init__(self, channels, image, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, 20, 5), nn.Conv2d(20, 50, 5)
        side = ((image - 4) // 2 - 4) // 2
        self.fc1, self.fc2 = nn.Linear(50 * side * side, 500), nn.Linear(500, classes)

    def forward(self, x):
        x = F.avg_pool2d(torch.tanh(self.conv1(x)), 2)
        x = F.avg_pool2d(torch.tanh(self.conv2(x)), 2)
        return self.fc2(torch.tanh(self.fc1(x.flatten(1))))


class Alexnet(nn.Module):
    """The forms 2012 and ray. Dropout takes the masks of formula.dropout_factors: set `step` and `positions` before a forward
    pass. Its place in the graph is counted here by hand."""

    def __init__(self, channels, image, classes, *, ray):
        super().__init__()
        self.ray = ray
        groups = 1 if ray else 2
        self.conv1 = nn.Conv2d(channels, 96, 11, 4, 4 if ray else 2)
        self.conv2 = nn.Conv2d(96, 256, 5, 1, 2, groups=groups)
        self.conv3 = nn.Conv2d(256, 384, 3, 1, 1)
        self.conv4 = nn.Conv2d(384, 384, 3, 1, 1, groups=groups)
        self.conv5 = nn.Conv2d(384, 256, 3, 1, 1, groups=groups)
        side = (image + (8 if ray else 4) - 11) // 4 + 1
        for _ in range(3):
            side = (side - 3) // 2 + 1
        first = 1 if ray else 6
        self.dense = [f"fc{first + i}" for i in range(3)]
        widths = [256 * side * side, 4096, 4096, classes]
        for name, before, after in zip(self.dense, widths, widths[1:]):
            setattr(self, name, nn.Linear(before, after))
        # input, 5 convolutions with activation, 3 pools, 3 or 2 norms, flatten; then linear, activation, dropout twice.
        before_dense = 1 + 10 + 3 + (3 if ray else 2) + 1
        self.drop_nodes = [before_dense + 2, before_dense + 5]
        self.norm = dict(size=11, alpha=11e-4, k=1) if ray else dict(size=5, alpha=5e-4, k=2)
        self.norm = {key: float(np.float32(value)) if key == "alpha" else value for key, value in self.norm.items()}

    def drop(self, x, node):
        factors = formula.dropout_factors(0.5, self.step["seed"], self.step["step"], node, self.positions, x.shape[1])
        return x * torch.from_numpy(factors).to(x.dtype)

    def norm_and_pool(self, x, normalise=True):
        if self.ray:
            return F.local_response_norm(F.max_pool2d(x, 3, 2), beta=0.75, **self.norm)
        return F.max_pool2d(F.local_response_norm(x, beta=0.75, **self.norm) if normalise else x, 3, 2)

    def forward(self, x):
        x = self.norm_and_pool(F.relu(self.conv1(x)))
        x = self.norm_and_pool(F.relu(self.conv2(x)))
        for i in (3, 4, 5):
            x = F.relu(getattr(self, f"conv{i}")(x))
        x = self.norm_and_pool(x, normalise=False).flatten(1)
        activation = torch.tanh if self.ray else F.relu
        for name, node in zip(self.dense, self.drop_nodes):
            x = self.drop(activation(getattr(self, name)(x)), node)
        return getattr(self, self.dense[2])(x)


class Airbench94(nn.Module):
    """Jordan 2024 (arXiv 2404.00498). Norms have a scale that never trains, as the whitening filters."""

    class Group(nn.Module):
        def __init__(self, before, width):
            super().__init__()
            self.conv1, self.conv2 = (nn.Conv2d(c, width, 3, padding=1, bias=False) for c in (before, width))
            self.norm1, self.norm2 = norm(width), norm(width)

        def forward(self, x):
            x = F.gelu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
            return F.gelu(self.norm2(self.conv2(x)))

    def __init__(self, channels, classes):
        super().__init__()
        self.whiten = nn.Conv2d(channels, 8 * channels, 2)
        widths = (8 * channels, 64, 256, 256)
        self.layers = nn.Sequential(nn.GELU(), *(self.Group(*pair) for pair in zip(widths, widths[1:])), nn.MaxPool2d(3))
        self.head = nn.Linear(widths[-1], classes, bias=False)
        self.whiten.weight.requires_grad = False
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.weight.requires_grad = False

    def forward(self, x):
        return self.head(self.layers(self.whiten(x)).flatten(1)) * float(np.float32(1 / 9))


class InceptionBn(nn.Module):
    """Ioffe and Szegedy 2015, as MXNet's symbol inception-bn has it: with its names, biases before the norms, and averages that count
    the padding."""

    # Name, and channels: 1x1, 3x3 behind its 1x1, two 3x3 behind theirs, 1x1 behind the pool. Without a 1x1 the module halves.
    MODULES = [
        ("3a", 64, 64, 64, 64, 96, 32),
        ("3b", 64, 64, 96, 64, 96, 64),
        ("3c", 0, 128, 160, 64, 96, 0),
        ("4a", 224, 64, 96, 96, 128, 128),
        ("4b", 192, 96, 128, 96, 128, 128),
        ("4c", 160, 128, 160, 128, 160, 128),
        ("4d", 96, 128, 192, 160, 192, 128),
        ("4e", 0, 128, 192, 192, 256, 0),
        ("5a", 352, 192, 320, 160, 224, 128),
        ("5b", 352, 192, 320, 192, 224, 128),
    ]

    def __init__(self, channels, classes):
        super().__init__()
        self.add("1", channels, 64, 7, 2)
        self.add("2_red", 64, 64, 1)
        self.add("2", 64, 192, 3)
        width = 192
        for name, one, reduced, three, reduced_double, double, pooled in self.MODULES:
            if one:
                self.add(f"{name}_1x1", width, one, 1)
                self.add(f"{name}_proj", width, pooled, 1)
            stride = 1 if one else 2
            self.add(f"{name}_3x3_reduce", width, reduced, 1)
            self.add(f"{name}_3x3", reduced, three, 3, stride)
            self.add(f"{name}_double_3x3_reduce", width, reduced_double, 1)
            self.add(f"{name}_double_3x3_0", reduced_double, double, 3)
            self.add(f"{name}_double_3x3_1", double, double, 3, stride)
            width = one + three + double + (pooled if one else width)
        self.fc1 = nn.Linear(width, classes)

    def add(self, name, before, width, kernel, stride=1):
        setattr(self, f"conv_{name}", nn.Conv2d(before, width, kernel, stride, kernel // 2))
        setattr(self, f"bn_{name}", norm(width))

    def unit(self, x, *names):
        for name in names:
            x = F.relu(getattr(self, f"bn_{name}")(getattr(self, f"conv_{name}")(x)))
        return x

    def forward(self, x):
        x = F.max_pool2d(self.unit(x, "1"), 3, 2)
        x = F.max_pool2d(self.unit(x, "2_red", "2"), 3, 2)
        for name, one, *_ in self.MODULES:
            three = self.unit(x, f"{name}_3x3_reduce", f"{name}_3x3")
            double = self.unit(x, f"{name}_double_3x3_reduce", f"{name}_double_3x3_0", f"{name}_double_3x3_1")
            if not one:
                x = torch.cat([three, double, F.max_pool2d(x, 3, 2, 1)], 1)
                continue
            pooled = F.max_pool2d(x, 3, 1, 1) if name == "5b" else F.avg_pool2d(x, 3, 1, 1)
            x = torch.cat([self.unit(x, f"{name}_1x1"), three, double, self.unit(pooled, f"{name}_proj")], 1)
        return self.fc1(x.mean((2, 3)))


class MobilenetV1(nn.Module):
    """Howard et al. 2017 (arXiv 1704.04861), table 1, without dropout."""

    LAYERS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]

    def __init__(self, channels, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, 32, 3, 2, 1, bias=False), norm(32)
        width = 32
        for i, (out, stride) in enumerate(self.LAYERS, 1):
            block = nn.Module()
            block.depthwise = nn.Sequential(nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False), norm(width), nn.ReLU())
            block.pointwise = nn.Sequential(nn.Conv2d(width, out, 1, bias=False), norm(out), nn.ReLU())
            setattr(self, f"block{i}", block)
            width = out
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for i in range(1, len(self.LAYERS) + 1):
            block = getattr(self, f"block{i}")
            x = block.pointwise(block.depthwise(x))
        return self.fc(x.mean((2, 3)))


class Mlp(nn.Module):
    def __init__(self, channels, image, classes, hidden):
        super().__init__()
        widths = [channels * image * image, *hidden]
        for i, (width, after) in enumerate(zip(widths, [*hidden, classes]), 1):
            setattr(self, f"fc{i}", nn.Linear(width, after))
        self.layers = len(widths)

    def forward(self, x):
        x = x.flatten(1)
        for i in range(1, self.layers):
            x = torch.tanh(getattr(self, f"fc{i}")(x))
        return getattr(self, f"fc{self.layers}")(x)


def rectify(x):
    """F.relu as rectified_by() has it when it is called."""
    return F.relu(x)


def branch(width_in, width, stride, bottleneck):
    """Convolutions of a block: (in, out, kernel, stride); a bottleneck's stride stands in its 3x3 (v1.5)."""
    if not bottleneck:
        return [(width_in, width, 3, stride), (width, width, 3, 1)]
    return [(width_in, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)]


class Block(nn.Module):
    def __init__(self, width_in, width, stride, bottleneck, pre_activation, activation):
        super().__init__()
        layers = branch(width_in, width, stride, bottleneck)
        self.count, self.pre_activation, self.activation = len(layers), pre_activation, activation
        for i, (inputs, outputs, kernel, step) in enumerate(layers, 1):
            setattr(self, f"conv{i}", nn.Conv2d(inputs, outputs, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{i}", norm(inputs if pre_activation else outputs))
        self.out = layers[-1][1]
        self.downsample = None
        if stride != 1 or width_in != self.out:
            project = nn.Conv2d(width_in, self.out, 1, stride, bias=False)
            self.downsample = nn.Sequential(project) if pre_activation else nn.Sequential(project, norm(self.out))

    def forward(self, x):
        y, shortcut = x, x
        for i in range(1, self.count + 1):
            conv, bn = getattr(self, f"conv{i}"), getattr(self, f"bn{i}")
            if self.pre_activation:
                y = self.activation(bn(y))
                if i == 1 and self.downsample is not None:
                    shortcut = self.downsample(y)
                y = conv(y)
            else:
                y = bn(conv(y))
                if i < self.count:
                    y = self.activation(y)
        if self.pre_activation:
            return y + shortcut
        return self.activation(y + (x if self.downsample is None else self.downsample(x)))


class Resnet(nn.Module):
    def __init__(self, channels, classes, blocks, widths, *, activation=rectify, bottleneck=False, pre_activation=False, imagenet_stem=False, first=None):
        """`first`: channels of the first convolution; default: those of the first stage."""
        super().__init__()
        self.imagenet_stem, self.pre_activation, self.stages, self.activation = imagenet_stem, pre_activation, len(blocks), activation
        width = first or widths[0]
        self.conv1 = nn.Conv2d(channels, width, 7, 2, 3, bias=False) if imagenet_stem else nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        if not pre_activation:
            self.bn1 = norm(width)
        for stage, (count, stage_width) in enumerate(zip(blocks, widths), 1):
            sequence = nn.Sequential()
            for i in range(count):
                block = Block(width, stage_width, 2 if stage > 1 and i == 0 else 1, bottleneck, pre_activation, activation)
                sequence.append(block)
                width = block.out
            setattr(self, f"layer{stage}", sequence)
        if pre_activation:
            self.bn = norm(width)
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        x = self.conv1(x)
        if not self.pre_activation:
            x = self.activation(self.bn1(x))
        if self.imagenet_stem:
            x = F.max_pool2d(x, 3, 2, 1)
        for stage in range(1, self.stages + 1):
            x = getattr(self, f"layer{stage}")(x)
        if self.pre_activation:
            x = self.activation(self.bn(x))
        return self.fc(x.mean((2, 3)))


def hard_sigmoid(x):
    """torch's own takes 1/6 in fp32 for its gradient."""
    return F.relu6(x + 3) / 6


class HardSwish(nn.Module):
    def forward(self, x):
        return x * hard_sigmoid(x)


class HardSigmoid(nn.Module):
    def forward(self, x):
        return hard_sigmoid(x)


OF_TORCHVISION = ("alexnet_owt", "resnet18", "resnext50_32x4d", "wide_resnet50_2", "vgg11", "vgg11_bn", "densenet121", "googlenet", "inception_v3", "googlenet_aux", "inception_v3_aux",
                  "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "efficientnet_v2_s", "mnasnet0_5", "regnet_y_400mf")


AUX_WEIGHTS = {"googlenet_aux": 0.3, "inception_v3_aux": 0.4}


def of_torchvision(model, image, classes):
    """Without dropout and stochastic depth. The averages to 7 x 7 of VGG and 6 x 6 of AlexNet, which repeat pixels of small images, are left
    out."""
    heads = model in AUX_WEIGHTS
    model = model.removesuffix("_aux")
    options = dict(aux_logits=heads, init_weights=False) if model in ("googlenet", "inception_v3") else {}
    if heads and model == "googlenet":
        options["dropout_aux"] = 0.0
    if model.startswith(("alexnet", "vgg", "googlenet", "mobilenet", "squeezenet", "efficientnet", "mnasnet", "inception")):
        options["dropout"] = 0.0
    if model.startswith("efficientnet"):
        options["stochastic_depth_prob"] = 0.0
    net = getattr(torchvision.models, model.removesuffix("_owt"))(num_classes=classes, **options)
    if model == "alexnet_owt":
        net.avgpool = nn.Identity()
        side = ((((image + 4 - 11) // 4 + 1 - 3) // 2 + 1 - 3) // 2 + 1 - 3) // 2 + 1
        net.classifier[1] = nn.Linear(256 * side**2, 4096)
    if model.startswith("vgg"):
        net.avgpool = nn.Identity()
        net.classifier[0] = nn.Linear(512 * (image // 32) ** 2, 4096)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = EPSILON
        if hasattr(module, "scale_activation") and isinstance(module.scale_activation, nn.Hardsigmoid):
            module.scale_activation = HardSigmoid()
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Hardswish):
                setattr(module, name, HardSwish())
    return net


OF_TIMM = ("seresnet50", "inception_v4", "inception_resnet_v2")


def of_timm(model, classes):
    net = timm.create_model(model, num_classes=classes)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = EPSILON
        if hasattr(module, "scale"):
            module.scale = float(np.float32(module.scale))
    return net


def rectified_by(activation):
    """A context in which ReLU and ReLU6, of modules too, are what --activation names; None: themselves."""
    if activation is None:
        return contextlib.nullcontext()
    curve = {"tanh": torch.tanh}[activation]
    return mock.patch.multiple(F, **dict.fromkeys(("relu", "relu6", "hardtanh"), lambda x, *_, **__: curve(x)))


def build(model, channels, image, classes):
    if model in OF_TIMM:
        return of_timm(model, classes)
    if model == "inception_bn":
        return InceptionBn(channels, classes)
    if model in OF_TORCHVISION:
        return of_torchvision(model, image, classes)
    if model == "lenet":
        return Lenet(channels, image, classes)
    if model.startswith("alexnet"):
        return Alexnet(channels, image, classes, ray=model.endswith("ray"))
    if model == "airbench94":
        return Airbench94(channels, classes)
    if model == "mobilenet_v1":
        return MobilenetV1(channels, classes)
    if model == "mlp":
        return Mlp(channels, image, classes, [40, 30])
    if model.startswith("resnet20"):
        return Resnet(channels, classes, [3, 3, 3], [16, 32, 64], activation=torch.tanh if "tanh" in model else rectify)
    if model.startswith("resnet32_v2"):
        activation = torch.tanh if "tanh" in model else rectify
        return Resnet(channels, classes, [5, 5, 5], [16, 32, 64], activation=activation, pre_activation=True)
    if model == "wrn16_4":
        return Resnet(channels, classes, [2, 2, 2], [64, 128, 256], pre_activation=True, first=16)
    if model == "resnet50":
        return Resnet(channels, classes, [3, 4, 6, 3], [64, 128, 256, 512], bottleneck=True, imagenet_stem=True)
    raise ValueError(model)
