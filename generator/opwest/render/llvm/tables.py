# SPDX-License-Identifier: Apache-2.0
"""The constants of the LLVM metadata module: the tables of the model, and the content of C literals and constants.S."""

from __future__ import annotations

from opwest.model.builds import Target
from opwest.model.c_names import CNames
from opwest.model.model import Model
from opwest.plan.memory import MemoryPlan
from opwest.render.llvm.printer import PRIVATE, Printer
from opwest.render.llvm.text import ir_bytes
from opwest.render.records.model_records import model_records
from opwest.render.records.values import RUN


def model_name(names: CNames) -> str:
    """Return the symbol of the model's name, which run needs."""
    return _string_of(names, RUN, 0)


def _string_of(names: CNames, part: str, index: int) -> str:
    return f"@{names.function(part)}_string_{index}"


class Tables:
    """Collects the definitions; equal strings are defined once."""

    def __init__(self, model: Model, plan: MemoryPlan, target: Target) -> None:
        self.model = model
        self.plan = plan
        self.target = target
        self.names = CNames(model.name)
        self.lines: list[str] = []
        self._strings: dict[str | None, dict[str, str]] = {}

    def define(self) -> list[str]:
        """Return the definitions of constants, metadata and registry."""
        self._string(self.model.name, RUN)
        self._constants()
        self._programs()
        records = model_records(self.model, self.plan, self.target)
        printer = Printer(self._string)
        for definition in (
            *(*records.devices, *records.states, *records.metadata, *records.details, *records.registry),
            records.points,
        ):
            self.lines.append(printer.definition(definition))
        return self.lines

    def _string(self, text: str, part: str | None) -> str:
        """Return the symbol of a C string. Strings of `run` and of optional parts are in separate sections.

        The linker keeps or drops all mergeable strings together: run would keep those of the metadata.
        """
        known = self._strings.setdefault(part, {})
        if text not in known:
            symbol = f"@string_{len(known)}" if part is None else _string_of(self.names, part, len(known))
            content = text.encode() + b"\0"
            kind, section = (PRIVATE, "") if part is None else ("private constant", f', section ".rodata.{symbol[1:]}"')
            self.lines.append(f"{symbol} = {kind} [{len(content)} x i8] {ir_bytes(content)}{section}, align 1")
            known[text] = symbol
        return known[text]

    def _constants(self) -> None:
        for constant in self.model.constants:
            symbol = f"@{self.names.constant(constant.name)}"
            size = len(constant.content)
            self.lines.append(f"{symbol} = constant [{size} x i8] {ir_bytes(constant.content)}, align {constant.align}")

    def _programs(self) -> None:
        """Define the contents of programs, each once in an image."""
        for program in self.model.programs:
            symbol = self.names.program(program.content)
            size = len(program.content)
            self.lines += [
                f"${symbol} = comdat any",
                f"@{symbol} = weak_odr constant [{size} x i8] {ir_bytes(program.content)}, comdat, align 16",
            ]
