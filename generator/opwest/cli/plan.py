# SPDX-License-Identifier: Apache-2.0
"""`opwest plan`: a memory plan for a table of buffers."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

from opwest import pipeline
from opwest.base import path_suggestions
from opwest.base.diagnostics import Diagnostics, Location
from opwest.base.result import Result, counted
from opwest.model.inputs.context import fault_of_file
from opwest.model.types.model import Model
from opwest.objects.model_files import way_of
from opwest.plan import greedy, search
from opwest.plan.fixed import block_of, judged
from opwest.plan.memory import MemoryPlan
from opwest.plan.problem import PoolPlan, in_moments
from opwest.plan.sharing import SHARED, find_shares, merged
from opwest.plan.tables import Row, blocks_of, read_table, written_table
from opwest.plan.verify import verify
from opwest.project.disk import refuse_existing, write_new
from opwest.project.request import Request, of_variant


def pool_rows(model: Model, plan: MemoryPlan, pool: str, *, moments: bool = False) -> list[Row]:
    """Return the rows of one pool with the offsets of the plan, times in steps, or in moments if operators have phases.

    The buffers that share memory in the plan form one row; its name contains all of theirs.
    """
    declared = next(p for p in model.pools if p.name == pool)
    blocks = [block_of(declared, b, plan.schedule) for b in model.planned if plan.homes[b.name] == pool]
    offsets = plan.pools[pool].offsets
    names = {block.name for block in blocks}
    shares = [
        share
        for share in find_shares(model, plan.schedule)
        if {share.taken, share.taker} <= names and offsets[share.taken] == offsets[share.taker]
    ]
    whole, owner = merged(blocks, shares)
    timed = in_moments(whole) if moments else whole
    members: dict[str, list[str]] = {}
    for block in sorted(blocks, key=lambda b: (b.first, b.last)):
        members.setdefault(owner[block.name], []).append(block.name)
    return [Row(SHARED.join(members[b.name]), b.first, b.last + 1, b.size, b.align, offsets[b.name]) for b in timed]


_FILE_HINT = "choose another file with -o"
_FOLDER_HINT = "choose another directory with -o"
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
        refuse_existing(options.output, _FILE_HINT)
    rows = _read(options, faults)
    began = time.perf_counter()
    blocks = blocks_of(rows)
    first = greedy.plan_pool(blocks)
    planner, done = _plan(options, rows, first, faults)
    seconds = time.perf_counter() - began
    if options.output is not None:
        write_new(options.output, written_table(rows, done.offsets), _FILE_HINT)
    fits = None if options.capacity is None else done.size <= options.capacity
    shown = {
        "file": str(options.file),
        "buffer_count": len(blocks),
        "planner": planner,
        "bytes": done.size,
        "limit_bytes": options.capacity,
        "lower_bound_bytes": done.lower_bound,
        "greedy_bytes": first.size,
        "fits": fits,
        "seconds": round(seconds, 3),
    }
    lines = [
        f"{options.file}: {counted(len(blocks), 'buffer')}",
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
        hint = path_suggestions.hint_for(options.file) or way_of(options.file)
        faults.error(f"cannot read the table: {reason}", Location(str(options.file)), hint=hint)
    faults.raise_if_errors()
    return rows


def _plan(options: argparse.Namespace, rows: list[Row], first: PoolPlan, faults: Diagnostics) -> tuple[str, PoolPlan]:
    """Return the planner's name and its verified plan; `first` is that of the greedy planner."""
    if rows[0].offset is None:
        blocks = blocks_of(rows)
        planner = options.planner or "search"
        done = first if planner == "greedy" else search.search_pool(blocks, options.capacity, options.nodes or _NODES)
        verify(blocks, done.offsets, done.size)
        return planner, done
    for name in ("output", "planner", "nodes"):
        if getattr(options, name) is not None:
            faults.error(
                f"--{name} has no effect: the table has an offset column",
                Location(str(options.file), 1, 1),
                hint="remove the column to plan the table again",
            )
    verified = judged(rows, faults)
    faults.raise_if_errors()
    assert verified is not None
    return "table", verified


def plan_model(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Print the plan of a model, and write a table per pool. Raises OpwestError after errors."""
    for name, hint in (("capacity", "the manifest defines the sizes of the pools"), ("nodes", None)):
        if getattr(options, name) is not None:
            faults.error(f"--{name} requires a table", hint=hint)
    if options.no_offsets and options.output is None:
        faults.error("--no-offsets requires -o")
    faults.raise_if_errors()
    request = Request((options.file,), planner=options.planner)
    examinations = pipeline.run(request, faults, "plan").examinations
    faults.raise_if_errors()
    (model, plan, *_), *_ = of_variant(examinations, options.variant, faults)
    rows = {name: pool_rows(model, plan, name) for name in plan.pools}
    if options.output is not None:
        paths = {name: options.output / f"{name}.csv" for name in rows}
        for path in paths.values():
            refuse_existing(path, _FOLDER_HINT)
        for name, path in paths.items():
            offsets = None if options.no_offsets else {row.name: row.offset or 0 for row in rows[name]}
            table = pool_rows(model, plan, name, moments=True)
            write_new(path, written_table(table, offsets), _FOLDER_HINT)
    texts = [f"{model.label}: planner {model.memory_planner}"]
    texts += [_pool_text(model, name, pool, plan.pools[name]) for name, pool in rows.items()]
    return Result("\n".join(texts), _as_json(model, rows, plan.pools))


def _pool_text(model: Model, name: str, rows: Sequence[Row], plan: PoolPlan) -> str:
    size = next(p.size for p in model.pools if p.name == name)
    limit = "" if size is None else f" of {size}"
    sizes = f"lower bound {plan.lower_bound}, peak {plan.size}{limit} ({distance(plan)})"
    lines = [
        f"  pool {name}: {counted(len(rows), 'buffer')}, {sizes}",
        f"    {'offset':>10} {'size':>10} {'align':>5} {'steps':>11}  buffer",
    ]
    for row in sorted(rows, key=lambda r: (r.offset or 0, r.lower, r.name)):
        steps = f"{row.lower} to {row.upper - 1}" if row.upper - row.lower > 1 else f"{row.lower}"
        lines.append(f"    {row.offset:>10} {row.size:>10} {row.align:>5} {steps:>11}  {row.name}")
    return "\n".join(lines)


def _as_json(model: Model, rows: dict[str, list[Row]], plans: Mapping[str, PoolPlan]) -> dict[str, Any]:
    sizes = {pool.name: pool.size for pool in model.pools}
    return {
        "model": model.name,
        "variant": model.variant.name if model.variant else None,
        "planner": model.memory_planner,
        "pools": [
            {
                "name": name,
                "bytes": plans[name].size,
                "limit_bytes": sizes[name],
                "lower_bound_bytes": plans[name].lower_bound,
                "buffers": [
                    {
                        "names": row.name.split(SHARED),
                        "first": row.lower,
                        "last": row.upper - 1,
                        "bytes": row.size,
                        "align": row.align,
                        "offset": row.offset,
                    }
                    for row in pool
                ],
            }
            for name, pool in rows.items()
        ],
    }
