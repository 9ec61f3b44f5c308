# SPDX-License-Identifier: Apache-2.0
"""Records check their values; both printers print the same record."""

import pytest
from opwest.model.dtypes import DTYPES
from opwest.render.c.printer import c_definitions, c_layout
from opwest.render.llvm.printer import Printer, ir_member, ir_struct_type
from opwest.render.records import layout
from opwest.render.records.types import Abi, Field, Nested, Scalar, Struct, Table, offsets, size_and_alignment
from opwest.render.records.values import NULL, Definition, Number, Record, Reference, Text

POOL = {"name": Text("sram"), "size": Number(64), "align": Number(8)}


def test_record_has_every_field():
    with pytest.raises(ValueError, match="opwest_pool: missing or unknown fields: align"):
        Record(layout.POOL, {name: value for name, value in POOL.items() if name != "align"})


def test_record_has_no_other_field():
    with pytest.raises(ValueError, match="opwest_pool: missing or unknown fields: aling"):
        Record(layout.POOL, {**POOL, "aling": Number(8)})


@pytest.mark.parametrize(
    ("field", "value"),
    [("size", Number(-1)), ("size", Number(1 << 32)), ("size", Text("64")), ("name", Number(1)), ("size", Number(0.5))],
)
def test_value_fits_its_field(field, value):
    with pytest.raises(ValueError, match=f"opwest_pool.{field}: "):
        Record(layout.POOL, {**POOL, field: value})


def test_definition_size_must_match_its_table():
    with pytest.raises(ValueError, match="pools: 1 items, expected 2"):
        Definition("pools", Table(layout.POOL, 2), (Record(layout.POOL, POOL),))
    with pytest.raises(ValueError, match=r"steps: .* does not fit"):
        Definition("steps", Table(layout.STEP, 1), (Record(layout.POOL, POOL),))


def operator(**changes):
    """A definition of one operator."""
    fields = {
        "name": Text('say "hi"'),
        "args": Reference("args"),
        "arg_count": Number(0xFFFF),
        "flags": Number(layout.OPERATOR_FLAGS.bits(status=True, stateful=True)),
    }
    known = {field.name: NULL for field in layout.OPERATOR.fields}
    record = Record(layout.OPERATOR, {**known, **fields, **changes})
    return Definition("m_operators", Table(layout.OPERATOR, 1), (record,), linkage="public")


def test_c_has_names_for_fields_flags_and_codes():
    text = c_definitions([operator()])
    assert text.startswith("const struct opwest_operator m_operators[1] = {\n\t{")
    assert '.name = "say \\"hi\\""' in text and ".args = args, .arg_count = 65535U" in text
    assert ".flags = OPWEST_OPERATOR_STATUS | OPWEST_OPERATOR_STATEFUL" in text


def test_ir_has_the_same_record():
    text = Printer(lambda text, part: f"@of_{len(text)}_{part}").definition(operator())
    assert text.startswith("@m_operators = constant [1 x %opwest_operator] [\n  %opwest_operator { ")
    assert "ptr @of_8_None" in text and "ptr @args" in text and "i16 -1" in text and "i16 5" in text


def test_numbers_without_a_name_are_numbers():
    step = Record(layout.STEP, {"operator_index": Number(0), "device_index": Number(0xFFFF)})
    tensor = layout.TENSOR.field("flags").type
    flags = [c_definitions([Definition("x", Table(tensor, 1), (Number(n),))]) for n in (0, 1, 0x30, 0x31)]
    assert [text.split("{")[1] for text in flags] == [
        "0U};",
        "OPWEST_TENSOR_SCALAR};",
        "0x30U};",
        "OPWEST_TENSOR_SCALAR | 0x30U};",
    ]
    text = c_definitions([Definition("steps", Table(layout.STEP, 1), (step,))])
    assert "{.operator_index = 0U, .device_index = OPWEST_NO_DEVICE}," in text


def test_layouts_by_abi():
    mixed = Struct.make("mixed", "mixed.h", first=layout.U8, wide=layout.U64, last=layout.U16)
    assert offsets(mixed, Abi(4)) == {"first": 0, "wide": 8, "last": 16}
    assert size_and_alignment(mixed, Abi(4)) == (24, 8)
    assert offsets(mixed, Abi(4, 4)) == {"first": 0, "wide": 4, "last": 12}
    assert size_and_alignment(mixed, Abi(4, 4)) == (16, 4)
    assert c_layout(layout.POOL)["align"] == "sizeof(void *) + 4U"


def test_members_are_addressed_by_name():
    inner = Struct("place", "", "", (Field("x", Scalar(DTYPES["int32"])), Field("y", Scalar(DTYPES["int32"]))))
    outer = Struct.make("outer", "outer.h", head=layout.U8, places=Nested(inner, 3), one=Nested(inner))
    assert ir_struct_type(outer, 32) == "%outer = type { i8, [3 x { i32, i32 }], { i32, i32 } }"
    assert (
        ir_member("%a", outer, "%p", "places", 2, "y")
        == "  %a = getelementptr %outer, ptr %p, i32 0, i32 1, i32 2, i32 1"
    )
    assert ir_member("%a", outer, "%p", "one", "x", index="%i").endswith("ptr %p, i32 %i, i32 2, i32 0")
    with pytest.raises(KeyError):
        ir_member("%a", outer, "%p", "two")
