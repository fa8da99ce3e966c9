# SPDX-License-Identifier: Apache-2.0
"""Evaluation is exact over ranks: the same integers for 1, 2, 3, 5 and 8 ranks and any batch, one more rank than images too."""
import csv
import json

from runner import PREPROCESS, check, run, train, work_folder


def evaluate(ranks, checkpoint, data, batch, out, *words):
    run(ranks, "evaluate", "--checkpoint", checkpoint, "--data", data, "--batch-size", batch, "--threads", 1, "--output-dir", out,
        *words)
    with open(f"{out}/result.json", encoding="utf-8") as file:
        result = json.load(file)
    with open(f"{out}/confusion.csv", encoding="utf-8") as file:
        matrix = [[int(v) for v in row[1:]] for row in list(csv.reader(file))[1:]]
    return result, matrix


def main():
    with work_folder() as work:
        data, small, out = f"{work}/data", f"{work}/small", f"{work}/run"
        run(1, "synthetic", "--out", data, "--samples", 300, "--val-samples", 203, "--image-size", 16, "--partitions", 3,
            program=PREPROCESS)
        run(1, "synthetic", "--out", small, "--samples", 20, "--val-samples", 4, "--image-size", 16, "--partitions", 1,
            program=PREPROCESS)
        train(2, out, "--data", data, "--model", "resnet20", "--batch-size", 16, "--epochs", 2, "--lr", 0.1)
        results = {}
        for ranks, batch in ((1, 64), (2, 7), (3, 64), (5, 1), (8, 64)):
            results[ranks] = evaluate(ranks, out, data, batch, f"{work}/eval-{ranks}")
        one, matrix = results[1]
        check(one["images"] == 203, "all 203 images were counted")
        check(sum(map(sum, matrix)) == 203, "the confusion matrix counts every image")
        check(sum(matrix[i][i] for i in range(len(matrix))) == one["top1_count"], "its diagonal is the number of hits")
        for ranks, (result, other) in results.items():
            keys = ("images", "top1_count", "top5_count")
            check([result[k] for k in keys] == [one[k] for k in keys], f"{ranks} ranks: the same counts {[one[k] for k in keys]}")
            check(other == matrix, f"{ranks} ranks: the same confusion matrix")
            check(abs(result["loss"] - one["loss"]) <= 1e-6 * abs(one["loss"]), f"{ranks} ranks: loss to 1e-6")
        result, _ = evaluate(5, out, small, 64, f"{work}/eval-small")
        check(result["images"] == 4, "5 ranks evaluate 4 images")


if __name__ == "__main__":
    main()
