# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own reader must see the scalars and histograms of a run, and of a resumed run only the last word."""
import glob
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def read(folder):
    accumulator = EventAccumulator(folder + "/tensorboard", size_guidance={"scalars": 0, "histograms": 0})
    accumulator.Reload()
    return accumulator


def scalars(accumulator, tag):
    return [(event.step, round(event.value, 4)) for event in accumulator.Scalars(tag)]


def expect(got, want, what):
    if got != want:
        sys.exit(f"{what}: got {got}, expected {want}")


def check_one_run(program, folder):
    subprocess.run([program, folder, "40"], check=True, stdout=subprocess.DEVNULL)
    run = read(folder)
    expect(scalars(run, "train/loss"), [(10, 90), (20, 80), (30, 70), (40, 60)], "train/loss")
    expect(scalars(run, "train/lr"), [(step, 0.5) for step in (10, 20, 30, 40)], "train/lr")
    expect(scalars(run, "train/images_per_sec"), [(step, 500) for step in (10, 20, 30, 40)], "speed")
    expect(scalars(run, "time/other"), [(step, 0.025) for step in (10, 20, 30, 40)], "time/other")
    expect(scalars(run, "val/top1"), [(20, 60), (40, 70)], "val/top1")
    expect(scalars(run, "val/top5"), [(20, 90), (40, 90)], "val/top5")
    expect(scalars(run, "epoch/top1"), [(20, 30), (40, 30)], "epoch/top1")
    histograms = run.Histograms("parameters/fc.weight")
    expect([event.step for event in histograms], [10, 20, 30, 40], "steps of the histogram")
    value = histograms[0].histogram_value
    expect((value.min, value.max, value.num, value.sum), (-2, 10, 4, 9), "histogram")
    # Bins of width 0.4 from -2: value v lies in the bin whose right end is the next multiple above.
    ends = [round(end, 6) for end, count in zip(value.bucket_limit, value.bucket) if count > 0]
    expect(ends, [-1.6, 0.4, 1.2, 10], "right ends of the filled bins")
    expect(scalars(run, "parameters_norm/fc.weight")[0], (10, round((4 + 0 + 1 + 100) ** 0.5, 4)), "norm")


def check_plugins(program, folder):
    """Charts, hyperparameters and the configuration, as the plugins themselves read them."""
    subprocess.run([program, folder, "40"], check=True, stdout=subprocess.DEVNULL)
    run = read(folder)
    layout = layout_pb2.Layout.FromString(run.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    charts = {chart.title: list(chart.multiline.tag) for chart in layout.category[0].chart}
    expect(charts["loss"], ["^train/loss$", "^val/loss$"], "training and validation in one chart")
    expect({tag.strip("^$") for tags in charts.values() for tag in tags} - set(run.Tags()["scalars"]), set(), "charts of tags that are written")
    text = run.Tensors("configuration")[0].tensor_proto.string_val[0].decode()
    expect(text, "```ini\nlr = 0.5\n# name = \ufffd\n```\n", "configuration")
    expect(run.summary_metadata["configuration"].plugin_data.plugin_name, "text", "plugin of the configuration")
    start = hparams.parse_session_start_info_plugin_data(run.summary_metadata[hparams.SESSION_START_INFO_TAG].plugin_data.content)
    expect({name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()},
           {"lr": 0.5, "model": "resnet8", "flip": True, "seed": "1e400"}, "hyperparameters")
    end = hparams.parse_session_end_info_plugin_data(run.summary_metadata[hparams.SESSION_END_INFO_TAG].plugin_data.content)
    expect(end.status, api_pb2.Status.Value("STATUS_SUCCESS"), "the run's end")
    subprocess.run([program, folder, "50", "40"], check=True, stdout=subprocess.DEVNULL)
    newest = sorted(glob.glob(folder + "/tensorboard/*"))[-1]
    tags = [value.tag for event in EventFileLoader(newest).Load() for value in event.summary.value]
    expect((hparams.SESSION_START_INFO_TAG in tags, hparams.SESSION_END_INFO_TAG in tags), (True, False), "a run that stopped goes on")


def check_resumed_run(program, folder):
    """A run killed after step 40, resumed at 20: its steps 30 and 40 are replaced."""
    subprocess.run([program, folder, "40"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([program, folder, "50", "20"], check=True, stdout=subprocess.DEVNULL)
    expect(len(glob.glob(folder + "/tensorboard/events.out.tfevents.*")), 2, "event files")
    run = read(folder)
    expect(scalars(run, "train/loss"), [(10, 90), (20, 80), (30, 70.02), (40, 60.02), (50, 50.02)], "resumed train/loss")
    expect([event.step for event in run.Histograms("parameters/fc.weight")], [10, 20, 30, 40, 50], "resumed histograms")


if __name__ == "__main__":
    for check in (check_one_run, check_plugins, check_resumed_run):
        with tempfile.TemporaryDirectory() as folder:
            check(sys.argv[1], folder)
    print("TensorBoard reads all runs")
