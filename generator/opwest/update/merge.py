# SPDX-License-Identifier: Apache-2.0
"""Merging the text of a user's file: lines, as version control does it. The only module that knows merge3."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, cast

from opwest.write import Merged, Merging

YOURS = "<<<<<<< yours"
BETWEEN = "======="
OPWESTS = ">>>>>>> opwest"

_MANY_LINES = 5000
"""From here on difflib may leave common lines out of account: exact matching takes quadratic time."""


class _Matcher(difflib.SequenceMatcher[str]):
    """Matches every line; difflib's default ignores those that are frequent in a file of 200 lines."""

    def __init__(
        self,
        isjunk: Callable[[str], bool] | None = None,
        a: Sequence[str] = "",
        b: Sequence[str] = "",
        autojunk: bool = True,
    ) -> None:
        super().__init__(isjunk, a, b, autojunk=autojunk and len(b) > _MANY_LINES)


def merge_text(base: bytes, yours: bytes, new: bytes) -> Merged | None:
    """Return `yours` with what changed from `base` to `new`; None where one of them is no text.

    Line endings and the last line's end stay as the user has them.
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
    """Return the lines where markers of an earlier conflict begin."""
    if YOURS.encode() not in content:
        return ()
    lines = content.split(b"\n")
    return tuple(n for n, line in enumerate(lines, 1) if line.rstrip(b"\r") == YOURS.encode())


MERGING = Merging(merge_text, marker_lines)


def decoded(content: bytes) -> str | None:
    """Return the text of a file, None where it is none."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _merge_lines(base: list[str], yours: list[str], new: list[str]) -> tuple[list[str], list[int]]:
    from merge3 import Merge3  # here: whatever merges nothing needs nothing of it

    merged: list[str] = []
    conflicts: list[int] = []
    for group in Merge3(base, yours, new, sequence_matcher=cast(Any, _Matcher)).merge_groups():
        if group[0] != "conflict":
            merged += group[1]
            continue
        conflicts.append(len(merged) + 1)
        merged += [YOURS, *group[2], BETWEEN, *group[3], OPWESTS]
    return merged, conflicts


def _is_windows(text: str) -> bool:
    """Whether every line ends as Windows ends them."""
    return "\r\n" in text and text.count("\r\n") == text.count("\n")


def _lines(text: str, *, windows: bool) -> list[str]:
    """Return the lines without their ends; form feeds and the like end no line."""
    if windows or _is_windows(text):
        text = text.replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _ends(text: str) -> bool:
    return text.endswith("\n") or not text
