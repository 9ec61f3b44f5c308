# SPDX-License-Identifier: Apache-2.0
"""The stored form of the golden trees determines them: every change of an emitted file is a difference."""

import functools
import json
import re

import pytest
from c_lines import joined
from c_tables import brief_tables, usual_members
from golden_store import BASES, compared_form, expected
from golden_support import PROJECTS
from golden_trees import LOCK, TREES, Comparison, canonical, compared
from hypothesis import given, settings
from hypothesis import strategies as st
from line_edits import EditError, apply_edits, make_edits
from opwest.project.disk import digest

texts = st.lists(st.sampled_from(["", "a", "b", "c", "{", "}", "...", "@@", "@@ a", "+", "-"]), max_size=14)


@given(texts, texts)
@settings(deadline=None, max_examples=150)
def test_edits_give_the_new_text(old, new):
    edits = make_edits(old, new)
    assert apply_edits(old, edits) == new
    assert bool(edits) == (old != new)


def test_edits_are_independent_of_changes_elsewhere():
    old = [f"line {number}" for number in range(40)]
    new = [*old[:20], "new", *old[21:30]]
    edits = make_edits(old, new)
    assert edits == ["@@", "-line 20", "+new", "@@", "-line 30", "...", "-line 39"]
    assert apply_edits(["other", *old], edits) == ["other", *new]
    with pytest.raises(EditError, match="lines not found"):
        apply_edits(old[:20] + old[21:], edits)


def changed(content, path):
    """Return the content with one more letter in a word of the middle line, or with another last byte."""
    if path.endswith((".bin", ".o")) and b"define " not in content:
        return content[:-1] + bytes([content[-1] ^ 1])
    lines = content.decode().split("\n")
    worded = [number for number, line in enumerate(lines) if re.search(r"\w\w", line)]
    number = worded[len(worded) // 2]
    lines[number] = re.sub(r"(\w\w)(?!.*\w\w)", r"\1z", lines[number], count=1)
    return "\n".join(lines).encode()


stored = functools.cache(expected)


def differs(name, emission):
    try:
        return compared_form(name, compared(emission)) != stored(name)
    except (AssertionError, ValueError):
        return True


@pytest.mark.parametrize("name", ["many_kinds", "targets", "variants", "llvm"])
def test_a_change_of_a_line_is_found_in_every_stored_form(name, emission):
    """In every file but the lock, whose record is recomputed, and those that other tests check."""
    whole = emission(name)
    comparison = Comparison(whole)
    tested = {path for path, file in stored(name).items() if file.form == "tested"}
    count = 0
    for path, content in whole.files.items():
        if content and path != LOCK and path not in tested:
            assert is_stored(name, comparison, path, content), path
            assert not is_stored(name, comparison, path, changed(content, path)), path
            count += 1
    assert count > 35


def is_stored(name, comparison, path, content):
    try:
        files = compared_form(name, comparison.file(path, content))
    except (AssertionError, ValueError):
        return False
    return all(stored(name)[path] == file for path, file in files.items())


def test_a_file_more_or_less_is_found(emission):
    whole = emission("streams")
    for path in ("models/streams/model.cmake", "prj.conf", "modules/opwest/src/status.c"):
        files = {other: content for other, content in whole.files.items() if other != path}
        assert differs("streams", whole._replace(files=files))
        assert differs("streams", whole._replace(files={**whole.files, f"{path}.more": b"more\n"}))


def test_the_owner_of_a_file_is_compared(emission):
    whole = emission("streams")
    lock = json.loads(whole.files[LOCK])
    lock["files"]["prj.conf"] = digest(whole.files["prj.conf"])
    del lock["user"]["prj.conf"]
    assert differs("streams", whole._replace(files={**whole.files, LOCK: canonical(lock)}))


@pytest.mark.parametrize("name", PROJECTS)
def test_joined_lines_have_all_that_is_in_the_c(name, emission):
    """Only spaces, the borders of comments and the seams of strings differ."""

    def bare(text):
        text = re.sub(r"^\s*\*(?!/)", "", text, flags=re.MULTILINE)
        text = re.sub(r"^(\tOPWEST_ALIGNED\(\w+\)) \\$", r"\1", text, flags=re.MULTILINE)
        text = re.sub(r"^#define .* [|] .*$", separate, text, flags=re.MULTILINE)
        return re.sub(r'"\s*"|\s', "", text)

    def separate(line):
        first, *others = line[0].split(" | ")
        prefix = re.match(r"(#define [A-Z][A-Z0-9_]*_)[A-Z]+(?:_[0-9])? ", first)[1]
        return "\n".join([first, *(prefix + other for other in others)])

    for path, content in emission(name).files.items():
        if path.startswith("models/") and path.endswith((".c", ".h")) and "/operators/" not in path:
            text = content.decode()
            assert bare(joined(text)) == bare(text), path


def test_brief_tables_have_the_unusual_members():
    text = """static const struct opwest_constant constants[] = {
\t{.tensor = {.name = "a, .b = {", .size = 4U}, .data = f(1, 2)},
\t{.tensor = {.name = "b", .size = 4U}, .data = NULL},
\t{.tensor = {.name = "c", .size = 8U}, .data = NULL},
};"""
    usual = usual_members(text)
    assert usual == {"opwest_constant.tensor.size": ".size = 4U", "opwest_constant.data": ".data = NULL"}
    assert brief_tables(text, usual).split("\n")[1:4] == [
        '\t{.tensor = {.name = "a, .b = {"}, .data = f(1, 2)},',
        '\t{.tensor = {.name = "b"}},',
        '\t{.tensor = {.name = "c", .size = 8U}},',
    ]


def test_every_reference_is_stored_before_its_use():
    order = list(TREES)
    assert all(order.index(base) < order.index(name) for name, base in BASES.items())
