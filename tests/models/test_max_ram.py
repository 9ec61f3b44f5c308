# SPDX-License-Identifier: Apache-2.0
"""`--max-ram` and `--optimize`: choices by the planned memory, which is that of `opwest check`; the key `optimize`."""

import json
import re

import numpy as np
import pytest
import yaml
from in_process import fail, opwest, succeed
from models.commands import pool_bytes
from models.made import Model
from opwest.compiler.request import Options
from opwest.compiler.selection.arena import arena_of, within
from opwest.compiler.selection.choose import choose
from opwest.compiler.selection.costs import Table, key_of
from opwest.imports.prepare import prepare, program_of


def convolution(model, random, data, shape, result, stride=1, activation="RELU"):
    """Append a convolution with weights of a shape; `result` is a scale and a zero point."""
    weights = model.constant(random.integers(-127, 128, shape).astype(np.int8), 0.01)
    bias = model.constant(random.integers(-900, 900, shape[0]).astype(np.int32), 0.05 * 0.01)
    options = {"padding": "SAME", "stride_h": stride, "stride_w": stride, "fused_activation_function": activation}
    return model.operator("CONV_2D", [data, weights, bias], ("int8", *result), **options)


def convolutions():
    """Return a model of convolutions whose variants have scratch memory: 12x12 values, 8 to 24 channels."""
    random, model = np.random.default_rng(2), Model()
    data = model.input("int8", (1, 12, 12, 8), 0.05, 3, name="image")
    for before, results, size, scale in ((8, 16, 3, 0.4), (16, 24, 1, 0.05), (24, 16, 3, 0.4)):
        data = convolution(model, random, data, (results, size, size, before), (scale, -128))
    data.name = "features"
    return model.output(data).build()


MODEL = convolutions


def imported(file, folder, *words):
    """Return by class: the cycles of all layers, the printed bytes of memory; and those that opwest check plans."""
    out = succeed("import", file, "-o", folder, "--vectors", "0", *words).stdout
    printed = {}
    for part in re.split(r"^(?=\w+ \(cycles of)", out, flags=re.MULTILINE):
        found = re.search(r"^  all +([\d,]+) .*\n(?:  without .*\n)?  ([\d,]+) bytes of RAM", part, re.MULTILINE)
        if found:
            printed[part.split()[0]] = tuple(int(one.replace(",", "")) for one in found.groups())
    text = succeed("check", "--json", folder / "manifest.yaml").stdout
    planned = {one["variant"]: pool_bytes(one)["sram"] for one in json.loads(text)["result"]}
    return printed, planned


@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_the_printed_memory_is_that_of_the_plan(file, io, tmp_path):
    printed, planned = imported(file, tmp_path / "m", "--io", io)
    assert set(printed) == {"mla", "dsp", "mve"}
    assert {name: memory for name, (_, memory) in printed.items()} == {name: planned[name] for name in printed}


def test_a_limit_of_memory_is_kept(file, tmp_path):
    free, _ = imported(file, tmp_path / "free")
    least, _ = imported(file, tmp_path / "least", "--optimize", "ram")
    largest, smallest = (max(memory for _, memory in one.values()) for one in (free, least))
    assert smallest < largest
    for number, limit in enumerate((largest, (largest + smallest) // 2, smallest)):
        printed, planned = imported(file, tmp_path / str(number), "--max-ram", str(limit))
        assert all(size <= limit for name, size in planned.items() if name in printed)
        for name, (cycles, memory) in printed.items():
            assert memory <= limit and cycles >= free[name][0]
            assert free[name][1] > limit or (cycles, memory) == free[name]


def test_a_limit_may_require_results_in_place(tmp_path):
    """A variant without scratch memory, which does not replace its data, needs more than one with scratch memory."""
    random, model = np.random.default_rng(4), Model()
    data = model.input("int8", (1, 25, 5, 64), 0.05, 3, name="image")
    weights = model.constant(random.integers(-127, 128, (1, 3, 3, 64)).astype(np.int8), 0.01)
    bias = model.constant(random.integers(-900, 900, 64).astype(np.int32), 0.05 * 0.01)
    window = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    keys = {"dilation_h_factor": 1, "dilation_w_factor": 1, "fused_activation_function": "RELU"}
    data = convolution(model, random, data, (64, 1, 1, 64), (0.05, -128))
    data = model.operator("DEPTHWISE_CONV_2D", [data, weights, bias], ("int8", 0.05, -128), **window, **keys)
    file = model.output(convolution(model, random, data, (64, 1, 1, 64), (0.05, -128))).save(tmp_path / "m.tflite")
    [graph] = prepare(file, Options(), lambda *_: None).graphs
    program = program_of(graph, Options(), "made")
    layer = program.operations[1]
    costs = {"mve-tiles": (1000, 900), "mve-widened": (2000, 900), "portable": (9000, 200)}
    table = Table("cortex-m55", {key_of(layer): costs}, {})
    plain = choose(program, "", table, given=dict.fromkeys(program.operations, "portable"))
    limit = arena_of(program, plain, caller_memory=False)
    found = within(program, lambda some: choose(program, "mve", table, max_scratch=some), limit, caller_memory=False)
    assert found.variants[layer] == "portable" and arena_of(program, found, caller_memory=False) <= limit
    [row] = [row for row in found.rows if row.operation is layer]
    assert row.why == "4,096 B less scratch than mve-tiles, for --max-ram"
    assert {other.variant: other.kept for other in row.others}["mve-widened"] == 8000


def test_operators_for_the_least_flash_are_compiled_for_size(file, tmp_path):
    for objective, expected in (("flash", {"size"}), ("speed", {None}), ("ram", {None})):
        imported(file, tmp_path / objective, "--optimize", objective)
        manifest = yaml.safe_load((tmp_path / objective / "manifest.yaml").read_text())
        parts = [manifest, *manifest["variants"].values()]
        assert {entry.get("optimize") for part in parts for entry in part["objects"]} == expected


def test_the_least_memory_is_named(file, tmp_path):
    err = fail("import", file, "-o", tmp_path / "m", "--max-ram", "1000").stderr
    fault = r"error: --max-ram 1000: no choice of operators for mla fits\n  expected: --max-ram of at least \d+ bytes"
    assert re.search(fault, err), err
    err = fail("import", file, "-o", tmp_path / "m", "--max-ram", "1000", "--max-flash", "10").stderr
    assert "error: --max-flash 10 --max-ram 1000: no choice of operators for mla fits" in err
    assert re.search(r"expected: --max-flash of at least \d+ bytes and --max-ram of at least \d+ bytes", err)
    assert not (tmp_path / "m").exists()
    for option, value, expected in (
        ("--max-flash", "9KB", "bytes, such as 20000, 200KiB or 2MiB, or none"),
        ("--max-ram", "none", "bytes, such as 20000, 200KiB or 2MiB"),
        ("--vectors", "x", "a number from 0 to 1000"),
    ):
        err = opwest("import", file, "-o", tmp_path / "m", option, value).stderr
        assert err.endswith(f"argument {option}: '{value}'; expected {expected}\n"), err


def test_portable_operators_above_the_limit_are_named(file, tmp_path):
    out = succeed("import", file, "-o", tmp_path / "m", "--max-ram", "1MiB").stdout
    line = r"^all other processors: portable C, [\d,]+ bytes of RAM, the arena of the base$"
    assert re.search(line, out, re.MULTILINE)
