# SPDX-License-Identifier: Apache-2.0
"""Element types: the tables, calling conventions, and elements of types that numpy lacks."""

import json
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from c_support import ROOT, execute, run
from opwest.drafting.signatures import dtype_of, from_ir
from opwest.drafting.sources import from_source
from opwest.frontends.mlf.c_text import arrays, functions
from opwest.manifest.arrays import Array
from opwest.model.types.conventions import CONVENTIONS, FFI, HALIDE, PACKED, UNPACKED, convention_of
from opwest.model.types.dtypes import (
    DLPACK_CODES,
    DTYPES,
    Dlpack,
    converted,
    dtype_of_c,
    dtype_of_ir,
    dtype_of_packed,
    elements_of,
    numbers_from,
    numbers_of,
    reference_of,
)
from opwest.objects.c_source import read_c_source
from opwest.objects.dwarf_types import DwarfType
from opwest.objects.llvm.facts import IrFunction, IrParameter, IrUse
from opwest.render.tables.arrays import halide_type
from opwest.zephyr.runtime import FEATURES
from requirements_support import need

# --- The table of element types against the schema, the table in C and numpy; a new row changes no other type

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
        f"{KINDS.get(row.kind, 'FINITE' if row.special != 'ieee' else 'BITS' if row.bits else 'REAL')} {row.exponent}"
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
        seen = [r.dlpack_of_packed if packed else r.dlpack for r in ROWS if not packed or r.dlpack_of_packed]
        assert len(set(seen)) == len(seen)


def readings():
    """Return the dtypes that `init` and the MLF importer use for C types, IR types and DLDataTypes."""
    found: dict[str, object] = {}
    source = "".join(f"void f_{c}(const {c} *x) {{}}\n" for c in C_TYPES)
    parsed = read_c_source(Path("f.c"), source.encode())
    for name, signature in from_source(PurePosixPath("f.c"), parsed, lambda header: None).items():
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


# --- The calling conventions: one object for each name of the schema; C and IR for those with arrays


def test_names_are_those_of_the_schema():
    schema = json.loads((ROOT / "schemas" / "device-manifest.schema.json").read_text())
    assert [convention.name for convention in CONVENTIONS] == schema["$defs"]["convention"]["enum"]


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.name)
def test_headers_of_conventions(convention):
    assert convention_of(convention.name) is convention
    passing = convention.arrays or convention.descriptors
    if passing is not None:
        assert (ROOT / "zephyr_module" / "include" / passing.header).is_file()
        assert convention.feature in FEATURES


def test_types_passed_by_value():
    rejected = {(c.name, d.name) for c in CONVENTIONS for d in DTYPES.values() if not c.passes_scalar(d)}
    assert rejected == {(c.name, d.name) for c in CONVENTIONS if c is not UNPACKED for d in DTYPES.values() if d.bits}
    assert UNPACKED.passes_scalar(DTYPES["float16"])


def test_packed_bool_has_one_bit():
    for dtype in DTYPES.values():
        assert FFI.arrays.dlpack(dtype) == dtype.dlpack
        packed = PACKED.arrays.dlpack(dtype)
        if dtype.name == "bool":
            assert (packed.code, packed.bits) == ("kDLUInt", 1)
        else:
            assert packed == (None if dtype.name.startswith("float8") else dtype.dlpack)


def test_element_types_of_halide():
    """halide_type_t of HalideRuntime.h: code, bits, lanes; Bool() is an unsigned integer of one bit."""
    described = {name: dtype for name, dtype in DTYPES.items() if HALIDE.passes_tensor(dtype)}
    assert DTYPES.keys() - described == {"float8_e4m3", "float8_e5m2"}
    found = {name: [value for _, value in halide_type(dtype).values] for name, dtype in described.items()}
    codes = {"int": 0, "uint": 1, "float": 2, "bool": 1}
    for name, dtype in described.items():
        code = 4 if name == "bfloat16" else codes[dtype.kind]
        assert found[name] == [code, 1 if name == "bool" else 8 * dtype.size, 1], name


def test_sizes_of_arrays():
    """Two tensors and three values: 48 bytes per DLTensor, 8 or 16 per value; packed has padded type codes."""
    assert PACKED.arrays.bytes(2, 3) == 2 * 48 + 4 * 8 + 8
    assert FFI.arrays.bytes(2, 3) == 2 * 48 + 4 * 16


# --- Elements of types that numpy lacks, against numpy's half precision, which covers every case

HALF = replace(DTYPES["float16"], name="half_bits", numpy="uint16")
"""float16 as if numpy did not have it."""
EVERY = np.arange(1 << 16, dtype=np.uint16)


def test_bits_are_numbers():
    np.testing.assert_array_equal(numbers_of(EVERY, HALF), EVERY.view(np.float16).astype(np.float32))
    assert np.signbit(numbers_of(np.array([0x8000], np.uint16), HALF)).all()


def test_numbers_are_rounded_as_numpy_rounds_halves():
    halves = EVERY.view(np.float16)
    near = np.sort(halves[np.isfinite(halves)].astype(np.float64))
    middle = (near[1:] + near[:-1]) / 2  # ties
    for numbers in (near, middle, np.nextafter(middle, 1e9), np.array([65519.9, 65520.0, -1e30, 1e-30, np.inf, -0.0])):
        with np.errstate(over="ignore"):
            expected = numbers.astype(np.float16)
        got, rounded = elements_of(numbers, HALF)
        np.testing.assert_array_equal(got, expected.view(np.uint16))
        assert rounded == np.count_nonzero(expected.astype(np.float64) != numbers)


def test_nan_is_preserved():
    got, rounded = elements_of(np.array([np.nan], np.float32), HALF)
    assert np.isnan(numbers_of(got, HALF)).all() and rounded == 0


@pytest.mark.parametrize("dtype", ["u2", ">u2", "V2"])
def test_bit_patterns_are_not_converted(dtype):
    bits = np.array([[0x3C00, 0x4000]], np.uint16)
    given = bits.view(dtype) if dtype == "V2" else bits.astype(dtype)
    got, rounded = elements_of(given, HALF)
    assert got.dtype == np.uint16 and got.shape == (1, 2) and rounded == 0
    np.testing.assert_array_equal(got, bits)
    np.testing.assert_array_equal(reference_of(given, HALF), [[1.0, 2.0]])


@pytest.mark.parametrize("dtype", ["int16", "float16", "uint32", "V4", "complex64", "bool"])
def test_other_arrays_are_rejected(dtype):
    assert elements_of(np.zeros(2, dtype), HALF) is None
    assert elements_of(np.zeros(2, dtype), DTYPES["float64"]) is None


def test_numpy_types_are_not_converted():
    given = np.array(1.5, ">f4")
    got, rounded = elements_of(given, DTYPES["float32"])
    assert got.shape == () and got.dtype == np.float32 and got == 1.5 and rounded == 0
    assert numbers_of(got, DTYPES["float32"]) is got
    assert elements_of(np.zeros(2), DTYPES["float32"]) is None
    assert reference_of(given, DTYPES["float16"]) is given


def test_files_are_converted_in_little_endian():
    ones = Array(b"\0\x3c\0\x40", "uint16", (2,))
    assert converted(ones, HALF) == (replace(ones, dtype="half_bits"), 0)
    assert converted(replace(ones, dtype="void16"), HALF) == (replace(ones, dtype="half_bits"), 0)
    raw = replace(ones, dtype=None, shape=None)
    assert converted(raw, HALF) == (raw, 0)
    floats = Array(np.array([1, 2.0001], "<f4").tobytes(), "float32", (2,))
    assert converted(floats, HALF) == (replace(ones, dtype="half_bits"), 1)
    assert converted(floats, DTYPES["float64"]) is None
    assert converted(replace(floats, dtype="str64"), HALF) is None


def test_numbers_of_rows_with_a_pitch():
    content = np.arange(2 * 3 * 5 - 2, dtype=np.int16).tobytes()
    found = numbers_from(content, DTYPES["int16"], [2, 3, 3], 5)
    np.testing.assert_array_equal(found, np.arange(30, dtype=np.int16).reshape(2, 3, 5)[..., :3])


# --- float8: OCP 8-bit Floating Point Specification 1.0, table 1; every value and the rounding of ml_dtypes

EIGHT = {
    "float8_e4m3": {0x01: 2**-9, 0x08: 2**-6, 0x38: 1.0, 0x7E: 448.0, 0x7F: np.nan, 0x80: -0.0, 0xFE: -448.0},
    "float8_e5m2": {0x01: 2**-16, 0x04: 2**-14, 0x3C: 1.0, 0x7B: 57344.0, 0x7C: np.inf, 0x7D: np.nan, 0xFC: -np.inf},
}


@pytest.mark.parametrize("name", EIGHT)
def test_values_of_float8(name):
    bits = np.array(list(EIGHT[name]), np.uint8)
    np.testing.assert_array_equal(numbers_of(bits, DTYPES[name]), np.array(list(EIGHT[name].values()), np.float32))


@pytest.mark.parametrize(("name", "there"), [("float8_e4m3", "float8_e4m3fn"), ("float8_e5m2", "float8_e5m2")])
def test_float8_is_that_of_ml_dtypes(name, there):
    need("ml_dtypes")
    import ml_dtypes

    held = np.dtype(getattr(ml_dtypes, there))
    every = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(numbers_of(every, DTYPES[name]), every.view(held).astype(np.float32))
    random = np.random.default_rng(8)
    numbers = (random.standard_normal(4000) * 10.0 ** random.integers(-6, 6, 4000)).astype(np.float32)
    numbers = np.concatenate([numbers, np.array([447, 448, 464, 465, 480, 61440, np.inf, -np.inf], np.float32)])
    found, _ = elements_of(numbers, DTYPES[name])
    np.testing.assert_array_equal(found.view(np.uint8), numbers.astype(held).view(np.uint8))
    kept, rounded = elements_of(every.view(held), DTYPES[name])
    assert (kept == every).all() and rounded == 0


def test_layouts_that_the_code_lacks_are_rejected():
    for change in ({"exponent": 1}, {"exponent": 7}, {"special": "nan_of_ones", "bits": ""}):
        with pytest.raises(ValueError, match="float8_e5m2: "):
            replace(DTYPES["float8_e5m2"], **change)
    with pytest.raises(ValueError, match="int8: "):
        replace(DTYPES["int8"], exponent=3)
