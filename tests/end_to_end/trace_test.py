# SPDX-License-Identifier: Apache-2.0
"""convoy train --trace-steps A:B: trace.json has the steps of all ranks in the format of Chrome's and Perfetto's viewers."""
import json
import os

from runner import check, records, run, train, work_folder

JOB = ["--synthetic", "--synthetic-size", 16, "--synthetic-samples", 360, "--model", "resnet8", "--epochs", 2, "--val-interval", 1, "--print-freq", 1,
       "--fusion-threshold-mb", 0.05]
SLACK = 0.01  # microseconds: what printing three decimals rounds


def events_of(folder):
    with open(f"{folder}/trace.json", encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    for event in events:
        check_event(event)
    return [event for event in events if event["ph"] == "X"], [event for event in events if event["ph"] == "M"]


def check_event(event):
    """A complete event or one that names a row, by the format's description."""
    numbers = all(isinstance(event[key], int) for key in ("pid", "tid")) and isinstance(event["name"], str)
    if event["ph"] == "X":
        good = numbers and event["ts"] >= 0 and event["dur"] >= 0 and event["name"]
    else:
        good = numbers and event["ph"] == "M" and event["name"] in ("process_name", "thread_name") and event["args"]["name"]
    if not good:
        check(False, f"an event in the format: {event}")


def check_nesting(events):
    """On one row a span lies inside another or beside it."""
    rows, crossing = {}, []
    for event in events:
        rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], -event["dur"], event["name"]))
    for row, spans in rows.items():
        stack = []
        for begin, minus, name in sorted(spans):
            end = begin - minus
            while stack and stack[-1][0] <= begin + SLACK:
                stack.pop()
            if stack and end > stack[-1][0] + SLACK:
                crossing.append(f"'{name}' of row {row} ends after '{stack[-1][1]}', in which it began")
            stack.append((end, name))
    check(rows and not crossing, f"spans nest on {len(rows)} rows: {crossing}")


def inside(event, outer):
    return event["pid"] == outer["pid"] and event["tid"] == outer["tid"] and outer["ts"] - SLACK <= event["ts"] and \
        event["ts"] + event["dur"] <= outer["ts"] + outer["dur"] + SLACK


def traced(work, ranks, sync, first, last):
    folder = f"{work}/{sync}-{ranks}"
    out, _ = train(ranks, folder, *JOB, "--batch-size", 60 // ranks, "--sync", sync, "--trace-steps", f"{first}:{last}")
    check(f"steps {first} to {last} are in '{folder}/trace.json'" in out, f"{sync}, ranks {ranks}: the log names the file")
    events, names = events_of(folder)
    check_nesting(events)
    check(sorted({event["args"]["name"] for event in names if event["name"] == "process_name"}) ==
          sorted(f"rank {rank} on {os.uname().nodename}" for rank in range(ranks)), "a process for each rank")
    rows = {(event["pid"], event["args"]["name"]) for event in names if event["name"] == "thread_name"}
    check({(rank, "main thread") for rank in range(ranks)} <= rows and any(name.startswith("loader") for _, name in rows), "with named threads")
    steps = [event for event in events if event["name"] == "step"]
    check(sorted((event["pid"], event["args"]["step"]) for event in steps) ==
          [(rank, step) for rank in range(ranks) for step in range(first, last + 1)], "each step of each rank once")
    logged = {record["step"]: record["seconds"] for record in records(folder, "train")}
    for step in range(first, last + 1):
        own = [event["dur"] / 1e6 for event in steps if event["args"]["step"] == step]
        check(abs(sum(own) / ranks - logged[step]) < 1e-6 + 1e-4 * logged[step], f"step {step}: the mean of the ranks is what metrics.jsonl says")
    for outer in steps:
        within = [event for event in events if event is not outer and inside(event, outer)]
        found = {event["name"] for event in within}
        wanted = {"data", "forward, backward, update", "forward and loss", "update"}
        check(wanted <= found and any(name.startswith("backward, stage") for name in found), f"rank {outer['pid']}: what a step is made of")
        parts = [event for event in within if event["name"] in ("data", "forward, backward, update", "average of the replicas", "wait for the device",
                                                                "wait for the votes")]
        check(sum(event["dur"] for event in parts) <= outer["dur"] + SLACK, "its parts take no longer than the step")
        launches = next(event for event in within if event["name"] == "forward, backward, update")
        check(all(inside(event, launches) for event in within if event["name"].startswith(("forward and", "backward, stage"))), "stages lie in the launches")
    sums = [event for event in events if event["args"].get("bytes")]
    if ranks > 1:
        check({event["pid"] for event in sums} == set(range(ranks)) and all(event["args"]["bytes"] > 0 for event in sums), "what travels, with its bytes")
    if ranks > 1 and sync == "gradients":
        buckets = {event["name"] for event in sums}
        check(len(buckets) > 2 and {f"gradient bucket {i}" for i in range(3)} <= buckets, f"buckets by number: {sorted(buckets)}")
    if ranks == 1:
        check(not sums, "alone nothing travels")
    return events


def main(work):
    # Steps 1 to 6 are the first epoch; validation and checkpoint come between 6 and 7.
    for ranks, sync in ((1, "gradients"), (3, "gradients"), (2, "weights")):
        events = traced(work, ranks, sync, 5, 8)
        check({"evaluation", "checkpoint"} <= {event["name"] for event in events}, "validation and checkpoint are shown")
        steps = [event for event in events if event["name"] == "step"]
        check(not any(inside(event, step) for event in events if event["name"] in ("evaluation", "checkpoint") for step in steps), "beside the steps")
    folder = f"{work}/cut"
    train(2, folder, *JOB, "--batch-size", 30, "--trace-steps", "3:900", "--max-steps", 4)
    check(sorted({event["args"]["step"] for event in events_of(folder)[0] if event["name"] == "step"}) == [3, 4], "a run that ends earlier writes what it has")
    train(2, folder, "--resume", "auto", "--trace-steps", 6)
    check({event["args"]["step"] for event in events_of(folder)[0] if event["name"] == "step"} == {6}, "a resumed run counts on")
    check("trace" not in open(f"{folder}/config.cfg", encoding="utf-8").read(), "the configuration does not ask for it again")
    off = f"{work}/off"
    _, err = train(1, off, *JOB, "--batch-size", 60, "--trace-steps", "500:501")
    check(not os.path.exists(f"{off}/trace.json") and "no step of --trace-steps 500:501 was made" in err, "a span behind the end is told")
    for wrong in ("0:3", "5:4", "1:1001", "x"):
        check("--trace-steps" in run(1, "train", "--synthetic", "--trace-steps", wrong, expect=2)[1], f"'{wrong}' is refused")


with work_folder() as work_:
    main(work_)
