#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes augment.json: what torchvision (Pillow backend) makes of two small synthetic images, one of pixels and one JPEG file, and
the magnitudes and tables of its automatic augmentation policies. Bytes are hexadecimal.
Needs torch, torchvision, numpy and Pillow: python3 make_augment_golden.py (writes beside itself)."""

import io
import json
import pathlib

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as F

import formula

HERE = pathlib.Path(__file__).parent
BILINEAR = InterpolationMode.BILINEAR

NAMES = {"Identity": "identity", "ShearX": "shear_x", "ShearY": "shear_y", "TranslateX": "translate_x", "TranslateY": "translate_y",
         "Rotate": "rotate", "Brightness": "brightness", "Color": "saturation", "Contrast": "contrast", "Sharpness": "sharpness",
         "Posterize": "posterize", "Solarize": "solarize", "AutoContrast": "stretch_contrast", "Equalize": "equalize",
         "Invert": "invert"}


def picture(height, width, noise):
    """Waves of three colours and some noise."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    waves = [128 + 90 * np.sin(x / (5 + c) + c) * np.cos(y / (7 - c) - c) for c in range(3)]
    pixels = np.stack(waves, 2) + noise * formula.uniform(f"picture {height} {width}", height * width * 3).reshape(height, width, 3)
    return Image.fromarray(np.clip(np.round(pixels), 0, 255).astype(np.uint8))


def bytes_of(image):
    return np.asarray(image, np.uint8).tobytes().hex()


def operations(image):
    height, width = image.height, image.width
    results = []

    def add(operation, result, **parameters):
        results.append({"operation": operation, "parameters": parameters, "result": bytes_of(result)})

    for factor in (0.0, 0.4, 0.77, 1.3, 1.9):
        add("brightness", F.adjust_brightness(image, factor), factor=factor)
        add("contrast", F.adjust_contrast(image, factor), factor=factor)
        add("saturation", F.adjust_saturation(image, factor), factor=factor)
        add("sharpness", F.adjust_sharpness(image, factor), factor=factor)
    for shift in (-0.5, -0.2, 0.05, 0.31):
        add("hue", F.adjust_hue(image, shift), factor=shift)
    for bits in (2, 4, 7):
        add("posterize", F.posterize(image, bits), factor=bits)
    for threshold in (0.0, 93.5, 255.0):
        add("solarize", F.solarize(image, threshold), factor=threshold)
    add("invert", F.invert(image))
    add("stretch_contrast", F.autocontrast(F.adjust_contrast(image, 0.5)), before=0.5)
    add("equalize", F.equalize(image))

    def affine(interpolation, **spec):
        whole = dict(angle=0.0, translate=[0, 0], scale=1.0, shear=[0.0, 0.0]) | spec
        return F.affine(image, **whole, interpolation=interpolation, fill=[7, 7, 7])

    for name, interpolation in (("affine_nearest", InterpolationMode.NEAREST), ("affine_bilinear", BILINEAR)):
        for spec in (dict(angle=20.0), dict(shear=[15.0, 0.0]), dict(scale=1.3), dict(angle=-35.0, shear=[5.0, -8.0], scale=0.8)):
            add(name, affine(interpolation, **spec), **spec)
    for step, magnitude in (("ShearX", 0.3), ("ShearY", -0.2), ("TranslateX", 5.6), ("TranslateY", -3.2), ("Rotate", 27.0), ("Rotate", -90.0)):
        result = autoaugment._apply_op(image, step, magnitude, InterpolationMode.NEAREST, [7, 7, 7])
        add("step " + NAMES[step], result, magnitude=magnitude)
    assert (height, width) == (13, 17)
    return results


def pipelines(encoded):
    image = Image.open(io.BytesIO(encoded)).convert("RGB")
    results = []
    for top, left, height, width in ((0, 0, image.height, image.width), (11, 17, 40, 53), (3, 40, 60, 31), (30, 5, 20, 24)):
        result = F.resized_crop(image, top, left, height, width, [32, 32], BILINEAR, antialias=True)
        results.append({"region": [top, left, height, width], "result": bytes_of(result)})
    centres = []
    for side, height, width in ((40, 32, 32), (32, 32, 32), (36, 33, 28), (90, 61, 64)):
        result = F.center_crop(F.resize(image, side, BILINEAR, antialias=True), [height, width])
        centres.append({"side": side, "size": [height, width], "result": bytes_of(result)})
    return {"file": encoded.hex(), "size": [image.height, image.width], "regions": results, "centres": centres}


def spaces():
    result = {}
    for name, policy, arguments in (("rand", autoaugment.RandAugment(), (31, (200, 320))),
                                    ("trivial", autoaugment.TrivialAugmentWide(), (31,)),
                                    ("autoaugment", autoaugment.AutoAugment(), (10, (200, 320))),
                                    ("mix", autoaugment.AugMix(), (10, (200, 320)))):
        space = policy._augmentation_space(*arguments)
        result[name] = {NAMES[key]: {"magnitudes": [float(m) for m in np.atleast_1d(magnitudes.numpy())], "signed": bool(signed)}
                        for key, (magnitudes, signed) in space.items()}
    policies = autoaugment.AutoAugment()._get_policies(autoaugment.AutoAugmentPolicy.IMAGENET)
    result["imagenet"] = [[[NAMES[operation], probability, -1 if magnitude is None else magnitude] for operation, probability, magnitude in pair]
                          for pair in policies]
    return result


def main():
    image = picture(13, 17, 40)
    file = io.BytesIO()
    picture(77, 91, 6).save(file, "JPEG", quality=88)
    golden = {"torchvision": torchvision.__version__, "size": [image.height, image.width], "image": bytes_of(image),
              "operations": operations(image), "jpeg": pipelines(file.getvalue()), "spaces": spaces()}
    path = HERE / "augment.json"
    path.write_text(json.dumps(golden, indent=0) + "\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
