# SPDX-License-Identifier: Apache-2.0
"""Other tools accept the diff of `--dry-run`."""

import subprocess

import pytest
from opwest.update.diffs import unified
from opwest.write import FileChange
from requirements_support import need

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
