# SPDX-License-Identifier: Apache-2.0
"""Zephyr's scripts in builds of the tests: without garbage collection, and those that only read the tree run once.

Garbage collection is 10 % of the time of these short scripts. The output of some scripts depends on the files of the
workspace and their arguments only: it is kept for the other builds of the session, which is 18 % of the processor time
of an image. Directories outside of the workspace, those of applications and models, count by their content.
"""

import contextlib
import gc
import hashlib
import os
import subprocess
import sys
from pathlib import Path

gc.disable()

_SCRIPTS = ("list_boards.py", "list_hardware.py", "list_shields.py", "gen_driver_kconfig_dts.py")
_COMMANDS = ("-m west topdir", "-c import west.version", "-c import sys")
_PARTS = ("arch", "boards", "dts", "soc")
"""The directories of a root of boards, architectures or processors."""
_RUNNING = "OPWEST_TESTS_SCRIPT"
"""The variable of a process whose output is kept."""


def _reads_the_tree_only(arguments: list[str]) -> bool:
    return Path(arguments[0]).name in _SCRIPTS or " ".join(arguments).startswith(_COMMANDS)


def _of_content(word: str) -> str:
    """Return an argument; for a directory outside of the workspace, the digest of the files that a script reads."""
    root = Path(word.rpartition("=")[2])
    if not root.is_absolute() or not root.is_dir() or Path(os.environ["ZEPHYR_BASE"]).parent in root.parents:
        return word
    found = hashlib.sha256()
    for part in [root] if root.name == "bindings" else [root / name for name in _PARTS]:
        for path in sorted(path for path in part.rglob("*") if path.is_file()):
            found.update(f"{path.relative_to(root)} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return f"{word.rpartition('=')[0]} {root.name if root.name == 'bindings' else ''} {found.hexdigest()}"


def _run_once(arguments: list[str], session: Path) -> None:
    """Print the output of an earlier run, or run the script in another process and keep its output; exit."""
    written = None
    words = list(arguments)
    if "--kconfig-out" in words:
        place = words.index("--kconfig-out") + 1
        written, words[place] = Path(words[place]), ""
    here = str(Path.cwd()) if "-m" in words else ""
    key = "\0".join([sys.executable, os.environ["ZEPHYR_BASE"], here, words[0], *map(_of_content, words[1:])])
    kept = session / "scripts" / hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()
    if kept.is_dir():
        output = (kept / "output").read_bytes()
        if written:
            written.write_bytes((kept / "written").read_bytes())
    else:
        done = subprocess.run(sys.orig_argv, env={**os.environ, _RUNNING: "1"}, capture_output=True)
        output = done.stdout
        if done.returncode != 0 or done.stderr:
            sys.stdout.buffer.write(output)
            sys.stderr.buffer.write(done.stderr)
            sys.stdout.flush()
            os._exit(done.returncode)
        own = kept.with_name(f"{kept.name}.{os.getpid()}")
        own.mkdir(parents=True)
        (own / "output").write_bytes(output)
        if written:
            (own / "written").write_bytes(written.read_bytes())
        with contextlib.suppress(OSError):  # another process was faster
            own.rename(kept)
    sys.stdout.buffer.write(output)
    sys.stdout.flush()
    os._exit(0)


_session = os.environ.get("OPWEST_TESTS_SESSION")
_can_keep = _session and "ZEPHYR_BASE" in os.environ and _RUNNING not in os.environ and len(sys.orig_argv) > 1
if _session and _can_keep and _reads_the_tree_only(sys.orig_argv[1:]):
    _run_once(sys.orig_argv[1:], Path(_session))
