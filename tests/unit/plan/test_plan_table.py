# SPDX-License-Identifier: Apache-2.0
"""Tables in MiniMalloc's format, and plans that the manifest gives."""

import pytest
from opwest.base.diagnostics import Diagnostics, Location
from opwest.cli.plan import pool_rows
from opwest.model.types.model import FixedOffset, FixedPlan, FixedPool
from opwest.plan import tables as table
from opwest.plan.memory import plan_model
from opwest.plan.problem import Block
from opwest.plan.tables import Row, blocks_of, read_table, written_table
from plan_support import buffer, model_of, pool

HEADER = "id,lower,upper,size\n"
COLUMNS = "\n  expected: id,lower,upper,size; also alignment, offset"
LARGEST = (1 << 48) - 1


def read(text):
    faults = Diagnostics()
    rows = read_table(text, "t.csv", faults)
    assert all(d.hint is None or d.hint for d in faults)
    return rows, [str(d) for d in faults]


def test_valid_rows():
    assert read(HEADER + "a,0,3,4\nb,3,9,16\n") == ([Row("a", 0, 3, 4, 1), Row("b", 3, 9, 16, 1)], [])


@pytest.mark.parametrize(
    "text",
    [
        "id,lower,upper,size,alignment\na,1,3,4,8\n",
        "alignment,size,upper,lower,id\n8,4,3,1,a\n",
        " id , lower,upper ,size,\talignment\n a , 1,3 ,4, 8\n",
        "\n\nid,lower,upper,size,alignment\r\n\r\na,1,3,4,8\r\n\n",
        'id,lower,upper,size,alignment\n"a","1",3,4,8',
        "id,lower,upper,size,alignment\na,01,003,4,8\n",
    ],
    ids=range(6),
)
def test_equivalent_spellings_of_one_row(text):
    assert read(text) == ([Row("a", 1, 3, 4, 8)], [])


def test_rows_with_offsets():
    rows, messages = read("id,lower,upper,size,offset\na,0,3,4,0\nbb,3,9,16,12\n")
    assert (rows, messages) == ([Row("a", 0, 3, 4, 1, 0), Row("bb", 3, 9, 16, 1, 12)], [])
    assert [str(row.place) for row in rows] == ["t.csv:2:9", "t.csv:3:11"]
    assert written_table(rows, {"a": 0, "bb": 12}) == "id,lower,upper,size,offset\na,0,3,4,0\nbb,3,9,16,12\n"
    assert written_table(rows, None) == "id,lower,upper,size\na,0,3,4\nbb,3,9,16\n"


def test_largest_and_smallest_numbers():
    text = f"{HEADER}a,{LARGEST - 1},{LARGEST},{LARGEST}\nb,0,1,1\n"
    assert read(text) == ([Row("a", LARGEST - 1, LARGEST, LARGEST, 1), Row("b", 0, 1, 1, 1)], [])
    # Leading zeros: twenty characters are read.
    assert read(f"{HEADER}a,0,{'1'.zfill(20)},4\n") == ([Row("a", 0, 1, 4, 1)], [])


def test_name_with_a_comma_and_one_over_two_lines():
    rows, messages = read(HEADER + '"a, b",0,3,4\n"c\nd",3,9,4\ne,0,x,4\n')
    assert [row.name for row in rows] == ["a, b", "c\nd"]
    assert messages == [f"t.csv:5:5: error: upper is 'x'\n  expected: an integer, 0 to {LARGEST}"]


ROW = "\n  expected: id,lower,upper,size"
NUMBER = "\n  expected: an integer, {} to " + str(LARGEST)
FAULTS = {
    "": ["t.csv: error: the table is empty\n  expected: a header: id,lower,upper,size"],
    HEADER: ["t.csv: error: the table has no buffer\n  expected: one line per buffer below the header"],
    "id,lower,size\n": [f"t.csv:1:1: error: missing columns in the header: 'upper'{COLUMNS}"],
    "\n\nupper\n": [f"t.csv:3:1: error: missing columns in the header: 'id', 'lower', 'size'{COLUMNS}"],
    "id,lower,uper,size\na,b\n": [f"t.csv:1:1: error: unknown column 'uper'{COLUMNS}\n  hint: did you mean 'upper'?"],
    "id,lower,upper,size,zz\n": [
        f"t.csv:1:1: error: unknown column 'zz'{COLUMNS}\n"
        "  hint: known names: alignment, id, lower, offset, size, upper"
    ],
    "id,lower,upper,size,size\n": ["t.csv:1:1: error: duplicate column 'size'\n  expected: unique columns"],
    "id,lower,upper,size,offset\na,0,1,4,-8\n": ["t.csv:2:9: error: offset is '-8'" + NUMBER.format(0)],
    "id,lower,upper,size,offset\na,0,1,4,\n": ["t.csv:2:9: error: offset is ''" + NUMBER.format(0)],
    "id,id,offset,sise\n": [
        "t.csv:1:1: error: duplicate column 'id'\n  expected: unique columns",
        f"t.csv:1:1: error: unknown column 'sise'{COLUMNS}\n  hint: did you mean 'size'?",
    ],
    HEADER + "a,0,1,4\nb,0,1\n": [f"t.csv:3:1: error: the line has 3 values, the header 4{ROW}"],
    HEADER + "a,0,1,4,5\n": [f"t.csv:2:1: error: the line has 5 values, the header 4{ROW}"],
    HEADER + ",0,1,4\n": ["t.csv:2:1: error: the id is empty\n  expected: a unique name of the buffer"],
    HEADER + "long,-1,2,4\n": ["t.csv:2:6: error: lower is '-1'" + NUMBER.format(0)],
    HEADER + "a,0,,4\n": ["t.csv:2:5: error: upper is ''" + NUMBER.format(0)],
    HEADER + "a,0,2,0\n": ["t.csv:2:7: error: size is '0'" + NUMBER.format(1)],
    HEADER + "a,0,2,4.0\n": ["t.csv:2:7: error: size is '4.0'" + NUMBER.format(1)],
    HEADER + "a,0,2,٤\n": ["t.csv:2:7: error: size is '٤'" + NUMBER.format(1)],
    HEADER + f"a,0,2,{1 << 48}\n": [f"t.csv:2:7: error: size is '{1 << 48}'" + NUMBER.format(1)],
    HEADER + f"a,0,2,{'4'.zfill(21)}\n": [f"t.csv:2:7: error: size is '{'4'.zfill(21)}'" + NUMBER.format(1)],
    HEADER + f"a,0,2,{'1' * 5000}\n": [f"t.csv:2:7: error: size is '{'1' * 399}…{'1' * 199}'" + NUMBER.format(1)],
    "id,lower,upper,size,alignment\na,0,2,4,0\n": ["t.csv:2:9: error: alignment is '0'" + NUMBER.format(1)],
    HEADER + "a,5,5,4\n": [
        "t.csv:2:5: error: buffer 'a' ends at 5 and begins at 5\n"
        "  expected: upper: greater than lower (the first time after the lifetime)"
    ],
    HEADER + "a,0,1,4\nb,0,1,4\na,2,3,4\n": [
        "t.csv:4:1: error: duplicate buffer 'a'\n  expected: unique ids\n  hint: first defined at line 2"
    ],
    HEADER + 'a,0,1,"4\n': ["t.csv:2:1: error: invalid CSV: unexpected end of data"],
    HEADER + "a,0,0,4\nb,0,1\n,x,1,4\nc,0,1,1\n": [
        "t.csv:2:5: error: buffer 'a' ends at 0 and begins at 0\n"
        "  expected: upper: greater than lower (the first time after the lifetime)",
        f"t.csv:3:1: error: the line has 3 values, the header 4{ROW}",
        "t.csv:4:1: error: the id is empty\n  expected: a unique name of the buffer",
        "t.csv:4:2: error: lower is 'x'" + NUMBER.format(0),
    ],
}


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_faults(number):
    text, expected = list(FAULTS.items())[number]
    assert read(text)[1] == expected, text


@pytest.mark.parametrize("header", ["id,lower,size", "id,lower,uper,size", "id,id,lower,upper,size"])
def test_table_with_a_faulty_header_is_not_read(header):
    rows, messages = read(f"{header}\na,b,c,d,e,f\na,0,1,2\n")
    assert rows == [] and len(messages) == 1


def test_invalid_csv_has_no_rows():
    assert read(HEADER + 'a,0,1,4\nb,0,1,"4\n')[0] == []


def test_columns_of_later_lines_are_those_of_the_header():
    assert read("size,id,lower,upper\n4,a,0,x\n")[1] == ["t.csv:2:7: error: upper is 'x'" + NUMBER.format(0)]


def test_rows_with_faults_are_omitted():
    rows, messages = read(HEADER + "a,0,x,4\nb,0,1,4\n,0,1,4\nc,3,2,4\nd,5,6,7\n")
    assert rows == [Row("b", 0, 1, 4, 1), Row("d", 5, 6, 7, 1)]
    assert len(messages) == 3


def test_too_many_rows(monkeypatch):
    monkeypatch.setattr(table, "_MAX_ROWS", 3)
    rows = [f"b{i},0,1,1\n" for i in range(4)]
    assert read(HEADER + "".join(rows[:3]))[1] == []
    assert read(HEADER + "".join(rows))[1] == ["t.csv: error: the table has 4 buffers\n  expected: at most 3"]


def test_blocks_have_a_step_for_every_time_at_which_something_changes():
    rows = [Row("a", 10, 1000, 4, 2), Row("b", 5, 10, 8, 1), Row("c", 500, 2000, 1, 1), Row("d", 5, 2000, 3, 1)]
    assert blocks_of(rows) == [
        Block("a", 4, 2, 1, 2),
        Block("b", 8, 1, 0, 0),
        Block("c", 1, 1, 2, 3),
        Block("d", 3, 1, 0, 3),
    ]
    assert blocks_of([]) == []


def test_blocks_share_a_step_where_the_rows_share_a_time():
    rows = [Row(f"b{i}", i * 3 % 7, i * 3 % 7 + i % 4 + 1, 1, 1) for i in range(12)]
    blocks = blocks_of(rows)
    for row, block in zip(rows, blocks, strict=True):
        for other_row, other in zip(rows, blocks, strict=True):
            times = row.lower < other_row.upper and other_row.lower < row.upper
            assert times == (block.first <= other.last and other.first <= block.last)


def test_written_table():
    rows = [Row("b", 0, 3, 4, 1), Row("a", 3, 9, 16, 1)]
    assert written_table(rows, {"a": 0, "b": 16}) == "id,lower,upper,size,offset\nb,0,3,4,16\na,3,9,16,0\n"
    rows.append(Row("c, d", 1, 2, 8, 2))
    assert written_table(rows, {"a": 0, "b": 16, "c, d": 6}) == (
        'id,lower,upper,size,alignment,offset\nb,0,3,4,1,16\na,3,9,16,1,0\n"c, d",1,2,8,2,6\n'
    )


def test_table_without_its_offsets_is_read_back():
    rows = [Row('a "quoted"', 0, 3, 4, 8), Row("b\nc", 3, 9, 16, 1), Row("d\r\ne", 0, 1, 2, 1)]
    lines = written_table(rows, {row.name: 0 for row in rows}).replace(",0\n", "\n").replace(",offset\n", "\n")
    assert read(lines) == (rows, [])


# --- Plans that the manifest gives: accepted plans, sharing in place, pools, and every fault with its location

STEPS = ("in -> a", "a -> b", "a b -> c", "c -> out")
AT = Location("m.yaml", 5, 3)


def planned(offsets, *texts, buffers=None, pools=None, table=None):
    """Return the plan of offsets by pool, and the messages; offset `i` of a pool is at line `i` of a file `POOL`."""
    parts = [
        FixedPool(
            name, AT, tuple(FixedOffset(b, o, Location(name, line, 1)) for line, (b, o) in enumerate(given.items(), 1))
        )
        for name, given in offsets.items()
    ]
    if table is not None:
        parts.append(FixedPool("sram", AT, table=table, file="t.csv"))
    model = model_of(
        *(texts or STEPS), buffers=buffers, pools=pools, planner="fixed", fixed=FixedPlan(AT, tuple(parts))
    )
    faults = Diagnostics()
    ordered, plan = plan_model(model, faults)
    return ordered, plan, [str(d).splitlines()[0] for d in faults]


def test_given_offsets_are_the_plan():
    _, plan, messages = planned({"sram": {"a": 4, "b": 0, "c": 2}})
    assert messages == []
    assert plan.pools["sram"].offsets == {"a": 4, "b": 0, "c": 2}
    assert (plan.pools["sram"].size, plan.pools["sram"].lower_bound) == (5, 3)
    assert plan.homes == dict.fromkeys("abc", "sram")


def test_result_in_place_may_have_the_offset_of_its_argument():
    steps = ("in -> a", "a -> b@0", "b -> out")
    ordered, plan, messages = planned({"sram": {"a": 0, "b": 0}}, *steps)
    assert messages == [] and plan.pools["sram"].size == 1
    assert [(row.name, row.lower, row.upper, row.offset) for row in pool_rows(ordered, plan, "sram")] == [
        ("a+b", 0, 3, 0)
    ]
    ordered, plan, messages = planned({"sram": {"a": 0, "b": 1}}, *steps)
    assert messages == [] and [row.name for row in pool_rows(ordered, plan, "sram")] == ["a", "b"]
    _, _, messages = planned({"sram": {"a": 0, "b": 0}}, "in -> a", "a -> b", "b -> out")
    assert messages == ["sram:2:1: error: 'b' overlaps 'a' in pool 'sram': bytes 0 to 0 and 0 to 0"]


def test_result_in_place_may_not_overlap_its_argument_elsewhere():
    buffers = [buffer("a", 4), buffer("b", 4)]
    _, _, messages = planned({"sram": {"a": 0, "b": 2}}, "in -> a", "a -> b@0", "b -> out", buffers=buffers)
    assert messages == ["sram:2:1: error: 'b' overlaps 'a' in pool 'sram': bytes 2 to 5 and 0 to 3"]


def test_alignment_and_size_of_the_pool():
    buffers = [buffer("a", 4, align=4), buffer("b", 4), buffer("c", 4)]
    pools = [pool(size=12)]
    _, _, messages = planned({"sram": {"a": 2, "b": 6, "c": 10}}, buffers=buffers, pools=pools)
    assert messages == [
        "sram:1:1: error: the offset of 'a' is 2",
        "sram:3:1: error: 'c' ends at 14, pool 'sram' has 12 bytes",
    ]
    _, _, messages = planned({"sram": {"a": 4, "b": 8, "c": 0}}, buffers=buffers, pools=pools)
    assert messages == []


def test_pools_have_plans_of_their_own():
    pools = [pool("fast", 8), pool("sram")]
    buffers = [buffer("a", pools=("fast", "sram")), buffer("b", pools=("fast", "sram")), buffer("c", pools=("sram",))]
    _, plan, messages = planned({"fast": {"a": 0}, "sram": {"b": 0, "c": 1}}, buffers=buffers, pools=pools)
    assert messages == [] and plan.homes == {"a": "fast", "b": "sram", "c": "sram"}
    _, _, messages = planned({"fast": {"a": 0, "c": 1}, "sram": {"b": 0, "a": 1}}, buffers=buffers, pools=pools)
    assert messages == ["fast:2:1: error: 'c' has an offset in pool 'fast'", "sram:2:1: error: duplicate offset of 'a'"]


def test_missing_and_unknown_tensors():
    _, _, messages = planned({"sram": {"a": 0, "bb": 1}})
    assert messages == [
        "sram:2:1: error: unknown tensor 'bb'",
        "m.yaml:5:3: error: missing offsets in pool 'sram': 'b', 'c'",
    ]
    many = [f"in -> t{i:02}" for i in range(20)]
    _, _, messages = planned({}, *many)
    listed = ", ".join(f"'t{i:02}'" for i in range(8))
    assert messages == [f"m.yaml:5:3: error: missing offsets in pool 'sram': {listed}, …"]


def test_table_with_lines_for_shared_memory():
    steps = ("in -> a", "a -> b@0", "b -> out")
    _, plan, messages = planned({}, *steps, table="id,lower,upper,size,offset\na+b,0,3,1,7\n")
    assert messages == [] and plan.pools["sram"].offsets == {"a": 7, "b": 7}
    _, _, messages = planned({}, *steps, table="id,lower,upper,size,offset\na,0,2,1,0\nb,1,3,1,x\n")
    assert messages == ["t.csv:3:9: error: offset is 'x'"]
    _, _, messages = planned({}, *steps, table="id,lower,upper,size,offset\na+c,0,3,1,7\n")
    assert messages == [
        "t.csv:2:11: error: unknown tensor 'c'",
        "m.yaml:5:3: error: missing offset in pool 'sram': 'b'",
    ]


def test_offsets_are_judged_by_the_model_not_by_the_table():
    _, _, messages = planned({}, table="id,lower,upper,size,offset\na,0,1,1,0\nb,1,2,1,0\nc,2,3,1,0\n")
    assert [m.split(" in pool")[0] for m in messages] == [
        "t.csv:3:9: error: 'b' overlaps 'a'",
        "t.csv:4:9: error: 'c' overlaps 'a'",
    ]


def test_rows_of_a_planned_model_are_its_problem():
    model = model_of(*STEPS, buffers=[buffer("a", 3, align=8), buffer("b", 16), buffer("c", 1)])
    model, plan = plan_model(model, Diagnostics())
    rows = pool_rows(model, plan, "sram")
    assert [(r.name, r.lower, r.upper, r.size, r.align) for r in rows] == [
        ("a", 0, 3, 8, 8),
        ("b", 1, 3, 16, 1),
        ("c", 2, 4, 1, 1),
    ]
    assert {r.name: r.offset for r in rows} == plan.pools["sram"].offsets
