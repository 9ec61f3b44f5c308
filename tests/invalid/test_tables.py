# SPDX-License-Identifier: Apache-2.0
"""The reader of the tables reports faults with their file and line, and rewrites the expected output only."""

from pathlib import Path

import pytest
from invalid_cases import HERE, TableError, changed, read

BASE = "base one: a base\n  a: 1\n  b: 2\n  c: 1\n  d: 2\n\n"
OUTPUT = "1:1: error: no\n"


def table(folder: Path, case: str, base: str = BASE) -> Path:
    path = folder / "area.cases"
    path.write_text(base + case)
    return path


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ("~ a: 1 => a: 2\n~ c: => e:\n", "a: 2\nb: 2\ne: 1\nd: 2\n"),
        ("  b: 2\n+ e: 3\n+\n+ f: 3\n", "a: 1\nb: 2\ne: 3\n\nf: 3\nc: 1\nd: 2\n"),
        ("+ z: 3\n~ a: => e:\n+ f: 3\n", "e: 1\nb: 2\nc: 1\nd: 2\nz: 3\nf: 3\n"),
        ("+ e: 3\n- a: 1\n@@\n- c: 1\n- d: 2\n+ d: 1\n", "b: 2\nd: 1\ne: 3\n"),
        ("  a: 1\n- b: 2\n  c: 1\n+ x: 1\n", "a: 1\nc: 1\nx: 1\nd: 2\n"),
        (r"! {{a# * 3}}\x09\xe9{{\n- * 2}}" + "\n", "a: 1\nb: 2\nc: 1\nd: 2\na0a1a2\t\udce9\n-\n-\n"),
    ],
)
def test_changes(tmp_path: Path, changes: str, expected: str) -> None:
    _, (case,) = read(table(tmp_path, f"case x: X.\n{changes}{OUTPUT}"))
    assert changed(case.base.text, case.changes) == expected
    assert (case.id, case.errors, case.expected) == ("area/x", 1, OUTPUT)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("case x: X.\n- e: 1\n" + OUTPUT, "area.cases:8: 'e: 1' occurs 0 times in the base"),
        ("case x: X.\n~ : 2 => : 3\n" + OUTPUT, "area.cases:8: ': 2' occurs 2 times in the base"),
        ("case x: X.\n- a: 1\n- c: 1\n" + OUTPUT, r"area.cases:8: 'a: 1\\nc: 1' occurs 0 times in the base"),
        ("case x: X.\n~ a: 1\n" + OUTPUT, "area.cases:8: expected `~ OLD => NEW`"),
        ("case x: X.\n- a: 1\n+ a: 2\n~ a: => e:\n" + OUTPUT, "area.cases:8: two changes of one line"),
        ("case x: X.\n" + OUTPUT + "\ncase x: X.\n", "area.cases:10: duplicate case 'x'"),
        ("case x: X.\n  a: 1\n" + OUTPUT, "area.cases:8: no line is removed or added"),
        ("case x: X.\n" + OUTPUT + "case y: Y.\n", "area.cases:9: expected an empty line before this line"),
        ("case x:\n" + OUTPUT, "area.cases:7: no description"),
        ("caes x: X.\n", "area.cases:7: neither `base NAME: TEXT` nor `case NAME: TEXT`: caes x: X."),
        ("base two: B.\na: 1\n", "area.cases:8: a line of a base is indented by two characters"),
    ],
)
def test_faults(tmp_path: Path, case: str, message: str) -> None:
    with pytest.raises(TableError) as caught:
        for one in read(table(tmp_path, case))[1]:
            one.manifests()
    assert str(caught.value) == message.replace(r"\\", "\\")


def test_rewrite_changes_the_output_only(tmp_path: Path) -> None:
    text = "case x (2 errors): X.\n~ a: 1 => a: 2\n\n# Y\ncase y: Y.\n" + OUTPUT
    path = table(tmp_path, text)
    (first, second) = read(path)[1]
    printed = "manifest.yaml:1:1: error: x\n  hint: h\nmanifest.yaml: error: y\nopwest: 2 errors\n"
    assert first.rewrite(printed).printed() == printed
    assert second.rewrite("manifest.yaml:1:1: error: no\n").expected == OUTPUT
    added = "~ a: 1 => a: 2\n1:1: error: x\n  hint: h\nmanifest.yaml: error: y\n"
    assert path.read_text() == BASE + text.replace("~ a: 1 => a: 2\n", added)


def test_rewriting_the_same_output_changes_nothing(tmp_path: Path) -> None:
    for path in HERE.glob("*.cases"):
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
        for case in read(copy)[1][:3]:
            assert case.rewrite(case.printed()) == case
        assert copy.read_bytes() == path.read_bytes()
