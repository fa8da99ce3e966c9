#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the accuracy curves of runs as an SVG picture, from their logs (log.txt of a run directory).

    bench/curves.py LABEL=LOG[,LOG...] ... > docs/curves.svg

One curve per label: held-out top-1 accuracy after each epoch, the mean over its logs, in a band from the lowest to the highest."""
import pathlib
import re
import statistics
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 52, 16, 16, 44
COLOURS = ["#1b6ca8", "#d1661f", "#3c8d40", "#8b4aa8"]


def accuracies(path):
    """Top-1 in percent by epoch."""
    found = re.findall(r"epoch (\d+) validation: top1 ([0-9.]+) %", pathlib.Path(path).read_text(encoding="utf-8"))
    if not found:
        sys.exit(f"{path} holds no validation")
    return {int(epoch): float(top1) for epoch, top1 in found}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    curves = []
    for word in sys.argv[1:]:
        label, _, logs = word.partition("=")
        runs = [accuracies(path) for path in logs.split(",")]
        epochs = sorted(set.intersection(*(set(run) for run in runs)))
        curves.append((label, [(epoch, [run[epoch] for run in runs]) for epoch in epochs]))
    last = max(points[-1][0] for _, points in curves)
    low = min(min(values) for _, points in curves for _, values in points) // 10 * 10
    x = lambda epoch: LEFT + (epoch - 1) / max(1, last - 1) * (WIDTH - LEFT - RIGHT)
    y = lambda top1: HEIGHT - BOTTOM - (top1 - low) / (100 - low) * (HEIGHT - TOP - BOTTOM)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">')
    print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    for top1 in range(int(low), 101, 10):
        print(f'<path d="M{LEFT} {y(top1):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        print(f'<text x="{LEFT - 6}" y="{y(top1) + 4:.1f}" text-anchor="end">{top1}</text>')
    for epoch in range(1, last + 1):
        print(f'<text x="{x(epoch):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{epoch}</text>')
    print(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">epoch</text>')
    print(f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2})">held-out top-1, %</text>')
    for number, (label, points) in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        upper = " ".join(f"{x(epoch):.1f},{y(max(values)):.1f}" for epoch, values in points)
        lower = " ".join(f"{x(epoch):.1f},{y(min(values)):.1f}" for epoch, values in reversed(points))
        mean = " ".join(f"{x(epoch):.1f},{y(statistics.mean(values)):.1f}" for epoch, values in points)
        print(f'<polygon points="{upper} {lower}" fill="{colour}" opacity="0.15"/>')
        print(f'<polyline points="{mean}" fill="none" stroke="{colour}" stroke-width="2"/>')
        row = HEIGHT - BOTTOM - 14 - 18 * (len(curves) - 1 - number)
        print(f'<path d="M{WIDTH - 320} {row - 4}h24" stroke="{colour}" stroke-width="2"/>')
        print(f'<text x="{WIDTH - 290}" y="{row}">{label}: {statistics.mean(points[-1][1]):.1f} %</text>')
    print("</svg>")


if __name__ == "__main__":
    main()
