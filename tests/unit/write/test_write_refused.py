# SPDX-License-Identifier: Apache-2.0
"""Rejected output directories: existing files, directories of others, invalid input, broken locks."""

import os
import shutil

import pytest
from opwest.write import read_record, recover
from write_support import RECORD, gen, refusal, times, tree, user, write

# --- existing files


def test_directory_and_file_in_the_way(app):
    write(app)
    (app / "a.c").mkdir()
    (app / "u").mkdir()
    (app / "m").write_text("mine")
    assert refusal(write, app, gen("a.c"), gen("m/x/b.c"), user("u"), user("m/u")) == (
        f"{app}/a.c: error: a directory in place of a generated file\n  hint: move or rename the directory\n"
        f"{app}/m: error: a file in place of a directory (for m/u)\n"
        "  hint: move or rename the file\n"
        f"{app}/m: error: a file in place of a directory (for m/x/b.c)\n"
        "  hint: move or rename the file\n"
        f"{app}/u: error: a directory in place of a generated file\n  hint: move or rename the directory"
    )


def test_directory_in_the_way_with_a_user_file(app):
    write(app, gen("a/b.c"))
    (app / "a/mine").write_text("mine")
    before = times(app)
    assert "/a: error: a directory in place of a generated file" in refusal(write, app, gen("a"))
    assert times(app) == before


@pytest.mark.parametrize("target", ["../outside", "inside"])
def test_links_to_directories_are_not_followed(app, tmp_path, target):
    write(app, gen("inside/x.c"), gen("m/a.c"))
    (tmp_path / "outside").mkdir()
    shutil.rmtree(app / "m")
    (app / "m").symlink_to(target)
    (app / "m/theirs").write_text("theirs")
    assert refusal(write, app, gen("inside/x.c"), gen("m/a.c"), user("m/u"), user("m/theirs")) == "\n".join(
        f"{app}/m: error: opwest does not write through a symbolic link (for m/{name})\n"
        "  hint: replace the link with a directory"
        for name in ("a.c", "u")
    )
    assert write(app, gen("inside/x.c")).kept == ("m/a.c",)  # nor deleted from
    assert sorted(p.name for p in (app / "m").iterdir() if p.name != "x.c") == ["theirs"]


def test_symbolic_link_in_place_of_a_file_of_opwest(app, tmp_path):
    write(app, gen("a.c"))
    (tmp_path / "outside").write_text("generated\n")
    (app / "a.c").unlink()
    (app / "a.c").symlink_to("../outside")
    assert refusal(write, app, gen("a.c", "new")) == (
        f"{app}/a.c: error: opwest does not write through a symbolic link\n  hint: delete the link and generate again"
    )
    assert (tmp_path / "outside").read_text() == "generated\n"


def test_special_file_in_the_way(app):
    write(app)
    os.mkfifo(app / "a.c")
    assert refusal(write, app, gen("a.c")) == (
        f"{app}/a.c: error: a special file in place of a generated file\n  hint: move or rename it"
    )


def test_name_that_changes_only_in_case(app):
    """On a case-insensitive file system both names are one file, simulated by a hard link."""
    write(app, gen("Foo.c"))
    os.link(app / "Foo.c", app / "foo.c")
    assert refusal(write, app, gen("foo.c")) == (
        f"{app}/Foo.c: error: the new name foo.c differs only in case, "
        "which this file system does not distinguish\n"
        "  hint: delete the file and generate again"
    )
    (app / "foo.c").unlink()
    (app / "foo.c").symlink_to("nowhere")
    assert "foo.c: error: opwest does not write through a symbolic link" in refusal(write, app, gen("foo.c"))
    (app / "foo.c").unlink()
    assert write(app, gen("foo.c")).written == ("foo.c",)
    assert tree(app, own=False) == {"foo.c": b"generated\n"}


# --- directories of others

FOREIGN = (
    "error: the directory is not empty and was not created by opwest\n  hint: choose a new directory, or empty this one"
)


@pytest.mark.parametrize("content", ["main.c", ".git/HEAD", ".opwest/other", ".opwest", "file-opwest"])
def test_foreign_directory_is_rejected(app, content):
    if content == "file-opwest":
        app.mkdir()
        (app / ".opwest").write_text("a file")
    elif content == ".opwest":  # of an interrupted run, but with another file
        (app / ".opwest").mkdir(parents=True)
        (app / "mine").write_text("mine")
    else:
        (app / content).parent.mkdir(parents=True)
        (app / content).write_text("mine")
    before = times(app)
    assert refusal(write, app, gen("a.c")) == f"{app}: {FOREIGN}"
    assert times(app) == before
    assert read_record(app) is None
    assert recover(app) == "nothing"
    assert times(app) == before


def test_linked_own_directory_is_rejected(app, tmp_path):
    write(tmp_path / "other", gen("a.c"))
    app.mkdir()
    (app / ".opwest").symlink_to("../other/.opwest")
    assert refusal(write, app, gen("a.c")) == f"{app}: {FOREIGN}"


@pytest.mark.parametrize("kind", ["file", "dangling"])
def test_not_a_directory(app, kind):
    app.write_text("mine") if kind == "file" else app.symlink_to("nowhere")
    expected = f"{app}: error: not a directory\n  hint: choose a new or empty directory"
    assert refusal(write, app, gen("a.c")) == expected
    assert read_record(app) is None
    assert recover(app) == "nothing"


def test_file_above_the_directory(app):
    app.write_text("mine")
    assert refusal(write, app / "x/y", gen("a.c")).startswith(f"{app}: error: cannot write the project: ")
    assert app.read_text() == "mine"


# --- the caller's mistakes


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["/etc/x"], "not a path in the project: '/etc/x'"),
        (["a/../b"], "not a path in the project: 'a/../b'"),
        ([".."], "not a path in the project: '..'"),
        (["."], "not a path in the project: '.'"),
        (["a\\b"], r"not a path in the project: 'a\\b'"),
        (["a\0b"], r"not a path in the project: 'a\x00b'"),
        (["a", "b", "a"], "duplicate or reserved path: 'a'"),
        (["src/Main.c", "src/main.c"], "paths that differ only in case: 'src/Main.c' and 'src/main.c'"),
        (["Src/a.c", "src/b.c"], "paths that differ only in case: 'Src' and 'src'"),
        (["u\u0308", "\u00fc"], "paths that differ only in case: 'u\u0308' and 'ü'"),
        (["a/b", "a"], "both a file and a directory: 'a'"),
        ([".opwest/lock.json"], "duplicate or reserved path: '.opwest/lock.json'"),
        ([".opwest/Stage/x"], "both a file and a directory: '.opwest/Stage'"),
        ([".OPWEST/x"], "paths that differ only in case: '.opwest' and '.OPWEST'"),
    ],
)
def test_impossible_paths(app, paths, message):
    with pytest.raises(ValueError) as caught:
        write(app, *map(gen, paths))
    assert str(caught.value) == message
    assert not app.exists()


def test_impossible_record_and_owner(app):
    with pytest.raises(TypeError, match="set is not a JSON value"):
        write(app, record={"a": {1}})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(app, record={"a": float("nan")})
    with pytest.raises(ValueError, match="not an owner: 'me'"):
        write(app, type(gen("a"))(gen("a").path, b"", "me"))
    assert not app.exists()


# --- reading the record


def test_read_record(app):
    assert read_record(app) is None
    app.mkdir()
    assert read_record(app) is None
    write(app, gen("a.c"))
    before = times(app)
    assert read_record(app) == RECORD
    assert times(app) == before


def test_broken_lock(app):
    """test_write_lock.py has all kinds of damage."""
    write(app, gen("a.c"))
    (app / ".opwest/lock.json").write_text("<<<<<<< ours")
    before = times(app)
    for call in (lambda: read_record(app), lambda: write(app, gen("a.c", "new"))):
        assert refusal(call) == (
            f"{app}/.opwest/lock.json: error: the lock is damaged: "
            "invalid JSON (Expecting value: line 1 column 1 (char 0))\n"
            "  hint: restore it from version control, or generate into a new directory and move your own files there"
        )
    assert times(app) == before


def test_lost_lock(app):
    """The directory is still recognized; equal files are adopted, others are not overwritten."""
    write(app, gen("a.c"), gen("b.c"))
    (app / ".opwest/lock.json").unlink()
    assert "b.c: error: the file was not written by opwest" in refusal(write, app, gen("a.c"), gen("b.c", "new"))
    assert write(app, gen("a.c"), gen("b.c")).unchanged == 2
    assert write(app, gen("a.c"), gen("b.c", "new")).written == ("b.c",)
