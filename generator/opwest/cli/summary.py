# SPDX-License-Identifier: Apache-2.0
"""The summary of a valid model in `check`: targets, memory, steps."""

from __future__ import annotations

from typing import Any

from opwest.model.checks.stack_need import needs_json, stack_text
from opwest.model.types.builds import ANY_TARGET, TargetBuild
from opwest.model.types.model import Model
from opwest.plan.memory import MemoryPlan
from opwest.render.devices import device_origin


def summary(model: Model, plan: MemoryPlan) -> str:
    """Return the summary of a model as text."""
    lines = [f"{model.label}: {_counted(len(model.operators), 'operator')}, {_counted(len(model.steps), 'step')}"]
    for tensor, role in [(t, "input") for t in model.inputs] + [(t, "output") for t in model.outputs]:
        lines.append(f"  {role:<9} {tensor.name}: {tensor.type}, {_counted(tensor.type.size, 'byte')}")
    for state in model.states:
        home = plan.homes.get(state.name, "no pool")
        lines.append(f"  state     {state.name}: {state.type}, {_counted(state.type.size, 'byte')} in {home}")
    size = sum(len(c.content) for c in model.constants)
    lines.append(f"  constants {_counted(size, 'byte')} in {_counted(len(model.constants), 'tensor')}")
    for pool in model.pools:
        if pool.name in plan.pools:
            planned = plan.pools[pool.name]
            limit = f" of {pool.size}" if pool.size is not None else ""
            kept = sum(s.type.size for s in model.states if plan.homes.get(s.name) == pool.name)
            lasting = f", {kept} of them state" if kept else ""
            frames = plan.frames.get(pool.name)
            both = f", {frames.size} for two frames" if frames else ""
            bytes_ = f"{planned.size}{limit} bytes{lasting}{both}"
            lines.append(f"  pool      {pool.name}: {bytes_}, lower bound {planned.lower_bound}")
    for device in model.devices:
        program = f", program {device.program.name}" if device.program else ""
        lines.append(f"  device    {device.name}: {device_origin(device)}{program}")
    if model.variant:
        lines.append(f"  used by   {', '.join(target.name for target in model.variant.targets)}")
    lines += [f"  target    {_target(build)}" for build in model.builds]
    lines += [f"  ABI       {_unverified(build)}" for build in model.builds if build.unverified]
    lines += [f"  ABI       {_uncertain(build)}" for build in model.builds if build.uncertain]
    lines += [f"  stack     {stack_text(need)}" for need in model.stack]
    if not model.stack:
        lines.append(
            "  stack     unknown: the operators are compiled with the firmware and measured by its tests; "
            "give 'stack' of operators"
        )
    return "\n".join(lines)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _target(build: TargetBuild) -> str:
    sources = sum(s.compiled for s in build.sources)
    parts = [_counted(len(build.objects), "object")] if build.objects else []
    parts += [_counted(sources, "source")] if sources else []
    libc = "the host's C library" if build.libc == "host" else f"the C library {build.libc}"
    text = f"{_name(build)}: {', '.join(parts)}"
    return (
        f"{text}; undefined symbols checked against {libc}"
        if build.objects
        else f"{text}; undefined symbols not checked before linking"
    )


def _unverified(build: TargetBuild) -> str:
    """Return the objects whose debug information does not show which ABI they were compiled for."""
    names = _first(build.unverified)
    return f"{_name(build)}: options of the compiler not verified (no record; compile with -g): {names}"


def _uncertain(build: TargetBuild) -> str:
    """Return the operators whose calling convention is not known."""
    return f"{_name(build)}: calling convention not verified: {_first(build.uncertain)}"


def _name(build: TargetBuild) -> str:
    return build.target.name if build.target else ANY_TARGET


def _first(names: tuple[str, ...]) -> str:
    """Return the first names of a list."""
    others = len(names) - 3
    return ", ".join(names[:3]) + (f" and {others} more" if others > 0 else "")


def summary_json(model: Model, plan: MemoryPlan) -> dict[str, Any]:
    """Return the summary of a model as JSON."""
    return {
        "model": model.name,
        **({"variant": model.variant.name} if model.variant else {}),
        "operators": [o.name for o in model.operators],
        "steps": [s.operator.name for s in model.steps],
        "inputs": [{"name": t.name, "dtype": t.type.dtype.name, "shape": t.type.shape} for t in model.inputs],
        "outputs": [{"name": t.name, "dtype": t.type.dtype.name, "shape": t.type.shape} for t in model.outputs],
        "states": [
            {
                "name": s.name,
                "dtype": s.type.dtype.name,
                "shape": s.type.shape,
                "pool": plan.homes.get(s.name),
                "next": s.next.shown if s.next else None,
            }
            for s in model.states
        ],
        "views": [{"name": v.name, "root": v.root, "offset": v.offset, "size": v.type.size} for v in model.views],
        "constant_bytes": sum(len(c.content) for c in model.constants),
        "pools": {
            name: {"size": p.size, "lower_bound": p.lower_bound, "align": p.align, "offsets": dict(p.offsets)}
            for name, p in plan.pools.items()
        },
        **(
            {"frames": {name: {"stride": both.stride, "size": both.size} for name, both in plan.frames.items()}}
            if plan.frames
            else {}
        ),
        "devices": [d.name for d in model.devices],
        "stack": needs_json(model.stack),
        "targets": [
            {
                "name": b.target.name if b.target else None,
                "objects": [o.origin for o in b.objects],
                "libc": b.libc,
                "unverified_abi": list(b.unverified),
                "unverified_conventions": list(b.uncertain),
            }
            for b in model.builds
        ],
    }
