# SPDX-License-Identifier: Apache-2.0
"""Compare operators with what describes their functions: debug information of objects, and headers.

An operator without either is named in a note. Debug information and a header that differ are an error.
"""

from __future__ import annotations

from collections.abc import Collection

from opwest.base.diagnostics import Diagnostics
from opwest.model.checks.prototypes import check_types
from opwest.model.checks.source_types import check_lengths, check_source
from opwest.model.inputs.context import Context
from opwest.model.inputs.files import Linkable
from opwest.model.inputs.headers import read_header
from opwest.model.inputs.signatures import MISSING_HEADER, Declared, Signatures
from opwest.model.types.model import Model, Operator
from opwest.objects.dwarf_signatures import NOT_CHECKED, signatures
from opwest.objects.dwarf_types import DwarfSignature, DwarfType
from opwest.objects.facts import CSource, Member

_ADD = "add 'signatures: [HEADER]'"
_SHOWN = 12


class SignatureCheck:
    """The comparison of the operators of one link."""

    def __init__(self, context: Context, headers: Signatures, compiled: Collection[str], *, single: bool) -> None:
        """`compiled` are the objects made of LLVM IR; with a `single` target, sizes of structures are exact."""
        self.faults = context.faults
        self._read = lambda header: read_header(context.folder, header)
        self.headers = headers
        self.compiled = compiled
        self.single = single
        self.unverified: list[tuple[str, str]] = []
        """Operators that nothing describes, with the reason."""
        self._reported: set[str] = set()
        self._known: dict[str, dict[str, DwarfSignature] | str] = {}

    def check(self, operator: Operator, owner: Linkable) -> bool:
        """Compare an operator with the function of a file; return whether no difference was reported."""
        before = len(self.faults)
        described = self._debug_information(operator.symbol, owner)
        declared = self._declared(operator.symbol, owner)
        if isinstance(described, DwarfSignature):
            check_types(self.faults, operator, owner.name, described, single=self.single)
            if declared is not None:
                self._compare(operator.symbol, declared, owner.name, described)
        elif declared is not None:
            self._check_convention(operator, declared)
            self._warn_of_unknown(declared)
            place = str(declared.prototype.place)
            check_types(self.faults, operator, place, declared.prototype.signature, single=self.single)
        elif described is not None and _passes_values(operator):
            self.unverified.append((operator.name, self._reason(described)))
        elif isinstance(owner.item, CSource) and operator.convention.is_plain:
            reason = check_source(self.faults, operator, owner, self._read)
            if reason:
                self.unverified.append((operator.name, reason))
        if declared is not None:
            check_lengths(self.faults, operator, str(declared.prototype.place), declared.prototype.shapes)
        return not any(fault.severity == "error" for fault in list(self.faults)[before:])

    def _debug_information(self, symbol: str, owner: Linkable) -> DwarfSignature | str | None:
        """Return the signature of a compiled function, or the reason why there is none; None for a source."""
        if not isinstance(owner.item, Member) or owner.name in self.compiled or symbol not in owner.defined_functions:
            return None
        if not owner.item.has_debug_information:
            return ""
        known = self._known.get(owner.name)
        if known is None:
            known = self._known[owner.name] = signatures(owner.item)
        return known.removeprefix(NOT_CHECKED) if isinstance(known, str) else known.get(symbol, "")

    def _declared(self, symbol: str, owner: Linkable) -> Declared | None:
        if not self.headers.names:
            return None
        from opwest.objects.c_types import ANY_MODEL, data_model

        model = data_model(owner.item.abi) if isinstance(owner.item, Member) else ANY_MODEL
        return self.headers.of(model).get(symbol)

    def _check_convention(self, operator: Operator, declared: Declared) -> None:
        prototype = declared.prototype
        if prototype.convention:
            self.faults.error(
                f"{prototype.place}: function {operator.symbol!r} has the attribute {prototype.convention!r}, "
                "which changes its calling convention",
                operator.location,
                expected="the calling convention of C",
            )

    def _warn_of_unknown(self, declared: Declared) -> None:
        """Warn of the types of a prototype that no header declares: they are not compared."""
        prototype = declared.prototype
        for name in prototype.unknown_types:
            if name not in self._reported:
                self._reported.add(name)
                place = self.headers.location(prototype.place)
                self.faults.warning(
                    f"unknown type {name!r}: it is not compared",
                    place,
                    expected="a type of the headers in 'signatures', or of the headers that they include",
                    hint=MISSING_HEADER,
                )

    def _reason(self, unreadable: str) -> str:
        if self.headers.names:
            return f"{unreadable or 'no debug information'}; not declared in {', '.join(self.headers.names)}"
        return f"{unreadable or 'no debug information or header'}; {_ADD}"

    def _compare(self, symbol: str, declared: Declared, file: str, described: DwarfSignature) -> None:
        """Report a header that differs from debug information."""
        prototype = declared.prototype
        difference = _difference(prototype.signature, described)
        if difference:
            self.faults.error(
                f"{prototype.place}: the declaration of function {symbol!r} does not fit {file}: {difference}",
                declared.location,
                expected=f"the header that the object was compiled with: {described}",
                hint=f"the header declares {prototype.signature}",
            )


def _passes_values(operator: Operator) -> bool:
    """Whether an operator's function has the declared arguments as parameters."""
    return operator.convention.arrays is None and operator.convention.descriptors is None


def note_unverified(faults: Diagnostics, model: Model) -> None:
    """Name the operators of a model whose signatures nothing describes, in one note for each reason."""
    reasons: dict[str, dict[str, None]] = {}
    for build in model.builds:
        for name, reason in build.unverified_signatures:
            reasons.setdefault(reason, {})[name] = None
    for reason, names in reasons.items():
        shown = list(names)[:_SHOWN]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        faults.note(f"signatures not verified: {', '.join(shown)}{more} ({reason})", model.location)


def _difference(declared: DwarfSignature, compiled: DwarfSignature) -> str | None:
    """Return the first difference between a declaration and a compiled function.

    Qualifiers are not compared: few languages record them.
    """
    count, other = len(declared.parameters), len(compiled.parameters)
    if declared.variadic != compiled.variadic:
        return "only one takes variable arguments"
    if count != other:
        return f"{count} parameter{'' if count == 1 else 's'} declared, the function has {other}"
    if not _alike(declared.returns, compiled.returns):
        return f"declared to return {declared.returns}, the function returns {compiled.returns}"
    for number, (one, two) in enumerate(zip(declared.parameters, compiled.parameters, strict=True), start=1):
        if not _alike(one, two):
            return f"parameter {number} is declared {one}, the function takes {two}"
    return None


def _alike(one: DwarfType, two: DwarfType) -> bool:
    """Whether two types are passed alike, and refer to alike types."""
    kinds = {one.kind, two.kind}
    if "unknown" in kinds:
        return True
    if kinds == {"pointer"}:
        if one.target is None or two.target is None or "void" in (one.target.kind, two.target.kind):
            return True
        return _alike(one.target, two.target)
    if kinds == {"struct"}:
        return bool(one.names & two.names) or bool(one.size and one.size == two.size)
    if kinds != {one.kind} and kinds != {"bool", "integer"}:
        return False
    if one.size and two.size and one.size != two.size:
        return False
    return one.signed is None or two.signed is None or one.signed == two.signed
