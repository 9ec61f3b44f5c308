# SPDX-License-Identifier: Apache-2.0
"""The lock: it is read back, and damage is reported with its reason."""

import json

import pytest
from opwest import __version__
from opwest.diagnostics import OpwestError
from opwest.files import is_inside
from opwest.write.lock import FORMAT, Lock, is_digest, read_lock, to_json

DIGEST = "0123456789abcdef" * 4
GOOD = {"format": FORMAT, "opwest": "0.1.0", "record": {"a": 1}, "files": {"x/y.c": DIGEST}, "user": ["prj.conf"]}


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
        {"runtime": "module"}, {"b": DIGEST, "a": DIGEST}, frozenset({"z", "m"}), {"z": DIGEST}, frozenset({"q"})
    )
    put(project, lock.to_bytes())
    assert read_lock(project) == lock
    assert (
        lock.to_bytes()
        == (
            f'{{\n  "bases": {{\n    "z": "{DIGEST}"\n  }},\n  "deleted": [\n    "q"\n  ],\n'
            f'  "files": {{\n    "a": "{DIGEST}",\n    "b": "{DIGEST}"\n  }},\n  "format": {FORMAT},\n'
            f'  "opwest": "{__version__}",\n  "record": {{\n    "runtime": "module"\n  }},\n'
            '  "user": [\n    "m",\n    "z"\n  ]\n}\n'
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
    put(project, GOOD)
    assert read_lock(project) == Lock({"a": 1}, {"x/y.c": DIGEST}, frozenset({"prj.conf"}))


BAD = "../x", "/x", "", "a/../b", "a\\b", "a\0b", "./a", "a//b", "a/", 7, None
DAMAGES = {
    "no JSON": (b"{", "invalid JSON ("),
    "no UTF-8": (b"\xff\xfe\xfd", "invalid JSON ("),
    "too deep": (b"[" * 200_000, "invalid JSON ("),
    "a list": ([], "not a JSON object"),
    "no format": ({**GOOD, "format": None}, "'format' is None, not 1"),
    "format 0": ({**GOOD, "format": 0}, "'format' is 0, not 1"),
    "format true": ({**GOOD, "format": True}, "'format' is True, not 1"),
    "record": ({**GOOD, "record": []}, "'record' is not an object"),
    "files": ({**GOOD, "files": []}, "'files' does not map paths in the project to SHA-256 sums"),
    "sums": ({**GOOD, "files": {"a": DIGEST[1:]}}, "'files' does not map paths in the project to SHA-256 sums"),
    "paths": ({**GOOD, "files": {"../a": DIGEST}}, "'files' does not map paths in the project to SHA-256 sums"),
    "user": ({**GOOD, "user": {}}, "'user' is not a list of paths in the project"),
    "user's": ({**GOOD, "user": ["/a"]}, "'user' is not a list of paths in the project"),
    "bases": ({**GOOD, "bases": []}, "'bases' does not map paths in the project to SHA-256 sums"),
    "base": ({**GOOD, "bases": {"a": "x"}}, "'bases' does not map paths in the project to SHA-256 sums"),
    "base's": ({**GOOD, "bases": {"/a": DIGEST}}, "'bases' does not map paths in the project to SHA-256 sums"),
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


@pytest.mark.parametrize("path", BAD)
def test_paths_outside_or_not_normalised(path):
    assert not is_inside(path)


def test_path_too_long_for_any_file_system():
    """Half of a surrogate pair: JSON can contain it, UTF-8 cannot."""
    assert not is_inside("a/\ud800")


def test_paths_inside():
    assert is_inside("a") and is_inside("a/b.c") and is_inside(".opwest/x y") and is_inside("..a")


@pytest.mark.parametrize(
    "value", [DIGEST[1:], DIGEST + "0", DIGEST.upper(), "g" + DIGEST[1:], "X" + DIGEST[1:], 7, None, list(DIGEST)]
)
def test_no_digests(value):
    assert not is_digest(value)
    assert is_digest(DIGEST)


def test_unsupported_json_values_are_rejected():
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"a": float("nan")})
    with pytest.raises(TypeError, match=r"^set is not a JSON value: "):
        to_json({"a": {1}})
    from types import MappingProxyType

    assert to_json(MappingProxyType({"b": MappingProxyType({"é": 1})})) == b'{\n  "b": {\n    "\\u00e9": 1\n  }\n}\n'
