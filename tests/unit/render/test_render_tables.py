# SPDX-License-Identifier: Apache-2.0
"""What templates print: records, notes, stops, variants and perfect hashes."""

import re
import string

import pytest
from golden_support import copy_project, generate_project
from hypothesis import given, settings
from hypothesis import strategies as st
from opwest.base.diagnostics import Diagnostics
from opwest.cli.main import main
from opwest.model.types.dtypes import DTYPES
from opwest.model.types.model import Model
from opwest.objects.images import NOTE_SHAPE
from opwest.plan.memory import MemoryPlan
from opwest.project.writer import read_record
from opwest.render.actions import Cache, Call, Wait, measured
from opwest.render.arguments import argument_row, operator_rows
from opwest.render.breakpoints import stops
from opwest.render.c.printer import c_definitions, c_layout
from opwest.render.llvm.printer import Printer, ir_member, ir_struct_type
from opwest.render.note import note_record
from opwest.render.perfect_hash import _hash, _place, _scale, _spread, perfect_hash
from opwest.render.tables import layout
from opwest.render.tables.types import (
    Abi,
    Definition,
    Field,
    Nested,
    Reference,
    Scalar,
    Struct,
    StructValue,
    offsets,
    size_and_alignment,
)
from projects import check

# --- Records check their values; both printers print the same record

POOL = {"name": "sram", "size": 64, "align": 8}


@pytest.mark.parametrize(("old", "new"), [({"align"}, {}), (set(), {"aling": 8})])
def test_record_has_every_field_and_no_other(old, new):
    with pytest.raises(ValueError, match=f"opwest_pool: missing or unknown fields: {[*old, *new][0]}"):
        StructValue(layout.POOL, **{name: value for name, value in POOL.items() if name not in old} | new)


@pytest.mark.parametrize(
    ("field", "value"),
    [("size", -1), ("size", 1 << 32), ("size", "64"), ("name", 1), ("size", 0.5)],
)
def test_value_fits_its_field(field, value):
    with pytest.raises(ValueError, match=f"opwest_pool.{field}: "):
        StructValue(layout.POOL, **{**POOL, field: value})


def test_values_fit_their_table():
    with pytest.raises(ValueError, match=r"steps: .* does not fit"):
        Definition("steps", layout.STEP, (StructValue(layout.POOL, **POOL),))


def operator(**changes):
    fields = {
        "name": 'say "hi"',
        "args": Reference("args"),
        "arg_count": 0xFFFF,
        "flags": layout.OPERATOR_FLAGS.bits(status=True, stateful=True),
    }
    known = {field.name: None for field in layout.OPERATOR.fields}
    record = StructValue(layout.OPERATOR, **{**known, **fields, **changes})
    return Definition("m_operators", layout.OPERATOR, (record,), is_public=True)


def test_c_has_names_for_fields_flags_and_codes():
    text = c_definitions([operator()])
    assert text.startswith("const struct opwest_operator m_operators[1] = {\n\tOPWEST_OPERATOR(")
    assert '"say \\"hi\\"", NULL, args, 65535U,' in text
    assert "OPWEST_OPERATOR_STATUS | OPWEST_OPERATOR_STATEFUL)," in text


def test_one_structure_has_the_members_that_are_not_0():
    fields = {field.name: 0 for field in layout.REGISTRY.fields} | {"entries": None, "displacements": None, "count": 3}
    record = StructValue(layout.REGISTRY, **fields)
    assert c_definitions([Definition("r", layout.REGISTRY, record)]).split("\n")[1:] == ["\t.count = 3U,", "};"]
    none = StructValue(layout.REGISTRY, **(fields | {"count": 0}))
    assert "\t.entries = NULL,\n};" in c_definitions([Definition("r", layout.REGISTRY, none)])


def test_ir_has_the_same_record():
    text = Printer(lambda text, part: f"@of_{len(text)}_{part}").definition(operator())
    assert text.startswith("@m_operators = constant [1 x %opwest_operator] [\n  %opwest_operator { ")
    assert "ptr @of_8_None" in text and "ptr @args" in text and "i16 -1" in text and "i16 5" in text


def test_numbers_without_a_name_are_numbers():
    step = StructValue(layout.STEP, operator_index=0, device_index=0xFFFF)
    tensor = layout.TENSOR.field("flags").type
    flags = [c_definitions([Definition("x", tensor, (n,))]) for n in (0, 1, 0x30, 0x31)]
    assert [text.split("{")[1] for text in flags] == [
        "0U};",
        "OPWEST_TENSOR_SCALAR};",
        "OPWEST_TENSOR_ALIGNED(8)};",
        "OPWEST_TENSOR_SCALAR | OPWEST_TENSOR_ALIGNED(8)};",
    ]
    text = c_definitions([Definition("steps", layout.STEP, (step,))])
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


# --- The note of a model has the members that `opwest inspect` reads, and no other


def deviations(value, shape, where):
    """Return the places where a value has other members or types than a shape."""
    if isinstance(shape, dict):
        if not isinstance(value, dict) or value.keys() != shape.keys():
            return [where]
        return [fault for key, inner in shape.items() for fault in deviations(value[key], inner, f"{where}.{key}")]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [where]
        return [fault for item in value for fault in deviations(item, shape[0], f"{where}[]")]
    return [] if type(value) is shape else [where]


@pytest.mark.parametrize("project", ["devices", "many_kinds", "asynchronous", "tvmgen"])
def test_note_and_reader_have_the_same_members(project, tmp_path):
    for model, plan, *_ in check(copy_project(project, tmp_path / "source"), Diagnostics()):
        assert deviations(note_record(model, plan), NOTE_SHAPE, "note") == []


def test_every_list_of_the_note_has_items_in_a_project(tmp_path):
    records = [
        note_record(model, plan)
        for project in ("devices", "many_kinds", "targets")
        for model, plan, *_ in check(copy_project(project, tmp_path / project), Diagnostics())
    ]
    pools = [pool for record in records for pool in record["pools"]]
    lists = {key for key, shape in NOTE_SHAPE.items() if isinstance(shape, list)}
    assert {key for record in records for key in lists if record[key]} == lists
    assert {key for pool in pools for key in ("reach", "regions", "buffers") if pool[key]} == {
        *("reach", "regions", "buffers")
    }


# --- The stops of `opwest run --check-steps`, and the memory of `opwest call`


class OnePlace:
    """A plan that puts all buffers at the same place."""

    def __init__(self, plan):
        self.schedule = plan.schedule

    def place(self, name):
        return "shared", 0


def planned(folder):
    found: tuple[Model, MemoryPlan] = next(iter(check(copy_project("asynchronous", folder / "source"), Diagnostics())))
    return found


def test_results_are_complete_after_waits_and_invalidation(tmp_path):
    model, plan = planned(tmp_path)
    todo = measured(model, plan)
    found = stops(model, plan)
    assert sorted({step for stop in found for _, step in stop.writes}) == list(range(len(model.steps)))
    assert [stop.point for stop in found] == sorted({stop.point for stop in found})
    waits = 0
    for stop in found:
        last = todo[stop.point - 1]
        following = todo[stop.point] if stop.point < len(todo) else None
        assert not (isinstance(following, Cache) and following.operation == "invalidate")
        for _, step in stop.writes:
            operator = model.steps[step].operator
            if operator.is_async and model.steps[step].device:
                done = [a for a in todo[: stop.point] if isinstance(a, Wait) and step in a.steps]
                assert done and not (isinstance(last, Call) and last.step.operator.is_async)
                waits += 1
    assert waits


def test_results_that_a_later_step_may_overwrite_are_left_out(tmp_path):
    model, plan = planned(tmp_path)
    kept = {write for stop in stops(model, OnePlace(plan)) for write in stop.writes}
    whole = {write for stop in stops(model, plan) for write in stop.writes}
    assert kept < whole
    buffers = {buffer.name for buffer in model.buffers}
    synchronous = {
        (tensor, step)
        for tensor, step in whole
        if not (model.steps[step].operator.is_async and model.steps[step].device) or tensor not in buffers
    }
    assert synchronous <= kept, "they are complete before any later step"


def test_arguments_of_any_operator_fit_without_overlap(tmp_path):
    model, _ = planned(tmp_path)
    memory = argument_row(model)
    rows = operator_rows(model)
    assert [row["name"] for row in rows] == [operator.name for operator in model.operators]
    for row, operator in zip(rows, model.operators, strict=True):
        end = 8 * len(row["args"])
        assert len(row["args"]) <= memory["count"]
        for argument in row["args"]:
            if not argument["scalar"]:
                assert argument["offset"] >= end and argument["offset"] % memory["align"] == 0
                end = argument["offset"] + argument["size"]
        assert end <= memory["size"]
        types = {device.name: device.type for device in model.devices}
        assert all(types[name] == operator.device_type or operator.device_type is None for name in row["devices"])


# --- The selection of variants: the files of each, options that only one requires, and the record

MODEL = "models/adder"


def test_sizes_differ_and_headers_have_one_name(tmp_path):
    app = generate_project("variants", tmp_path)
    found = {}
    assert not (app / f"{MODEL}/variants/mla/include/adder.h").exists(), "equal to the header of the base"
    assert '\n  "include/adder.h"\n' in (app / f"{MODEL}/variants/mla/model.cmake").read_text()
    for name in ("", "/variants/dsp", "/variants/mve"):
        text = (app / f"{MODEL}{name}/include/adder.h").read_text()
        found[name.rpartition("/")[2]] = re.findall(r"#define (ADDER_POOL_\w+_SIZE) +(\w+)", text)
    assert found == {
        "": [],
        "dsp": [("ADDER_POOL_FAST_SIZE", "96U")],
        "mve": [("ADDER_POOL_SRAM_SIZE", "256U")],
    }


def test_options_of_one_variant_are_not_in_the_configuration(tmp_path):
    app = generate_project("variants", tmp_path)
    assert "CONFIG_CRC" not in (app / "prj.conf").read_text() + (app / "tests/adder/prj.conf").read_text()
    text = (app / f"{MODEL}/Kconfig").read_text()
    sections = {section.split("\n")[0]: section for section in text.split("\nconfig ")[1:]}
    assert [name for name, section in sections.items() if "imply CRC" in section] == ["OPWEST_MODEL_ADDER_VARIANT_DSP"]
    assert "CONFIG_CRC" in (app / f"{MODEL}/variants/dsp/model.cmake").read_text()


def test_an_option_of_all_variants_is_in_the_configuration(tmp_path):
    (manifest,) = copy_project("variants", tmp_path / "source")
    text = manifest.read_text()
    externals = "externals:\n  - {symbol: crc32_ieee, from: Zephyr, kconfig: CONFIG_CRC}\n"
    manifest.write_text(text.replace("constants:\n", f"{externals}constants:\n", 1))
    assert main(["generate", str(manifest), "-o", str(tmp_path / "app")]) == 0
    assert "CONFIG_CRC=y" in (tmp_path / "app/prj.conf").read_text()
    assert "imply CRC" not in (tmp_path / f"app/{MODEL}/Kconfig").read_text()


def test_the_record_has_the_inputs_of_all_variants(tmp_path):
    app = generate_project("variants", tmp_path)
    (record,) = read_record(app)["models"]
    assert set(record["inputs"]) == {
        "manifest.yaml",
        "constants.npz",
        *(f"operators/{name}.c" for name in ("base", "mla", "dsp", "mve")),
    }
    assert [variant["variant"] for variant in record["variants"]] == ["mla", "dsp", "mve"]


def test_buffers_of_main_are_aligned_for_all_variants(tmp_path):
    main_c = (generate_project("variants", tmp_path) / "src/main.c").read_text()
    assert "OPWEST_ALIGNED(16) static int32_t adder_input_x" in main_c


def test_regeneration_removes_a_variant(tmp_path):
    app = generate_project("variants", tmp_path)
    manifest = tmp_path / "source/manifest.yaml"
    text = manifest.read_text()
    manifest.write_text(text[: text.index("  mve:\n")])
    assert main(["update", str(app)]) == 0
    assert (app / f"{MODEL}/variants/dsp").is_dir()
    assert not (app / f"{MODEL}/variants/mve").exists()
    assert "mve" not in (app / f"{MODEL}/model.cmake").read_text()


def test_check_and_plan_show_variants(tmp_path, capsys):
    (manifest,) = copy_project("variants", tmp_path / "source")
    assert main(["check", str(manifest)]) == 0
    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith("adder")] == [
        "adder: 1 operator, 1 step",
        "adder, variant mla: 1 operator, 1 step",
        "adder, variant dsp: 2 operators, 2 steps",
        "adder, variant mve: 1 operator, 1 step",
    ]
    assert main(["plan", str(manifest), "--variant", "dsp"]) == 0
    assert "adder, variant dsp: planner search\n  pool fast: 2 buffers" in capsys.readouterr().out
    assert main(["plan", str(manifest), "--variant", "dps"]) == 1
    assert "unknown variant 'dps'\n  hint: did you mean 'dsp'?" in capsys.readouterr().err


# --- The perfect hash is minimal; tests/unit/runtime/test_runtime_registry.py searches its tables in C

NAMES = st.lists(st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=30), unique=True, min_size=1)


def find(table, name):
    """The place that a name hashes to, whether or not it is one of the names."""
    hashed = _hash(name.encode(), table.seed)
    bucket = _scale(_spread(hashed), len(table.displacements))
    return _place(hashed, table.displacements[bucket], len(table.order))


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(NAMES)
def test_every_name_has_its_own_slot(names):
    table = perfect_hash(names)
    assert sorted(table.order) == list(range(len(names)))
    assert [names[table.order[find(table, name)]] for name in names] == names
    assert len(table.displacements) == -(-len(names) // 4)
    assert all(0 <= displacement <= 0xFFFF for displacement in table.displacements)
    assert 0 <= table.seed <= 0xFFFFFFFF


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 10, 100, 1000, 10_000])
def test_sizes(count):
    names = [f"tvmgen_default_fused_nn_conv2d_{i}" for i in range(count)]
    table = perfect_hash(names)
    assert [table.order[find(table, name)] for name in names] == list(range(count))


def test_unknown_names_get_an_index_within_the_table():
    table = perfect_hash(["a", "b", "c"])
    assert all(0 <= find(table, name) < 3 for name in ("", "d", "ü", "a" * 1000))


def test_equal_hashes_change_the_seed(monkeypatch):
    """Two names that collide with the first seeds: the search continues."""
    import opwest.render.perfect_hash as module

    real = module._hash
    monkeypatch.setattr(module, "_hash", lambda name, seed: 7 if seed < 3 else real(name, seed))
    assert perfect_hash(["a", "b"]).seed == 3
