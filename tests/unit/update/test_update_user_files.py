# SPDX-License-Identifier: Apache-2.0
"""The user's files: `generate` does not change them, `update` merges them."""

import json
import shutil
import subprocess
import time
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opwest.base.diagnostics import OpwestError
from opwest.base.files import ProjectFile
from opwest.project.merge import OPWESTS, YOURS, Merged, marker_lines, merge_text, unified
from opwest.project.writer import FileChange, preview_project
from requirements_support import need
from update_support import RECORD, merge, remarks
from write_support import gen, times, tree, user, write

BETWEEN = "======="
OLD = "one\ntwo\nthree\n"
NEW = "one\ntwo\nTHREE\n"
EDITED = "ONE\ntwo\nthree\n"


def base(app, path):
    """Return the base of a file, None if there is none."""
    return dict(bases(app)).get(path)


def bases(app):
    """Return the files with a base that is merged, and their bases."""
    rows = json.loads((app / ".opwest/lock.json").read_text())["user"]
    return {path: row[1] for path, row in rows.items() if len(row) == 2}


def copied(path, content):
    return ProjectFile(PurePosixPath(path), content.encode(), "copy")


def test_bases_equal_the_generated_text(app):
    write(app, user("src/main.c", OLD), user("no_end", "a\r\n\n b"), gen("models/m.c"))
    assert bases(app) == {"no_end": "a\r\n\n b", "src/main.c": OLD}


def test_only_text_that_opwest_rendered_has_a_base(app):
    write(app, copied("held_out.h", OLD), ProjectFile(PurePosixPath("logo"), b"\0", "user"))
    assert not bases(app)
    write(app, user("a", OLD), copied("held_out.h", OLD))
    assert base(app, "a") == OLD and base(app, "held_out.h") is None
    merge(app, copied("held_out.h", OLD))
    assert not bases(app)


def test_copy_is_replaced_until_it_is_edited(app):
    write(app, copied("main.c", OLD))
    result = merge(app, copied("main.c", NEW))
    assert (result.written, (app / "main.c").read_text()) == (("main.c",), NEW)
    (app / "main.c").write_text(EDITED)
    assert not merge(app, copied("main.c", NEW)).remarks
    newer = NEW + "four\n"
    assert remarks(write(app, copied("main.c", newer)).remarks) == [("stale", "main.c")]
    result = merge(app, copied("main.c", newer))
    assert remarks(result.remarks) == [("beside", "main.c", "main.c.opwest-new")]
    assert (app / "main.c").read_text() == EDITED and (app / "main.c.opwest-new").read_text() == newer
    assert not merge(app, copied("main.c", newer)).remarks


def in_first_format(app):
    """Change a project to the first format of the lock, with its bases in a file and the mutex."""
    place = app / ".opwest/lock.json"
    value = json.loads(place.read_text())
    rows = value.pop("user")
    texts = {path: text.split("\n") for path, text in bases(app).items()}
    value |= {"format": 1, "user": sorted(rows), "bases": {path: row[0] for path, row in rows.items()}}
    place.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")
    (app / ".opwest/bases.json").write_text(json.dumps(texts))
    (app / ".opwest/mutex").touch()


def test_projects_with_the_first_format_of_the_lock(app):
    """`generate` and `update` use the bases of a project of opwest 0.2, and write the present format."""
    for call in (write, merge):
        write(app, user("a", OLD), gen("c"))
        in_first_format(app)
        (app / "a").write_text(EDITED)
        result = call(app, user("a", NEW), gen("c"))
        assert remarks(result.remarks) == ([("stale", "a")] if call is write else [])
        assert [place.name for place in (app / ".opwest").iterdir()] == ["lock.json"]
        assert json.loads((app / ".opwest/lock.json").read_text())["format"] == 2
        assert bases(app) == {"a": OLD if call is write else NEW}
    assert (app / "a").read_text() == "ONE\ntwo\nTHREE\n"


def test_bases_of_an_earlier_opwest_are_used_and_removed(app):
    write(app, user("src/a", OLD), user("b", OLD), copied("c", OLD))
    in_first_format(app)
    (app / ".opwest/bases.json").unlink()
    for path in ("src/a", "b", "c"):
        place = app / f".opwest/base/{path}.base"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(OLD)
    (app / ".opwest/base/b.base").write_text("tampered\n")
    for path in ("src/a", "b", "c"):
        (app / path).write_text(EDITED)
    result = merge(app, user("src/a", NEW), user("b", NEW), copied("c", OLD))
    assert (result.merged, remarks(result.remarks)) == (("src/a",), [("unknown", "b")])
    assert (app / "src/a").read_text() == "ONE\ntwo\nTHREE\n"
    assert not (app / ".opwest/base").exists() and base(app, "src/a") == base(app, "b") == NEW


def test_untouched_file_is_replaced_and_an_edited_one_merged(app):
    write(app, user("plain", OLD), user("edited", OLD), user("src/same", OLD))
    (app / "edited").write_text(EDITED)
    (app / "src/same").write_text("mine\n")
    result = merge(app, user("plain", NEW), user("edited", NEW), user("src/same", OLD))
    assert (result.written, result.merged, result.kept) == (("plain",), ("edited",), ("src/same",))
    assert not result.remarks
    assert (app / "plain").read_text() == NEW
    assert (app / "edited").read_text() == "ONE\ntwo\nTHREE\n"
    assert (app / "src/same").read_text() == "mine\n"
    assert base(app, "edited") == NEW
    before = times(app)
    again = merge(app, user("plain", NEW), user("edited", NEW), user("src/same", OLD))
    assert (again.written, again.merged, again.remarks) == ((), (), ())
    assert times(app) == before


def test_conflict_has_markers_until_they_are_removed(app):
    write(app, user("a", OLD))
    (app / "a").write_text("one\ntwo\nmine\n")
    result = merge(app, user("a", NEW))
    assert (result.merged, remarks(result.remarks)) == (("a",), [("conflict", "a", 3)])
    text = f"one\ntwo\n{YOURS}\nmine\n{BETWEEN}\nTHREE\n{OPWESTS}\n"
    assert (app / "a").read_text() == text
    newer = "zero\n" + NEW
    result = merge(app, user("a", newer))
    assert (result.merged, remarks(result.remarks)) == ((), [("unresolved", "a", 3)])
    assert (app / "a").read_text() == text and base(app, "a") == NEW
    (app / "a").write_text("one\ntwo\nboth\n")
    result = merge(app, user("a", newer))
    assert (result.merged, result.remarks) == (("a",), ())
    assert (app / "a").read_text() == "zero\none\ntwo\nboth\n"
    assert base(app, "a") == newer


def test_generate_keeps_and_lists_files_that_update_would_merge(app):
    write(app, user("a", OLD), user("b", OLD))
    (app / "a").write_text(EDITED)
    result = write(app, user("a", NEW), user("b", NEW))
    assert remarks(result.remarks) == [("stale", "a"), ("stale", "b")]
    assert (app / "a").read_text() == EDITED and (app / "b").read_text() == OLD
    assert base(app, "a") == OLD  # it is still the base of the user's file
    result = merge(app, user("a", NEW), user("b", NEW))
    assert (result.written, result.merged) == (("b",), ("a",))
    assert not write(app, user("a", NEW), user("b", NEW)).remarks


def test_user_file_equal_to_the_generated_one(app):
    write(app, user("a", OLD))
    (app / "a").write_text(NEW)
    assert not write(app, user("a", NEW)).remarks
    assert base(app, "a") == NEW


def test_deleted_file_is_reported_once_and_not_restored(app):
    write(app, user("a", OLD), user("b", OLD))
    (app / "a").unlink()
    result = merge(app, user("a", NEW), user("b", NEW))
    assert remarks(result.remarks) == [("deleted", "a")]
    assert not (app / "a").exists()
    assert not merge(app, user("a", NEW), user("b", NEW)).remarks
    assert not write(app, user("a", NEW), user("b", NEW)).remarks
    assert not merge(app, user("a", NEW), user("b", NEW)).remarks
    (app / "a").write_text(NEW)  # as in the hint
    assert merge(app, user("a", NEW), user("b", NEW)).kept == ("a", "b")
    (app / "a").unlink()  # and again
    assert len(merge(app, user("a", NEW), user("b", NEW)).remarks) == 1


def test_new_file_appears(app):
    write(app, user("a", OLD))
    assert merge(app, user("a", OLD), user("boards/b.conf", NEW)).written == ("boards/b.conf",)
    assert base(app, "boards/b.conf") == NEW


def test_file_no_longer_generated(app):
    write(app, user("boards/plain", OLD), user("boards/edited", OLD), user("deleted", OLD), gen("x"))
    (app / "boards/edited").write_text(EDITED)
    (app / "deleted").unlink()
    result = merge(app, gen("x"))
    assert result.removed == ("boards/plain",)
    assert remarks(result.remarks) == [("released", "boards/edited")]
    assert tree(app, own=False) == {"boards": None, "boards/edited": EDITED.encode(), "x": b"generated\n"}
    assert not merge(app, gen("x")).remarks
    result = merge(app, gen("x"), user("boards/edited", NEW))  # generated again: it belongs to the user now
    assert remarks(result.remarks) == [("foreign", "boards/edited")]


def test_generate_removes_no_user_files(app):
    write(app, user("a", OLD), gen("x"))
    assert write(app, gen("x")).removed == ()
    assert merge(app, gen("x")).removed == ("a",)


def test_user_created_file_is_unchanged(app):
    write(app, gen("x"))
    (app / "a").write_text("mine\n")
    (app / "b").write_text(NEW)
    result = merge(app, gen("x"), user("a", NEW), user("b", NEW))
    assert (remarks(result.remarks), result.kept) == ([("foreign", "a")], ("a", "b"))
    assert (app / "a").read_text() == "mine\n" and base(app, "a") is None


@pytest.mark.parametrize(
    ("old", "mine", "new"), [(b"\0old", b"\0mine", b"\0new"), (b"old", b"\xffmine", b"new"), (b"old", b"mine", b"\xff")]
)
def test_binary_files_are_kept_beside(app, old, mine, new):
    def binary(content):
        return ProjectFile(PurePosixPath("logo"), content, "user")

    write(app, binary(old))
    (app / "logo").write_bytes(mine)
    result = merge(app, binary(new))
    assert remarks(result.remarks) == [("beside", "logo", "logo.opwest-new")]
    assert (app / "logo").read_bytes() == mine and (app / "logo.opwest-new").read_bytes() == new
    assert not merge(app, binary(new)).remarks  # reported, and both files exist
    result = merge(app, binary(new + b"er"))  # the first one is not overwritten
    assert remarks(result.remarks) == [("beside", "logo", "logo.opwest-new2")]
    assert (app / "logo.opwest-new").read_bytes() == new


def test_links_and_directories_are_not_merged(app, tmp_path):
    write(app, user("a", OLD), user("b", OLD), user("d/c", OLD))
    (tmp_path / "elsewhere").write_text(EDITED)
    (app / "a").unlink()
    (app / "a").symlink_to(tmp_path / "elsewhere")
    (app / "b").unlink()
    (app / "b").mkdir()
    shutil.rmtree(app / "d")
    (app / "d").symlink_to(tmp_path)
    (tmp_path / "c").write_text(EDITED)
    files = [user("a", NEW), user("b", NEW), user("d/c", NEW)]
    result = merge(app, *files)
    assert remarks(result.remarks) == [("linked", "a"), ("linked", "b"), ("linked", "d/c")]
    assert (tmp_path / "elsewhere").read_text() == (tmp_path / "c").read_text() == EDITED
    assert (result.written, result.merged) == ((), ())


# --- projects of an opwest that kept no bases


def without_bases(app):
    """Change a project to the state of opwest 0.1.0 before it wrote bases."""
    in_first_format(app)
    lock = app / ".opwest/lock.json"
    value = json.loads(lock.read_text())
    value.pop("bases")
    lock.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")
    (app / ".opwest/bases.json").unlink()


def test_without_bases(app):
    write(app, user("same", OLD), user("edited", OLD), user("deleted", OLD), gen("was_ours", OLD))
    without_bases(app)
    (app / "edited").write_text(EDITED)
    (app / "deleted").unlink()
    files = [user(name, NEW) for name in ("edited", "deleted", "was_ours")] + [user("same", OLD)]
    assert not write(app, *files).remarks  # generate has no remarks without a base
    result = merge(app, *files)
    assert remarks(result.remarks) == [("deleted", "deleted"), ("unknown", "edited")]
    assert (app / "was_ours").read_text() == NEW  # equals a checksum in the lock: untouched
    assert (app / "edited").read_text() == EDITED
    assert base(app, "edited") == NEW and base(app, "same") == OLD
    newer = NEW + "four\n"  # from now on it is merged
    result = merge(app, user("edited", newer), user("deleted", NEW), user("was_ours", NEW), user("same", OLD))
    assert (result.merged, remarks(result.remarks)) == (("edited",), [("conflict", "edited", 3)])


@pytest.mark.parametrize("damage", ["edited", "deleted"])
def test_modified_base_is_not_used(app, damage):
    write(app, user("a", OLD), user("b", OLD))
    (app / "a").write_text(EDITED)
    place = app / ".opwest/lock.json"
    if damage == "edited":
        place.write_text(place.read_text().replace("three", "other", 1))
    else:
        value = json.loads(place.read_text())
        del value["user"]["a"][1]
        place.write_text(json.dumps(value))
    result = merge(app, user("a", NEW), user("b", OLD))
    assert remarks(result.remarks) == [("unknown", "a")]
    assert (app / "a").read_text() == EDITED and base(app, "a") == NEW


def test_modes_of_the_users_files_stay(app):
    write(app, user("run.sh", OLD), gen("tool.sh", OLD))
    (app / "run.sh").chmod(0o755)
    (app / "tool.sh").chmod(0o700)
    merge(app, user("run.sh", NEW), gen("tool.sh", NEW))
    assert (app / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (app / "tool.sh").stat().st_mode & 0o777 == 0o700


def test_local_file_is_not_in_the_lock(tmp_path):
    local = [ProjectFile(PurePosixPath(".opwest/origin.json"), where, "local") for where in (b"here", b"there")]
    write(tmp_path / "one", gen("a"), local[0])
    write(tmp_path / "two", gen("a"), local[1])
    locks = [(tmp_path / name / ".opwest/lock.json").read_bytes() for name in ("one", "two")]
    assert locks[0] == locks[1]
    write(tmp_path / "one", gen("a"), local[1])
    assert (tmp_path / "one/.opwest/origin.json").read_bytes() == b"there"


def test_preview_writes_no_files(app):
    write(app, user("a", OLD), gen("b"), gen("c"), user("d", OLD))
    (app / "a").write_text(EDITED)
    before = times(app)
    files = [user("a", NEW), gen("b", "new"), user("d", OLD), gen("e")]
    preview = preview_project(app, files, RECORD, merging=True)
    assert times(app) == before
    shown = {c.path: (c.old, c.new) for c in preview.changes if not c.path.startswith(".opwest/")}
    assert shown == {
        "a": (EDITED.encode(), b"ONE\ntwo\nTHREE\n"),
        "b": (b"generated\n", b"new"),
        "c": (b"generated\n", None),
        "e": (None, b"generated\n"),
    }
    assert preview.result == merge(app, *files)
    assert preview_project(app, files, RECORD, merging=True).changes == ()


# --- Merging of texts keeps the changes of both sides, and other tools accept the diff of --dry-run

FIVE_LINES = b"one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.parametrize(
    ("yours", "new", "merged"),
    [
        (b"ONE\ntwo\nthree\nfour\nfive\n", b"one\ntwo\nthree\nfour\nFIVE\n", b"ONE\ntwo\nthree\nfour\nFIVE\n"),
        (b"zero\n" + FIVE_LINES, FIVE_LINES + b"six\n", b"zero\n" + FIVE_LINES + b"six\n"),
        (b"one\nfive\n", FIVE_LINES + b"six\n", b"one\nfive\nsix\n"),
        (FIVE_LINES + b"same\n", FIVE_LINES + b"same\n", FIVE_LINES + b"same\n"),
        # the user's line ends and last line
        (FIVE_LINES.replace(b"\n", b"\r\n"), b"zero\n" + FIVE_LINES, b"zero\r\n" + FIVE_LINES.replace(b"\n", b"\r\n")),
        (FIVE_LINES[:-1], b"zero\n" + FIVE_LINES, b"zero\n" + FIVE_LINES[:-1]),
        (b"zero\n" + FIVE_LINES, FIVE_LINES[:-1], b"zero\n" + FIVE_LINES[:-1]),
        # a form feed, a line separator and a lone carriage return end no line
        (
            b"zero\n" + FIVE_LINES,
            FIVE_LINES + "a\fb\u2028c\rd\n".encode(),
            b"zero\n" + FIVE_LINES + "a\fb\u2028c\rd\n".encode(),
        ),
    ],
)
def test_changes_of_different_lines_are_joined(yours, new, merged):
    assert merge_text(FIVE_LINES, yours, new) == Merged(merged)


def test_adjacent_conflicts_are_joined_without_a_final_newline():
    merged = merge_text(FIVE_LINES, b"1\ntwo\nthree\nfour\n5", b"I\ntwo\nthree\nfour\nV")
    assert merged is not None
    assert merged.content.decode() == (
        f"{YOURS}\n1\ntwo\nthree\nfour\n5\n{BETWEEN}\nI\ntwo\nthree\nfour\nV\n{OPWESTS}\n"
    )
    assert merged.conflicts == (1,) == marker_lines(merged.content)


def test_markers_with_the_users_line_ends():
    merged = merge_text(b"a\n", b"b\r\n", b"c\n")
    assert merged == Merged(f"{YOURS}\r\nb\r\n{BETWEEN}\r\nc\r\n{OPWESTS}\r\n".encode(), (1,))
    assert marker_lines(merged.content) == (1,)


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
        merge_text(FIVE_LINES, b"zero\n" + FIVE_LINES, FIVE_LINES + b"six\n")
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
