# SPDX-License-Identifier: Apache-2.0
"""`opwest import vela`: what is written for files like those of Vela, and the message of every refusal."""

import json
import re
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from requirements_support import need

need("tflite")

from ethos_u_payloads import CONFIG_U65_256, STOP, convolution, copy, payload, words_of  # noqa: E402
from importers.vela_made import ARENA, WEIGHTS, Vela, clashing, mixed, raw, step, whole  # noqa: E402
from opwest.base.diagnostics import Diagnostics, OpwestError  # noqa: E402
from opwest.cli.main import main  # noqa: E402
from opwest.frontends.vela.request import Options  # noqa: E402
from opwest.imports import vela  # noqa: E402
from opwest.imports.import_json import read_import_json  # noqa: E402
from opwest.imports.vela import import_vela  # noqa: E402
from opwest.reports.collect import read_inputs, report_of  # noqa: E402
from opwest.reports.graph import lay_out  # noqa: E402


def imported(folder, content, **keys):
    """Import a file; return the directory and the manifest."""
    file = folder / ("m_vela.npz" if content.startswith(b"PK") else "m_vela.tflite")
    file.write_bytes(content)
    done = import_vela(file, folder / "model", Options(**keys))
    assert done.models == ("m",)
    return done.folder, (done.folder / "manifest.yaml").read_text()


def lines_of(manifest, section):
    """Return the lines of a section of `run`, or of the top level."""
    body = re.search(rf"^( *){section}:\n((?:\1 +.*\n)*)", manifest, re.MULTILINE)[2]
    return [line.strip() for line in body.splitlines()]


def test_whole_model_is_one_step_in_one_arena(tmp_path):
    folder, manifest = imported(tmp_path, whole().build())
    quantised = "quantization: {scale: 0.5, zero_point: 3}"
    shape = "dtype: int8, shape: [1, 1, 1, 16], view_of: arena"
    assert lines_of(manifest, "inputs") == [f"image: {{{shape}, offset: 16, {quantised}}}"]
    assert lines_of(manifest, "outputs") == [f"scores: {{{shape}, offset: 48, {quantised}}}"]
    assert lines_of(manifest, "tensors") == [
        f"arena: {{dtype: uint8, shape: [{ARENA}], pool: arena, align: 16, arena: true}}"
    ]
    assert lines_of(manifest, "steps") == [
        "- {call: npu, device: npu0, program: programs/npu_0.cop, args: [npu_weights, arena]}"
    ]
    assert lines_of(manifest, "npu0") == ["devicetree: {nodelabel: npu0}", "type: ethos-u55-128", "switching: free"]
    assert lines_of(manifest, "npu")[:3] == [
        "symbol: npu",
        "device: {type: ethos-u55-128, launch: true}",
        "async: true",
    ]
    assert lines_of(manifest, "kconfig") == ["CONFIG_ETHOS_U: y", "CONFIG_ETHOS_U55_128: y"]
    assert (folder / "programs/npu_0.cop").read_bytes() == step(16, 48)
    with np.load(folder / "constants.npz") as constants:
        np.testing.assert_array_equal(constants["npu_weights"], WEIGHTS)
    source = (folder / "npu.c").read_text()
    assert "int32_t npu(const uint8_t *region_0, uint8_t *region_1, const struct opwest_launch *launch)" in source
    assert source.index("{.data = region_0, .size = 192U}") < source.index("{.data = region_1, .size = 128U}")
    assert "return opwest_ethos_u_enqueue(launch, &inference);" in source
    assert not (folder / "operators.c").exists()
    assert 'compatible = "opwest,ethos-u"' in (folder / "npu.overlay").read_text()


def test_operators_of_the_processor_use_views_of_the_arena(tmp_path):
    folder, manifest = imported(tmp_path, mixed().build(), kernels="portable")
    assert lines_of(manifest, "steps") == [
        "- {call: npu, device: npu0, program: programs/npu_0.cop, args: [npu_weights, arena]}",
        "- {call: clamp, args: [t0, t1]}",
        "- {call: npu, device: npu0, program: programs/npu_1.cop, args: [npu_weights, arena]}",
    ]
    assert lines_of(manifest, "tensors")[1:] == [
        "t0: {view_of: arena, offset: 16, dtype: int8, shape: [1, 1, 1, 16]}",
        "t1: {view_of: arena, offset: 32, dtype: int8, shape: [1, 1, 1, 16]}",
    ]
    assert "2 subgraphs for ethos-u55-128, 1 operator on the processor: RELU" in manifest
    assert (folder / "programs/npu_1.cop").read_bytes() == step(32, 48)
    assert "void op_clamp(" in (folder / "operators.c").read_text()


def test_layers_are_those_of_the_file(tmp_path):
    folder, _ = imported(tmp_path, mixed().build(), kernels="portable")
    record = json.loads((folder / "import.json").read_text())
    assert record["options"] is None
    [row] = record["models"]
    assert [(one["operators"][0]["kind"], one["macs"]) for one in row["layers"]] == [
        ("ethos-u", None),
        ("RELU", 0),
        ("ethos-u", None),
    ]
    [base] = row["implementations"]
    assert [(step["operator"], step["kernel"]) for step in base["steps"]] == [
        ("npu", None),
        ("clamp", "portable"),
        ("npu", None),
    ]
    assert all([step is None for step in cost["steps"]] == [True, False, True] for cost in base["costs"])
    faults = Diagnostics()
    [model] = report_of(read_inputs([folder / "manifest.yaml"], faults), [], faults).models
    lines = {(edge.tensor, edge.way[0].key, edge.way[-1].key) for edge in lay_out(model).edges}
    assert lines == {
        ("image", "in image", "step 0"),
        ("arena", "step 0", "step 1"),
        ("arena", "step 1", "step 2"),
        ("scores", "step 2", "out scores"),
    }
    with pytest.raises(OpwestError, match="the record of the import is that of a file of Vela"):
        read_import_json(folder)


def test_equal_programs_are_one_file(tmp_path):
    folder, manifest = imported(tmp_path, mixed(second=(0, 16)).build(), kernels="portable")
    assert [path.name for path in (folder / "programs").iterdir()] == ["npu_0.cop"]
    assert manifest.count("program: programs/npu_0.cop") == 2


def test_reshape_between_subgraphs_is_a_copy_to_the_place_of_its_result(tmp_path):
    made = mixed("RESHAPE", shape=(1, 16), parameters=[np.array([1, 16], np.int32)])
    _, manifest = imported(tmp_path, made.build(), kernels="portable")
    assert lines_of(manifest, "steps")[1] == "- {call: copy, args: [t0, t2]}"
    assert lines_of(manifest, "tensors")[1:] == [
        "t0: {view_of: arena, offset: 16, dtype: int8, shape: [1, 1, 1, 16]}",
        "t2: {view_of: arena, offset: 32, dtype: int8, shape: [1, 16]}",
    ]


def test_tensor_that_the_plan_does_not_keep_has_memory_of_its_own(tmp_path):
    _, manifest = imported(tmp_path, clashing(needed_by_npu=False).build(), kernels="portable")
    assert lines_of(manifest, "steps")[1] == "- {call: logistic, args: [t0, logistic_1_table, t1]}"
    assert not any(line.startswith("t1:") for line in lines_of(manifest, "tensors"))
    assert any(line.startswith("t2: {view_of: arena, offset: 32,") for line in lines_of(manifest, "tensors"))


def test_fast_scratch_memory_has_a_pool_of_its_own(tmp_path):
    stream = payload([*words_of(convolution(at=16, to=48)), *words_of(copy((1, 0), (2, 0), 64)), STOP], CONFIG_U65_256)
    folder, manifest = imported(tmp_path, whole(stream, fast=64).build())
    assert "  arena: {reachable_by: [cpu, npu0], cache_line: 32}" in manifest
    assert "  fast: {reachable_by: [cpu, npu0], cache_line: 32}" in manifest
    assert "args: [npu_weights, arena, npu_fast]" in manifest
    assert "npu_fast: {dtype: uint8, shape: [64], pool: fast, align: 16, arena: true}" in manifest
    assert "{.data = region_2, .size = 64U}" in (folder / "npu.c").read_text()
    assert "CONFIG_ETHOS_U65_256: y" in manifest


def test_scratch_that_is_fast_scratch_too_is_one_argument(tmp_path, monkeypatch):
    # The check refuses the program of this test, which writes the fast scratch memory.
    monkeypatch.setattr(vela, "checked", lambda *_: None)
    stream = payload([*words_of(convolution(at=16, to=48)), *words_of(copy((1, 0), (2, 64), 16)), STOP])
    folder, manifest = imported(tmp_path, whole(stream).build())
    assert "args: [npu_weights, arena]" in manifest
    source = (folder / "npu.c").read_text()
    assert ".count = 3U" in source and source.count("{.data = region_1, .size = 128U}") == 2


def copying(at, to):
    """Return a payload that does not use weights."""
    return payload([*words_of(copy((1, at), (1, to), 16)), STOP])


@pytest.mark.parametrize("kind", ["constant", "tensor", "absent"])
def test_file_without_weights(tmp_path, kind, capsys):
    """Vela 5.2 writes an empty tensor, its older core an empty constant."""
    made = whole(copying(16, 48))
    if kind == "absent":
        made.model.graph.operators[0][1][1] = None
    else:
        made.weights.shape, made.weights.content = (0,), np.zeros(0, np.uint8) if kind == "constant" else None
    folder, manifest = imported(tmp_path, made.build())
    assert_has_no_weights(folder, manifest)
    assert main(["check", str(folder / "manifest.yaml")]) == 0
    # Without an argument for region 0, the size of region 1 is known.
    (folder / "programs/npu_0.cop").write_bytes(copying(16, 120))
    assert main(["check", str(folder / "manifest.yaml")]) == 1
    assert "bytes 120 to 135 of region 1, which has 128 bytes" in capsys.readouterr().err


def test_raw_file_without_weights(tmp_path):
    content = raw({"cmd_data": np.bytes_(copying(16, 48)), "weight_data": np.bytes_(b"")})
    assert_has_no_weights(*imported(tmp_path, content))


def assert_has_no_weights(folder, manifest):
    assert "args: [arena]" in manifest and "constants:" not in manifest
    assert not (folder / "constants.npz").exists()
    source = (folder / "npu.c").read_text()
    assert "int32_t npu(uint8_t *region_1, const struct opwest_launch *launch)" in source
    assert source.index("{0},") < source.index("{.data = region_1, .size = 128U}")


def test_large_arena_needs_little_memory(tmp_path):
    made = whole(arena=2**30)
    tracemalloc.start()
    imported(tmp_path, made.build())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**26


def test_boards_and_memory_regions(tmp_path):
    board = "mps3/corstone300/an547"
    pools = (f"arena={board}:isram", f"weights={board}:isram")
    _, manifest = imported(tmp_path, whole().build(), boards=["other"], pools=pools)
    assert f"boards: [other, {board}]" in manifest
    region = f"boards: {{{board}: {{nodelabel: isram}}}}"
    assert f"  arena: {{reachable_by: [cpu, npu0], cache_line: 32, {region}}}" in manifest
    assert f"  weights: {{reachable_by: [cpu, npu0], cache_line: 32, {region}}}" in manifest
    assert "npu_weights: {file: constants.npz, key: npu_weights, pool: weights}" in manifest
    assert lines_of(manifest, "overlays") == ["other: npu.overlay", f"{board}: npu.overlay"]


def test_weights_are_in_the_memory_of_the_arena_in_sram_only(tmp_path):
    _, manifest = imported(tmp_path, whole().build(), memory_mode="Sram_Only")
    assert "npu_weights: {file: constants.npz, key: npu_weights, pool: arena}" in manifest


def test_raw_file_is_read_without_unpickling(tmp_path):
    canary = tmp_path / "unpickled"
    folder, manifest = imported(tmp_path, raw(canary=canary))
    assert not canary.exists()
    assert lines_of(manifest, "inputs") == ["input_0: {dtype: int8, shape: [1, 1, 1, 16], view_of: arena, offset: 16}"]
    assert (folder / "programs/npu_0.cop").read_bytes() == step(16, 48)
    with np.load(folder / "constants.npz") as constants:  # with its trailing zeros
        np.testing.assert_array_equal(constants["npu_weights"], WEIGHTS)
    assert "without unpickling" in manifest


def two_scratch_tensors():
    made = mixed()
    made.model.graph.operators[2][1][2] = made.planned("other", 0, "uint8", (ARENA,))
    return made


def two_npus():
    made = mixed()
    made.model.graph.operators[2][1][0].content = np.frombuffer(step(32, 48, CONFIG_U65_256), np.uint8)
    return made


def computed_weights():
    made = whole()
    made.weights.content = None
    return made


def for_the_processor(*kinds, description=None):
    made = Vela()
    tensor = made.input("x", 0)
    for number, kind in enumerate(kinds, 1):
        tensor = made.model.operator(kind, [tensor], made.planned(f"t{number}", 16 * number))
    made.model.output(tensor)
    made.model.description = description
    return made


SEPARATE = payload([*words_of(convolution(at=16, to=48)), *words_of(copy((3, 0), (4, 0), 16)), STOP])


OPTIMISED = for_the_processor("RELU", "ABS", description="Vela Optimised")
REFUSALS = {
    "not a file of Vela": b"no model",
    "the memory that Vela planned for tensor 't' has 'c' when it is read": clashing(needed_by_npu=True),
    "tensor 'scores' has the dtype string": whole(copying(16, 48), dtype="string"),
    "the weights 'read_only' is uint8 [192]": computed_weights(),
    "the model has no operator 'ethos-u'": for_the_processor("RELU"),
    "--npu compiles it for an NPU": for_the_processor("RELU"),
    "Vela left all operators on the processor: ABS, RELU": OPTIMISED,
    "m_vela.tflite imports it for the processor": OPTIMISED,
    "operator 0 (ethos-u), result 'scores': the payload has the format COP2": whole(b"COP2" + step(16, 48)[4:]),
    "the payload is truncated": whole(step(16, 48)[:-4]),
    "the payload uses region 3: separate regions for inputs and outputs": whole(SEPARATE),
    "writes the OFM, bytes 120 to 135 of region 1, which has 128 bytes": whole(step(16, 120), to=48),
    "the file has no metadata OfflineMemoryAllocation": whole().build(None),
    "the metadata OfflineMemoryAllocation has 8 bytes": whole().build(b"12345678"),
    "has version 0 and 1 offset, 1 follow": whole().build(struct.pack("<4i", 0, 1, 1, 0)),
    "tensor 'image' is not planned": whole(at=None),
    "tensor 'image' is planned at byte 8 of the scratch memory": whole(at=8),
    "tensor 'image' is planned at bytes 128 to 143": whole(step(16, 48), at=128),
    "operator 2 (ethos-u), result 'scores' has memory of its own": two_scratch_tensors(),
    "the file has payloads for ethos-u55-128 and ethos-u65-256": two_npus(),
    "is a constant": whole(constant=True),
    "the file lacks cmd_data, input_shape": raw({"cmd_data": None, "input_shape": None}),
    "'cmd_data': cannot read": raw({"cmd_data": np.array([{}], object)}),
    "'scratch_size' is int64": raw({"scratch_size": -1}),
    "'scratch_size' has 2 elements": raw({"scratch_size": [1, 2]}),
    "'weight_region' is 3": raw({"weight_region": 3}),
    "the model has variables": raw({"variable_region": [1]}),
    "input 0 is in region 3: separate regions for inputs and outputs": raw({"input_region": [3]}),
    "input 0 has the shape [1, 1, 1, 16] and 3 bytes per element": raw({"input_elem_size": [3]}),
    "the other arrays of inputs have the shapes": raw({"input_offset": [1, 2]}),
    "tensor 'input_0' is planned at byte 8 of the scratch memory": raw({"input_offset": [8]}),
}


@pytest.mark.parametrize("message", REFUSALS)
def test_refusals(tmp_path, message):
    content = REFUSALS[message]
    with pytest.raises(OpwestError) as error:
        imported(tmp_path, content if isinstance(content, bytes) else content.build(), kernels="portable")
    assert message in str(error.value), str(error.value)
    assert not (tmp_path / "model").exists()


def test_commands(tmp_path, monkeypatch, capsys):
    """The name of the file selects the import; `import tflite` names it."""
    monkeypatch.chdir(tmp_path)
    Path("m_vela.tflite").write_bytes(whole().build())
    assert main(["import", "tflite", "m_vela.tflite", "-o", "model"]) == 1
    assert "opwest import vela m_vela.tflite" in capsys.readouterr().err
    assert main(["import", "m_vela.tflite", "-o", "model"]) == 0
    printed = capsys.readouterr()
    assert "model/manifest.yaml: 1 operator, 1 step, 192 bytes of constants" in printed.out
    assert "note: 1 subgraph for ethos-u55-128, no operator on the processor" in printed.err


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ("arena", "invalid --pool 'arena'"),
        ("fast=board:node", "--pool fast=board:node: the model has no memory 'fast'"),
    ],
)
def test_invalid_pools(tmp_path, pool, message):
    with pytest.raises(OpwestError, match=message):
        imported(tmp_path, whole().build(), pools=[pool])
