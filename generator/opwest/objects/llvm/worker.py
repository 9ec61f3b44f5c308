# SPDX-License-Identifier: Apache-2.0
"""The child process: reads requests from standard input, writes responses to standard output.

Started as `python -P -m opwest.objects.llvm.worker MEMORY SECONDS`. Only this process imports llvmlite. What
LLVM rejects with an error is a response; an abort of LLVM ends the process, and the parent reports it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from opwest.base.processes import limit_next_request, limit_process
from opwest.objects.llvm import text as ir
from opwest.objects.llvm.child import Frame, read_frame, write_frame
from opwest.objects.llvm.facts import (
    IrModule,
    LlvmError,
    LlvmTarget,
    Optimize,
    contradictions,
    parse_triple,
    riscv_abi,
)
from opwest.objects.llvm.reading import Module, facts_of, module_facts, parsed
from opwest.objects.magic import ELF
from opwest.objects.rewriting import without_sections


def _answer(request: Frame) -> Frame:
    """Return the response to one request."""
    header = request.header
    fault: list[Any]
    try:
        if header["do"] == "read":
            return Frame(facts_of(request.blob, uses=header["uses"]))
        return Frame({}, compile_module(request.blob, LlvmTarget(**header["target"]), header["optimize"]))
    except LlvmError as error:
        fault = [error.message, error.expected, error.hint]
    except MemoryError:
        fault = ["LLVM ran out of memory", "IR that needs less memory", "split the module"]
    except Exception as error:  # llvmlite raises various exceptions for invalid input
        words = str(error).strip().splitlines()
        fault = [f"LLVM rejected the IR: {words[0] if words else type(error).__name__}", "valid IR", None]
    return Frame({"fault": fault})


def main(arguments: list[str]) -> None:
    """Serve requests until the end of the input."""
    memory, seconds = int(arguments[0]), float(arguments[1])
    limit_process(memory)
    # LLVM may print to standard output: responses use a duplicate of it.
    with os.fdopen(os.dup(1), "wb") as answers, os.fdopen(os.dup(0), "rb") as requests:
        os.dup2(2, 1)
        while True:
            limit_next_request(seconds)
            request = read_frame(requests)
            if request is None:
                return
            write_frame(answers, _answer(request))


Machine = Any
"""llvmlite.binding.TargetMachine, which has no types."""

_RISCV_ABI = re.compile(r"(?:ilp32e?|lp64e?|ilp32[fd]|lp64[fdq])$")


@cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()


def compile_module(content: bytes, target: LlvmTarget, optimize: Optimize) -> bytes:
    """Return the object of a module, without unwind tables. Raises LlvmError."""
    speed = optimize == "speed"
    with _machine(target, 3 if speed else 2) as machine, closing(llvm.create_context()) as owner:
        layout = str(machine.target_data)
        with parsed(content, owner) as module:
            text = str(module)
            _refuse(module, text, target, layout)
        text = ir.without_foreign_attributes(text)
        text = ir.without_enum_size(ir.with_plain_source_name(text))
        with parsed(text, owner) as module:
            module.triple, module.data_layout = target.triple, layout
            _mark(module, speed=speed)
            module.verify()
            _optimize(module, machine, speed=speed)
            text = str(module)
        # After the optimiser, which adds functions and tables.
        text = ir.with_sections(
            text, position_independent=_relocation(target) == "pic", jump_tables=target.machine == "arm"
        )
        with parsed(text, owner) as module:
            made = bytes(machine.emit_object(module))
    if not made.startswith(ELF):
        raise LlvmError("the output of LLVM is not ELF", "the triple of a target with ELF objects")
    return without_sections(made, unwind_tables=target.machine == "arm", stack_note="-linux-" not in target.triple)


def _relocation(target: LlvmTarget) -> str:
    """Return the relocation model: Zephyr compiles native_sim for 64 bits as position-independent code."""
    hosted = "-linux-" in target.triple and target.bits == 64
    return "pic" if target.machine == "x86-64" or hosted else "static"


@contextmanager
def _machine(target: LlvmTarget, level: int) -> Iterator[Machine]:
    """Yield LLVM's target machine. Raises LlvmError where LLVM would silently choose another target."""
    _initialize()
    _check(target)
    try:
        kind = llvm.Target.from_triple(target.triple)
    except RuntimeError as fault:
        text = f"LLVM does not support '{target.triple}': {fault}"
        raise LlvmError(text, "arm, aarch64, riscv32, riscv64 or x86") from fault
    with _collected_stderr() as words:
        machine = kind.create_target_machine(
            cpu=target.cpu,
            features=target.features,
            opt=level,
            reloc=_relocation(target),
            # RISC-V with 64 bits: memory lies above 2 GiB, which only medany reaches.
            codemodel="medium" if target.machine == "riscv" and target.bits == 64 else "default",
            abiname=riscv_abi(target) if target.machine == "riscv" else "",
        )
    with machine:
        if words:
            raise LlvmError(
                f"LLVM rejected target '{target.name}': {words[0]}",
                f"a CPU and features of {target.triple.partition('-')[0]}",
                "list them with 'llc -mtriple=… -mcpu=help'",
            )
        yield machine


def _check(target: LlvmTarget) -> None:
    """Raise LlvmError for a target description that LLVM misinterprets or aborts on."""
    if not re.fullmatch(r"[\w.]+(?:-[\w.]+){3}", target.triple, re.ASCII):
        raise LlvmError(
            f"the triple of target '{target.name}' is {target.triple!r}",
            "four parts: architecture-vendor-system-environment",
            "with three parts, LLVM ignores the environment and generates soft float",
        )
    if not re.fullmatch(r"[\w.+-]{0,64}", target.cpu, re.ASCII):
        raise LlvmError(f"the CPU of target '{target.name}' is {target.cpu!r}", "one word, such as cortex-m4")
    if len(target.features) > 4096 or not re.fullmatch(r"(?:[+-][\w.-]+(?:,[+-][\w.-]+)*)?", target.features, re.ASCII):
        text = f"the features of target '{target.name}' are {target.features!r}"
        raise LlvmError(text, "such as +dsp,-fpregs, or empty")
    parts = parse_triple(target.triple)
    named = target.machine == "arm" and target.float_abi in ("soft", "softfp", "hard")
    if named and parts and (target.float_abi == "hard") != bool(parts.hard_float):
        raise LlvmError(
            f"float ABI {target.float_abi} contradicts triple '{target.triple}' of target '{target.name}'",
            "the environment eabihf for hard float, eabi for softfp and soft",
        )
    if target.machine == "riscv" and not _RISCV_ABI.match(riscv_abi(target)):
        raise LlvmError(f"the ABI of target '{target.name}' is {target.abi!r}", "such as ilp32, ilp32f or lp64d")


@contextmanager
def _collected_stderr() -> Iterator[list[str]]:
    """Yield a list that receives the lines LLVM writes to standard error; at most the capacity of a pipe."""
    lines: list[str] = []
    reading, writing = os.pipe()
    saved = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield lines
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        with os.fdopen(reading, "rb") as stream:
            lines += filter(str.strip, stream.read().decode("utf-8", "replace").splitlines())


def _refuse(module: Module, text: str, target: LlvmTarget, layout: str) -> None:
    """Raise LlvmError for a module that must not be compiled for the target."""
    facts = module_facts(module, text)
    seen = IrModule(Path(), b"", facts["triple"], facts["data_layout"], target_abi=facts["target_abi"])
    for fault in contradictions(seen, replace(target, data_layout=layout)):
        raise LlvmError(fault.message, fault.expected, fault.hint)
    if facts["has_assembly"]:
        _refuse_assembly(facts["triple"], target)


def _refuse_assembly(triple: str, target: LlvmTarget) -> None:
    """Raise LlvmError for assembly of another architecture: llvmlite has the host's assembly parser only."""
    here, required = parse_triple(llvm.get_process_triple()), parse_triple(target.triple)
    families = {"i386": "x86", "x86-64": "x86"}
    known = here and families.get(here.architecture, here.architecture)
    needed = required and families.get(required.architecture, required.architecture)
    if known != needed:
        assembly = f"the inline or module assembly of the IR for {triple or 'any target'}"
        raise LlvmError(
            f"llvmlite cannot assemble {assembly} for '{target.name}' ({needed})",
            f"IR without assembly; only {known} assembly is supported on this machine",
            "compile that function to an object (.o) with a compiler for the target",
        )


def _mark(module: Module, *, speed: bool) -> None:
    """Add the attributes of the optimisation to every function and keep definitions that LLVM may drop."""
    for value in (*module.functions, *module.global_variables):
        # Others may call an inline function that this module does not; the linker drops unused ones.
        if value.linkage.name.startswith("linkonce"):
            value.linkage = "weak_any" if value.linkage.name == "linkonce_any" else "weak_odr"
    for function in module.functions:
        if function.name.startswith("llvm."):
            continue
        function.add_function_attribute("nounwind")
        if not speed and not function.is_declaration:
            function.add_function_attribute("optsize")


def _optimize(module: Module, machine: Machine, *, speed: bool) -> None:
    """Run LLVM's standard pipeline; without loop unrolling and vectorisation when optimising for size."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=3 if speed else 2)
    tuning.loop_unrolling = tuning.loop_interleaving = speed
    tuning.loop_vectorization = tuning.slp_vectorization = speed
    with llvm.create_pass_builder(machine, tuning) as builder, builder.getModulePassManager() as passes:
        passes.run(module, builder)


if __name__ == "__main__":
    main(sys.argv[1:])
