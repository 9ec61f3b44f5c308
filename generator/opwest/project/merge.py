# SPDX-License-Identifier: Apache-2.0
"""Merge the text of a user's file line by line with `git merge-file`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opwest.base import timing
from opwest.base.diagnostics import OpwestError, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.project.disk import decoded

if TYPE_CHECKING:
    from opwest.project.writer import FileChange

YOURS = "<<<<<<< yours"
OPWESTS = ">>>>>>> opwest"


@dataclass(frozen=True)
class Merged:
    """The text of a merge, and the first lines (from 1) of conflict markers."""

    content: bytes
    conflicts: tuple[int, ...] = ()


def merge_text(base: bytes, yours: bytes, new: bytes) -> Merged | None:
    """Return `yours` with the changes from `base` to `new`; None if one of them is not text.

    Line endings are those of `yours`.
    """
    texts = [decoded(content) for content in (base, yours, new)]
    if any(text is None for text in texts):
        return None
    base_text, your_text, new_text = (text or "" for text in texts)
    windows = _is_windows(your_text)
    lines = [_lines(text, windows=windows) for text in (base_text, your_text, new_text)]
    merged, conflicts = _merge_lines(*lines)
    text = "".join(f"{line}\n" for line in merged)
    changed_end = _ends(your_text) != _ends(base_text)
    if text and not _ends(your_text if changed_end else new_text) and not (conflicts and merged[-1] == OPWESTS):
        text = text[:-1]
    if windows:
        text = text.replace("\n", "\r\n")
    return Merged(text.encode("utf-8"), tuple(conflicts))


def marker_lines(content: bytes) -> tuple[int, ...]:
    """Return the first lines of conflict markers from an earlier merge."""
    if YOURS.encode() not in content:
        return ()
    lines = content.split(b"\n")
    return tuple(n for n, line in enumerate(lines, 1) if line.rstrip(b"\r") == YOURS.encode())


def _merge_lines(base: list[str], yours: list[str], new: list[str]) -> tuple[list[str], list[int]]:
    """Return the merged lines, and the first line numbers of conflicts."""
    import subprocess  # only `update` merges
    import tempfile

    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        for name, lines in (("yours", yours), ("base", base), ("opwest", new)):
            (Path(work) / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
        command = ["git", "-c", "merge.conflictStyle=merge", "merge-file", "-p", "--marker-size=7"]
        command += ["-L", "yours", "-L", "base", "-L", "opwest", "yours", "base", "opwest"]
        try:
            with timing.command(command):
                done = subprocess.run(command, cwd=work, capture_output=True, check=False)
        except OSError as error:
            raise _no_git(f"cannot run git: {error.strerror}") from error
    text = decoded(done.stdout)
    merged = _lines(text or "", windows=False)
    conflicts = [number for number, line in enumerate(merged, 1) if line == YOURS] if done.returncode else []
    # Exit codes from 1 to 127 are the number of conflicts, at most 127. Others, and a text without them, are failures:
    # also of a program in place of git, or a git that was ended. The user's file must not become their output.
    failed = not 0 <= done.returncode <= 127 or len(conflicts) < done.returncode
    if failed or text is None or (yours and new and not merged):
        reason = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise _no_git(f"git merge-file failed: {reason}")
    return merged, conflicts


def _no_git(message: str) -> OpwestError:
    return fail(message, hint="install git: it merges files changed by both you and opwest")


def _is_windows(text: str) -> bool:
    """Whether every line ends with CR LF."""
    return "\r\n" in text and text.count("\r\n") == text.count("\n")


def _lines(text: str, *, windows: bool) -> list[str]:
    """Return the lines without line endings; only newlines end a line, not form feeds."""
    if windows or _is_windows(text):
        text = text.replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _ends(text: str) -> bool:
    return text.endswith("\n") or not text


_OWN = ".opwest/"


def unified(changes: Sequence[FileChange]) -> str:
    """Return the diff of all files outside .opwest/, sorted by path."""
    shown = sorted((c for c in changes if not c.path.startswith(_OWN)), key=lambda change: change.path)
    return "".join(line for change in shown for line in of_file(change.path, change.old, change.new))


def of_file(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Yield the lines of the diff of one file."""
    before, after = ("" if content is None else decoded(content) for content in (old, new))
    end = "\t" if " " in path else ""  # where the name ends, for `patch`
    names = ("/dev/null" if old is None else f"a/{path}{end}", "/dev/null" if new is None else f"b/{path}{end}")
    if before is None or after is None:
        yield f"Binary files {names[0].rstrip()} and {names[1].rstrip()} differ\n"
        return
    yield f"diff --git a/{path} b/{path}\n"
    if old is None:
        yield "new file mode 100644\n"
    if new is None:
        yield "deleted file mode 100644\n"
    import difflib  # only for `update`

    for line in difflib.unified_diff(_diff_lines(before), _diff_lines(after), *names):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _diff_lines(text: str) -> list[str]:
    """Return the lines with their line endings; only newlines end a line, not form feeds."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])
