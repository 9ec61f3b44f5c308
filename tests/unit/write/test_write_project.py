# SPDX-License-Identifier: Apache-2.0
"""Written and unchanged files."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from types import MappingProxyType

from opwest import __version__
from opwest.project.writer import read_record
from write_support import RECORD, gen, mode, refusal, times, tree, user, write

# --- the first generation, and the lock


def test_first_generation(app):
    result = write(app, gen("models/digits/src/digits.c", "int x;\n"), user("src/main.c"), gen("VERSION"))
    assert result.written == ("VERSION", "models/digits/src/digits.c", "src/main.c")
    assert (result.unchanged, result.removed, result.kept) == (0, (), ())
    assert tree(app, own=False) == {
        "VERSION": b"generated\n",
        "models": None,
        "models/digits": None,
        "models/digits/src": None,
        "models/digits/src/digits.c": b"int x;\n",
        "src": None,
        "src/main.c": b"yours\n",
    }
    assert sorted(p.name for p in (app / ".opwest").iterdir()) == ["lock.json"]


def test_lock_content(app):
    write(app, gen("b.c", "b"), gen("a.c", "a"), user("src/é.c"))
    text = (app / ".opwest/lock.json").read_text()
    assert len(text.splitlines()) == 15, "a line for each file"
    assert json.loads(text) == {
        "format": 2,
        "opwest": __version__,
        "record": RECORD,
        "files": {name: hashlib.sha256(name[0].encode()).hexdigest() for name in ("a.c", "b.c")},
        "user": {"src/é.c": [hashlib.sha256(b"yours\n").hexdigest(), "yours\n"]},
    }


def test_same_input_gives_same_bytes(tmp_path):
    files = [gen("b/x.c"), gen("a.c"), user("c")]
    write(tmp_path / "one", *files)
    write(tmp_path / "far/away/two", *reversed(files), record=MappingProxyType(dict(reversed(RECORD.items()))))
    assert tree(tmp_path / "one") == tree(tmp_path / "far/away/two")


def test_empty_directory_and_umask(app):
    app.mkdir()
    old = os.umask(0o022)
    try:
        write(app, gen("a.c"))
    finally:
        os.umask(old)
    assert mode(app / "a.c") == 0o644
    assert mode(app / ".opwest/lock.json") == 0o644


def test_odd_names_and_empty_content(app):
    names = ["a b/ü.c", "-x", "odd\udcff", ".opwest/more/main.c", "new\nline"]
    write(app, *(gen(name, "") for name in names))
    assert all((app / name).read_bytes() == b"" for name in names)
    assert write(app, *(gen(name, "") for name in names)).unchanged == 5


def test_relative_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("app"), gen("a.c"))
    monkeypatch.chdir(tmp_path / "app")
    assert write(Path(), gen("a.c")).unchanged == 1


def test_project_directory_may_be_a_link(app, tmp_path):
    (tmp_path / "real").mkdir()
    app.symlink_to("real")
    write(app, gen("a.c"))
    assert (tmp_path / "real/a.c").is_file()


# --- the next generation


def test_unchanged_update_touches_no_files(app):
    files = [gen("m/a.c"), gen("m/b.c"), user("src/main.c")]
    write(app, *files)
    before = times(app)
    result = write(app, *files)
    assert times(app) == before
    assert (result.written, result.unchanged, result.removed, result.kept) == ((), 2, (), ("src/main.c",))


def test_only_changed_files_are_written(app):
    write(app, gen("a.c"), gen("b.c"), gen("gone.c"))
    before = times(app)
    result = write(app, gen("a.c"), gen("b.c", "new"), gen("c.c"))
    after = times(app)
    assert (result.written, result.unchanged, result.removed) == (("b.c", "c.c"), 1, ("gone.c",))
    assert before[str(app / "a.c")] == after[str(app / "a.c")]
    assert tree(app, own=False) == {"a.c": b"generated\n", "b.c": b"new", "c.c": b"generated\n"}


def test_changed_record_changes_only_the_lock(app):
    write(app, gen("a.c"))
    before = times(app)
    result = write(app, gen("a.c"), record={"other": 1})
    assert (result.written, result.unchanged) == ((), 1)
    assert read_record(app) == {"other": 1}
    assert times(app)[str(app / "a.c")] == before[str(app / "a.c")]


def test_emptied_directories_are_removed(app):
    write(app, gen("a/b/c/x.c"), gen("a/y.c"), gen("d/z.c"), gen("e/f/v.c"))
    (app / "d/mine.txt").write_text("mine")
    (app / "e/empty").mkdir()
    result = write(app, gen("a/y.c"))
    assert result.removed == ("a/b/c/x.c", "d/z.c", "e/f/v.c")
    assert set(tree(app, own=False)) == {"a", "a/y.c", "d", "d/mine.txt", "e", "e/empty"}


def test_directory_is_kept_for_another_file(app):
    write(app, gen("a/x.c"))
    inode = (app / "a").stat().st_ino
    write(app, gen("a/y.c"))
    assert (app / "a").stat().st_ino == inode


def test_deleted_file_of_opwest_is_restored(app):
    write(app, gen("a/x.c"), gen("b.c"))
    shutil.rmtree(app / "a")
    assert write(app, gen("a/x.c"), gen("b.c")).written == ("a/x.c",)
    assert (app / "a/x.c").read_text() == "generated\n"


def test_deleted_file_that_is_no_longer_generated(app):
    write(app, gen("a/x.c"))
    shutil.rmtree(app / "a")
    result = write(app)
    assert (result.removed, result.kept) == ((), ())


def test_file_becomes_directory_and_back(app):
    write(app, gen("a", "file"))
    assert write(app, gen("a/b/c.c")).removed == ("a",)
    assert tree(app, own=False) == {"a": None, "a/b": None, "a/b/c.c": b"generated\n"}
    assert write(app, gen("a", "file")).written == ("a",)
    assert tree(app, own=False) == {"a": b"file"}


# --- the user's files


def test_users_file_that_was_deleted_stays_deleted(app):
    write(app, user("src/main.c"))
    shutil.rmtree(app / "src")
    result = write(app, user("src/main.c"))
    assert (result.written, result.kept) == ((), ())
    assert not (app / "src").exists()


def test_user_created_file_is_kept(app):
    write(app, gen("a.c"))
    (app / "prj.conf").write_text("mine")
    (app / "dangling").symlink_to("nowhere")
    result = write(app, gen("a.c"), user("prj.conf"), user("dangling"))
    assert result.kept == ("dangling", "prj.conf")
    assert (app / "prj.conf").read_text() == "mine"
    (app / "prj.conf").unlink()  # not written by opwest before
    assert write(app, gen("a.c"), user("prj.conf"), user("dangling")).written == ("prj.conf",)


def test_file_of_opwest_becomes_a_user_file(app):
    write(app, gen("edited", "1"), gen("untouched", "1"), gen("same", "1"), gen("gone", "1"))
    (app / "edited").write_text("mine")
    (app / "gone").unlink()
    files = [user("edited", "2"), user("untouched", "2"), user("same", "1"), user("gone", "2")]
    result = write(app, *files)
    assert (result.written, result.kept) == (("gone", "untouched"), ("edited", "same"))
    expected = {"edited": b"mine", "untouched": b"2", "same": b"1", "gone": b"2"}
    assert tree(app, own=False) == expected
    assert write(app, *files).kept == ("edited", "gone", "same", "untouched")


def test_user_file_becomes_a_file_of_opwest(app):
    write(app, user("a.c"), user("b.c"), user("same.c"))
    (app / "a.c").write_text("edited")
    (app / "b.c").unlink()
    assert refusal(write, app, gen("a.c"), gen("b.c"), gen("same.c")) == (
        f"{app}/a.c: error: the file was not written by opwest; opwest does not overwrite it"
        " (an earlier version of opwest generated it for you to edit)\n"
        "  hint: move or rename your file, then generate again"
    )
    (app / "a.c").unlink()
    assert write(app, gen("a.c"), gen("b.c"), gen("same.c")).written == ("a.c", "b.c", "same.c")
    assert json.loads((app / ".opwest/lock.json").read_text())["user"] == {}


# --- edits of our files


def test_edited_files_are_rejected_together(app):
    write(app, gen("m/a.c"), gen("m/b.c"), gen("m/c.c"))
    (app / "m/a.c").write_text("edited")
    (app / "m/b.c").write_text("edited")
    before = times(app)
    hint = "  hint: move your edits to another file and delete this one; the next generation restores it"
    assert refusal(write, app, gen("m/a.c"), gen("m/b.c", "new"), gen("m/c.c", "new")) == "\n".join(
        f"{app}/m/{name}: error: the file was edited; opwest does not overwrite it\n{hint}" for name in ("a.c", "b.c")
    )
    assert times(app) == before
    (app / "m/a.c").unlink()
    (app / "m/b.c").unlink()
    assert write(app, gen("m/a.c"), gen("m/b.c", "new"), gen("m/c.c", "new")).written == ("m/a.c", "m/b.c", "m/c.c")


def test_edit_that_equals_the_new_content(app):
    write(app, gen("a.c", "old"))
    (app / "a.c").write_text("new")
    result = write(app, gen("a.c", "new"))
    assert (result.written, result.unchanged) == ((), 1)
    assert write(app, gen("a.c", "newer")).written == ("a.c",)


def test_edited_file_that_is_no_longer_generated_stays(app):
    write(app, gen("m/a.c"), gen("m/b.c"), gen("m/link"))
    (app / "m/a.c").write_text("edited")
    (app / "m/link").unlink()
    (app / "m/link").symlink_to("b.c")
    result = write(app)
    assert (result.removed, result.kept) == (("m/b.c",), ("m/a.c", "m/link"))
    assert (app / "m/a.c").read_text() == "edited"
    assert write(app).kept == ()  # belongs to the user from now on


def test_foreign_files_are_rejected(app):
    write(app, gen("a.c"))
    (app / "b.c").write_text("mine")
    (app / "c.c").write_text("mine")
    assert refusal(write, app, gen("b.c"), gen("c.c")) == "\n".join(
        f"{app}/{name}: error: the file was not written by opwest; opwest does not overwrite it\n"
        "  hint: move or rename your file, then generate again"
        for name in ("b.c", "c.c")
    )
    assert (app / "a.c").exists()


def test_foreign_file_with_equal_content_is_adopted(app):
    write(app)
    (app / "b.c").write_text("generated\n")
    assert write(app, gen("b.c")).unchanged == 1
    assert write(app, gen("b.c", "new")).written == ("b.c",)
