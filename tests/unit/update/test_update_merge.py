# SPDX-License-Identifier: Apache-2.0
"""Merging of texts keeps the changes of both sides, and other tools accept the diff of --dry-run."""

import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opwest.diagnostics import OpwestError
from opwest.project.merge import BETWEEN, OPWESTS, YOURS, marker_lines, merge_text
from opwest.update.diffs import unified
from opwest.write import FileChange, Merged
from requirements_support import need

BASE = b"one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("yours", "new", "merged"),
    [
        (b"ONE\ntwo\nthree\nfour\nfive\n", b"one\ntwo\nthree\nfour\nFIVE\n", b"ONE\ntwo\nthree\nfour\nFIVE\n"),
        (b"zero\n" + BASE, BASE + b"six\n", b"zero\n" + BASE + b"six\n"),
        (b"one\nfive\n", BASE + b"six\n", b"one\nfive\nsix\n"),
        (BASE + b"same\n", BASE + b"same\n", BASE + b"same\n"),
        # the user's line ends and last line
        (BASE.replace(b"\n", b"\r\n"), b"zero\n" + BASE, b"zero\r\n" + BASE.replace(b"\n", b"\r\n")),
        (BASE[:-1], b"zero\n" + BASE, b"zero\n" + BASE[:-1]),
        (b"zero\n" + BASE, BASE[:-1], b"zero\n" + BASE[:-1]),
        # a form feed, a line separator and a lone carriage return end no line
        (b"zero\n" + BASE, BASE + "a\fb\u2028c\rd\n".encode(), b"zero\n" + BASE + "a\fb\u2028c\rd\n".encode()),
    ],
)
def test_changes_of_different_lines_are_joined(yours, new, merged):
    assert merge_text(BASE, yours, new) == Merged(merged)


def test_changes_of_the_same_line_get_markers():
    merged = merge_text(BASE, b"one\nZWEI\nthree\nfour\nfive\n", b"one\ndeux\nthree\nfour\nfive\nsix\n")
    assert merged is not None
    assert merged.content.decode().splitlines() == [
        *["one", YOURS, "ZWEI", BETWEEN, "deux", OPWESTS],
        *["three", "four", "five", "six"],
    ]
    assert merged.conflicts == (2,) == marker_lines(merged.content)


def test_adjacent_conflicts_are_joined_without_a_final_newline():
    merged = merge_text(BASE, b"1\ntwo\nthree\nfour\n5", b"I\ntwo\nthree\nfour\nV")
    assert merged is not None
    assert merged.content.decode() == (
        f"{YOURS}\n1\ntwo\nthree\nfour\n5\n{BETWEEN}\nI\ntwo\nthree\nfour\nV\n{OPWESTS}\n"
    )
    assert merged.conflicts == (1,) == marker_lines(merged.content)


def test_markers_with_the_users_line_ends():
    merged = merge_text(b"a\n", b"b\r\n", b"c\n")
    assert merged == Merged(f"{YOURS}\r\nb\r\n{BETWEEN}\r\nc\r\n{OPWESTS}\r\n".encode(), (1,))
    assert marker_lines(merged.content) == (1,)


@pytest.mark.parametrize("sides", [(b"\0", b"a", b"b"), (b"a", b"\xff", b"b"), (b"a", b"b", b"\0")])
def test_binary_files_are_not_merged(sides):
    assert merge_text(*sides) is None


def test_other_markers_are_not_conflicts():
    assert marker_lines(b"<<<<<<< HEAD\n") == ()
    assert marker_lines(b"x <<<<<<< yours\n") == ()
    assert marker_lines(b"a\n<<<<<<< yours\r\n") == (2,)


LINES = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@settings(deadline=None)  # starts git for each
@given(LINES, LINES, LINES)
def test_merge_keeps_every_added_line(base, yours, new):
    """The result contains every added line; if one side is unchanged, it equals the other side."""
    texts = [("".join(f"{line}\n" for line in lines)).encode() for lines in (base, yours, new)]
    merged = merge_text(*texts)
    assert merged is not None
    found = merged.content.decode().splitlines()
    for side in (yours, new):
        for line in set(side) - set(base):
            assert found.count(line) >= 1
    assert len(merged.conflicts) == found.count(YOURS) == found.count(BETWEEN) == found.count(OPWESTS)
    assert all(found[line - 1] == YOURS for line in merged.conflicts)
    if texts[0] == texts[1]:
        assert merged == Merged(texts[2])
    if texts[0] == texts[2]:
        assert merged == Merged(texts[1])
    if texts[1] == texts[2]:
        assert merged == Merged(texts[1])


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("kill -KILL $$", "exit code -9"),
        ("exit 1", "exit code 1"),
        ("exit 69", "exit code 69"),
        ("exit 0", "exit code 0"),
        ("printf 'one\\n'; exit 2", "exit code 2"),
        ("printf '\\377'", "exit code 0"),
        ("echo 'git: merge-file is not a git command' >&2; exit 1", "git: merge-file is not a git command"),
        ("echo broken >&2; exit 255", "broken"),
    ],
)
def test_failures_of_git_do_not_replace_the_users_text(tmp_path, monkeypatch, program, reason):
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\n{program}\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(OpwestError) as caught:
        merge_text(BASE, b"zero\n" + BASE, BASE + b"six\n")
    (fault,) = caught.value.diagnostics
    assert fault.message == f"git merge-file failed: {reason}"


def test_files_with_many_equal_lines_are_merged_quickly():
    base = b"same\n" * 20_000
    begin = time.monotonic()
    merged = merge_text(base, b"first\n" + base, base + b"last\n")
    assert time.monotonic() - begin < 20
    assert merged is not None and b"first\n" in merged.content and b"last\n" in merged.content


# --- Other tools accept the diff of `--dry-run`

CASES = {
    "changed.c": (b"one\ntwo\nthree\n", b"one\nTWO\nthree\n"),
    "added/new.conf": (None, b"a\nb\n"),
    "removed.conf": (b"a\n", None),
    "last/no_end_before": (b"a\nb", b"a\nb\n"),
    "last/no_end_after": (b"a\nb\n", b"a\nb"),
    "last/no_end": (b"a\nb", b"a\nc"),
    "windows.txt": (b"a\r\nb\r\n", b"a\r\nB\r\n"),
    "form_feed.txt": (b"a\fb\nc\n", b"a\fb\nC\n"),
    "ü ö.txt": ("ü\n".encode(), "ö\n".encode()),
    "emptied": (b"a\n", b""),
}
CHANGES = [FileChange(path, old, new) for path, (old, new) in CASES.items()]


@pytest.mark.parametrize("tool", [["git", "apply", "--whitespace=nowarn"], ["patch", "-p1", "--binary"]])
def test_other_tools_apply_it(tmp_path, tool):
    need(tool[0])
    for path, (old, _) in CASES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        if old is not None:
            (tmp_path / path).write_bytes(old)
    done = subprocess.run(tool, cwd=tmp_path, input=unified(CHANGES).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
    for path, (_, new) in CASES.items():
        place = tmp_path / path
        if tool[0] == "patch" and new == b"":
            assert not place.exists() or place.read_bytes() == b""  # `patch` removes files that it emptied
        else:
            assert (place.read_bytes() if place.exists() else None) == new, path


def test_binary_files_are_named():
    assert unified([FileChange("logo", b"\0", b"\1\0")]) == "Binary files a/logo and b/logo differ\n"
    assert unified([FileChange("logo", None, b"\xff")]) == "Binary files /dev/null and b/logo differ\n"


def test_files_of_opwest_itself_are_left_out():
    assert unified([FileChange(".opwest/lock.json", b"a", b"b"), FileChange(".opwest/bases.json", None, b"b")]) == ""
