# SPDX-License-Identifier: Apache-2.0
"""Zephyr's scripts in builds of the tests: without garbage collection, and those that only read the tree run once.

Garbage collection is 10 % of the time of these short scripts. The output of some scripts depends on the files of the
workspace and their arguments only: it is kept for the other builds of the session, which is 15 % of an image.
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
_RUNNING = "OPWEST_TESTS_SCRIPT"
"""The variable of a process whose output is kept."""


def _reads_the_tree_only(arguments: list[str]) -> bool:
    if Path(arguments[0]).name not in _SCRIPTS:
        return " ".join(arguments).startswith(_COMMANDS)
    workspace = Path(os.environ["ZEPHYR_BASE"]).parent
    roots = [Path(word.rpartition("=")[2]) for word in arguments[1:]]
    # The roots of applications and models contain no boards, unless one of these directories exists.
    parts = ("arch", "boards", "dts", "soc")
    other = [root for root in roots if root.is_absolute() and root.is_dir() and workspace not in root.parents]
    return not any((root / part).exists() for root in other for part in parts)


def _run_once(arguments: list[str], session: Path) -> None:
    """Print the output of an earlier run, or run the script in another process and keep its output; exit."""
    written = None
    words = list(arguments)
    if "--kconfig-out" in words:
        place = words.index("--kconfig-out") + 1
        written, words[place] = Path(words[place]), ""
    key = "\0".join(
        [sys.executable, os.environ.get("ZEPHYR_BASE", ""), str(Path.cwd()) if "-m" in words else "", *words]
    )
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
