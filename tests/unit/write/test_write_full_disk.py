# SPDX-License-Identifier: Apache-2.0
"""Full disks: at every write and every sync, with half of a file written, and a small real file system."""

import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opwest.write import disk, recover
from requirements_support import need, skip_here
from write_support import copy, generate_new, generate_old, is_old, refusal, tree

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(params=["first", "update"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict, dict]:
    folder = tmp_path / "start"
    if request.param == "update":
        generate_old(folder)
        (folder / "src/main.c").write_text("edited by the user\n")
    generate_new(copy(folder, tmp_path / "expected"))
    return folder, tree(folder), tree(tmp_path / "expected")


class Half:
    """A file on a disk that becomes full while it is written."""

    def __init__(self, file) -> None:
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, content: bytes) -> None:
        self._file.write(content[: len(content) // 2])
        raise FULL


@pytest.mark.parametrize("what", ["write", "sync"])
def test_full_at_every_file(start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    before, old, new = start
    real_open, real_sync = Path.open, os.fsync
    number = 0
    while True:
        number += 1
        app = copy(before, tmp_path / "app")
        count = 0

        def opened(path, mode="r", *rest, number=number, **named):
            nonlocal count
            file = real_open(path, mode, *rest, **named)
            count += mode == "xb"
            return Half(file) if mode == "xb" and count == number else file

        def synced(handle, number=number):
            nonlocal count
            count += 1
            if count == number:
                raise FULL
            real_sync(handle)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", opened) if what == "write" else patch.setattr(os, "fsync", synced)
            try:
                text = refusal(generate_new, app)
            except AssertionError:
                assert tree(app) == new
                if count < number:
                    break
                continue
        assert "error: cannot write the project: No space left on device\n" in text
        assert text.endswith("hint: the project is unchanged; free some space")
        found = tree(app)
        assert is_old(found, old), number
        assert recover(app) == "nothing"
        generate_new(app)
        assert tree(app) == new
    assert number > 8


_SMALL = """\
import ctypes, sys
sys.path[:0] = {path!r}
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"tmpfs", {folder!r}.encode(), b"tmpfs", 0, b"size={size},nr_inodes={inodes}") != 0:
    sys.exit(77)
from write_support import generate_new, generate_old, refusal, tree, write, gen
app = Path({folder!r}) / "app"
generate_old(app)
old = tree(app)
text = refusal(write, app, gen("large.c", "x" * 400_000), *[gen(f"many/{{n}}.c", str(n)) for n in range(100)])
assert "No space left on device" in text and "the project is unchanged; free some space" in text, text
assert tree(app) == old, tree(app)
generate_new(app)
print("old, then new")
"""


@pytest.mark.parametrize(("size", "inodes"), [(300_000, 1000), (4_000_000, 90)], ids=["bytes", "files"])
def test_full_file_system(tmp_path: Path, size: int, inodes: int) -> None:
    """A tmpfs in a separate mount namespace, which is not visible outside."""
    need("unshare")
    (tmp_path / "disk").mkdir()
    script = _SMALL.format(path=[p for p in sys.path if p], folder=str(tmp_path / "disk"), size=size, inodes=inodes)
    for options in (["--mount"], ["--mount", "--user", "--map-root-user"]):
        command = ["unshare", *options, sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            assert done.stdout == "old, then new\n"
            return
        if done.returncode not in (1, 77) or "Traceback" in done.stderr:
            pytest.fail(done.stderr)
    skip_here(f"no tmpfs can be mounted here: {done.stderr.strip() or os.strerror(ctypes.get_errno())}")


def test_partial_file_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = tmp_path / "app"
    generate_old(app)
    monkeypatch.setattr(os, "fsync", lambda _handle: (_ for _ in ()).throw(FULL))
    refusal(generate_new, app)
    assert not (app / disk.STAGE).exists()
