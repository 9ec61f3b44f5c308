# SPDX-License-Identifier: Apache-2.0
"""Runs of many random graphs in processes that import everything once."""

import collections
import dataclasses
import multiprocessing
import os
import queue
import re
import tempfile
import time
from pathlib import Path

CHUNK = 40
"""The seeds that a process takes at once."""


def worker(seeds, found, folder, cores, end):
    """Run chunks of seeds until there are none, or until the time `end`."""
    from graphs.campaign import WRONG, Runner
    from graphs.planned import CORES, Images

    images = {core: Images(core, Path(folder)) for core in CORES} if cores else {}
    runner = Runner(folder, images)
    waiting = {}

    def flush(core):
        try:
            results = images[core].run()
        except Exception as error:
            for key in [key for key, one in waiting.items() if one.core == core]:
                waiting[key].outcome, waiting[key].detail = WRONG, f"{core}: {error}"[:1000]
                found.put(dataclasses.asdict(waiting.pop(key)))
            return
        for key, rows in results.items():
            one = waiting.pop(key)
            wrong = [f"case {number}: {bytes_} bytes, {guards} guards" for number, (bytes_, guards) in enumerate(rows)
                     if bytes_ or guards]  # fmt: skip
            if wrong:
                one.outcome, one.detail = WRONG, f"{core}: {', '.join(wrong)}"
            found.put(dataclasses.asdict(one))

    while True:
        chunk = seeds.get()
        if chunk is None:
            break
        for seed in chunk if time.monotonic() < end else ():
            one = runner.run(seed)
            if one.core is not None and one.outcome == "exact":
                waiting[seed] = one
                if images[one.core].is_full():
                    flush(one.core)
            else:
                found.put(dataclasses.asdict(one))
    for core in images:
        flush(core)
    found.put(None)


def campaign(first, count, jobs, seconds, cores=True, write=None):
    """Return the outcomes of seeds from `first` on."""
    context = multiprocessing.get_context("fork")
    seeds, found = context.Queue(), context.Queue()
    numbers = range(first, first + count)
    outcomes, end = [], time.monotonic() + seconds
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="opwest-graphs-", dir=base) as folder:
        workers = [
            context.Process(target=worker, args=(seeds, found, f"{folder}/{number}", cores, end))
            for number in range(jobs)
        ]
        for one in workers:
            one.start()
        # All seeds at once: graphs that wait for an image in QEMU have no outcome that could call for more.
        for at in range(0, count, CHUNK):
            seeds.put(numbers[at : at + CHUNK])
        for _ in range(jobs):
            seeds.put(None)
        ended = 0
        while ended < jobs:
            failed = [one.exitcode for one in workers if one.exitcode]
            if failed:
                for one in workers:
                    one.terminate()
                raise RuntimeError(f"a process of the campaign ended with {failed[0]}")
            try:
                one = found.get(timeout=5)
            except queue.Empty:
                continue
            if one is None:
                ended += 1
                continue
            outcomes.append(one)
            if write is not None:
                write(one)
        for one in workers:
            one.join()
    return outcomes


def table(outcomes):
    """Return the lines of the summary."""
    count = len(outcomes)
    lines = [f"{count} graphs, {sum(one['operators'] for one in outcomes)} operators"]

    def rows(title, names):
        lines.append(title)
        lines.extend(f"  {name:40} {number:7} {100 * number / count:5.1f} %" for name, number in names.most_common())

    rows("outcomes", collections.Counter(one["outcome"] for one in outcomes))
    rows("modes", collections.Counter(f"{one['format']} {one['mode']}" for one in outcomes))
    options = collections.Counter()
    for one in outcomes:
        for key, value in one["options"].items():
            options[f"{key}={value}" if key in ("optimize", "kernels") else key] += 1
    rows("options", options)
    rows("references", collections.Counter(one["reference"] or "none" for one in outcomes))
    rows("cores", collections.Counter(str(one["core"]) for one in outcomes))
    refused = [one for one in outcomes if one["outcome"] in ("refused", "no oracle")]
    reasons = collections.Counter(re.sub(r"'[^']*'|[-+0-9.e]*\d", "N", one["detail"])[:110] for one in refused)
    rows("refused, by reason", reasons)
    return lines
