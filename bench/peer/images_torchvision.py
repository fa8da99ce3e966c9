# SPDX-License-Identifier: Apache-2.0
"""Single passes of torchvision's usual way over the image files of a folder, for bench/compare_images.py: Pillow opens, converts,
crops and resizes (RandomResizedCrop). One line on standard input starts a pass; the answer is `IMAGES SECONDS CHECKSUM`."""
import io
import pathlib
import sys
import time

import PIL
import torch
import torchvision
from PIL import Image

torch.set_num_threads(1)
files = [path.read_bytes() for path in sorted(pathlib.Path(sys.argv[1]).rglob("*")) if path.is_file()]
crop = torchvision.transforms.RandomResizedCrop(224)
print(f"ready torchvision {torchvision.__version__}, Pillow {PIL.__version__}", flush=True)
for _ in sys.stdin:
    begin, total = time.process_time(), 0
    for data in files:
        image = crop(Image.open(io.BytesIO(data)).convert("RGB"))
        total += image.size[0]
    print(len(files), f"{time.process_time() - begin:.6f}", total, flush=True)
