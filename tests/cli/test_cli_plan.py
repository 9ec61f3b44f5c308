# SPDX-License-Identifier: Apache-2.0
"""`opwest plan`: tables in MiniMalloc's format, error messages and output."""

import csv
import json
import os

import pytest

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


def test_capacity_below_the_lower_bound(opwest, table):
    done = opwest("plan", table(TABLE), "--capacity", 11)
    assert (done.code, done.err) == (1, "")
    assert lines(done)[-1] == "  capacity     11: does not fit (below the lower bound)"


def test_without_a_capacity_the_plan_is_made_small(opwest, table):
    done = opwest("plan", table(HARD))
    assert lines(done) == ["  lower bound  13", "  greedy       14", "  peak         13 (search, optimal)"]
    done = opwest("plan", table(HARD), "--planner", "greedy", "--capacity", 13)
    assert done.code == 1
    assert lines(done)[2:] == ["  peak         14 (greedy, 1 above the lower bound)", "  capacity     13: does not fit"]


def test_plan_as_json(opwest, table):
    done = opwest("plan", table(HARD), "--capacity", 13, "--json")
    report = json.loads(done.out)
    assert report["ok"] and report["result"].pop("seconds") >= 0 and report["result"].pop("file").endswith("table.csv")
    assert report["result"] == {
        "buffers": 7,
        "lower_bound": 13,
        "greedy": 14,
        "planner": "search",
        "peak": 13,
        "capacity": 13,
        "fits": True,
    }


def test_alignments_and_quoted_names(opwest, table, tmp_path):
    text = 'size,id,alignment,upper,lower\r\n5,"a, the first",1,2,0\r\n8,b,8,2,0\r\n\r\n'
    done = opwest("plan", table("\ufeff" + text), "-o", tmp_path / "out.csv")
    assert (done.code, done.err) == (0, "")
    rows = read(tmp_path / "out.csv")
    assert [(row["id"], row["alignment"], row["offset"]) for row in rows] == [
        ("a, the first", "1", "8"),
        ("b", "8", "0"),
    ]


def test_existing_output_is_unchanged(opwest, table, tmp_path):
    out = tmp_path / "mine.csv"
    out.write_text("mine")
    done = opwest("plan", table(TABLE), "-o", out)
    assert done.code == 1 and out.read_text() == "mine"
    assert f"{out}: error: the file exists and is not overwritten" in done.err


HEADER = "id,lower,upper,size\n"
SOLVED = "id,lower,upper,size,alignment,offset\na,0,2,4,1,0\nb,1,2,4,1,4\n"
FAULTS = {
    "empty": ("", ": error: the table is empty"),
    "no buffer": (HEADER, ": error: the table has no buffer"),
    "a column lacks": ("id,lower,size\n", ":1:1: error: missing columns in the header: 'upper'"),
    "an unknown column": ("id,lower,uper,size\n", ":1:1: error: unknown column 'uper'"),
    "a column twice": ("id,lower,upper,size,size\n", ":1:1: error: duplicate column 'size'"),
    "misaligned": (SOLVED.replace("b,1,2,4,1,4", "b,1,2,4,8,4"), ":3:11: error: the offset of 'b' is 4"),
    "overlap": (
        SOLVED.replace("b,1,2,4,1,4", "b,1,2,4,1,3"),
        ":3:11: error: 'b' overlaps 'a' in the plan: bytes 3 to 6 and 0 to 3",
    ),
    "no offset": (SOLVED.replace("b,1,2,4,1,4", "b,1,2,4,1,"), ":3:11: error: offset is ''"),
    "short line": (HEADER + "a,0,1,4\nb,0,1\n", ":3:1: error: the line has 3 values, the header 4"),
    "no number": (HEADER + "a,0,x,4\n", ":2:5: error: upper is 'x'"),
    "negative": (HEADER + "a,-1,2,4\n", ":2:3: error: lower is '-1'"),
    "a float": (HEADER + "a,0,2,4.0\n", ":2:7: error: size is '4.0'"),
    "no size": (HEADER + "a,0,2,0\n", ":2:7: error: size is '0'"),
    "a huge size": (HEADER + f"a,0,2,{10**30}\n", ":2:7: error: size is '1000000000000000000000000000000'"),
    "foreign digits": (HEADER + "a,0,2,٤\n", ":2:7: error: size is '٤'"),
    "backwards": (HEADER + "a,5,5,4\n", ":2:5: error: buffer 'a' ends at 5 and begins at 5"),
    "twice": (HEADER + "a,0,1,4\na,0,1,4\n", ":3:1: error: duplicate buffer 'a'"),
    "no id": (HEADER + ",0,1,4\n", ":2:1: error: the id is empty"),
    "an open quote": (HEADER + 'a,0,1,"4\n', ":2:1: error: invalid CSV: unexpected end of data"),
    "no text": (b"id,lower\xff", ": error: cannot read the table: not UTF-8 (byte 8)"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_have_a_line_and_a_column(opwest, table, case):
    text, expected = FAULTS[case]
    path = table(text)
    done = opwest("plan", path)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"{path}{expected}\n"), done.err
    assert "Traceback" not in done.err and done.err.count("error:") == 1


def test_all_faults_are_reported_together(opwest, table):
    done = opwest("plan", table(HEADER + "a,0,0,4\nb,0,1\n,x,1,4\n"))
    assert done.err.count("error:") == 4 and "opwest: 4 errors" in done.err


def test_table_with_offsets_is_verified(opwest, table, tmp_path):
    done = opwest("plan", table(SOLVED.replace("b,1,2,4,1,4", "b,1,2,4,1,6")), "--capacity", 9)
    assert (done.code, done.err) == (1, "")
    assert lines(done) == [
        "  lower bound  8",
        "  greedy       8",
        "  peak         10 (table, 2 above the lower bound)",
        "  capacity     9: does not fit",
    ]
    done = opwest("plan", table(SOLVED), "--capacity", 9, "--json")
    assert done.code == 0
    shown = json.loads(done.out)["result"]
    assert (shown["planner"], shown["peak"], shown["fits"]) == ("table", 8, True)


def test_both_overlapping_lifetimes_are_named(opwest, table):
    done = opwest("plan", table("id,lower,upper,size,offset\na,10,90,4,0\nb,20,99,4,2\n"))
    assert done.code == 1 and "hint: both are in use from time 20 to 89; the other offset is at" in done.err


@pytest.mark.parametrize("option", [("-o", "out.csv"), ("--planner", "greedy"), ("--nodes", "5")])
def test_options_without_effect_on_a_table_with_offsets(opwest, table, monkeypatch, tmp_path, option):
    monkeypatch.chdir(tmp_path)
    done = opwest("plan", table(SOLVED), *option)
    assert done.code == 1 and "has no effect: the table has an offset column" in done.err
    assert not (tmp_path / "out.csv").exists()


def test_solved_table_is_verified(opwest, table, tmp_path):
    assert opwest("plan", table(HARD), "-o", tmp_path / "out.csv").code == 0
    assert "  peak         13 (table, optimal)" in lines(opwest("plan", tmp_path / "out.csv"))
    done = opwest("plan", table(HARD), "--no-offsets")
    assert done.code == 1 and "error: --no-offsets requires a manifest" in done.err


def test_missing_table(opwest, tmp_path):
    done = opwest("plan", tmp_path / "none.csv")
    assert (done.code, done.err) == (
        1,
        f"{tmp_path / 'none.csv'}: error: cannot read the table: No such file or directory\n",
    )


@pytest.mark.parametrize("wrong", [["--capacity", "0"], ["--capacity", "x"], ["--nodes", "0"], ["--planner", "best"]])
def test_wrong_usage(opwest, table, wrong):
    assert opwest("plan", table(TABLE), *wrong).code == 2


def test_one_buffer_and_other_kinds_of_files(opwest, tmp_path):
    table = tmp_path / "one.csv"
    table.write_text("id,lower,upper,size\na,0,1,4\n")
    assert opwest("plan", table).out.startswith(f"{table}: 1 buffer\n")
    os.mkfifo(tmp_path / "pipe.csv")
    done = opwest("plan", tmp_path / "pipe.csv")
    assert done.err.endswith("pipe.csv: error: cannot read the table: not a regular file\n")
