# SPDX-License-Identifier: Apache-2.0
"""Tables in MiniMalloc's format: reading, the message and position of every fault, and writing."""

import pytest
from opwest.diagnostics import Diagnostics
from opwest.packing import table
from opwest.packing.problem import Block
from opwest.packing.table import Row, blocks_of, read_table, written_table

HEADER = "id,lower,upper,size\n"
COLUMNS = "\n  expected: id,lower,upper,size; also alignment, offset"
LARGEST = (1 << 48) - 1


def read(text):
    """Return the rows of a table and its diagnostics."""
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
    "\n\n": ["t.csv: error: the table is empty\n  expected: a header: id,lower,upper,size"],
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
    HEADER + "b\n": [f"t.csv:2:1: error: the line has 1 value, the header 4{ROW}"],
    HEADER + "a,0,1,4,5\n": [f"t.csv:2:1: error: the line has 5 values, the header 4{ROW}"],
    HEADER + ",0,1,4\n": ["t.csv:2:1: error: the id is empty\n  expected: a unique name of the buffer"],
    HEADER + "long,-1,2,4\n": ["t.csv:2:6: error: lower is '-1'" + NUMBER.format(0)],
    HEADER + "a,0,,4\n": ["t.csv:2:5: error: upper is ''" + NUMBER.format(0)],
    HEADER + "a,0,2,0\n": ["t.csv:2:7: error: size is '0'" + NUMBER.format(1)],
    HEADER + "a,0,2,4.0\n": ["t.csv:2:7: error: size is '4.0'" + NUMBER.format(1)],
    HEADER + "a,0,2,٤\n": ["t.csv:2:7: error: size is '٤'" + NUMBER.format(1)],
    HEADER + "a,0,2,²\n": ["t.csv:2:7: error: size is '²'" + NUMBER.format(1)],
    HEADER + f"a,0,2,{1 << 48}\n": [f"t.csv:2:7: error: size is '{1 << 48}'" + NUMBER.format(1)],
    HEADER + f"a,0,2,{'4'.zfill(21)}\n": [f"t.csv:2:7: error: size is '{'4'.zfill(21)}'" + NUMBER.format(1)],
    HEADER + f"a,{'4'.zfill(21)},9,4\n": [f"t.csv:2:3: error: lower is '{'4'.zfill(21)}'" + NUMBER.format(0)],
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
    monkeypatch.setattr(table, "_MOST_ROWS", 3)
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
