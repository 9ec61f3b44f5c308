# SPDX-License-Identifier: Apache-2.0
"""The table of element types against the schema, the table in C and numpy; a new row changes no other type."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from c_support import ROOT, execute, run
from opwest.drafting.from_dwarf import dtype_of
from opwest.drafting.from_ir import from_ir
from opwest.drafting.from_source import from_source
from opwest.importers.mlf.c_text import arrays, functions
from opwest.llvm.facts import IrFunction, IrParameter, IrUse
from opwest.model.dtypes import DLPACK_CODES, DTYPES, Dlpack, dtype_of_c, dtype_of_ir, dtype_of_packed
from opwest.objects.csource import read_c_source
from opwest.objects.dwarf import DwarfType
from requirements_support import need

ROWS = list(DTYPES.values())
KINDS = {"int": "SIGNED", "uint": "UNSIGNED", "bool": "BOOLEAN"}
C_TYPES = """char signed unsigned short int long float double bool _Bool _Float16 __fp16 __bf16 void size_t
    int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t""".split()


def test_schema_has_the_same_list():
    schema = json.loads((ROOT / "schemas" / "device-manifest.schema.json").read_text())
    assert schema["$defs"]["dtype"]["enum"] == list(DTYPES)


def test_numbers_are_those_of_the_metadata():
    assert [row.number for row in ROWS] == list(range(len(ROWS)))


def test_runtime_has_the_same_table(tmp_path):
    need("gcc")
    include = ROOT / "zephyr_module" / "include"
    main = tmp_path / "main.c"
    main.write_text(
        "#include <stdio.h>\n#include <opwest/model.h>\n"
        "#define SHOW(NAME, value, name, size, kind, exponent) \\\n"
        '\tprintf("%s %d %s %d %s %d\\n", #NAME, OPWEST_##NAME, name, size, #kind, exponent);\n'
        "int main(void)\n{\n\tOPWEST_DTYPES(SHOW)\n\treturn 0;\n}\n"
    )
    run(["gcc", f"-I{include}", main, "-o", "program"], tmp_path)
    assert execute(tmp_path / "program").stdout.splitlines() == [
        f"{row.code.removeprefix('OPWEST_')} {row.number} {row.name} {row.size} "
        f"{KINDS.get(row.kind, 'BITS' if row.bits else 'REAL')} {row.exponent}"
        for row in ROWS
    ]


def test_dlpack_codes_are_those_of_the_runtime(tmp_path):
    need("gcc")
    include = ROOT / "zephyr_module" / "include"
    checks = "".join(f'OPWEST_STATIC_ASSERT({name} == {code}, "{name}");\n' for code, name in enumerate(DLPACK_CODES))
    (tmp_path / "main.c").write_text(f"#include <opwest/dlpack.h>\n{checks}")
    run(["gcc", "-fsyntax-only", f"-I{include}", tmp_path / "main.c"], tmp_path)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_sizes_and_ranges_are_numpys(row):
    held = np.dtype(row.numpy)
    assert held.itemsize == row.size
    if row.kind in ("int", "uint"):
        assert (row.minimum, row.maximum) == (np.iinfo(held).min, np.iinfo(held).max)
    if row.name == row.numpy and row.kind == "float":
        assert (row.exponent, row.fraction) == (np.finfo(held).nexp, np.finfo(held).nmant)


def test_every_c_type_and_code_belongs_to_one_dtype():
    for claims in ([c for r in ROWS for c in r.from_c], [r.from_ir for r in ROWS if r.from_ir]):
        assert len(set(claims)) == len(claims)
    for packed in (False, True):
        seen = [(r.dlpack_of_packed or r.dlpack) if packed else r.dlpack for r in ROWS]
        assert len(set(seen)) == len(seen)


def readings() -> dict[str, object]:
    """Return the dtypes that `init` and the MLF importer use for C types, IR types and DLDataTypes."""
    found: dict[str, object] = {}
    source = "".join(f"void f_{c}(const {c} *x) {{}}\n" for c in C_TYPES)
    parsed = read_c_source(Path("f.c"), source.encode())
    for name, signature in from_source(parsed).items():
        found[name] = signature.parameters[0].dtype
    for c in C_TYPES:
        (one,) = functions(f"int32_t f({c}* x) {{\n}}\n").values()
        found[f"mlf {c}"] = one.parameters[0].dtype
        found[f"array {c}"] = [a.dtype for a in arrays(f"static const {c} a[2] = {{1, 2}};\n")]
    for name, size, kind, signed in (
        ("short unsigned int", 2, "integer", False),
        ("_Float16", 2, "float", True),
        ("unsigned char", 1, "integer", False),
        ("_Bool", 1, "bool", False),
    ):
        found[f"dwarf {name}"] = dtype_of(DwarfType(kind, size, signed, name, frozenset({name})))
    for element in ("i1", "i8", "i16", "half", "float", "double", "bfloat"):
        use = IrUse("x", "reads", (element,))
        function = IrFunction("f", None, (IrParameter("pointer", 0),), False, True, "external", (use,))
        found[f"ir {element}"] = from_ir(function).parameters[0].dtype
    for code in range(7):
        for bits in (1, 8, 16, 32, 64):
            row = dtype_of_packed(code, bits)
            found[f"dlpack {code} {bits}"] = row and row.name
    return found


@pytest.mark.parametrize("like", ["uint16", "uint8", "float16", "float32", "bool"])
def test_new_row_does_not_change_other_types(like):
    """The new row has the C type of another row: that C type keeps its dtype."""
    before = readings()
    made_up = replace(
        DTYPES[like],
        name="made_up",
        number=len(ROWS),
        dlpack=Dlpack("kDLBfloat", 128),
        dlpack_of_packed=None,
        from_c=("made_up_t",),
        from_ir="made_up",
    )
    real = dict(DTYPES)
    try:
        for table in ({"made_up": made_up} | real, real | {"made_up": made_up}):  # first, and last
            DTYPES.clear()  # the table itself: every module has it
            DTYPES.update(table)
            assert dtype_of_c("made_up_t") is made_up
            assert dtype_of_ir("made_up") is made_up
            assert readings() == before
    finally:
        DTYPES.clear()
        DTYPES.update(real)
