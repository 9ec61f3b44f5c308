# SPDX-License-Identifier: Apache-2.0
"""The table of `check`: kind, target, exportability and stack of every object."""

import json
from itertools import pairwise

import pytest
from objects_factory import compile_object, make_archive
from small_models import one_operator

RELU = "#include <stdint.h>\nint32_t relu(const int8_t *a, int8_t *b)\n{\n\tb[0] = a[0];\n\treturn 0;\n}\n"
DEEP = """#include <stdint.h>
int32_t relu(const int8_t *a, int8_t *b)
{
	volatile int8_t copy[200];
	copy[a[0] & 127] = 1;
	b[0] = copy[a[1] & 127];
	return 0;
}
"""
ARM = "arm-none-eabi-gcc"
M3 = ["-mcpu=cortex-m3", "-mthumb", "-ffreestanding", "-fno-asynchronous-unwind-tables"]
M4 = "-mcpu=cortex-m4"
pytestmark = pytest.mark.needs(ARM)


@pytest.fixture
def manifest(tmp_path):
    """Return a function that writes a manifest with the given entries of `objects`."""

    def write(*entries):
        path = tmp_path / "manifest.yaml"
        path.write_text(one_operator("relu", "".join(f"\n  - {{{entry}}}" for entry in entries)))
        return path

    return write


@pytest.fixture
def made(tmp_path):
    """Return a function that compiles a source for a Cortex-M3, or with other options."""

    def compile_source(name, source, *options):
        return compile_object(tmp_path, source, ARM, [*M3, *options], name)

    return compile_source


def rows_of(done):
    lines = done.out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  object "))
    head = lines[start]
    columns = ["object", "kind", "target", "exportable", "code", "constant", "state", "operators' stack"]
    at = [*(head.index(f" {name}") + 1 for name in columns), None]
    return [[line[a:b].strip() for a, b in pairwise(at)] for line in lines[start + 1 :]]


def test_each_object_is_exportable_or_has_a_reason(fail, manifest, made, tmp_path):
    """On failure the table goes to standard output and the diagnostics to standard error."""
    made("relu.o", RELU)
    made("m4.o", RELU, M4)
    made("state.o", RELU + "int state;\nint more(void) { return state++; }\n")
    made("spare.o", RELU.replace("relu", "spare"))
    made("needs.o", "void vendor(void); void start(void) { vendor(); }")
    make_archive(tmp_path / "lib.a", [tmp_path / "relu.o", tmp_path / "spare.o"], "arm-none-eabi-ar")
    (tmp_path / "source.c").write_text(RELU.replace("relu", "source"))
    (tmp_path / "text.o").write_text("no object\n")
    path = manifest(
        "target: cortex-m3, files: [lib.a, m4.o, needs.o, absent.o, text.o]",
        "target: cortex-m7, files: [state.o]",
        "target: cortex-m4, files: [m4.o]",
        "target: cortex-m33, files: [source.c]",
        "target: cortex-m99, files: [relu.o]",
    )
    done = fail("check", path)
    assert done.out.startswith("tiny: objects\n\n")
    assert "error" not in done.out and done.err.endswith(" errors\n")
    assert [row[:4] for row in rows_of(done)] == [
        ["lib.a(relu.o)", "archive member", "cortex-m3", "yes"],
        ["m4.o", "ELF object", "cortex-m3", "no: compiled for the Arm architecture v7E-M"],
        ["needs.o", "ELF object", "cortex-m3", "no: undefined symbol 'vendor'"],
        ["absent.o", "ELF object", "cortex-m3", "no: cannot read the file: No such file or directory"],
        ["text.o", "ELF object", "cortex-m3", "no: not an object: this is text"],
        ["state.o", "ELF object", "cortex-m7", "no: writable state of 4 bytes: state"],
        ["m4.o", "ELF object", "cortex-m4", "yes"],
        ["source.c", "C source", "any", "no: C source in an entry with 'target'"],
        ["relu.o", "ELF object", "cortex-m99", "no: invalid target 'cortex-m99'"],
    ]


@pytest.mark.parametrize("faulty", ["absent.o", "m4.o", "lto.o", "text.o"])
def test_symbols_are_checked_beside_other_faults(fail, manifest, made, tmp_path, faulty):
    """An undefined symbol and a duplicate one are reported although another file is faulty."""
    made("relu.o", RELU)
    made("again.o", RELU)
    made("m4.o", RELU.replace("relu", "spare"), M4)
    made("lto.o", RELU.replace("relu", "bytecode"), "-flto")
    made("needs.o", "void vendor(void); void start(void) { vendor(); }")
    (tmp_path / "text.o").write_text("no object\n")
    done = fail("check", manifest(f"target: cortex-m3, files: [needs.o, relu.o, again.o, {faulty}]"))
    assert [(row[0], row[3].partition(":")[0]) for row in rows_of(done)] == [
        ("needs.o", "no"),
        ("relu.o", "yes"),
        ("again.o", "no"),
        (faulty, "no"),
    ]
    assert "undefined symbol 'vendor' in needs.o for target 'cortex-m3'" in done.err
    assert "multiple definitions of symbol 'relu' for target 'cortex-m3': in relu.o and again.o" in done.err
    assert done.err.endswith("opwest: 3 errors\n")
    assert ("hint: lto.o may define it" in done.err) == (faulty == "lto.o")


def test_definitions_of_faulty_objects_count(opwest, manifest, made):
    """An object for another processor defines its symbols: the only fault is its architecture."""
    made("m4.o", RELU.replace("int32_t relu", "int32_t helper"), M4)
    source = RELU.replace("b[0] = a[0]", "return helper(a, b)").replace(
        "int32_t relu", "int32_t helper();\nint32_t relu"
    )
    made("relu.o", source)
    done = opwest("check", manifest("target: cortex-m3, files: [relu.o, m4.o]"))
    assert [row[3] for row in rows_of(done)] == ["yes", "no: compiled for the Arm architecture v7E-M"]
    assert done.err.count("error:") == 1


def test_objects_without_a_target_are_in_the_table(opwest, manifest, made, tmp_path):
    made("relu.o", RELU)
    made("state.o", RELU + "int state;\nint more(void) { return state++; }\n")
    make_archive(tmp_path / "lib.a", [tmp_path / "relu.o", tmp_path / "state.o"], "arm-none-eabi-ar")
    done = opwest("check", manifest("target: cortex-m33x, files: [relu.o]", "files: [lib.a]"))
    rows = rows_of(done)
    assert [row[:4] for row in rows] == [
        ["relu.o", "ELF object", "cortex-m33x", "no: invalid target 'cortex-m33x'"],
        ["lib.a(relu.o)", "archive member", "any", "no: no 'target' in its entry"],
        ["lib.a(state.o)", "archive member", "any", "no: no 'target' in its entry"],
    ]
    assert all(int(row[4]) > 0 for row in rows) and [row[6] for row in rows] == ["0", "0", "4"]


def test_table_is_printed_for_every_fault(opwest, fail, manifest, made, tmp_path):
    made("relu.o", RELU)
    path = manifest("target: cortex-m3, files: [relu.o]")
    path.write_text(path.read_text().replace("args: [x, y]", "args: [x, z]"))
    done = fail("check", path)
    ((name, kind, target, exportable, code, _, state, stack),) = rows_of(done)
    assert (name, kind, target, exportable, state) == ("relu.o", "ELF object", "cortex-m3", "yes", "0")
    assert int(code) > 0 and stack == "unknown"
    assert opwest("generate", path, "-o", tmp_path / "app").out == ""


def test_as_json(fail, manifest, made):
    made("m4.o", RELU, M4)
    done = fail("check", "--json", manifest("target: cortex-m3, files: [m4.o]"))
    report = json.loads(done.out)
    (model,) = report["result"]
    (row,) = model["exportability"]
    assert report["ok"] is False and model["model"] == "tiny"
    assert row["reasons"] == ["compiled for the Arm architecture v7E-M"] and not row["exportable"]


def test_rejected_objects_are_listed_in_long_tables(opwest, manifest, made):
    for i in range(30):
        made(f"{i}.o", RELU.replace("relu", f"op{i}" if i else "relu"))
    made("m4.o", RELU.replace("relu", "last"), M4)
    files = ", ".join([*(f"{i}.o" for i in range(30)), "m4.o"])
    done = opwest("check", manifest(f"target: cortex-m3, files: [{files}]"))
    assert rows_of(done)[0][:4] == ["m4.o", "ELF object", "cortex-m3", "no: compiled for the Arm architecture v7E-M"]
    assert done.out.endswith("  ... and 7 more: --json shows all\n")


def test_stack_from_su_files(opwest, succeed, manifest, made, tmp_path):
    made("relu.o", DEEP, "-fstack-usage", "-g")
    bytes_ = int((tmp_path / "relu.su").read_text().split("\t")[1])
    assert bytes_ >= 128
    entry = "target: cortex-m3, files: [relu.o], stack_usage: [relu.su]"
    done = succeed("check", manifest(entry))
    assert not done.err
    assert rows_of(done)[0][7] == str(bytes_)
    (model,) = json.loads(opwest("check", "--json", manifest(entry)).out)["result"]
    assert model["exportability"][0]["stack"] == [{"operator": "relu", "bytes": bytes_}]
    succeed("generate", manifest(entry), "-o", tmp_path / "app")
    assert "relu.su" in (tmp_path / "app/.opwest/lock.json").read_text(), "a change of the file must be detected"


def test_su_files_of_several_objects_may_be_joined(succeed, manifest, made, tmp_path):
    made("relu.o", DEEP, "-fstack-usage", "-g")
    made("other.o", RELU.replace("relu", "other"), "-fstack-usage", "-g")
    (tmp_path / "all.su").write_text((tmp_path / "other.su").read_text() + (tmp_path / "relu.su").read_text())
    make_archive(tmp_path / "lib.a", [tmp_path / "relu.o", tmp_path / "other.o"], "arm-none-eabi-ar")
    done = succeed("check", manifest("target: cortex-m3, files: [lib.a], stack_usage: [all.su]"))
    assert not done.err
    assert [(row[0], int(row[7]) >= 128) for row in rows_of(done)] == [("lib.a(relu.o)", True)]


def test_functions_of_other_objects_are_a_warning(succeed, manifest, made, tmp_path):
    made("relu.o", RELU, "-g")
    (tmp_path / "other.su").write_text("other.c:1:1:relu6\t8\tstatic\nother.c:5:1:relu\t16\tstatic\n")
    path = manifest("target: cortex-m3, files: [relu.o], stack_usage: [other.su]")
    done = succeed("check", path)
    assert done.err == (
        f"{path}:4:56: warning: other.su lists functions that are in no object of this entry: relu6\n"
        "  expected: the .su files of these objects\n"
        "  hint: did you mean 'relu'?\n"
    )
    assert rows_of(done)[0][7] == "16"
