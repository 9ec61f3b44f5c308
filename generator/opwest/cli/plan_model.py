# SPDX-License-Identifier: Apache-2.0
"""`opwest plan` of a manifest: the memory plan of its model, and its tables for other planners."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from opwest import pipeline
from opwest.cli.plan import counted, distance
from opwest.diagnostics import Diagnostics
from opwest.model.model import Model
from opwest.packing.problem import PoolPlan
from opwest.packing.table import Row, written_table
from opwest.plan.table import pool_rows
from opwest.request import Request, of_variant
from opwest.result import Result
from opwest.write.new_file import refuse_existing, write_new

_HINT = "choose another directory with -o"


def plan_model(options: argparse.Namespace, faults: Diagnostics) -> Result:
    """Print the plan of a model, and write a table per pool. Raises OpwestError after errors."""
    for name, hint in (("capacity", "the manifest defines the sizes of the pools"), ("nodes", None)):
        if getattr(options, name) is not None:
            faults.error(f"--{name} requires a table", hint=hint)
    if options.no_offsets and options.output is None:
        faults.error("--no-offsets requires -o")
    faults.raise_if_errors()
    request = Request((options.file,), planner=options.planner)
    found = pipeline.run(request, faults, "plan").found
    faults.raise_if_errors()
    (model, plan, *_), *_ = of_variant(found, options.variant, faults)
    rows = {name: pool_rows(model, plan, name) for name in plan.pools}
    if options.output is not None:
        paths = {name: options.output / f"{name}.csv" for name in rows}
        for path in paths.values():
            refuse_existing(path, _HINT)
        for name, path in paths.items():
            offsets = None if options.no_offsets else {row.name: row.offset or 0 for row in rows[name]}
            write_new(path, written_table(rows[name], offsets), _HINT)
    texts = [f"{model.label}: planner {model.memory_planner}"]
    texts += [_pool_text(model, name, found, plan.pools[name]) for name, found in rows.items()]
    return Result("\n".join(texts), _as_json(model, rows, plan.pools))


def _pool_text(model: Model, name: str, rows: Sequence[Row], plan: PoolPlan) -> str:
    size = next(p.size for p in model.pools if p.name == name)
    limit = "" if size is None else f" of {size}"
    sizes = f"lower bound {plan.lower_bound}, peak {plan.size}{limit} ({distance(plan)})"
    lines = [
        f"  pool {name}: {counted(len(rows))}, {sizes}",
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
        **({"variant": model.variant.name} if model.variant else {}),
        "planner": model.memory_planner,
        "pools": {
            name: {
                "lower_bound": plans[name].lower_bound,
                "peak": plans[name].size,
                "capacity": sizes[name],
                "buffers": [
                    {
                        "id": row.name,
                        "lower": row.lower,
                        "upper": row.upper,
                        "size": row.size,
                        "alignment": row.align,
                        "offset": row.offset,
                    }
                    for row in found
                ],
            }
            for name, found in rows.items()
        },
    }
