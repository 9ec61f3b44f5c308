# SPDX-License-Identifier: Apache-2.0
"""`opwest plan`: a memory plan for a table of buffers."""

from __future__ import annotations

import argparse
import time

from opwest import nearby
from opwest.diagnostics import Diagnostics, Location
from opwest.model.context import fault_of_file
from opwest.packing import greedy, search
from opwest.packing.judge import judged
from opwest.packing.problem import PoolPlan
from opwest.packing.table import Row, blocks_of, read_table, written_table
from opwest.packing.verify import verify
from opwest.result import Result
from opwest.write.new_file import refuse_existing, write_new

_HINT = "choose another file with -o"
_NODES = 1_000_000


def plan(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Plan a table, or verify its offsets, and print the size of the plan; the status is 1 if it exceeds the capacity.

    Raises OpwestError if an option does not apply, or the table has faults.
    """
    if options.no_offsets:
        faults.error("--no-offsets requires a manifest", hint="a table without offsets exists: the given one")
    if options.variant is not None:
        faults.error("--variant requires a manifest")
    if options.nodes is not None and options.planner == "greedy":
        faults.error("--nodes has no effect with --planner greedy: it does not search")
    if options.output is not None:
        refuse_existing(options.output, _HINT)
    rows = _read(options, faults)
    began = time.perf_counter()
    blocks = blocks_of(rows)
    first = greedy.plan_pool(blocks)
    planner, done = _plan(options, rows, first, faults)
    seconds = time.perf_counter() - began
    if options.output is not None:
        write_new(options.output, written_table(rows, done.offsets), _HINT)
    fits = None if options.capacity is None else done.size <= options.capacity
    shown = {
        "file": str(options.file),
        "buffers": len(blocks),
        "lower_bound": done.lower_bound,
        "greedy": first.size,
        "planner": planner,
        "peak": done.size,
        "capacity": options.capacity,
        "fits": fits,
        "seconds": round(seconds, 3),
    }
    lines = [
        f"{options.file}: {counted(len(blocks))}",
        f"  lower bound  {done.lower_bound}",
        f"  greedy       {first.size}",
        f"  peak         {done.size} ({planner}, {distance(done)})",
    ]
    if fits is not None:
        lines.append(f"  capacity     {options.capacity}: {'fits' if fits else 'does not fit'}")
        if not fits and done.lower_bound > options.capacity:
            lines[-1] += " (below the lower bound)"
    lines.append(f"  time         {seconds:.2f} s")
    return Result("\n".join(lines), shown, 1 if fits is False else 0)


def counted(buffers: int) -> str:
    """Return a number of buffers as words."""
    return f"{buffers} buffer{'' if buffers == 1 else 's'}"


def distance(plan: PoolPlan) -> str:
    """Return the distance of a plan from its lower bound."""
    above = plan.size - plan.lower_bound
    return f"{above} above the lower bound" if above else "optimal"


def _read(options: argparse.Namespace, faults: Diagnostics) -> list[Row]:
    rows: list[Row] = []
    reason = fault_of_file(options.file)
    if reason is None:
        try:
            rows = read_table(options.file.read_text(encoding="utf-8-sig"), str(options.file), faults)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else f"not UTF-8 (byte {error.start})"
    if reason is not None:
        hint = nearby.hint_for(options.file)
        faults.error(f"cannot read the table: {reason}", Location(str(options.file)), hint=hint)
    faults.raise_if_errors()
    return rows


def _plan(options: argparse.Namespace, rows: list[Row], first: PoolPlan, faults: Diagnostics) -> tuple[str, PoolPlan]:
    """Return the planner's name and its verified plan; `first` is that of the greedy planner."""
    if rows[0].offset is None:
        blocks = blocks_of(rows)
        planner = options.planner or "search"
        done = first if planner == "greedy" else search.plan_pool(blocks, options.capacity, options.nodes or _NODES)
        verify(blocks, done.offsets, done.size)
        return planner, done
    for name in ("output", "planner", "nodes"):
        if getattr(options, name) is not None:
            faults.error(
                f"--{name} has no effect: the table has an offset column",
                Location(str(options.file), 1, 1),
                hint="remove the column to plan the table again",
            )
    done_or_none = judged(rows, faults)
    faults.raise_if_errors()
    if done_or_none is None:
        raise AssertionError("a plan without faults was rejected")
    return "table", done_or_none
