# SPDX-License-Identifier: Apache-2.0
"""Layers of imported models in reports: names of the file, costs, measurements, all variants, and what is edited."""

import json
import math
import re
import shutil
from dataclasses import replace

import pytest
from in_process import succeed
from models.commands import dense
from opwest.base.diagnostics import Diagnostics
from opwest.reports import collect, data
from opwest.reports.page import page
from opwest.reports.roofline import PEAKS, bytes_of, flash_bandwidth, points_of, roofline_row
from opwest.reports.variants import Selection
from report_support import example


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Two fully connected layers of int8, which have the same kind."""
    folder = tmp_path_factory.mktemp("imported")
    succeed("import", dense("int8").save(folder / "net.tflite"), "-o", folder / "net", "--vectors", "1")
    return folder / "net"


@pytest.fixture
def edited(imported, tmp_path):
    return shutil.copytree(imported, tmp_path / "net")


def read(folder, *, variant=None, faults=None):
    faults = Diagnostics() if faults is None else faults
    return collect.report_of(collect.read_inputs([folder], faults), [], faults, selection=Selection(variant=variant))


def described(folder, **keys):
    [model] = read(folder / "manifest.yaml", **keys).models
    return model


def test_names_and_costs(imported):
    model = described(imported, variant="dsp")
    assert model.variant == "dsp"
    assert [layer.kind for layer in model.layers] == ["FULLY_CONNECTED"] * 2
    assert [layer.label for layer in model.layers] == ["FULLY_CONNECTED #0", "FULLY_CONNECTED #1"]
    assert [layer.name for layer in model.layers] == ["tensor_2", "scores"]
    assert [layer.macs for layer in model.layers] == [40 * 4, 4 * 4]
    assert model.titles == {"t1": "tensor_2"}
    assert [core.name for core in model.cores] == ["cortex-m4"]
    assert sum(layer.costs[0].cycles for layer in model.layers) == pytest.approx(model.cores[0].cycles, abs=2)
    sizes = {constant.name: constant.bytes for constant in model.constants}
    assert [layer.constants for layer in model.layers] == [
        sum(sizes.get(name, 0) for name in step.reads) for step in model.steps
    ]


def test_all_variants_are_listed(imported):
    model = described(imported)
    assert model.variant is None
    assert [other.variant for other in model.alternatives] == ["mla", "dsp", "mve"]
    assert set(model.variants) == {"mla", "dsp", "mve"}
    assert "cortex-m4" in model.variants["dsp"]
    for other in model.alternatives:
        shown = described(imported, variant=other.variant)
        assert other.pools == {pool.name: pool.planned for pool in shown.pools}
        assert other.layers == shown.layers
        assert other.cores == shown.cores
        assert [one.variant for one in shown.alternatives] == [
            None, *(name for name in ("mla", "dsp", "mve") if name != other.variant)
        ]  # fmt: skip


def test_the_page_names_layers_once(imported):
    text = page(read(imported / "manifest.yaml", variant="mve"))
    shown = text.partition('<script type="application/json"')[0]
    charts = re.findall(r'<table class="bars">.*?</table>', shown, re.DOTALL)
    labels = re.findall(r'href="#model-1-layer-\d+">([^<]*)</a>', charts[0])
    assert labels == ["FULLY_CONNECTED #0", "FULLY_CONNECTED #1"]
    assert "This page describes <b>mve</b> in full" in shown
    assert "Layers of base" in shown and "Layers of dsp" in shown
    assert "tensor_2" in shown  # in the memory map, in place of t0
    assert "Roofline, cortex-m55" in shown


def test_the_record_moves_with_the_application(imported, tmp_path):
    shutil.copytree(imported, tmp_path / "a" / "net")
    succeed("generate", tmp_path / "a" / "net" / "manifest.yaml", "-o", tmp_path / "a" / "app")
    (tmp_path / "a").rename(tmp_path / "b")
    [model] = read(tmp_path / "b" / "app").models
    assert [layer.label for layer in model.layers] == ["FULLY_CONNECTED #0", "FULLY_CONNECTED #1"]


@pytest.mark.parametrize("change", ["none", "earlier", "other"])
def test_without_a_record_the_manifest_describes_layers(edited, change):
    place = edited / "import.json"
    if change == "none":
        place.unlink()
    else:
        record = json.loads(place.read_text())
        if change == "earlier":
            del record["version"]
        else:
            record["models"][0]["manifest"] = "elsewhere.yaml"
        place.write_text(json.dumps(record))
    faults = Diagnostics()
    model = described(edited, faults=faults)
    assert [layer.label for layer in model.layers] == ["dense", "dense_2"]
    assert [layer.macs for layer in model.layers] == [None, None]
    assert not list(faults)


def test_edited_steps_have_no_names_of_the_import(edited):
    place = edited / "manifest.yaml"
    place.write_text(re.sub(r"\bdense_2\b", "scores_of", place.read_text()))
    faults = Diagnostics()
    model = described(edited, faults=faults)
    assert [layer.label for layer in model.layers] == ["dense", "scores_of"]
    assert "the steps are not those of the import" in next(iter(faults)).message


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 2}', '{"version": 2, "models": [3]}'])
def test_a_damaged_record_is_a_warning(edited, content):
    (edited / "import.json").write_text(content)
    faults = Diagnostics()
    model = described(edited, faults=faults)
    assert model.layers[0].macs is None
    [warning] = list(faults)
    assert warning.message.startswith("the record of the import is damaged")


def test_measurements_belong_to_layers(imported, tmp_path):
    model = described(imported, variant="dsp")

    def point(kind, mean, **more):
        times = {"runs": 1, "last": mean, "min": mean, "max": mean, "total": mean, "mean": mean}
        return {"kind": kind, "index": 0, "step": None, "steps": [], "operator": None, "device": None, **times, **more}

    steps = [point("step", 800.0 + one.index, step=one.index, steps=[], operator=one.operator) for one in model.steps]
    head = {
        "format": 1,
        "kind": "opwest-profile",
        "model": "net",
        "where": "nucleo",
        "clock": "board",
        "unit": "cycles",
    }
    value = {**head, "frequency_hz": 0, "points": [point("run", 2000.0), *steps], "stack": None}
    (tmp_path / "profile.json").write_text(json.dumps(value))
    faults = Diagnostics()
    inputs = collect.read_inputs([imported / "manifest.yaml"], faults)
    report = collect.report_of(inputs, [tmp_path / "profile.json"], faults, selection=Selection(variant="dsp"))
    layers = report.models[0].layers
    assert [[(time.where, time.unit, time.mean) for time in layer.times] for layer in layers] == [
        [("nucleo", "cycles", 800.0)],
        [("nucleo", "cycles", 801.0)],
    ]
    points = points_of(layers, "cortex-m4")
    assert {one.source for one in points} >= {"measured, nucleo"}
    [first] = [one for one in points if one.source.startswith("measured") and one.layer.step == 0]
    assert first.speed == 160 / 800.0
    assert "Measured, nucleo (board)" in page(report)
    assert f"{800 / 160:#.3g}" in page(report)


def test_linked_sizes_of_layers(imported):
    from opwest.reports.layers import with_layers

    faults = Diagnostics()
    inputs = collect.read_inputs([imported / "manifest.yaml"], faults)
    [model] = collect.report_of(inputs, [], faults, selection=Selection(variant="dsp")).models
    first, second = model.steps
    known = {one.name for one in model.constants}
    constant = next(name for name in first.reads if name in known)
    items = (
        data.ImageItem(first.operator, "code", 300),
        data.ImageItem(f"{second.operator}, other", "code", 20),
        data.ImageItem(constant, "constant", 50),
        data.ImageItem("run, metadata", "other", 7),
    )
    model = replace(model, steps=(first, replace(second, reads=(*second.reads, constant))))
    [found] = with_layers([replace(model, images=(data.Image("board", "ARM", items),))], inputs.examinations, faults)
    assert [layer.linked for layer in found.layers] == [{"board": 350}, {"board": 20}]


def layer(macs=100, cycles=50, dtype="int8", core="cortex-m4", origin="measured"):
    operands = (data.Operand("x", dtype, (1, 10)),), (data.Operand("y", dtype, (1, 5)),)
    cost = data.LayerCost(core, cycles, origin, 0, 0, "")
    return data.Layer(0, "layer", "CONV_2D", "", *operands, "", 25, macs, macs, 20, "k", (cost,))


def test_bytes_and_points():
    assert bytes_of(layer()) == 10 + 5 + 25
    assert bytes_of(layer(dtype="float32")) == 4 * 15 + 25
    assert bytes_of(layer(dtype="bool")) == 15 + 25
    [point] = points_of([layer(), layer(macs=0)], "cortex-m4")
    assert (point.intensity, point.speed) == (100 / 40, 2.0)
    assert points_of([layer()], "cortex-m3") == []


def test_limits_of_a_flash():
    assert flash_bandwidth("wait_states=5,line=16,cache=1024,data_cache=0,prefetch=yes") == pytest.approx(16 / 6)
    assert flash_bandwidth("none") is None
    assert flash_bandwidth("wait_states=0,line=16,cache=0") is None


def core(name, flash="none"):
    return data.Core(name, "cycles of a model", flash, 50)


def test_limits_that_are_not_known_are_left_out():
    row = roofline_row([layer(dtype="float32")], core("cortex-m4"))
    assert "the greatest multiplications per cycle for float32" in row["missing"]
    assert not [line for line in row["lines"] if "MACs" in line["label"]]
    row = roofline_row([layer(core="unheard")], core("unheard"))
    assert "bandwidth" in row["missing"] and row["lines"] == []
    assert roofline_row([layer(macs=0)], core("cortex-m4")) is None
    row = roofline_row([layer()], core("cortex-m4", "wait_states=5,line=16,cache=0,data_cache=0,prefetch=no"))
    assert row["missing"] == ""
    assert [limit["text"].split(":")[0] for limit in row["limits"]] == [
        "2 MACs per cycle", "4 bytes per cycle", "2.67 bytes per cycle",
    ]  # fmt: skip


def test_points_are_below_the_limits_of_the_model(imported):
    """A layer above its roof shows that the roof is wrong."""
    model = described(imported)
    for one in (model, *model.alternatives):
        for found in one.cores:
            peaks = [limit.value for limit in PEAKS[found.name, "int8"] if limit.of_model]
            for point in points_of(one.layers, found.name):
                assert point.speed <= max(peaks), (found.name, point)


def test_axes_are_logarithmic():
    row = roofline_row([layer(), layer(macs=1000, cycles=100)], core("cortex-m4"))
    (one, other) = row["points"]
    marks = {mark["label"]: mark["at"] for mark in row["xs"]}
    assert marks["10"] - marks["5"] == pytest.approx(marks["20"] - marks["10"], abs=0.2)
    scale = (marks["20"] - marks["10"]) / math.log10(2)
    assert other["x"] - one["x"] == pytest.approx(scale * math.log10(10), abs=1)


def test_without_an_import_operators_are_named_by_the_manifest():
    [model] = example().models
    labels = [one.label for one in model.layers]
    assert len(set(labels)) == len(labels)
    assert labels[5:7] == ["weigh #5", "weigh #6"]
    assert all(one.macs is None and not one.costs for one in model.layers)
    assert model.alternatives == ()


def test_the_sums_are_printed(imported, tmp_path):
    words = ["report", imported / "manifest.yaml", "--variant", "dsp", "-o", tmp_path / "net.html"]
    printed = succeed(*words).stdout
    assert f"net: 2 layers, {40 * 4 + 4 * 4} MACs, modelled cycles: " in printed
    [row] = json.loads(succeed(*words, "--json").stdout)["result"]["layers"]
    assert (row["variant"], row["layer_count"], row["mac_count"]) == ("dsp", 2, 40 * 4 + 4 * 4)
    assert [core["core"] for core in row["cores"]] == ["cortex-m4"]
    assert row["other_variants"] == [None, "mla", "mve"]
