# SPDX-License-Identifier: Apache-2.0
"""Rejected output directories, invalid input, and the lock."""

import hashlib
import json
import os
import shutil
from pathlib import PurePosixPath

import pytest
from opwest import __version__
from opwest.base.diagnostics import OpwestError
from opwest.base.files import ProjectFile, is_inside
from opwest.project.disk import is_digest
from opwest.project.lock import FORMAT, Lock, read_lock, record_text, to_json
from opwest.project.writer import read_record, recover
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
    """The tests of write_lock have all kinds of damage."""
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
    origin = ProjectFile(PurePosixPath(".opwest/origin.json"), b"{}", "local")
    write(app, origin, gen("a.c"), gen("b.c"))
    (app / ".opwest/lock.json").unlink()
    new = (origin, gen("a.c"), gen("b.c", "new"))
    assert "b.c: error: the file was not written by opwest" in refusal(write, app, *new)
    assert write(app, origin, gen("a.c"), gen("b.c")).unchanged == 2
    assert write(app, *new).written == ("b.c",)


# --- The lock: it is read back, and damage is reported with its reason

DIGEST = "0123456789abcdef" * 4
TEXT = hashlib.sha256(b"a\n").hexdigest()
GOOD = {"format": FORMAT, "opwest": "0.1.0", "record": {"a": 1}, "files": {"x/y.c": DIGEST}, "user": {"prj.conf": []}}


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".opwest").mkdir()
    return tmp_path


def put(project, content):
    place = project / ".opwest" / "lock.json"
    place.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return place


def fault(project):
    with pytest.raises(OpwestError) as caught:
        read_lock(project)
    (found,) = caught.value.diagnostics
    assert found.location.file == str(project / ".opwest" / "lock.json")
    assert found.severity == "error"
    return found


def test_written_files_are_read_back(project):
    lock = Lock(
        {"runtime": "module"},
        {"b": DIGEST, "a": DIGEST},
        frozenset({"z", "m"}),
        {"z": TEXT},
        frozenset({"q"}),
        {"z": "a\n"},
    )
    put(project, lock.to_bytes())
    assert read_lock(project) == lock
    assert (
        lock.to_bytes()
        == (
            f'{{\n"deleted": ["q"],\n"files": {{\n"a": "{DIGEST}",\n"b": "{DIGEST}"\n}},\n"format": {FORMAT},\n'
            f'"opwest": "{__version__}",\n"record": {{\n"runtime": "module"\n}},\n'
            f'"user": {{\n"m": [],\n"z": ["{TEXT}", "a\\n"]\n}}\n}}\n'
        ).encode()
    )


def test_empty_keys_are_omitted(project):
    text = Lock().to_bytes()
    assert set(json.loads(text)) == {"format", "opwest", "record", "files", "user"}
    put(project, text)
    assert read_lock(project) == Lock()


def test_missing_lock(tmp_path):
    assert read_lock(tmp_path) is None
    (tmp_path / ".opwest").write_text("a file where the folder should be")
    assert read_lock(tmp_path) is None


def test_locks_of_0_1_0_have_no_bases(project):
    put(project, {**GOOD, "format": 1, "user": ["prj.conf"]})
    lock = Lock({"a": 1}, {"x/y.c": DIGEST}, frozenset({"prj.conf"}), outdated=(".opwest/bases.json",))
    assert read_lock(project) == lock


BAD = "../x", "/x", "", "a/../b", "a\\b", "a\0b", "./a", "a//b", "a/", 7, None
# Half of a surrogate pair: JSON can contain it, UTF-8 cannot.
HALF = "a/\ud800"
USERS = "'user' does not map paths in the project to their bases"
FIRST = {**GOOD, "format": 1, "user": [], "bases": {}}
DAMAGES = {
    "no JSON": (b"{", "invalid JSON ("),
    "no UTF-8": (b"\xff\xfe\xfd", "invalid JSON ("),
    "too deep": (b"[" * 200_000, "invalid JSON ("),
    "a list": ([], "not a JSON object"),
    "no format": ({**GOOD, "format": None}, "'format' is None, not 2"),
    "format 0": ({**GOOD, "format": 0}, "'format' is 0, not 2"),
    "format true": ({**GOOD, "format": True}, "'format' is True, not 2"),
    "record": ({**GOOD, "record": []}, "'record' is not an object"),
    "files": ({**GOOD, "files": []}, "'files' does not map paths in the project to SHA-256 sums"),
    "sums": ({**GOOD, "files": {"a": DIGEST[1:]}}, "'files' does not map paths in the project to SHA-256 sums"),
    "paths": ({**GOOD, "files": {"../a": DIGEST}}, "'files' does not map paths in the project to SHA-256 sums"),
    "user": ({**GOOD, "user": []}, USERS),
    "user's": ({**GOOD, "user": {"/a": []}}, USERS),
    "row": ({**GOOD, "user": {"a": DIGEST}}, USERS),
    "sum": ({**GOOD, "user": {"a": [DIGEST[1:]]}}, USERS),
    "text": ({**GOOD, "user": {"a": [DIGEST, 1]}}, USERS),
    "long row": ({**GOOD, "user": {"a": [DIGEST, "", ""]}}, USERS),
    "first format": ({**FIRST, "user": {}}, USERS),
    "first path": ({**FIRST, "user": ["/a"]}, USERS),
    "first bases": ({**FIRST, "bases": []}, USERS),
    "first base": ({**FIRST, "bases": {"a": "x"}}, USERS),
    "first base's": ({**FIRST, "bases": {"/a": DIGEST}}, USERS),
    "deleted": ({**GOOD, "deleted": "a"}, "'deleted' is not a list of paths in the project"),
    "deleted one": ({**GOOD, "deleted": [".."]}, "'deleted' is not a list of paths in the project"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damage_is_reported_with_its_reason(project, case):
    content, reason = DAMAGES[case]
    put(project, content)
    found = fault(project)
    assert found.message.startswith(f"the lock is damaged: {reason}")
    assert (
        found.hint == "restore it from version control, or generate into a new directory and move your own files there"
    )


def test_symbolic_link_is_rejected(project):
    (project / ".opwest" / "lock.json").symlink_to(project / "elsewhere")
    assert fault(project).message == "the lock is damaged: the file is a symbolic link"


def test_newer_format_is_reported(project):
    put(project, {"format": FORMAT + 1, "opwest": "9.0"})
    found = fault(project)
    assert found.message == f"the project was written by a newer version of opwest (9.0, lock format {FORMAT + 1})"
    assert found.expected == f"lock format {FORMAT} (opwest {__version__})"
    assert found.hint == "update opwest, or generate into a new directory"


@pytest.mark.parametrize("path", [*BAD, HALF])
def test_paths_outside_or_not_normalised(path):
    assert not is_inside(path)


def test_paths_inside():
    assert is_inside("a") and is_inside("a/b.c") and is_inside(".opwest/x y") and is_inside("..a")


@pytest.mark.parametrize(
    "value", [DIGEST[1:], DIGEST + "0", DIGEST.upper(), "g" + DIGEST[1:], "X" + DIGEST[1:], 7, None, list(DIGEST)]
)
def test_no_digests(value):
    assert not is_digest(value)
    assert is_digest(DIGEST)


def test_text_of_the_lock_is_that_of_json():
    value = {"b": [], "a": {}, "z": [{"é\n": 1, '"': -2.5}, (True, None, False), "\\", [1 << 70]], "k": {"x": [[]]}}
    assert to_json(value).decode() == json.dumps(value, sort_keys=True) + "\n"
    assert record_text(value) == (
        '{\n"a": {},\n"b": [],\n"k": {"x": [[]]},\n'
        '"z": [\n{"\\"": -2.5, "\\u00e9\\n": 1},\n[true, null, false],\n"\\\\",\n[1180591620717411303424]\n]\n}'
    )
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json({"a": float("nan")})
