# SPDX-License-Identifier: Apache-2.0
"""The layout of C source text line by line: lines that are laid out already are copied.

Most lines of a template are statements that fit. Those that do not fit and contain one call are broken here where
the search of `search.py` would break them; all others are left to it.
"""

from __future__ import annotations

import re
from typing import Final

_WIDTH: Final = 100
_TAB: Final = 8
_IRREGULAR: Final = re.compile(r"  |\t|,[^ )]|[\w)]\{|\}\w|[^ ] ;|\( | \)(?<!, \))|\) \)| ,[^ ]|^ |\s$")
"""White space that is not Zephyr's: the text needs all stages."""
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_CONTROL: Final = ("if (", "for (", "while (", "switch (", "else", "do ")
_SIGNS: Final = re.compile(
    r'[()\[\]{},]|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'| (?:[-+*/%&|^<>!=]=?|&&|\|\||<<|>>|\?|:) |/\*'
)
_DEFINE: Final = re.compile(r"#define (\w+(?:\([^()]*\))?)(?: (\S.*))?")
_OPEN: Final = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[()\[\]{}]', re.DOTALL)
_NAME: Final = re.compile(r"[A-Z_0-9]+\(")


def format_c(text: str) -> str:
    """Return C source text in Zephyr's format."""
    lines = text.split("\n")
    out: list[str] = []
    at, count = 0, len(lines)
    in_function = False
    while at < count:
        line = lines[at]
        if not line:
            out.append(line)
            at += 1
            continue
        body = line.lstrip("\t")
        tabs = len(line) - len(body)
        if _TAB * tabs + len(body) <= _WIDTH and _is_whole(body, tabs, lines, at):
            if _IRREGULAR.search(body) and _IRREGULAR.search(_STRING.sub('""', body)):
                return _slow(text)
            out.append(line)
            at += 1
            if tabs == 0:
                in_function = body == "{" or (in_function and body != "}")
            continue
        if body.startswith("/*"):
            end = at
            while "*/" not in lines[end] and end + 1 < count:
                end += 1
            if lines[end].endswith("*/"):
                _comment(lines[at : end + 1], out)
                at = end + 1
                continue
        end = _define_run(lines, at, out) if body.startswith("#define ") else at
        if end > at:
            at = end
            continue
        if body.endswith("= {") and (table := _table(lines, at, tabs)) is not None:
            out += table
            at = lines.index(table[-1], at) + 1
            continue
        end = _end(lines, at)
        if end < 0:
            return _slow(text)
        part = lines[at:end]
        broken = _call(part[0], body, tabs) if len(part) == 1 else None
        if broken is not None:
            out += broken
        else:
            from opwest.base.c_format.layout import format_part  # the search is needed by few files

            laid_out = format_part("\n".join(part), tabs, in_function=in_function)
            if laid_out is None:
                return _slow(text)
            out += laid_out
        at = end
    result = "\n".join(out)
    return result.rstrip("\n") + "\n" if result.strip() else ""


def _slow(text: str) -> str:
    from opwest.base.c_format.layout import format_text

    return format_text(text)


def _is_whole(body: str, tabs: int, lines: list[str], at: int) -> bool:
    """Whether a line is a statement, the head or the end of a block, or a directive that is never aligned."""
    last = body[-1]
    if last == ";":
        return (
            "{" not in body
            and body.count(";") == 1
            and body.count("(") == body.count(")")
            and not body.startswith(_CONTROL)
        )
    if last == "{":
        if body == "{":
            return True
        if body.count("{") != 1 or body.count("(") != body.count(")") or body.endswith(("= {", ") {")):
            return (
                body.count("{") == 1
                and body.startswith((*_CONTROL, "} else if ("))
                and body.count("(") == body.count(")")
            )
        return "enum" not in body and "/*" not in body
    if last == "}":
        return body == "}"
    if last == ":":
        return body.startswith(("case ", "default:"))
    if body[0] == "#":
        return last != "\\" and not body.startswith("#define")
    return (
        last == ")"
        and tabs == 0
        and at + 1 < len(lines)
        and lines[at + 1] == "{"
        and body.count("(") == body.count(")")
    )


def _comment(part: list[str], out: list[str]) -> None:
    if all(len(line) + 7 * line.count("\t") <= _WIDTH for line in part):
        out += part
        return
    from opwest.base.c_format.comments import columns, comment_lines

    text = "\n".join(part)
    indent = columns(text[: len(text) - len(text.lstrip())])
    out += comment_lines(text.lstrip(), indent, indent)


def _define_run(lines: list[str], at: int, out: list[str]) -> int:
    """Align the values of macros of one line each. Return the end of the run; `at` if it has other macros."""
    rows: list[tuple[str, str | None]] = []
    end = at
    while end < len(lines):
        line = lines[end]
        if line.startswith("#define "):
            match = _DEFINE.fullmatch(line)
            if match is None or len(line) > _WIDTH or line.endswith("\\") or "/*" in line:
                return at
            rows.append((f"#define {match[1]}", match[2] or None))
        elif line.startswith("/*"):
            while "*/" not in line and end + 1 < len(lines):
                rows.append((line, None))
                end += 1
                line = lines[end]
            rows.append((line, None))
            if not line.endswith("*/") or len(line) > _WIDTH:
                return at
        else:
            break
        end += 1
    first = 0
    for number in range(len(rows) + 1):
        is_end = number == len(rows)
        if is_end or (rows[number][1] is None and rows[number][0].startswith("#define")):
            width = max((len(name) for name, value in rows[first:number] if value is not None), default=0)
            out += [name if value is None else f"{name:{width}} {value}" for name, value in rows[first:number]]
            if not is_end:
                out.append(rows[number][0])
            first = number + 1
    return end


def _end(lines: list[str], at: int) -> int:
    """Return the end of the statement or declaration that begins at a line; -1 if another one begins inside it."""
    depth = conditions = 0
    end = at
    if lines[at].startswith("#define"):
        while end < len(lines) and (lines[end].startswith(("#define", "/*")) or lines[end - 1].endswith("\\")):
            end += 1
        return end
    is_directive = lines[at].startswith("#")
    while end < len(lines):
        line = lines[end]
        end += 1
        if is_directive:
            if line.endswith("\\"):
                continue
            break
        if line.startswith("#"):
            conditions += line.startswith("#if") - line.startswith("#endif")
            if conditions < 0 or (conditions == 0 and line.startswith("#el")):
                return -1
        else:
            for sign in _OPEN.findall(line):
                if sign in "([{":
                    depth += 1
                elif sign in ")]}":
                    depth -= 1
        has_comment = line.endswith("*/")
        code = line[: line.rindex("/*")].rstrip() if has_comment and "/*" in line else line
        if depth <= 0 and code.endswith((";", "}", ":")):
            if (
                has_comment
                and end < len(lines)
                and lines[end].endswith("*/")
                and not lines[end].lstrip().startswith("/")
            ):
                continue
            break
        if depth == 1 and code.endswith("{") and not code.endswith(("= {", ", {", "({")) and "enum" not in code:
            break
        if depth <= 0 and code.endswith(")") and end < len(lines):
            if lines[end].startswith("{") or _NAME.match(code.lstrip("\t")):
                break
    return end


def _call(line: str, body: str, tabs: int) -> list[str] | None:
    """Break a statement or the head of a function at one comma between the arguments of its call, or behind || or &&.

    The search breaks there if two lines are enough: a break behind an assignment has a lower penalty, all others have
    a higher one. None if this line is another one.
    """
    is_control = body.startswith("if (")
    if body[-1] not in (";),{" if is_control else ";),") or (body.startswith(_CONTROL) and not is_control):
        return None
    if body[0] in "#}{" or (_IRREGULAR.search(body) and _IRREGULAR.search(_STRING.sub('""', body))):
        return None
    depth = 0
    comma = alternative = conjunction = assignment = opening = 0
    room = _WIDTH - _TAB * tabs
    for match in _SIGNS.finditer(body):
        sign = match[0]
        first = sign[0]
        if first in "([":
            depth += 1
            if depth == 1:
                if opening and sign == "(" and (comma or alternative or conjunction):
                    return None
                if sign == "(":
                    opening = match.end()
        elif first in ")]":
            depth -= 1
        elif first == ",":
            if depth == 0 and match.end() < len(body):
                return None
            if depth == 1 and match.end() <= room and opening:
                comma = match.end()
        elif first == " ":
            if sign in (" ? ", " : ") or (depth == 0 and (sign != " = " or assignment)):
                return None
            if depth == 0:
                assignment = match.end()
            elif depth == 1 and match.end() - 1 <= room:
                if sign == " || ":
                    alternative = match.end() - 1
                elif sign == " && ":
                    conjunction = match.end() - 1
        elif first in "}/" or (first == "{" and match.end() < len(body)) or (first == '"' and len(sign) > room - _TAB):
            return None
    if depth or '" "' in body:
        return None
    if assignment and assignment - 1 <= room and len(body) - assignment <= room - _TAB:
        return [line[: tabs + assignment - 1], "\t" * (tabs + 1) + body[assignment:]]
    place = comma or alternative or conjunction
    column = _TAB * tabs + opening
    if not place or column + len(body) - place - 1 > _WIDTH:
        return None
    return [line[: tabs + place], "\t" * (column // _TAB) + " " * (column % _TAB) + body[place + 1 :]]


def _table(lines: list[str], at: int, tabs: int) -> list[str] | None:
    """Return the lines of an initialiser with a line for each value; None if its values can be laid out otherwise."""
    head = lines[at]
    if not head.endswith("= {") or len(head) + 7 * tabs > _WIDTH or head[tabs] == "}":
        return None
    end = at + 1
    prefix = "\t" * (tabs + 1)
    out = [head]
    shortest = _WIDTH
    while end < len(lines):
        row = lines[end]
        if not row.startswith(prefix):
            break
        body = row[tabs + 1 :]
        if not body or body[-1] != "," or body[0] in "\t/#":
            return None
        if body.count("(") != body.count(")") or body.count("{") != body.count("}") or body.endswith(",},"):
            return None
        if _IRREGULAR.search(body) and _IRREGULAR.search(_STRING.sub('""', body)):
            return None
        if len(body) + _TAB * (tabs + 1) <= _WIDTH:
            out.append(row)
        elif body[0].isalpha() and (broken := _call(row, body, tabs + 1)) is not None:
            out += broken
        else:
            return None
        shortest = min(shortest, len(body))
        end += 1
    if end == at + 1 or end == len(lines) or lines[end] != "\t" * tabs + "};":
        return None
    is_designated = lines[at + 1][tabs + 1] == "."
    if not is_designated and end - at - 1 >= 5 and 2 * shortest < _WIDTH:
        return None
    return [*out, lines[end]]
