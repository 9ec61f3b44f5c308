# SPDX-License-Identifier: Apache-2.0
"""`opwest plan`: tables in MiniMalloc's format, plans of manifests, and plans that come back from another planner."""

import csv
import json
import os
import re
import subprocess

import numpy as np
import pytest
from requirements_support import need_compiler

TABLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
HARD = "id,lower,upper,size\n" + "".join(
    f"b{i},{lower},{upper},{size}\n"
    for i, (size, lower, upper) in enumerate(
        [(5, 0, 2), (4, 1, 5), (4, 3, 7), (2, 2, 4), (3, 4, 8), (2, 1, 5), (1, 0, 4)]
    )
)


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def lines(done):
    """Return the output without the time."""
    found = done.out.splitlines()
    assert found[-1].startswith("  time ")
    return found[1:-1]


def test_example_of_the_format(opwest, table, tmp_path):
    done = opwest("plan", table(TABLE), "--capacity", 12, "-o", tmp_path / "out.csv")
    assert (done.code, done.err) == (0, "")
    assert lines(done) == [
        "  lower bound  12",
        "  greedy       12",
        "  peak         12 (search, optimal)",
        "  capacity     12: fits",
    ]
    rows = read(tmp_path / "out.csv")
    assert [row["id"] for row in rows] == ["b1", "b2", "b3", "b4", "b5"]
    assert list(rows[0]) == ["id", "lower", "upper", "size", "offset"]
    for row in rows:
        for other in rows:
            together = int(row["lower"]) < int(other["upper"]) and int(other["lower"]) < int(row["upper"])
            if row is not other and together:
                assert int(row["offset"]) + 4 <= int(other["offset"]) or int(other["offset"]) + 4 <= int(row["offset"])


def test_sizes_with_and_without_a_capacity(opwest, fail, table):
    done = fail("plan", table(TABLE), "--capacity", 11)
    assert done.err == ""
    assert lines(done)[-1] == "  capacity     11: does not fit (below the lower bound)"
    done = opwest("plan", table(HARD))
    assert lines(done) == ["  lower bound  13", "  greedy       14", "  peak         13 (search, optimal)"]
    done = fail("plan", table(HARD), "--planner", "greedy", "--capacity", 13)
    assert lines(done)[2:] == ["  peak         14 (greedy, 1 above the lower bound)", "  capacity     13: does not fit"]
    path = table("id,lower,upper,size\na,0,1,4\n")
    assert opwest("plan", path).out.startswith(f"{path}: 1 buffer\n")


def by_name(rows):
    return {row["name"]: row for row in rows}


def test_plan_as_json(opwest, table):
    done = opwest("plan", table(HARD), "--capacity", 13, "--json")
    report = json.loads(done.out)
    assert report["ok"] and report["result"].pop("seconds") >= 0 and report["result"].pop("file").endswith("table.csv")
    sizes = {"lower_bound_bytes": 13, "greedy_bytes": 14, "bytes": 13, "limit_bytes": 13}
    assert report["result"] == {**sizes, "buffer_count": 7, "planner": "search", "fits": True}


def test_alignments_and_quoted_names(opwest, table, tmp_path):
    text = 'size,id,alignment,upper,lower\r\n5,"a, the first",1,2,0\r\n8,b,8,2,0\r\n\r\n'
    done = opwest("plan", table("\ufeff" + text), "-o", tmp_path / "out.csv")
    assert (done.code, done.err) == (0, "")
    rows = read(tmp_path / "out.csv")
    found = [(row["id"], row["alignment"], row["offset"]) for row in rows]
    assert found == [("a, the first", "1", "8"), ("b", "8", "0")]


def test_existing_output_is_unchanged(fail, table, tmp_path):
    out = tmp_path / "mine.csv"
    out.write_text("mine")
    done = fail("plan", table(TABLE), "-o", out)
    assert out.read_text() == "mine"
    assert f"{out}: error: the file exists and is not overwritten" in done.err


SOLVED = "id,lower,upper,size,alignment,offset\na,0,2,4,1,0\nb,1,2,4,1,4\n"
FAULTS = {
    "an unknown column": ("id,lower,uper,size\n", ":1:1: error: unknown column 'uper'"),
    "misaligned": (SOLVED.replace("b,1,2,4,1,4", "b,1,2,4,8,4"), ":3:11: error: the offset of 'b' is 4"),
    "overlap": (
        SOLVED.replace("b,1,2,4,1,4", "b,1,2,4,1,3"),
        ":3:11: error: 'b' overlaps 'a' in the plan: bytes 3 to 6 and 0 to 3",
    ),
    "no text": (b"id,lower\xff", ": error: cannot read the table: not UTF-8 (byte 8)"),
}
"""tests/unit/plan/test_plan_table.py has the faults of reading a table."""


@pytest.mark.parametrize("case", FAULTS)
def test_faults_have_a_line_and_a_column(opwest, table, case):
    text, expected = FAULTS[case]
    path = table(text)
    done = opwest("plan", path)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"{path}{expected}\n"), done.err
    assert "Traceback" not in done.err and done.err.count("error:") == 1


def test_table_with_offsets_is_verified(opwest, succeed, fail, table, tmp_path):
    done = opwest("plan", table(SOLVED.replace("b,1,2,4,1,4", "b,1,2,4,1,6")), "--capacity", 9)
    assert (done.code, done.err) == (1, "")
    assert lines(done) == [
        "  lower bound  8",
        "  greedy       8",
        "  peak         10 (table, 2 above the lower bound)",
        "  capacity     9: does not fit",
    ]
    done = succeed("plan", table(SOLVED), "--capacity", 9, "--json")
    shown = json.loads(done.out)["result"]
    assert (shown["planner"], shown["bytes"], shown["fits"]) == ("table", 8, True)
    succeed("plan", table(HARD), "-o", tmp_path / "out.csv")
    assert "  peak         13 (table, optimal)" in lines(opwest("plan", tmp_path / "out.csv"))
    done = fail("plan", table("id,lower,upper,size,offset\na,10,90,4,0\nb,20,99,4,2\n"))
    assert "hint: both are in use from time 20 to 89; the other offset is at" in done.err


@pytest.mark.parametrize("option", [("-o", "out.csv"), ("--planner", "greedy"), ("--nodes", "5")])
def test_options_without_effect_on_a_table_with_offsets(fail, table, monkeypatch, tmp_path, option):
    monkeypatch.chdir(tmp_path)
    assert "has no effect: the table has an offset column" in fail("plan", table(SOLVED), *option).err
    assert not (tmp_path / "out.csv").exists()


def test_files_that_are_no_tables(fail, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for name, reason in (("none.csv", "No such file or directory"), ("pipe.csv", "not a regular file")):
        path = tmp_path / name
        assert fail("plan", path).err == f"{path}: error: cannot read the table: {reason}\n"


# --- The plan of a manifest

OPERATORS = """#include <stdint.h>
int32_t twice(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 100; i++) {
		y[i] = (int8_t)(2 * x[i]);
	}
	return 0;
}
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
    args: [&x {name: x, dtype: int8, shape: [100]}, {name: y, dtype: int8, shape: [100], direction: out, in_place: [x]}]
  smooth:
    args:
      - *x
      - {name: room, dtype: int16, shape: [100], direction: scratch}
      - {name: weight, dtype: int8, shape: [4]}
      - {name: y, dtype: int8, shape: [100], direction: out}
  add: {args: [*x, {name: b, dtype: int8, shape: [100], direction: inout}]}
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

FIXED = MANIFEST.replace("run:", "run:\n  memory_planner: fixed\n  offsets: {sram: sram.csv, small: small.csv}")
X = np.random.default_rng(7).integers(-5, 6, 100, dtype=np.int8)
WEIGHT = np.array([1, 2, -1, 1], dtype=np.int8)


def expected():

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
    rows = read(path)
    assert list(rows[0]) == ["id", "lower", "upper", "size", "alignment"]
    placed = []
    for row in sorted(rows, key=lambda r: (-int(r["upper"]), int(r["size"]), r["id"])):
        lower, upper, size, align = (int(row[key]) for key in ("lower", "upper", "size", "alignment"))
        offset = 0
        together = [(o, int(p["size"])) for o, p in placed if int(p["lower"]) < upper and lower < int(p["upper"])]
        for start, other in sorted(together):
            if offset + size > start:
                offset = max(offset, -(-(start + other) // align) * align)
        placed.append((offset, row))
    with solved.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "offset"])
        writer.writeheader()
        writer.writerows({**row, "offset": offset} for offset, row in placed)


def outputs(succeed, manifest, app, *options):
    succeed("generate", manifest, "-o", app, *options)
    succeed("run", app, "--host", "--input", f"x={manifest.parent / 'x.npy'}", "--output-dir", app.parent)
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
    report = json.loads(opwest("plan", model, "--planner", "search", "--json").out)["result"]
    assert (report["model"], report["planner"]) == ("placed", "search")
    small = by_name(report["pools"])["small"]
    assert {"lower_bound_bytes": 128, "bytes": 128, "limit_bytes": 256}.items() <= small.items()
    assert {"names": ["weight"], "first": 0, "last": 6, "bytes": 16, "align": 16}.items() <= small["buffers"][1].items()


def test_tables_of_a_manifest(succeed, fail, model, tmp_path):
    succeed("plan", model, "-o", tmp_path / "tables")
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["small.csv", "sram.csv"]
    assert "  peak         408 (table, optimal)" in succeed("plan", tmp_path / "tables/sram.csv").out
    done = fail("plan", model, "-o", tmp_path / "tables")
    assert "sram.csv: error: the file exists and is not overwritten" in done.err


PHASED = MANIFEST
for old, new in {
    "      - *x\n      - {name: room, dtype: int16, shape: [100], direction: scratch}": (
        "      - {name: x, dtype: int8, shape: [100], phases: [0, 0]}\n"
        "      - {name: room, dtype: int16, shape: [100], direction: scratch, phases: [0, 1]}"
    ),
    "shape: [100], direction: out}\n  add": "shape: [100], direction: out, phases: [1, 1]}\n  add",
    "    - {call: add, args: [a, b]}\n": "",
    "    - {call: add, args: [b, d]}\n": "",
    "  tensors: {c: {pool: small}}\n": "",
}.items():
    assert PHASED.count(old) == 1
    PHASED = PHASED.replace(old, new)


def test_phases_of_an_operator(succeed, model, tmp_path):
    """The result of `smooth` is over its argument; the times of the table are moments, so that it can be verified."""
    model.write_text(PHASED)
    done = succeed("plan", model, "-o", tmp_path / "tables")
    assert "  pool sram: 5 buffers, lower bound 304, peak 304 (optimal)" in done.out
    assert re.search(r"200 +8 +1  room of step 1$", done.out, re.MULTILINE)
    assert "  peak         304 (table, optimal)" in succeed("plan", tmp_path / "tables/sram.csv").out
    result = X
    for _ in range(2):
        room = 2 * result.astype(np.int8) * np.tile(WEIGHT, 25)
        result = (room.astype(np.int16) + room[::-1]).astype(np.int8)
    np.testing.assert_array_equal(outputs(succeed, model, tmp_path / "app"), (2 * result).astype(np.int8))


@pytest.mark.slow
def test_plan_of_another_planner_runs_with_equal_outputs(opwest, succeed, model, metadata, tmp_path):
    backend = f"--metadata={metadata}"
    np.testing.assert_array_equal(outputs(succeed, model, tmp_path / "greedy/app", backend), expected())
    succeed("plan", model, "-o", tmp_path / "tables", "--no-offsets")
    for pool in ("sram", "small"):
        stacked(tmp_path / f"tables/{pool}.csv", model.parent / f"{pool}.csv")
    model.write_text(FIXED)
    np.testing.assert_array_equal(outputs(succeed, model, tmp_path / "fixed/app", backend), expected())
    (record,) = json.loads((tmp_path / "fixed/app/.opwest/lock.json").read_text())["record"]["models"]
    assert record["memory"]["planner"] == "fixed" and {"small.csv", "sram.csv"} <= set(record["inputs"])
    found = json.loads(opwest("check", model, "--json").out)["result"][0]["pools"]
    for pool in ("sram", "small"):
        rows = read(model.parent / f"{pool}.csv")
        given = {name: int(row["offset"]) for row in rows for name in row["id"].split("+")}
        assert {row["name"]: row["offset"] for row in by_name(found)[pool]["buffers"]} == given


def test_tables_of_opwest_are_fixed_plans(opwest, succeed, model):
    for options in ((), ("--planner", "search")):
        succeed("plan", model, "-o", model.parent, *options)
        before = json.loads(opwest("plan", model, "--json", *options).out)["result"]["pools"]
        model.write_text(FIXED)
        after = json.loads(opwest("plan", model, "--json").out)["result"]
        assert (after["planner"], after["pools"]) == ("fixed", before)
        # The planner of the command replaces that of the manifest, whose tables may be out of date.
        for name in ("sram.csv", "small.csv"):
            (model.parent / name).unlink()
        assert "cannot read 'sram.csv': No such file or directory" in opwest("plan", model).err
        succeed("plan", model, "--planner", "greedy")
        model.write_text(MANIFEST)


def test_faulty_manifests_and_manifests_without_offsets(succeed, fail, model):
    model.write_text(MANIFEST.replace("[x, a]", "[x, 7]"))
    done = fail("plan", model)
    assert done.out == "" and "argument 'y' takes a tensor" in done.err
    model.write_text(MANIFEST.replace("run:", "run:\n  memory_planner: fixed"))
    assert "hint: 'opwest plan MANIFEST --planner greedy' prints the tensors" in fail("plan", model).err
    assert "room of step 1" in succeed("plan", model, "--planner", "greedy").out


def test_offsets_in_the_manifest(opwest, succeed, model, metadata, tmp_path):
    offsets = (
        "run:\n  memory_planner: fixed\n  offsets:\n    small: {weight: 112, c: 0}\n"
        "    sram: {a: 0, b: 104, d: 312, y: 312, room of step 1: 208, room of step 4: 1000}"
    )
    model.write_text(MANIFEST.replace("run:", offsets))
    np.testing.assert_array_equal(outputs(succeed, model, tmp_path / "app", f"--metadata={metadata}"), expected())
    pools = by_name(json.loads(opwest("check", model, "--json").out)["result"][0]["pools"])
    assert (pools["sram"]["bytes"], pools["sram"]["lower_bound_bytes"], pools["small"]["bytes"]) == (1200, 408, 128)
