# SPDX-License-Identifier: Apache-2.0
"""The output of `opwest inspect`."""

import json
from pathlib import Path

from elf_writer import build_elf
from objects_factory import compile_object, make_archive
from opwest.objects.facts import ObjectFile
from opwest.objects.inspect import inspect_object, read_member
from opwest.objects.report import as_json, as_text, usual_providers

SYMBOLS = [("op", 1, 2, 1), ("state", 1, 1, 2), ("memcpy", 1, 0, 0), ("expf", 1, 0, 0), ("npu", 2, 0, 0)]
SECTIONS = [(".text", 1, 6, bytes(16)), (".bss", 8, 3, b"")]


def sample(**more):
    content = build_elf(symbols=SYMBOLS, sections=SECTIONS, **more)
    return ObjectFile(Path("x.o"), "elf", (read_member("x.o", content),))


def test_text_of_an_object():
    assert as_text("objects/x.o", sample()) == (
        "objects/x.o: ELF object\n"
        "  machine       x86-64, 64 bits, little-endian\n"
        "  size          16 bytes code, 0 constant, 0 data, 64 bss\n"
        "  state         64 bytes: state\n"
        "  defines       op     function  4 bytes\n"
        "                state  variable  4 bytes\n"
        "  ABI options   unknown: the object has no debug information (compile with -g); "
        "-mabi=ms or -fcall-saved-REG cannot be detected\n"
        "  needs         memcpy  libc\n"
        "                expf    libm\n"
        "                npu     weak, unknown: another object or a driver\n"
        "  exportable    no: writable state of 64 bytes: state (`stateful: true` permits it)\n"
    )


def test_text_says_why_not():
    text = as_text("x.so", sample(kind=3))
    assert "exportable    no: not relocatable: a shared library; link the .o files instead" in text


def test_text_of_an_archive(tmp_path):
    flags = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"]
    path = compile_object(tmp_path, "float op(float a) { return a; }", "arm-none-eabi-gcc", flags)
    lines = as_text("lib.a", inspect_object(make_archive(tmp_path / "lib.a", [path]))).splitlines()
    assert lines[0] == "lib.a: archive, 1 object, all exportable"
    assert lines[3] == "operators.o"
    assert "arm, 32 bits, little-endian, v7E-M, hard float (arguments in FPU registers), EABI 5" in lines[4]
    assert lines[6].split() == ["state", "none"]


def test_text_of_c(tmp_path):
    (tmp_path / "x.c").write_text(
        "#include <math.h>\nint total;\nstatic float g(float a) { return expf(a); }\n"
        "int op(const char *format, ...) { return total++; }\n"
    )
    assert as_text("x.c", inspect_object(tmp_path / "x.c")) == (
        "x.c: C source, compiled with the firmware\n"
        "  defines       g   float  1 argument          line 3  static\n"
        "                op  int    variable arguments  line 4\n"
        "  variables     total\n"
        "  state         total\n"
        "  includes      math.h\n"
        "  calls         expf (libm)\n"
        "  exportable    no: writable state: total (`stateful: true` permits it)\n"
    )


def test_stack_and_signatures(tmp_path):
    source = "extern int sink(void *); int op(int a) { char b[20]; return sink(b) + a; } int leaf(void) { return 1; }"
    flags = ["-mcpu=cortex-m3", "-mthumb", "-g"]
    item = inspect_object(compile_object(tmp_path, source, "arm-none-eabi-gcc", flags))
    lines = as_text("x.o", item).splitlines()
    assert lines[4].startswith("  defines       op    function  ") and lines[4].endswith("  stack 32 bytes")
    assert lines[5].endswith("  stack 0 bytes")
    assert "  signatures    2 of 2 functions in the debug information" in lines
    (member,) = as_json("x.o", item)["members"]
    assert (member["signature_count"], member["signatures_fault"]) == (2, None)
    assert member["defined"][0]["stack"] == {"bytes": 32, "exact": True, "source": ".debug_frame"}
    assert member["defined"][0]["signature"] == "int (int)"
    item = inspect_object(compile_object(tmp_path, source, "arm-none-eabi-gcc", flags[:2]))
    assert "stack" not in as_text("x.o", item) and "signatures" not in as_text("x.o", item)
    (member,) = as_json("x.o", item)["members"]
    assert member["signatures_fault"].startswith("signature not checked: ") and member["defined"][0]["stack"] is None
    split = inspect_object(compile_object(tmp_path, source, flags=["-g", "-gsplit-dwarf"]))
    assert "signatures    signature not checked: the debug information is in another file" in as_text("x.o", split)


def test_json(tmp_path):
    data = as_json("x.o", sample())
    assert json.loads(json.dumps(data)) == data
    (member,) = data["members"]
    assert (member["exportable"], member["state_bytes"], member["variables"]) == (False, 64, ["state"])
    assert member["reasons"] == ["writable state of 64 bytes: state"]
    assert member["remedies"] == ["`stateful: true` permits it"]
    assert member["abi"]["machine"] == "x86-64"
    assert member["undefined"][1] == {"name": "expf", "weak": False, "provided_by": ["libm"]}
    assert [s["name"] for s in member["defined"]] == ["op", "state"]
    (tmp_path / "x.c").write_text("int op(void) { return 0; }\n")
    data = as_json("x.c", inspect_object(tmp_path / "x.c"))
    assert json.loads(json.dumps(data)) == data
    assert data["exportable"] and data["state_bytes"] == 0
    function = {"name": "op", "returns": "int", "parameter_count": 0, "static": False, "mangled": None, "line": 1}
    assert data["functions"] == [function]


def test_libcs_that_differ_are_named():
    assert usual_providers("__aeabi_memcpy", "arm") == ["picolibc", "newlib"]
    assert usual_providers("memcpy", "arm") == ["libc"]
    assert usual_providers("__aeabi_fadd", "arm") == ["libgcc"]
    assert usual_providers("_GLOBAL_OFFSET_TABLE_", "x86-64") == ["linker"]
    assert usual_providers("nobody", "arm") == []
