# SPDX-License-Identifier: Apache-2.0
"""opwest.render.records.layout against zephyr_module/include/opwest, for every target with a compiler here."""

import re
import subprocess
from dataclasses import replace

import pytest
from backends_support import MODELS, PROGRAMS, TARGETS, includes, machine_of
from c_support import RUNTIME
from layout_support import Description, layout_program
from opwest.model.dtypes import DTYPES
from opwest.render.records import layout
from opwest.render.records.types import Abi, Constant, Field, Scalar, String
from opwest.targets import named_targets


def abi_of(target):
    """The ABI of a target: only i386 aligns 64-bit members to 4 bytes."""
    known = named_targets()[target]
    return Abi(known["bits"] // 8, 4 if known["machine"] == "i386" else 8)


def compile_for(target, description):
    """Return the compiler's errors for a target and a description; "" if the headers agree with it."""
    machine = machine_of(target)
    options = [flag for flag in machine.flags if not flag.startswith(("-Wl,", "-static", "-no-pie"))]
    command = [machine.compiler, *options, "-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    command += [f"-I{RUNTIME / 'include'}", "-idirafter", str(PROGRAMS / "include"), "-x", "c", "-"]
    program = layout_program(description, abi_of(target))
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
    assert done.stderr or done.returncode == 0
    return done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_headers_have_the_described_layout(target):
    assert compile_for(target, Description()) == ""


def with_operator(**changes):
    """The description with other fields of struct opwest_operator: None removes one, a new name adds one."""
    fields = {field.name: field for field in layout.OPERATOR.fields} | changes
    changed = replace(layout.OPERATOR, fields=tuple(field for field in fields.values() if field))
    return Description(structs=tuple(changed if s is layout.OPERATOR else s for s in layout.STRUCTS))


COUNT, FLAGS = layout.OPERATOR.field("arg_count"), layout.OPERATOR.field("flags")
PLANTED = {
    "a wider field": (with_operator(arg_count=Field("arg_count", layout.U32)), "offsetof"),
    "a signed field": (with_operator(flags=Field("flags", Scalar(DTYPES["int16"]))), "_Generic"),
    "another pointer": (with_operator(args=Field("args", String())), "_Generic"),
    "exchanged fields": (with_operator(arg_count=FLAGS, flags=COUNT), "offsetof"),
    "a missing field": (with_operator(flags=None), "missing initializer|missing-field-initializers"),
    "a new field": (with_operator(more=Field("more", layout.U32)), "more"),
    "exchanged codes": (
        Description(enumerations=(replace(layout.HOOK, members=layout.HOOK.members[::-1]),)),
        "OPWEST_HOOK_OPERATOR is not 14",
    ),
    "a missing code": (
        Description(enumerations=(replace(layout.DTYPE, members=layout.DTYPE.members[:-1]),)),
        rf"{layout.DTYPE.constant(-1)}\W not handled",
    ),
    "a wrong flag": (Description(flags=(replace(layout.DEVICE_FLAGS, members=("foreign", "hooks")),)), "FOREIGN"),
    "a wrong type code": (Description(constants=(replace(layout.TVM_NULLPTR, value=3),)), "kTVMNullptr is not 3"),
    "an exchanged DLTensor": (
        Description(structs=(replace(layout.DL_DATA_TYPE, fields=layout.DL_DATA_TYPE.fields[::-1]),)),
        "offsetof",
    ),
    "another version": (
        Description(constants=(Constant("OPWEST_METADATA_VERSION", layout.METADATA_VERSION + 1),)),
        "OPWEST_METADATA_VERSION",
    ),
}


@pytest.mark.parametrize(("description", "fault"), PLANTED.values(), ids=PLANTED)
def test_wrong_description_is_detected(description, fault):
    assert re.search(fault, compile_for("x86-64", description))


def test_all_flags_of_the_headers_are_described():
    text = "".join((RUNTIME / "include" / header).read_text() for header in {s.header for s in layout.STRUCTS})
    for flags in layout.FLAGS:
        found = re.findall(rf"^#define ({flags.prefix}\w+) +0x", text, re.MULTILINE)
        assert found == [flags.constant(member) for member in flags.members]


@pytest.mark.parametrize("profile", ["", "-DCONFIG_OPWEST_PROFILE"])
@pytest.mark.parametrize("target", ["x86-64", "i386", "cortex-m3", "rv32imac"])
def test_checks_of_an_application_pass(target, profile, apps):
    machine = machine_of(target)
    app = apps["llvm"]
    for model in MODELS:
        text = (app / "models" / model / "src" / f"{model}_devices.c").read_text()
        checks = re.findall(r"^BUILD_ASSERT\(.*?\);$", text, re.MULTILINE | re.DOTALL)
        headers = re.findall(r"^#include <opwest/.*>$", text, re.MULTILINE)
        assert len(checks) > 30
        if not profile:
            checks = [check for check in checks if "profile" not in check]
        lines = ["#define BUILD_ASSERT _Static_assert", f"#include <{model}.h>", *headers, *checks]
        options = [flag for flag in machine.flags if flag != "-no-pie"]
        options += ["-std=c11", "-ffreestanding", "-fsyntax-only"]
        command = [machine.compiler, *options, *filter(None, [profile]), *includes(app), "-x", "c", "-"]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
