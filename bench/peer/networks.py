# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side: the networks of the comparisons, written the way torchvision users write them."""
from functools import partial

import torch.nn.functional as F
from torch import nn


class Basic(nn.Module):
    expansion = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(inputs, width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += self.downsample(x)
        return F.relu(y, inplace=True)


class Bottleneck(nn.Module):
    """v1.5: the stride stands in the 3x3."""

    expansion = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(inputs, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        y += self.downsample(x)
        return F.relu(y, inplace=True)


def shortcut(inputs, outputs, stride):
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class Resnet(nn.Module):
    def __init__(self, block, counts, widths, classes, small_stem):
        super().__init__()
        stem = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)] if small_stem else [nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)]
        stem += [nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True)]
        if not small_stem:
            stem.append(nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], widths[0]
        for stage, (count, width) in enumerate(zip(counts, widths)):
            for i in range(count):
                blocks.append(block(inputs, width, 2 if stage > 0 and i == 0 else 1))
                inputs = width * block.expansion
        self.stem, self.blocks = nn.Sequential(*stem), nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class Airbench94(nn.Module):
    """The network of Keller Jordan's airbench94: fixed whitening filters, norms without a trained scale."""

    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 24, 2), nn.GELU()]
        layers[0].weight.requires_grad = False
        for inputs, width in ((24, 64), (64, 256), (256, 256)):
            layers += [nn.Conv2d(inputs, width, 3, 1, 1, bias=False), nn.MaxPool2d(2), self.norm(width), nn.GELU()]
            layers += [nn.Conv2d(width, width, 3, 1, 1, bias=False), self.norm(width), nn.GELU()]
        self.layers = nn.Sequential(*layers, nn.MaxPool2d(3), nn.Flatten(), nn.Linear(256, 10, bias=False))

    @staticmethod
    def norm(width):
        made = nn.BatchNorm2d(width, eps=1e-12, momentum=0.4)
        made.weight.requires_grad = False
        return made

    def forward(self, x):
        return self.layers(x) / 9


def of_torchvision(name):
    import torchvision  # only these networks need it

    return torchvision.models.get_model(name)


# name: (builder, image size, classes)
NETWORKS = {
    "resnet20": (lambda: Resnet(Basic, [3, 3, 3], [16, 32, 64], 10, True), 32, 10),
    "resnet18-small": (lambda: Resnet(Basic, [2, 2, 2, 2], [64, 128, 256, 512], 10, True), 32, 10),
    "airbench94": (Airbench94, 32, 10),
    "resnet50": (lambda: Resnet(Bottleneck, [3, 4, 6, 3], [64, 128, 256, 512], 1000, False), 224, 1000),
    **{name: (partial(of_torchvision, name), 224, 1000) for name in ("mobilenet_v2", "resnext50_32x4d", "efficientnet_b0")},
}
