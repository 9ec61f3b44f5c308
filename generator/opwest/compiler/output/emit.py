# SPDX-License-Identifier: Apache-2.0
"""A program as calls of C functions, and the C file with these functions."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np

import opwest.compiler.kernels  # noqa: F401 - registers the variants
from opwest.base.diagnostics import Diagnostics, first_line
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.emission.function import (
    EVERYWHERE,
    LIBRARY_VARIANTS,
    PROCESSORS,
    VARIANTS,
    Call,
    Function,
    Variant,
    runs_everywhere,
)
from opwest.compiler.emission.helpers import helpers_of
from opwest.compiler.faults import fault
from opwest.compiler.ir.program import Operation, Program, Value
from opwest.compiler.names import free_name
from opwest.objects.flash import UNKNOWN

LOOP_BYTES = UNKNOWN.loop_bytes
"""The bytes of code of inner loops for a flash that is not known."""


def render(
    operation: Operation, preferred: str = "portable", shared: bool = False, loop_bytes: int | None = LOOP_BYTES
) -> tuple[str, Call]:
    """Return the name of the variant and the call: a preferred variant if one applies, otherwise the portable one.

    `loop_bytes`: the bytes of code of inner loops; None: no limit.
    """
    variants = sorted(
        VARIANTS[type(operation)], key=lambda variant: (_rank(variant.name, preferred), variant.name != "portable")
    )
    for variant in variants:
        call = variant.call(operation, shared, loop_bytes)
        if call is not None:
            return variant.name, call
    raise AssertionError(f"no variant of {type(operation).__name__}")


def library_variant(library: str, processor: str) -> str:
    """Return the variant that calls a library with the instructions of a class of processors, or `library`."""
    return f"{library}-{LIBRARY_VARIANTS[processor]}" if processor in LIBRARY_VARIANTS else library


def candidates(operation: Operation, processor: str, libraries: Sequence[str] = ()) -> dict[str, Call]:
    """Return the variants that apply on a class of processors, by name: portable, those of the class, of libraries.

    Without a class, further variants in C for all processors.

    The limit of the code of inner loops has no effect on which apply, nor on constants and scratch memory.
    """
    calls: dict[str, Call] = {}
    called = {library_variant(library, processor) for library in libraries if processor in LIBRARY_VARIANTS}
    variants = sorted(
        VARIANTS[type(operation)], key=lambda variant: (variant.name not in EVERYWHERE, _rank(variant.name, processor))
    )
    # A class without a variant of packed weights has that in C.
    own = f"{processor}{NIBBLES}"
    packed = own if any(variant.name == own for variant in variants) else f"portable{NIBBLES}"
    for variant in variants:
        # Classes have faster variants of the layers that further ones in C apply to.
        is_general = runs_everywhere(variant.name) and processor not in PROCESSORS
        applies = variant.name in (*EVERYWHERE, packed) or is_general or variant.name in called
        applies = applies or _rank(variant.name, processor) <= len(PROCESSORS)
        if variant.name not in calls and applies:
            call = variant.call(operation, loop_bytes=LOOP_BYTES)
            if call is not None:
                calls[variant.name] = call
    return _packed(calls, packed)


def _packed(calls: dict[str, Call], name: str) -> dict[str, Call]:
    """Return the variants without those that would unpack weights of 4 bits, if that of packed weights applies.

    The portable variant remains, because each operation has one.
    """
    return {one: calls[one] for one in ("portable", name)} if name in calls else calls


NIBBLES = "-nibbles"
"""The end of the names of variants whose weights of 4 bits stay packed in flash: other variants would unpack them."""


def takes_pitch(operation: Operation) -> bool:
    """Whether the portable variant can write results with a pitch."""
    return any(variant.name == "portable" and variant.has_pitch for variant in VARIANTS.get(type(operation), ()))


def _rank(name: str, preferred: str) -> int:
    """Return the place of a variant: the preferred one first, or those of the preferred class of processors."""
    if name == preferred:
        return 0
    for place, prefix in enumerate(PROCESSORS.get(preferred, ())):
        if name.startswith(f"{prefix}-"):
            return 1 + place
    return len(PROCESSORS) + 1


def joint_calls(pairs: Iterable[tuple[Operation, str]], loop_bytes: int | None = LOOP_BYTES) -> list[tuple[str, Call]]:
    """Return the variant and the call of each operation in a preferred variant.

    Operations that differ only in their numbers share one function.
    """
    some = list(pairs)
    folded = [render(operation, name, loop_bytes=loop_bytes) for operation, name in some]
    shared = [render(operation, name, True, loop_bytes) for operation, name in some]
    distinct: dict[Function, set[Function]] = {}
    for (_, call), (_, other) in zip(folded, shared, strict=True):
        distinct.setdefault(other.function, set()).add(call.function)
    return [
        second if len(distinct[second[1].function]) > 1 else first for first, second in zip(folded, shared, strict=True)
    ]


GROUP = "opwest.kernels"


@functools.cache
def load_plugins() -> None:
    """Import the modules of all entry points, which register their variants. Raises OpwestError with all faults."""
    faults = Diagnostics()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        before = {kind: list(variants) for kind, variants in VARIANTS.items()}
        try:
            entry.load()
        except Exception as error:
            faults.error(f"cannot load {_shown(entry)}: {first_line(error)}", hint=_hint(entry))
            VARIANTS.clear()
            VARIANTS.update(before)
            continue
        _check(entry, before, faults)
    faults.raise_if_errors()


def _check(plugin: EntryPoint, before: dict[type, list[Variant]], faults: Diagnostics) -> None:
    """Check the variants that an entry point registered; replace them by ones that name it in errors."""
    for kind, variants in VARIANTS.items():
        known = before.get(kind, [])
        if not (isinstance(kind, type) and issubclass(kind, Operation)):
            faults.error(f"{_shown(plugin)}: {kind!r} is no operation", hint="@emits(Convolution, NAME)")
            continue
        for place, variant in enumerate(variants):
            if variant in known:
                continue
            prefix, _, rest = variant.name.partition("-")
            if prefix not in PROCESSORS or not rest:
                expected = f"a class of processors, a hyphen and the technique: {', '.join(PROCESSORS)}-..."
                faults.error(f"{_shown(plugin)}: invalid name of a variant: '{variant.name}'", expected=expected)
            elif any(other.name == variant.name for other in known):
                faults.error(
                    f"{_shown(plugin)}: a variant '{variant.name}' of {kind.__name__} exists", hint="another name"
                )
            variants[place] = Variant(variant.name, _guarded(variant, plugin), variant.has_pitch)


def _guarded(variant: Variant, plugin: EntryPoint) -> Any:
    """Return a function that reports errors of the variant with the name of the package."""

    @functools.wraps(variant.render)
    def render(operation: Operation, **keys: Any) -> Any:
        try:
            return variant.render(operation, **keys)
        except Exception as error:
            layer = operation.label or "a layer"
            what = f"variant '{variant.name}' of {_shown(plugin)} failed for {layer}: {first_line(error)}"
            raise fault(what, hint=_hint(plugin)) from error

    return render


def _shown(plugin: EntryPoint) -> str:
    package = plugin.dist.name if plugin.dist else plugin.value
    return f"package '{package}' (entry point '{plugin.name}' of {GROUP})"


def _hint(plugin: EntryPoint) -> str:
    return f"report it to the authors of '{plugin.dist.name if plugin.dist else plugin.value}', or uninstall it"


PREFIX = "op_"
"""The start of the symbols of operators; the build adds the model's name."""


@dataclass(frozen=True, eq=False)
class Step:
    """One call with values for all arguments."""

    function: Function
    symbol: str
    arguments: tuple[Value, ...]
    label: str
    variant: str
    scalars: tuple[int | float | bool, ...] = ()
    """The scalars of an operator of the user, in order."""
    program: str | None = None
    """The file of the program that its device runs."""


@dataclass(frozen=True, eq=False)
class Emitted:
    """The operators of a program and their calls."""

    steps: tuple[Step, ...]
    source: str
    """The C file; empty without functions."""
    external: tuple[str, ...]
    """The functions of CMSIS-NN that it needs."""


def emit_program(
    program: Program,
    heading: str,
    preferred: str | Mapping[Operation, str] = "portable",
    prefix: str = PREFIX,
    loop_bytes: int | None = LOOP_BYTES,
) -> Emitted:
    """Return the operators; equal functions and equal constants are emitted once.

    `preferred`: a variant or a class of processors for all operations, or a variant for each. `loop_bytes`: the bytes
    of code of inner loops; None: no limit.
    """
    names = [preferred if isinstance(preferred, str) else preferred[operation] for operation in program.operations]
    calls = joint_calls(zip(program.operations, names, strict=True), loop_bytes)
    symbols: dict[Function, str] = {}
    taken: set[str] = set()
    for _, call in calls:
        if call.function not in symbols:
            symbols[call.function] = free_name(prefix + call.function.base, taken)
    constants: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
    steps = []
    for variant, call in calls:
        named = (parameter.name for parameter in call.function.parameters if parameter.direction != "scratch")
        arguments = tuple(_value(given, name, constants) for given, name in zip(call.arguments, named, strict=True))
        steps.append(Step(call.function, symbols[call.function], arguments, call.label, variant, call.scalars))
    own = {function: symbol for function, symbol in symbols.items() if function.user is None}
    external = sorted({name for function in symbols for name in function.external})
    return Emitted(tuple(steps), source_of(own, heading) if own or not steps else "", tuple(external))


def _value(argument: Any, name: str, constants: dict[tuple[str, tuple[int, ...], bytes], Value]) -> Value:
    """Return an argument as a value; equal arrays are one constant."""
    if isinstance(argument, Value) and (argument.role != "constant" or argument.root is not None):
        return argument
    array = argument.content if isinstance(argument, Value) else argument
    key = (str(array.dtype), tuple(array.shape), np.ascontiguousarray(array).tobytes())
    if key not in constants:
        constants[key] = Value(name, "constant", str(array.dtype), tuple(array.shape), None, array)
    return constants[key]


def source_of(symbols: dict[Function, str], heading: str) -> str:
    """Return the C file."""
    headers = sorted({"stdint.h", *(h for function in symbols for h in function.headers)})
    parts = [
        f"/* SPDX-License-Identifier: Apache-2.0 */\n/*\n * {' '.join(heading.replace('*/', '* /').split())}\n */\n",
        "".join(f"#include <{header}>\n" for header in headers),
        *helpers_of(name for function in symbols for name in function.helpers),
        *dict.fromkeys(text for function in symbols for text in function.definitions),
        *(function.text(symbol) for function, symbol in symbols.items()),
    ]
    return "\n".join(parts)
