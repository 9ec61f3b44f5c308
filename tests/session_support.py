# SPDX-License-Identifier: Apache-2.0
"""Results shared by the processes of a test session: the first process that needs one creates it, the others wait."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from compiler_cache import use_compiler_cache

VARIABLE = "OPWEST_TESTS_SESSION"
"""The directory of the session; the processes of pytest-xdist inherit the variable."""


def begin_session() -> None:
    os.environ[VARIABLE] = tempfile.mkdtemp(prefix="opwest-tests-")
    use_compiler_cache(session_folder())


def end_session() -> None:
    shutil.rmtree(os.environ.pop(VARIABLE), ignore_errors=True)


def session_folder() -> Path:
    return Path(os.environ[VARIABLE])


def made_once(key: str, make: Callable[[Path], None]) -> Path:
    """Return a directory filled by `make`. If `make` fails, the next caller tries again in an empty directory."""
    folder = session_folder() / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder.with_name(f"{folder.name}.done")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@contextlib.contextmanager
def first_alone(stamp: Path) -> Iterator[None]:
    """Let one process run the block before the others, unless an earlier session has run it and left `stamp`."""
    if stamp.exists():
        yield
        return
    done = session_folder() / f"{stamp.name}.done"
    with (session_folder() / f"{stamp.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield
        done.touch()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()


def digest(*parts: str | bytes) -> str:
    """Return a short name for a sequence of texts."""
    found = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        found.update(len(content).to_bytes(8, "little") + content)
    return found.hexdigest()[:24]


def digest_of_files(folder: Path) -> str:
    """Return a short name for the names and contents of all files of a directory."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return digest(*(part for path in files for part in (str(path.relative_to(folder)), path.read_bytes())))
