# SPDX-License-Identifier: Apache-2.0
"""C without line breaks that depend on the lengths of names: differences between two models are then few.

`joined` puts each statement, declaration, initialiser and paragraph of a comment on one line, and a block of one
statement on the line of its condition. Short comments and groups of macros have one line. There are no empty lines.
The full trees are compared with their line breaks.
"""

import re
from collections.abc import Iterator, Sequence

_LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/')
_COMMENT = re.compile(r"\s*(?:/\*|\*(?=[ /]|$))")
_PARAGRAPH = re.compile(r"\s*\* +[^\s@].*")
_UNFINISHED = re.compile(r"(?:[^=!<>]=|\|\||&&|[-+?(])$")
_MACRO = re.compile(r"(#define [A-Z][A-Z0-9_]*_)[A-Z]+(?:_[0-9])? [^\\]*$")
_ATTRIBUTE = re.compile(r"\tOPWEST_ALIGNED\(\w+\) \\")
_MEMBER_COMMENT = re.compile(r"\t+/\*\*.*\*/")
_MAX_COMMENT = 160
_CONDITION = re.compile(r"\s*(?:if|for|while) \(.*\{$")


def joined(text: str) -> str:
    """Return the text with one line for each statement. Texts that differ in line breaks only become equal."""
    lines = list(_statements([line for line in text.split("\n") if line]))
    return "\n".join(_groups(list(_blocks(lines)))) + "\n"


def _statements(lines: Sequence[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if _COMMENT.match(line):
            while at < len(lines) and "*/" not in line and _is_paragraph(line, lines[at]):
                line += " " + lines[at].strip()[1:].strip()
                at += 1
        elif not line.startswith("#") and not line.endswith("\\"):
            while at < len(lines) and _is_unfinished(line):
                line = _seam(line, lines[at].strip())
                at += 1
        yield line


def _is_paragraph(line: str, following: str) -> bool:
    """Whether the next line of a comment continues a paragraph."""
    text = line.strip().lstrip("/*").strip()
    return bool(text) and _PARAGRAPH.fullmatch(following) is not None and not following.strip().startswith("*/")


def _is_unfinished(line: str) -> bool:
    code = _LITERAL.sub('""', line).rstrip()
    if code.endswith(("{", "}", ";", "\\")) and code.count("(") == code.count(")"):
        return False
    return code.count("(") > code.count(")") or code.count("{") > code.count("}") or bool(_UNFINISHED.search(code))


def _seam(line: str, following: str) -> str:
    """Join two lines, and the parts of a string."""
    if line.endswith('"') and following.startswith('"'):
        return line[:-1] + following[1:]
    return line + ("" if line.endswith("(") else " ") + following


def _groups(lines: list[str]) -> Iterator[str]:
    """Join short comments, macros of one prefix, and comments and attributes with the declaration after them."""
    at = 0
    while at < len(lines):
        group, line, between = [lines[at]], lines[at], " "
        at += 1
        if line.strip() in ("/**", "/*") or (line.strip().startswith("/**") and "*/" not in line):
            end = next(index for index in range(at, len(lines)) if "*/" in lines[index])
            whole = [line, *(text.strip().removeprefix("*") for text in lines[at:end]), lines[end].strip()]
            if sum(map(len, whole)) < _MAX_COMMENT:
                group, at = whole, end + 1
        elif match := _MACRO.match(line):
            while at < len(lines) and _MACRO.match(lines[at]) and lines[at].startswith(match[1]):
                group.append(lines[at].removeprefix(match[1]))
                at += 1
            between = " | "
            if at < len(lines) and lines[at] == "/** @} */":
                group[-1] += " /** @} */"
                at += 1
                line = group[0]
        elif _MEMBER_COMMENT.fullmatch(line) and lines[at].endswith(";"):
            group.append(lines[at])
            at += 1
        elif _ATTRIBUTE.fullmatch(line):
            group = [line.removesuffix("\\"), lines[at].strip()]
            at += 1
        yield between.join([group[0].rstrip(), *(text.strip() for text in group[1:])]) if len(group) > 1 else line


def _blocks(lines: list[str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line, inner, end = (*lines[at : at + 3], "", "")[:3]
        indent = line[: len(line) - len(line.lstrip())]
        if _CONDITION.fullmatch(line) and end == f"{indent}}}" and re.search(r"[^{}];$", inner) and "{" not in inner:
            yield f"{line} {inner.strip()} }}"
            at += 3
        else:
            yield line
            at += 1
