# SPDX-License-Identifier: Apache-2.0
"""TIR functions as operators with plain pointers: C, or objects for named targets."""

from __future__ import annotations

import contextlib
import re
import struct
import tempfile
from collections.abc import Mapping
from math import isinf, isnan, prod
from pathlib import Path
from typing import Any

from opwest.base.diagnostics import nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.child import Progress
from opwest.compiler.faults import fault
from opwest.frontends.tvm.read import reported
from opwest.frontends.tvm.steps import Steps
from opwest.model.types.dtypes import DTYPES
from opwest.objects.targets import named_targets
from opwest.render.literals import c_float

_SPATIAL, _REDUCTION = 0, 2
_NEIGHBOURS = (4, 3, 2)
"""Numbers of results to sum at once, the best first."""
_MANY = 100_000
"""The number of multiplications above which the loop is unrolled further."""


def schedule_operator(function: Any) -> Any:
    """Return the function with as few temporary tensors as possible, without more arithmetic in reductions."""
    import tvm
    from tvm import s_tir

    if getattr(getattr(function.body, "block", None), "name_hint", "") != "root":
        return function  # hand-written loops, for example scatters, have no schedule
    schedule = s_tir.Schedule(tvm.IRModule({"main": function}), debug_mask=0)
    for inline in (schedule.compute_inline, schedule.reverse_compute_inline):
        for block in _blocks(schedule):
            _try(inline, block)
    for block in _blocks(schedule)[:-1]:
        schedule = _tiled(schedule, block)
    for block in reversed(_blocks(schedule)[:-1]):
        _compute_at_consumer(schedule, block)
    for block in _blocks(schedule):
        _initialise_before(schedule, block)
    return schedule.mod["main"]


def _try(primitive: Any, *arguments: Any) -> None:
    """Apply a primitive if TVM's checks allow it."""
    from tvm import s_tir

    with contextlib.suppress(s_tir.schedule.ScheduleError, RuntimeError):
        primitive(*arguments)


def _blocks(schedule: Any) -> list[Any]:
    return list(schedule.get_child_blocks(schedule.get_sblock("root")))


def _tiled(schedule: Any, block: Any) -> Any:
    """Return a schedule in which a reduction computes several neighbours at once and reads shared elements once.

    The sums are in registers, of which four are free on every target. If this is impossible, return the schedule.
    """
    from tvm import s_tir

    trial = schedule.copy()
    try:
        done = _tile(trial, block)
    except (s_tir.schedule.ScheduleError, RuntimeError):
        return schedule
    return trial if done else schedule


def _tile(schedule: Any, block: Any) -> bool:
    consumers = list(schedule.get_consumers(block))
    if schedule.get(block).init is None or len(consumers) != 1:
        return False
    loops = schedule.get_loops(consumers[0])
    extents = [int(getattr(schedule.get(loop).extent, "value", 0)) for loop in loops]
    if not loops or _depth(schedule, block, consumers[0]) != len(loops) or schedule.get_loops(block)[0] in loops:
        return False
    width = next((n for n in _NEIGHBOURS if extents[-1] % n == 0), None)
    if width is None:
        return False
    outer, _ = schedule.split(loops[-1], [None, width])
    schedule.compute_at(block, outer)
    neighbours, *reductions = schedule.get_loops(block)[len(loops) :]
    if not reductions or int(getattr(schedule.get(neighbours).extent, "value", 0)) != width:
        return False
    schedule.reorder(*reductions, neighbours)
    schedule.unroll(neighbours)
    turns = [int(schedule.get(loop).extent.value) for loop in reductions]
    if turns[-1] % 2 == 0 and prod(extents) * prod(turns) >= _MANY:
        schedule.unroll(schedule.split(reductions[-1], [None, 2])[1])
    return True


def _compute_at_consumer(schedule: Any, block: Any) -> None:
    """Move a block into the loops of its only consumer, as deep as possible without repeated computation."""
    try:
        consumers = list(schedule.get_consumers(block))
    except RuntimeError:
        return
    if len(consumers) != 1:
        return
    depth = _depth(schedule, block, consumers[0])
    if depth > 0:
        _try(schedule.compute_at, block, schedule.get_loops(consumers[0])[depth - 1])


def _depth(schedule: Any, block: Any, consumer: Any) -> int:
    """Return the number of the consumer's loops whose iterations read different elements of the block's result."""
    written = schedule.get(block).writes[0].source
    reader = schedule.get(consumer)
    used: set[str] = set()
    exact = True
    for region in reader.reads:
        if region.source.same_as(written):
            for dimension in region.region:
                if int(getattr(dimension.extent, "value", 0)) != 1:
                    continue
                names = {str(v.var.name) for v in reader.iter_vars if v.var.same_as(dimension.min)}
                exact = exact and (bool(names) or type(dimension.min).__name__ == "IntImm")
                used |= names
    loops = schedule.get_loops(consumer)
    if not exact or len(loops) != len(reader.iter_vars):
        return 0
    depth = 0
    for loop, variable in zip(loops, reader.iter_vars, strict=True):
        extent = getattr(schedule.get(loop).extent, "value", None)
        if extent != 1 and (variable.var.name not in used or int(variable.iter_type) != _SPATIAL):
            break
        depth += 1
    return depth


def _initialise_before(schedule: Any, block: Any) -> None:
    """Move the initial value of a reduction out of its loops."""
    loops = schedule.get_loops(block)
    if schedule.get(block).init is None or not loops:
        return
    reduces = _reducing_variables(schedule.get(loops[-1]).body, schedule.get(block))
    first = next((loop for loop in loops if any(v.same_as(schedule.get(loop).loop_var) for v in reduces)), None)
    if first is not None:
        _try(schedule.decompose_reduction, block, first)


def _reducing_variables(body: Any, block: Any) -> list[Any]:
    """Return the variables of the loops of a reduction; `body` is the body of its innermost loop."""
    from tvm import tirx
    from tvm_ffi import structural

    inside = body.seq if type(body).__name__ == "SeqStmt" else [body]
    realize = next((node for node in inside if hasattr(node, "block") and node.block.same_as(block)), None)
    if realize is None:
        return []
    variables: list[Any] = []
    for variable, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if int(variable.iter_type) == _REDUCTION:
            structural.structural_walk(value, [(tirx.Var, variables.append)])
    return variables


def tvm_target(name: str) -> Any:
    """Return TVM's LLVM target for a named target. Raises OpwestError."""
    import tvm

    table = named_targets()
    if name not in table or "llvm" not in table[name]:
        raise fault(f"unknown target {name!r}", None, "a name listed by 'opwest targets'", nearest(name, table))
    llvm = table[name]["llvm"]
    keys: dict[str, Any] = {"kind": "llvm", "mtriple": llvm["triple"], "mcpu": llvm["cpu"], "opt-level": 2}
    keys["vector-width"] = 128  # TVM's default; TVM warns if it is not set
    if llvm.get("features"):
        keys["mattr"] = llvm["features"].split(",")
    if llvm.get("abi"):
        keys["mabi"] = llvm["abi"]
    if table[name].get("machine") == "arm":
        keys["mfloat-abi"] = "hard" if llvm["triple"].endswith("hf") else "soft"
    return tvm.target.Target(keys)


def functions_of(module: Any, steps: Steps) -> dict[str, Any]:
    """Return the TIR function of every operator, by name."""
    known = {variable.name_hint: function for variable, function in module.functions_items()}
    known |= {name: _copy(dtype, elements) for name, (dtype, elements) in steps.copies.items()}
    return {name: known[name] for name in sorted({step.function for step in steps.steps})}


def _copy(dtype: str, elements: int) -> Any:
    """Return a copy function, for models that return an input."""
    from tvm import te

    data = te.placeholder((elements,), dtype=dtype, name="data")
    return te.create_prim_func([data, te.compute((elements,), lambda i: data[i], name="copy")])


PREFIX = "op_"
"""The prefix of every symbol: TVM uses names such as `exp` and `round`, as the C library does."""
_ON_STACK = 256
"""The largest array on the stack of an operator, in bytes; larger arrays become scratch arguments."""
_FLOAT = "opwest_float_"
_WITHOUT_C_TYPE = "|".join(dtype.name for dtype in DTYPES.values() if dtype.bits)
_NOT_IN_C = re.compile(rf"\b({_WITHOUT_C_TYPE}|float8\w*|u?int4)\b")
"""TVM's names of types that C lacks."""


@dataclass(frozen=True)
class Scratch:
    """Memory that an operator needs during a call."""

    dtype: str
    elements: int


@dataclass(frozen=True)
class Operators:
    """Functions lowered for a target, ready for printing."""

    module: Any
    scratch: Mapping[str, tuple[Scratch, ...]]


def lower_operators(functions: Mapping[str, Any], target: Any, progress: Progress, suffix: str) -> Operators:
    """Return TIR functions, scheduled and lowered to pointers and loops; `suffix` ends the texts of progress."""
    import tvm

    lowered, scratch = {}, {}
    for number, (name, function) in enumerate(functions.items(), start=1):
        with reported(f"cannot lower operator '{name}'"):
            scheduled = schedule_operator(function).with_attr({"global_symbol": PREFIX + name, "target": target})
            with tvm.transform.PassContext(opt_level=3):
                module = tvm.transform.Sequential(_passes())(tvm.IRModule({name: scheduled}))
            lowered[name], scratch[name] = _plain_pointers(module[name])
        _refuse_runtime(name, lowered[name])
        progress(f"operator {number} of {len(functions)}{suffix}")
    from tvm import tirx

    return Operators(tirx.transform.LowerIntrin()(tvm.IRModule(lowered)), scratch)


def _passes() -> list[Any]:
    """Return TVM's passes that lower TIR, without those for packed arguments."""
    from tvm.s_tir import transform as s
    from tvm.tirx import transform as t

    return [
        s.CanonicalizeLoop(),
        s.LowerCrossThreadReduction(),
        s.LowerInitBlock(),
        s.PlanAndUpdateBufferAllocationLocation(),
        s.ConvertBlocksToOpaque(),
        s.CompactBufferAllocation(),
        s.LowerMatchBuffer(),
        t.StmtSimplify(),
        s.LowerOpaqueBlock(),
        t.FlattenBuffer(),
        t.BF16ComputeLegalize(),
        t.NarrowDataType(32),
        s.LoopPartition(),
        t.VectorizeLoop(False),
        t.StorageRewrite(),
        s.HoistIfThenElse(),
        t.UnrollLoop(),
        t.StmtSimplify(),
        t.RemoveNoOp(),
        s.RewriteUnsafeSelect(),
        t.CommonSubexprElim(),
    ]


def _plain_pointers(function: Any) -> tuple[Any, tuple[Scratch, ...]]:
    """Return the function with typed pointers for its buffers, and its scratch memory."""
    from tvm import tirx
    from tvm.ir import PointerType, PrimType
    from tvm_ffi import structural

    def pointer(name: str, dtype: str) -> Any:
        return tirx.Var(name, PointerType(PrimType(dtype), "global"))

    scratch: list[tuple[Any, Scratch]] = []

    def planned(statement: Any) -> Any:
        dtype = str(statement.buffer.ty.dtype)
        elements = prod(int(n) for n in statement.buffer.ty.shape)
        if elements * DTYPES[dtype].size <= _ON_STACK:
            return statement
        variable = pointer(f"scratch{len(scratch)}", dtype)
        scratch.append((variable, Scratch(dtype, elements)))
        return tirx.DeclBuffer(statement.buffer, data=variable)

    body = structural.structural_map(function.body, [(tirx.AllocBuffer, planned)])
    parameters = [pointer(f"p{i}", str(buffer.ty.dtype)) for i, buffer in enumerate(function.params)]
    declared = [tirx.DeclBuffer(b, data=p) for b, p in zip(function.params, parameters, strict=True)]
    whole = tirx.SeqStmt([*declared, body]) if declared else body
    every = [*parameters, *(variable for variable, _ in scratch)]
    return tirx.PrimFunc(every, whole, ret_type=None, attrs=function.attrs), tuple(s for _, s in scratch)


def _refuse_runtime(name: str, function: Any) -> None:
    """Raise OpwestError for functions that call TVM's runtime, or use types that C does not have."""
    text = function.script(show_meta=False)
    called = re.search(r"T\.(?:call_packed|tvm_call_packed|call_cpacked)\w*\(\s*\"([^\"]+)\"", text)
    if called:
        raise fault(f"operator '{name}' requires '{called[1]}' of TVM's runtime, which opwest does not have")
    unknown = _NOT_IN_C.search(text)
    if unknown:
        raise fault(f"operator '{name}' uses {unknown[1]}, which has no C type")


def c_source(operators: Operators, writes: Mapping[str, int], remark: str) -> str:
    """Return the operators as one C file; `writes` counts the results of each."""
    parts = []
    for variable, function in operators.module.functions_items():
        name = str(variable.name_hint)
        with reported(f"cannot generate C code for operator '{name}'"):
            text = _printed(variable, function)
        match = _FUNCTION.search(text)
        if match is None or match[1] != PREFIX + name:
            raise fault(f"cannot parse TVM's C code for operator '{name}'")
        parts.append(_definition(match, writes[name], len(operators.scratch[name])))
    math = "#include <math.h>\n" if any(_OF_MATH.search(part.partition("{")[2]) for part in parts) else ""
    return _HEAD.format(remark=remark, math=math) + "".join(sorted(parts))


def _printed(variable: Any, function: Any) -> str:
    """Return TVM's C code of one function."""
    import tvm
    from tvm import tirx
    from tvm_ffi import structural

    body = structural.structural_map(function.body, [(tirx.FloatImm, _named_float), (tvm.ir.Call, _named_call)])
    module = tvm.IRModule({variable: function.with_body(body)})
    return str(tvm.get_global_func("target.build.c")(module, tvm.target.Target("c")).inspect_source("c"))


_FUNCTION = re.compile(r"^TVM_DLL void (\w+)\(([^)]*)\) \{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)
_OF_MATH = re.compile(r"\b(?:NAN|INFINITY|[a-z]\w*(?=\())")
"""A call, or a constant of math.h. The header is included only if needed: it makes Zephyr select a full C library."""
_HEAD = """\
/* {remark} */
{math}#include <stdbool.h>
#include <stdint.h>
"""


def _definition(match: re.Match[str], writes: int, scratch: int) -> str:
    """Return one function, with `const` for read-only pointers and exact numbers."""
    name, parameters, body = match.groups()
    listed = [parameter.strip() for parameter in parameters.split(",")]
    first_written = len(listed) - writes - scratch
    shown = []
    for number, parameter in enumerate(listed):
        kind, pointer = parameter.split("* ")
        kind = "uint8_t" if kind == "bool" else kind
        const = "const " if number < first_written else ""
        shown.append(f"{const}{kind} *restrict {pointer}")
    body = re.sub(_FLOAT + r"(32|64)_([0-9a-f]+)\(\)", _float_literal, body)
    body = re.sub(r"^( +)", lambda m: "\t" * (len(m[1]) // 2), body, flags=re.MULTILINE)
    return f"\nvoid {name}({', '.join(shown)})\n{{\n{body}}}\n"


def _named_float(value: Any) -> Any:
    """Return a placeholder call for a number: TVM's C printer rounds to seven digits."""
    from tvm import tirx

    dtype = str(value.ty.dtype)
    bits = {"float32": ("<f", 32), "float64": ("<d", 64)}.get(dtype)
    if bits is None:
        return value
    return tirx.call_pure_extern(dtype, f"{_FLOAT}{bits[1]}_{struct.pack(bits[0], value.value)[::-1].hex()}")


def _named_call(call: Any) -> Any:
    """Return a call of the C function for an intrinsic that TVM does not lower for C."""
    from tvm import tirx

    name = _NOT_LOWERED.get(str(getattr(call.op, "name", "")))
    if name is None:
        return call
    suffix = "f" if str(call.ty.dtype) == "float32" else ""
    return tirx.call_pure_extern(str(call.ty.dtype), name + suffix, *call.args)


_NOT_LOWERED = {"tirx.fabs": "fabs", "tirx.fmod": "fmod", "tirx.exp2": "exp2"}


def _float_literal(match: re.Match[str]) -> str:
    """Return a C constant with the exact bits of a number."""
    value: float = struct.unpack(">f" if match[1] == "32" else ">d", bytes.fromhex(match[2]))[0]
    if isnan(value):
        return "NAN"
    if isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = c_float(value, DTYPES[f"float{match[1]}"])
    return f"({text})" if text.startswith("-") else text


def object_file(operators: Operators, target: Any) -> bytes:
    """Return the operators as an object for the target that they were lowered for."""
    import tvm

    with reported("cannot compile the operators with LLVM"):
        library = tvm.get_global_func("target.build.llvm")(operators.module, target)
        with tempfile.TemporaryDirectory(prefix="opwest-") as folder:
            path = Path(folder) / "operators.o"
            library.write_to_file(str(path), "o")
            return path.read_bytes()
