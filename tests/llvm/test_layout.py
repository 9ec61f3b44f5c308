# SPDX-License-Identifier: Apache-2.0
"""opwest.render.tables.layout against zephyr_module/include/opwest, for every target with a compiler here."""

import re
import subprocess
from collections.abc import Iterable, Iterator

import pytest
from backends_support import MODELS, PROGRAMS, TARGETS, includes, machine_of
from c_support import RUNTIME
from opwest.model.types.conventions import CONVENTIONS
from opwest.objects.targets import named_targets
from opwest.render.c.printer import c_type
from opwest.render.tables import layout
from opwest.render.tables.types import (
    Abi,
    Constant,
    Enumeration,
    FieldType,
    Flags,
    Index,
    Nested,
    Struct,
    Union,
    offsets,
    size_and_alignment,
)

ENUMERATIONS = [value for value in vars(layout).values() if isinstance(value, Enumeration)]
FLAGS = [value for value in vars(layout).values() if isinstance(value, Flags)]
CONSTANTS = [
    *(value for value in vars(layout).values() if isinstance(value, Constant)),
    *(
        Constant(name, code, convention.arrays.header)
        for convention in CONVENTIONS
        if convention.arrays is not None
        for code, name in convention.arrays.type_codes.values()
    ),
]


def layout_program(abi: Abi) -> str:
    """Return the program. It needs C11 and the warnings about missing initialisers and enumerators as errors."""
    headers = sorted({one.header for one in (*layout.STRUCTS, *CONSTANTS)})
    lines = ["#include <stddef.h>", "#include <stdint.h>", *(f"#include <{header}>" for header in headers)]
    for struct in layout.STRUCTS:
        lines += _of_struct(struct, abi)
    for enumeration in ENUMERATIONS:
        lines += _of_enumeration(enumeration)
    for flags in FLAGS:
        lines += (_assert(flags.constant(m), f"{1 << bit}U") for bit, m in enumerate(flags.members))
    lines += (_assert(constant.constant, f"{constant.value}U") for constant in CONSTANTS)
    for exponent in range(16):
        flags = f"{layout.TENSOR_FLAGS.macro}({1 << exponent}U)"
        lines.append(_assert(flags, f"{exponent}U << {layout.TENSOR_FLAGS.shift}"))
        lines.append(_assert(f"OPWEST_TENSOR_ALIGN({flags})", f"{1 << exponent}U"))
    return "\n".join([*lines, ""])


def _of_struct(struct: Struct, abi: Abi) -> Iterator[str]:
    yield _assert(f"sizeof({struct.c_type})", str(size_and_alignment(struct, abi)[0]))
    for name, offset in offsets(struct, abi).items():
        yield _assert(f"offsetof({struct.c_type}, {name})", str(offset))
        if type_ := c_type(struct.field(name).type):
            yield _assert(f"_Generic((({struct.c_type} *)0)->{name}, {type_}: 1, default: 0)", "1")
    # An initialiser for every field: one more is an error, one less a warning.
    values = ("{0}" if _is_compound(field.type) else "0" for field in struct.fields)
    yield f"extern const {struct.c_type} whole_{struct.name};"
    yield f"const {struct.c_type} whole_{struct.name} = {{{', '.join(values)}}};"


def _is_compound(type_: FieldType) -> bool:
    """Whether the initialiser of a member is in braces."""
    return isinstance(type_, (Union, Nested)) or (isinstance(type_, Index) and type_.count is not None)


def _of_enumeration(enumeration: Enumeration) -> Iterable[str]:
    names = [enumeration.constant(code) for code in range(len(enumeration.members))]
    cases = " ".join(f"case {name}:" for name in names)
    function = f"cases_{enumeration.c_type.split()[-1]}"
    return [
        *(_assert(name, str(code)) for code, name in enumerate(names)),
        f"int {function}({enumeration.c_type} which);",
        f"int {function}({enumeration.c_type} which)",
        f"{{ switch (which) {{ {cases} return 1; }} return 0; }}",
    ]


def _assert(found: str, expected: str) -> str:
    return f'_Static_assert({found} == {expected}, "{found} is not {expected}");'


def abi_of(target):
    """The ABI of a target: only i386 aligns 64-bit members to 4 bytes."""
    known = named_targets()[target]
    return Abi(known["bits"] // 8, 4 if known["machine"] == "i386" else 8)


@pytest.mark.parametrize("target", TARGETS)
def test_headers_have_the_described_layout(target):
    machine = machine_of(target)
    options = [flag for flag in machine.flags if not flag.startswith(("-Wl,", "-static", "-no-pie"))]
    command = [machine.compiler, *options, "-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    command += [f"-I{RUNTIME / 'include'}", "-idirafter", str(PROGRAMS / "include"), "-x", "c", "-"]
    program = layout_program(abi_of(target))
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_flags_of_the_headers_are_described():
    text = "".join((RUNTIME / "include" / header).read_text() for header in {s.header for s in layout.STRUCTS})
    for flags in FLAGS:
        found = re.findall(rf"^#define ({flags.prefix}\w+) +0x", text, re.MULTILINE)
        assert found == [flags.constant(member) for member in flags.members]


@pytest.mark.parametrize("profile", ["", "-DCONFIG_OPWEST_PROFILE"])
@pytest.mark.parametrize("target", ["x86-64", "i386", "cortex-m3", "rv32imac"])
def test_checks_of_an_application_pass(target, profile, apps):
    machine = machine_of(target)
    app = apps["llvm"]
    for model in MODELS:
        text = (app / "models" / model / "src" / f"{model}_devices.c").read_text()
        if not profile:  # without the points of a run
            text = re.sub(
                r"^#ifdef (?:OPWEST_HAS_POINTS|CONFIG_OPWEST_PROFILE)$.*?^#endif$",
                "",
                text,
                flags=re.MULTILINE | re.DOTALL,
            )
        checks = re.findall(r"^BUILD_ASSERT\(.*?\);$", text, re.MULTILINE | re.DOTALL)
        headers = re.findall(r"^#include <opwest/.*>$", text, re.MULTILINE)
        assert len(checks) > 30
        lines = ["#define BUILD_ASSERT _Static_assert", f"#include <{model}.h>", *headers, *checks]
        options = [flag for flag in machine.flags if flag != "-no-pie"]
        options += ["-std=c11", "-ffreestanding", "-fsyntax-only"]
        command = [machine.compiler, *options, *filter(None, [profile]), *includes(app), "-x", "c", "-"]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
