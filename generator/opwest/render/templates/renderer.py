# SPDX-License-Identifier: Apache-2.0
"""The renderer of templates: undefined names are errors, and nothing is escaped or computed implicitly."""

from __future__ import annotations

import re
import string
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import jinja2

from opwest.base.diagnostics import Diagnostics
from opwest.render.templates.files import SUFFIX, Templates

WIDTH: Final = 100

_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/|\s+|\w+|&&|\|\||[=<>!]=|.', re.DOTALL)
_PROSE: Final = re.compile(r"(\s*\* )(\w.*)")
"""A line of text in a comment: no Doxygen command, and not the comment's end."""
_BLANK: Final = re.compile(r"(?<=[^\\]) (?=[^\s\"])")
_AFTER: Final = {",": 0, ";": 0, "&&": 0, "||": 0, "?": 1, "=": 1, "==": 2, ">=": 2, "<=": 2, "+": 2, "*": 2, "{": 2}
"""Tokens after which a line may be broken at white space, with the rank of the break: 0 is best."""

_SHAPE: Final = str.maketrans(dict.fromkeys(string.ascii_letters, "a") | dict.fromkeys(string.digits, "0"))
"""Letters and digits have no influence on where a line can be broken."""


def fit(text: str) -> str:
    """Return C source text with lines of at most 100 columns, if its tokens allow it."""
    lines: list[str] = []
    in_comment = in_macro = False
    carried = carried_prefix = ""
    for line in text.split("\n"):
        if not in_comment and not carried and len(line) + 7 * line.count("\t") <= WIDTH and "/*" not in line:
            lines.append(line)  # most lines: short, also with wide tabs
            in_macro = line.endswith("\\")
            continue
        continues_macro, in_macro = in_macro, line.endswith("\\")
        prose = _PROSE.fullmatch(line) if in_comment else None
        if carried and prose:
            line = f"{prose[1]}{carried} {prose[2]}"
        elif carried:
            lines.append(carried_prefix + carried)
        carried = ""
        was_in_comment = in_comment
        in_comment = _ends_in_comment(line, in_comment)
        if _columns(line) <= WIDTH:
            lines.append(line)
        elif was_in_comment and prose:
            *full, rest = _comment(line)
            lines += full
            carried_prefix, carried = prose[1], rest.removeprefix(prose[1])
        elif was_in_comment:
            lines += _comment(line)
        else:
            lines += _line(line, continues_macro)
    return "\n".join(lines)


def _ends_in_comment(line: str, in_comment: bool) -> bool:
    if in_comment:
        return "*/" not in line
    if "/*" not in line:
        return False
    code = "".join(token for token in _TOKEN.findall(line) if not token.startswith(('"', "'", "/*")))
    return "/*" in code


def _line(line: str, continues_macro: bool) -> list[str]:
    """Break a line of code. `continues_macro`: the line before it ends with a backslash."""
    body = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    if body and body[0] not in "/#" and body[-1] != "\\" and not continues_macro:
        return _broken(indent, body, "")
    if body.startswith("/*"):
        mark = "/**" if body.startswith("/**") else "/*"
        words = body.removeprefix(mark)
        if body.endswith("*/") and body.count("/*") == 1:
            return [f"{indent}{mark}", *_wrapped(words.removesuffix("*/").strip(), f"{indent} * "), f"{indent} */"]
        return [f"{indent}{mark}", *_comment(f"{indent} * {words.strip()}")]
    if body.startswith(("#include", "#error", "#warning")):
        return [line]
    if body.startswith("#") or body.endswith("\\") or continues_macro:
        return _broken(indent, body.removesuffix("\\").rstrip(), " \\", last=" \\" if body.endswith("\\") else "")
    return _broken(indent, body, "")


def _comment(line: str) -> list[str]:
    """Wrap one line of a comment that has several."""
    match = re.match(r"(\s*\* ?)(\s*)(.*)", line)
    if match is None:
        return [line]
    prefix, inner, words = match.groups()
    return _wrapped(words, prefix + inner)


def _wrapped(words: str, prefix: str) -> list[str]:
    width = WIDTH - len(prefix.expandtabs(8)) + len(prefix)
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(words, width, initial_indent=prefix, subsequent_indent=prefix, **options)  # type: ignore[arg-type]


def _broken(indent: str, body: str, end: str, *, last: str = "") -> list[str]:
    """Break a line of code; `end` follows every line but the last, which `last` follows."""
    lines: list[str] = []
    start, opening = 0, ""
    for place in _breaks(body.translate(_SHAPE), _columns(indent), len(end), len(last)):
        lines.append(f"{indent}{opening}{body[start : place.end]}{place.closing}{end}")
        start, opening = place.next, place.opening
        indent = indent if len(lines) > 1 else f"{indent}\t"
    return [*lines, f"{indent}{opening}{body[start:]}{last}"]


@lru_cache(maxsize=4096)
def _breaks(shape: str, indent: int, end: int, last: int) -> tuple[_Break, ...]:
    """Return the breaks of a line of code, from its shape: the rows of a table have few shapes.

    `indent` is in columns; `end` characters follow every line but the last, which `last` characters follow.
    """
    places = list(_places(shape))
    breaks: list[_Break] = []
    start, opening, first = 0, 0, 0
    while indent + opening + len(shape) - start + last > WIDTH:
        while first < len(places) and places[first].next <= start:
            first += 1
        place = _best(places[first : first + WIDTH], start, WIDTH - indent - opening - end)
        if place is None:
            break
        breaks.append(place)
        start, opening = place.next, len(place.opening)
        indent = indent if len(breaks) > 1 else indent // 8 * 8 + 8
    return tuple(breaks)


class _Break(NamedTuple):
    """A possible line break: its first part ends at `end`, the second begins at `next`."""

    end: int
    next: int
    rank: int
    depth: int
    """The number of open parentheses."""
    closing: str = ""
    opening: str = ""
    """Quotes around the break of a string literal."""


def _best(places: list[_Break], start: int, width: int) -> _Break | None:
    """Return the best break that leaves at most `width` columns after `start`, or the first one.

    Outer parentheses are broken before inner ones, unless that leaves most of the line empty.
    """
    good = [place for place in places if place.end + len(place.closing) - start <= width]
    if not good:
        return places[0] if places else None
    return max(good, key=lambda place: (-place.rank, place.end - start >= width // 4, -place.depth, place.end))


def _places(body: str) -> Iterator[_Break]:
    at = depth = behind = 0
    previous = ""
    for token in _TOKEN.findall(body):
        start, at = at, at + len(token)
        first = token[0]
        if first.isspace():
            if previous in _AFTER:
                yield _Break(behind, at, _AFTER[previous], depth)
            continue
        if first == '"':
            if previous.endswith('"') or previous.isidentifier():
                yield _Break(behind, start, 0 if previous.endswith('"') else 1, depth)
            for match in _BLANK.finditer(token):
                yield _Break(start + match.end(), start + match.end(), 3, depth, '"', '"')
        elif first == "/":
            if start and token.startswith("/*"):
                yield _Break(behind, start, 1, depth)
        elif first in "([":
            depth += 1
            if first == "(" and not body.startswith(")", at):
                yield _Break(at, at, 2, depth)
        elif first in ")]":
            depth -= 1
        previous, behind = token, at


def _columns(line: str) -> int:
    return len(line.expandtabs(8)) if "\t" in line else len(line)


class _Environment(jinja2.Environment):
    """The environment of opwest's templates, whose rows are dicts: `row.name` looks for a key first."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a member of an object, of a dict the value of a key."""
        if type(obj) is dict and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


class Renderer:
    """Renders files from prepared rows; a user's template replaces that of opwest with the same path."""

    def __init__(self, templates: Templates, faults: Diagnostics) -> None:
        self.user = None
        if templates.user is not None:
            from opwest.render.templates.user import UserRenderer  # Jinja's sandbox takes long to import

            self.user = UserRenderer(templates.user, templates.own, faults)
            self.user.check()
        self._own = _Environment(
            loader=jinja2.DictLoader(templates.own),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
            bytecode_cache=templates.compiled,
        )

    def __call__(self, template: str, **rows: Any) -> bytes:
        """Return the file rendered from a template and prepared rows; `template` is its path without the suffix."""
        name = f"{template}{SUFFIX}"
        if self.user is not None and self.user.has(name):
            text = self.user.render(name, rows).decode("utf-8")
        else:
            text = self._own.get_template(name).render(**rows)
        return (fit(text) if template.endswith((".c", ".h")) else text).encode("utf-8")
