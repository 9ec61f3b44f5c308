# SPDX-License-Identifier: Apache-2.0
"""`opwest plan` of a manifest: its plan, its tables, and plans that come back from another planner."""

import csv
import json
import subprocess

import numpy as np
import pytest
from requirements_support import need_compiler

OPERATORS = """#include <stdint.h>
int32_t twice(const int8_t *x, int8_t *y);
int32_t twice(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 100; i++) {
		y[i] = (int8_t)(2 * x[i]);
	}
	return 0;
}
int32_t smooth(const int8_t *x, int16_t *room, const int8_t *weight, int8_t *y);
int32_t smooth(const int8_t *x, int16_t *room, const int8_t *weight, int8_t *y)
{
	for (int i = 0; i < 100; i++) {
		room[i] = (int16_t)(x[i] * weight[i % 4]);
	}
	for (int i = 0; i < 100; i++) {
		y[i] = (int8_t)(room[i] + room[99 - i]);
	}
	return 0;
}
int32_t add(const int8_t *a, int8_t *b);
int32_t add(const int8_t *a, int8_t *b)
{
	for (int i = 0; i < 100; i++) {
		b[i] = (int8_t)(b[i] + a[i]);
	}
	return 0;
}
"""

MANIFEST = """version: 1
model: placed
objects: [{target: x86-64, files: [operators.o]}]
memory:
  sram: {}
  small: {size: 256, align: 16}
operators:
  twice:
    args:
      - {name: x, dtype: int8, shape: [100]}
      - {name: y, dtype: int8, shape: [100], direction: out, in_place: [x]}
  smooth:
    args:
      - {name: x, dtype: int8, shape: [100]}
      - {name: room, dtype: int16, shape: [100], direction: scratch}
      - {name: weight, dtype: int8, shape: [4]}
      - {name: y, dtype: int8, shape: [100], direction: out}
  add:
    args:
      - {name: a, dtype: int8, shape: [100]}
      - {name: b, dtype: int8, shape: [100], direction: inout}
constants:
  weight: {file: weight.npy, pool: small}
run:
  inputs: {x: {dtype: int8, shape: [100]}}
  outputs: {y: {dtype: int8, shape: [100], pool: sram}}
  tensors: {c: {pool: small}}
  steps:
    - {call: twice, args: [x, a]}
    - {call: smooth, args: [a, weight, b]}
    - {call: add, args: [a, b]}
    - {call: twice, args: [b, c]}
    - {call: smooth, args: [c, weight, d]}
    - {call: add, args: [b, d]}
    - {call: twice, args: [d, y]}
"""

X = np.random.default_rng(7).integers(-5, 6, 100, dtype=np.int8)
WEIGHT = np.array([1, 2, -1, 1], dtype=np.int8)


def expected():
    """Return the output of the model for X."""

    def smooth(x):
        room = (x.astype(np.int32) * np.tile(WEIGHT, 25)).astype(np.int16)
        return (room + room[::-1]).astype(np.int8)

    a = (2 * X).astype(np.int8)
    b = (smooth(a) + a).astype(np.int8)
    d = (smooth((2 * b).astype(np.int8)) + b).astype(np.int8)
    return (2 * d).astype(np.int8)


@pytest.fixture
def model(tmp_path):
    """Return the manifest of a model with scratch memory, results in place, a constant in a pool, and two pools."""
    need_compiler("gcc")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "operators.c").write_text(OPERATORS)
    command = ["gcc", "-O1", "-ffunction-sections", "-c", "operators.c", "-o", "operators.o"]
    subprocess.run(command, cwd=folder, check=True)
    np.save(folder / "weight.npy", WEIGHT)
    np.save(folder / "x.npy", X)
    (folder / "manifest.yaml").write_text(MANIFEST)
    return folder / "manifest.yaml"


def stacked(path, solved):
    """Solve a table as another program would: buffers at the lowest free offset, those that end last first."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "lower", "upper", "size", "alignment"]
    placed = []
    for row in sorted(rows, key=lambda r: (-int(r["upper"]), int(r["size"]), r["id"])):
        lower, upper, size, align = (int(row[key]) for key in ("lower", "upper", "size", "alignment"))
        offset = 0
        for start, end in sorted(
            (o, o + int(p["size"])) for o, p in placed if int(p["lower"]) < upper and lower < int(p["upper"])
        ):
            if offset + size > start:
                offset = max(offset, -(-end // align) * align)
        placed.append((offset, row))
    with solved.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "offset"])
        writer.writeheader()
        writer.writerows({**row, "offset": offset} for offset, row in placed)


def outputs(opwest, manifest, app, *options):
    """Return the output of the generated application, run on the host."""
    assert opwest("generate", manifest, "-o", app, *options).code == 0
    done = opwest("run", app, "--host", "--input", f"x={manifest.parent / 'x.npy'}", "--output-dir", app.parent)
    assert done.code == 0, done.err
    return np.load(app.parent / "y.npy")


def test_plan_of_a_manifest(opwest, model):
    done = opwest("plan", model)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[:3] == [
        "placed: planner greedy",
        "  pool sram: 5 buffers, lower bound 408, peak 408 (optimal)",
        "        offset       size align       steps  buffer",
    ]
    assert "  pool small: 2 buffers, lower bound 128, peak 128 of 256 (optimal)" in done.out
    assert "room of step 1" in done.out


def test_plan_of_a_manifest_as_json(opwest, model):
    report = json.loads(opwest("plan", model, "--planner", "search", "--json").out)["result"]
    assert (report["model"], report["planner"]) == ("placed", "search")
    small = report["pools"]["small"]
    assert (small["lower_bound"], small["peak"], small["capacity"]) == (128, 128, 256)
    assert {"id": "weight", "lower": 0, "upper": 7, "size": 16, "alignment": 16}.items() <= small["buffers"][1].items()


def test_tables_of_a_manifest(opwest, model, tmp_path):
    assert opwest("plan", model, "-o", tmp_path / "tables").code == 0
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["small.csv", "sram.csv"]
    done = opwest("plan", tmp_path / "tables/sram.csv")
    assert done.code == 0 and "  peak         408 (table, optimal)" in done.out
    done = opwest("plan", model, "-o", tmp_path / "tables")
    assert done.code == 1 and "sram.csv: error: the file exists and is not overwritten" in done.err


@pytest.mark.slow
def test_plan_of_another_planner_runs_with_equal_outputs(opwest, model, metadata, tmp_path):
    backend = f"--metadata={metadata}"
    np.testing.assert_array_equal(outputs(opwest, model, tmp_path / "greedy/app", backend), expected())
    assert opwest("plan", model, "-o", tmp_path / "tables", "--no-offsets").code == 0
    for pool in ("sram", "small"):
        stacked(tmp_path / f"tables/{pool}.csv", model.parent / f"{pool}.csv")
    fixed = "run:\n  memory_planner: fixed\n  offsets: {sram: sram.csv, small: small.csv}"
    model.write_text(MANIFEST.replace("run:", fixed))
    np.testing.assert_array_equal(outputs(opwest, model, tmp_path / "fixed/app", backend), expected())
    (record,) = json.loads((tmp_path / "fixed/app/.opwest/lock.json").read_text())["record"]["models"]
    assert record["memory"]["planner"] == "fixed" and {"small.csv", "sram.csv"} <= set(record["inputs"])
    found = json.loads(opwest("check", model, "--json").out)["result"][0]["pools"]
    for pool in ("sram", "small"):
        with (model.parent / f"{pool}.csv").open(newline="") as file:
            given = {name: int(row["offset"]) for row in csv.DictReader(file) for name in row["id"].split("+")}
        assert found[pool]["offsets"] == given


def test_tables_of_opwest_are_fixed_plans(opwest, model):
    for options in ((), ("--planner", "search")):
        assert opwest("plan", model, "-o", model.parent, *options).code == 0
        before = json.loads(opwest("plan", model, "--json", *options).out)["result"]["pools"]
        fixed = "run:\n  memory_planner: fixed\n  offsets: {sram: sram.csv, small: small.csv}"
        model.write_text(MANIFEST.replace("run:", fixed))
        after = json.loads(opwest("plan", model, "--json").out)["result"]
        assert (after["planner"], after["pools"]) == ("fixed", before)
        # The planner of the command replaces that of the manifest, whose tables may be out of date.
        (model.parent / "sram.csv").unlink()
        (model.parent / "small.csv").unlink()
        assert "cannot read 'sram.csv': No such file or directory" in opwest("plan", model).err
        assert opwest("plan", model, "--planner", "greedy").code == 0
        model.write_text(MANIFEST)


def test_manifest_without_its_offsets_is_planned(opwest, model):
    model.write_text(MANIFEST.replace("run:", "run:\n  memory_planner: fixed"))
    done = opwest("plan", model)
    assert done.code == 1 and "hint: 'opwest plan MANIFEST --planner greedy' prints the tensors" in done.err
    done = opwest("plan", model, "--planner", "greedy")
    assert done.code == 0 and "room of step 1" in done.out


def test_offsets_in_the_manifest(opwest, model, metadata, tmp_path):
    offsets = (
        "run:\n  memory_planner: fixed\n  offsets:\n    small: {weight: 112, c: 0}\n"
        "    sram: {a: 0, b: 104, d: 312, y: 312, room of step 1: 208, room of step 4: 1000}"
    )
    model.write_text(MANIFEST.replace("run:", offsets))
    np.testing.assert_array_equal(outputs(opwest, model, tmp_path / "app", f"--metadata={metadata}"), expected())
    pools = json.loads(opwest("check", model, "--json").out)["result"][0]["pools"]
    assert (pools["sram"]["size"], pools["sram"]["lower_bound"], pools["small"]["size"]) == (1200, 408, 128)


def test_faulty_table_of_a_manifest_is_reported_at_its_line(opwest, model):
    assert opwest("plan", model, "-o", model.parent).code == 0
    table = model.parent / "sram.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *(line.rpartition(",")[0] + ",0" for line in lines[1:])]) + "\n")
    fixed = "run:\n  memory_planner: fixed\n  offsets: {sram: sram.csv, small: small.csv}"
    model.write_text(MANIFEST.replace("run:", fixed))
    done = opwest("check", model)
    assert done.code == 1 and f"{table}:" in done.err and "overlaps" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--capacity", "64"], "--capacity requires a table"),
        (["--nodes", "64"], "--nodes requires a table"),
        (["--no-offsets"], "--no-offsets requires -o"),
    ],
)
def test_options_of_tables_are_refused(opwest, model, options, message):
    done = opwest("plan", model, *options)
    assert done.code == 1 and message in done.err


def test_manifest_with_errors_has_no_plan(opwest, model):
    model.write_text(MANIFEST.replace("[x, a]", "[x, 7]"))
    done = opwest("plan", model)
    assert (done.code, done.out) == (1, "") and "argument 'y' takes a tensor" in done.err
