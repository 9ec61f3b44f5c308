# SPDX-License-Identifier: Apache-2.0
"""`opwest plan`: a memory plan for a table of buffers."""

from __future__ import annotations

import argparse
import time

from opwest.diagnostics import Diagnostics, Location
from opwest.packing import greedy, search
from opwest.packing.table import blocks_of, read_table, solved_table
from opwest.packing.verify import verify
from opwest.result import Result
from opwest.write.new_file import refuse_existing, write_new

_HINT = "choose another file with -o"


def plan(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Plan a table and print the size of the plan; the status is 1 if it exceeds the capacity."""
    if options.output is not None:
        refuse_existing(options.output, _HINT)
    try:
        text = options.file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not UTF-8 (byte {error.start})"
        faults.error(f"cannot read the table: {reason}", Location(str(options.file)))
        faults.raise_if_errors()
    rows = read_table(text, str(options.file), faults)
    faults.raise_if_errors()
    blocks = blocks_of(rows)
    began = time.perf_counter()
    first = greedy.plan_pool(blocks)
    done = first if options.planner == "greedy" else search.plan_pool(blocks, options.capacity, options.nodes)
    seconds = time.perf_counter() - began
    verify(blocks, done.offsets, done.size)
    if options.output is not None:
        write_new(options.output, solved_table(rows, done.offsets), _HINT)
    fits = None if options.capacity is None else done.size <= options.capacity
    shown = {
        "file": str(options.file),
        "buffers": len(blocks),
        "lower_bound": done.lower_bound,
        "greedy": first.size,
        "planner": options.planner,
        "peak": done.size,
        "capacity": options.capacity,
        "fits": fits,
        "seconds": round(seconds, 3),
    }
    lines = [
        f"{options.file}: {len(blocks)} buffers",
        f"  lower bound  {done.lower_bound}",
        f"  greedy       {first.size}",
        f"  peak         {done.size} ({_judged(done.size, done.lower_bound, options.planner)})",
    ]
    if fits is not None:
        lines.append(f"  capacity     {options.capacity}: {'fits' if fits else 'does not fit'}")
        if not fits and done.lower_bound > options.capacity:
            lines[-1] += " (below the lower bound)"
    lines.append(f"  time         {seconds:.2f} s")
    return Result("\n".join(lines), shown, 1 if fits is False else 0)


def _judged(size: int, bound: int, planner: str) -> str:
    return f"{planner}, optimal" if size == bound else f"{planner}, {size - bound} above the lower bound"
