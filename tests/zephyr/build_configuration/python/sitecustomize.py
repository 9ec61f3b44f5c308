# SPDX-License-Identifier: Apache-2.0
"""Zephyr's scripts in builds of the tests: without garbage collection, and those that only read the tree run once.

Garbage collection is 10 % of the time of these short scripts. The output of some scripts depends on the files of the
workspace and their arguments only: it is kept for the other builds of the session. Files and directories outside of the
workspace, those of applications and models, count by their content. A build starts about 25 scripts, so this file
imports other modules only where it needs them: that took 30 ms of each script.
"""

import gc
import os
import sys

gc.disable()

_SCRIPTS = (
    *("list_boards.py", "list_hardware.py", "list_shields.py", "gen_driver_kconfig_dts.py"),
    *("gen_edt.py", "gen_defines.py", "gen_dts_cmake.py", "parse_syscalls.py", "gen_kobject_list.py"),
)
_COMMANDS = ("-m west topdir", "-c import west.version", "-c import sys", "-c import json; import yaml;")
_OUTPUTS = (
    *("--kconfig-out", "--dts-out", "--edt-pickle-out", "--header-out", "--cmake-out"),
    *("--json-file", "--tag-struct-file", "--validation-output"),
    *("--kobj-types-output", "--kobj-otype-output", "--kobj-size-output"),
)
"""Options before the name of a file that a script writes."""
_PARTS = ("arch", "boards", "dts", "soc")
"""The directories of a root of boards, architectures or processors."""
_RUNNING = "OPWEST_TESTS_SCRIPT"
"""The variable of a process whose output is kept."""


def _reads_the_tree_only(arguments: list[str]) -> bool:
    if arguments[0].rpartition("/")[2] in _SCRIPTS:
        return "--kernel" not in arguments  # gen_kobject_list.py reads the image
    return " ".join(arguments).startswith(_COMMANDS)


def _run_once(arguments: list[str], session: str) -> None:
    """Print the output of an earlier run, or run the script in another process and keep its output; exit."""
    import contextlib
    import hashlib
    import subprocess
    from pathlib import Path

    workspace = Path(os.environ["ZEPHYR_BASE"]).parent

    def digest(*parts: str | bytes) -> str:
        found = hashlib.md5(usedforsecurity=False)
        for part in parts:
            found.update(part.encode() if isinstance(part, str) else part)
            found.update(b"\0")
        return found.hexdigest()

    def of_content(word: str) -> str:
        """Return an argument; for a file or a directory outside of the workspace, the digest of what a script reads."""
        before, _, name = word.rpartition("=")
        if word.startswith("import json;"):  # json.dumps(yaml.safe_load(open('NAME')))
            name = word.partition("open('")[2].partition("'")[0]
        path = Path(name)
        if not path.is_absolute() or workspace in path.parents or not path.exists():
            return word
        if path.suffix == ".txt":  # names of files
            return digest(*map(of_content, path.read_text(encoding="utf-8").split(";")))
        if path.is_file():
            return digest(before, path.read_bytes())
        whole = path.name == "bindings" or "parse_syscalls.py" in arguments[0]
        files = [file for part in ([""] if whole else _PARTS) for file in (path / part).rglob("*") if file.is_file()]
        contents = [part for file in sorted(files) for part in (str(file.relative_to(path)), file.read_bytes())]
        return digest(before, path.name if whole else "", *contents)

    words = list(arguments)
    written = []
    for place, word in enumerate(arguments[:-1]):
        if word in _OUTPUTS:
            written.append(Path(words[place + 1]))
            words[place + 1] = ""
    here = str(Path.cwd()) if "-m" in words else ""
    kept = (
        Path(session) / "scripts" / digest(sys.executable, str(workspace), here, words[0], *map(of_content, words[1:]))
    )
    if kept.is_dir():
        output = (kept / "output").read_bytes()
        for number, path in enumerate(written):
            content = (kept / f"written{number}").read_bytes()
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
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
        for number, path in enumerate(written):
            (own / f"written{number}").write_bytes(path.read_bytes())
        with contextlib.suppress(OSError):  # another process was faster
            own.rename(kept)
    sys.stdout.buffer.write(output)
    sys.stdout.flush()
    os._exit(0)


_session = os.environ.get("OPWEST_TESTS_SESSION")
_can_keep = _session and "ZEPHYR_BASE" in os.environ and _RUNNING not in os.environ and len(sys.orig_argv) > 1
if _session and _can_keep and _reads_the_tree_only(sys.orig_argv[1:]):
    _run_once(sys.orig_argv[1:], _session)
