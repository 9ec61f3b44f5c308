# SPDX-License-Identifier: Apache-2.0
"""The layout of C source text line by line: lines that are laid out already are copied.

Most lines of a template are statements that fit. Those that do not fit and contain one call are broken here where
the search of `search.py` would break them; all others are left to it.
"""

from __future__ import annotations

import re
from typing import Final

from opwest.base.c_format.calls import CONTROL, SIGNS, TAB, WIDTH, call, is_irregular
from opwest.base.c_format.tables import numbers, table

_DEFINE: Final = re.compile(r"#define (\w+(?:\([^()]*\))?)(?: (\S.*?))??( /\*.*\*/)?")
_STRING: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_FIRST_STRING: Final = re.compile(r'(\t+[\w ]+\()"(?:\\.|[^"\\])*"')
_DIGIT: Final = re.compile(r"(?<!int)(?<!int[0-9])[0-9]")
"""A digit, but not one of the name of a type."""
_LABELS: Final = ("case ", "default:")
_WITHOUT_SPACE: Final = str.maketrans("", "", " \t\n")
_OPEN: Final = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[()\[\]{}]', re.DOTALL)


def format_c(text: str) -> str:
    """Return C source text in Zephyr's format."""
    out = _formatted(text.split("\n"), WIDTH)
    if out is None:
        from opwest.base.c_format.layout import format_text  # the search is needed by few files

        return format_text(text)
    result = "\n".join(out)
    return result.rstrip("\n") + "\n" if result.strip() else ""


def _formatted(lines: list[str], width: int) -> list[str] | None:
    """Return the lines in Zephyr's format; None if they need all stages. `width` is smaller in macros."""
    out: list[str] = []
    at, count = 0, len(lines)
    in_function = False
    while at < count:
        line = lines[at]
        if not line:
            if out and out[-1]:
                out.append(line)
            at += 1
            continue
        body = line.lstrip("\t")
        tabs = len(line) - len(body)
        if TAB * tabs + len(body) <= width and _is_whole(body, tabs, lines, at):
            if is_irregular(body):
                return None
            out.append(line)
            at += 1
            if tabs == 0:
                in_function = body == "{" or (in_function and body != "}")
            continue
        if body[-1] == "/" and body[0] not in "/#" and _is_alone(lines, at, width):
            out.append(line)
            at += 1
            continue
        if body.startswith("/*"):
            end = at
            while "*/" not in lines[end] and end + 1 < count:
                end += 1
            if lines[end].endswith("*/"):
                _comment(lines[at : end + 1], out)
                at = end + 1
                continue
        if body[0] == "#":
            end = _define_run(lines, at, out) or _macro(lines, at, out) or _condition(line, at, out)
            if end:
                at = end
                continue
        elif body.endswith("= {") and (rows := table(lines, at, tabs, width)) is not None:
            out += rows
            at = lines.index(rows[-1], at) + 1
            continue
        if body[-1] == '"' and width == WIDTH and (end := _strings(lines, at)):
            out += lines[at:end]
            at = end
            continue
        end = _end(lines, at)
        if end < 0:
            return None
        laid_out = _statement(lines[at:end], tabs, width)
        if laid_out is None:
            if width < WIDTH or body.startswith(_LABELS):
                return None
            laid_out = _searched("\n".join(lines[at:end]), tabs, in_function=in_function)
            if laid_out is None:
                return None
        out += laid_out
        at = end
    return out


def _searched(text: str, tabs: int, *, in_function: bool) -> list[str] | None:
    """Return the lines of a part that needs the search, which is made once for parts that differ only in digits."""
    from opwest.base.c_format.layout import format_part  # needed by few files

    if any(sign in text for sign in "\"'/\\#"):
        return format_part(text, tabs, in_function=in_function)
    lines = format_part(_DIGIT.sub("0", text), tabs, in_function=in_function)
    if lines is None:
        return None
    laid_out, signs = "\n".join(lines), "".join(text.split())
    if len("".join(lines).translate(_WITHOUT_SPACE)) != len(signs):
        return format_part(text, tabs, in_function=in_function)
    rest = iter(signs)
    return "".join(sign if sign in " \t\n" else next(rest) for sign in laid_out).split("\n")


def _strings(lines: list[str], at: int) -> int:
    """Return the end of a call whose argument is several strings, if it is laid out already; 0 for another one."""
    head = _FIRST_STRING.fullmatch(lines[at])
    if head is None or len(lines[at].expandtabs(TAB)) > WIDTH:
        return 0
    column = len(head[1].expandtabs(TAB))
    prefix = "\t" * (column // TAB) + " " * (column % TAB)
    for end in range(at + 1, len(lines)):
        line = lines[end]
        if not line.startswith(prefix + '"') or column + len(line) - len(prefix) > WIDTH:
            return 0
        string = _STRING.match(line, len(prefix))
        if string is None or line[string.end() :] not in ("", ");"):
            return 0
        if line[-1] == ";":
            return end + 1
    return 0


def _is_alone(lines: list[str], at: int, width: int) -> bool:
    """Whether a line is a statement with a comment behind it that no other comment is aligned with."""
    line = lines[at]
    code, _, _ = line.partition(" /*")
    body = code.lstrip("\t")
    tabs = len(code) - len(body)
    neighbours = (lines[at - 1] if at else "", lines[at + 1] if at + 1 < len(lines) else "")
    return (
        len(line) + 7 * tabs <= width
        and line.count("*/") == 1
        and (body[-1:] in (";", "{") or (body[-1:] == ":" and body.startswith(_LABELS)))
        and _is_whole(body, 1, [], 0)
        and not is_irregular(body)
        and not any(other.endswith("*/") and not other.lstrip().startswith(("/*", "*")) for other in neighbours)
    )


def _statement(part: list[str], tabs: int, width: int) -> list[str] | None:
    """Return the lines of a statement that has one or two lines; None for others."""
    body = part[0].lstrip("\t")
    for line in part[1:]:
        words = line.strip()
        if not words or words[0] == "#":
            return None
        body += words if body[-1] in "([" else f" {words}"
    if body[0] in "#}{" or "/*" in body or body[-1] not in ";){" or body.endswith("= {"):
        return None
    if body.endswith("};") and TAB * tabs + len(body) > width == WIDTH:
        return numbers(body, tabs)
    if body[-1] == "{" and not body.startswith(CONTROL):
        return None
    if TAB * tabs + len(body) <= width:
        is_whole = _is_whole(body, 1, [], 0) or (body[-1] == ")" and tabs == 0)
        return ["\t" * tabs + body] if is_whole and not is_irregular(body) else None
    return call(body, tabs, width)


def _is_whole(body: str, tabs: int, lines: list[str], at: int) -> bool:
    """Whether a line is a statement, the head or the end of a block, or a directive that is never aligned."""
    last = body[-1]
    if last == ";":
        return (
            (
                "{" not in body
                or (body.endswith("};") and "= {" in body and ",}" not in body and body.count("{") == body.count("}"))
            )
            and body.count(";") == 1
            and body.count("(") == body.count(")")
            and not body.startswith(CONTROL)
        )
    if last == "{":
        if body == "{":
            return True
        if body.count("{") != 1 or body.count("(") != body.count(")") or body.endswith(("= {", ") {")):
            return (
                body.count("{") == 1
                and body.startswith((*CONTROL, "} else if ("))
                and body.count("(") == body.count(")")
            )
        return "enum" not in body and "/*" not in body
    if last == "}":
        return body == "}"
    if last == ":":
        return body.startswith(_LABELS)
    if body[0] == "#":
        return last != "\\" and not body.startswith("#define")
    if last != ")" or at + 1 >= len(lines) or body.count("(") != body.count(")"):
        return False
    following = lines[at + 1].lstrip("\t")
    return (tabs == 0 and following == "{") or (following[:1].isalpha() and _is_macro(body))


def _is_macro(body: str) -> bool:
    """Whether a line is a macro in capitals, before a declaration."""
    name, _, arguments = body.partition("(")
    return len(name) > 4 and name.isupper() and name.isidentifier() and arguments.count("(") == 0


def _comment(part: list[str], out: list[str]) -> None:
    if all(len(line) + 7 * line.count("\t") <= WIDTH for line in part):
        out += part
        return
    from opwest.base.c_format.comments import columns, comment_lines

    text = "\n".join(part)
    indent = columns(text[: len(text) - len(text.lstrip())])
    out += comment_lines(text.lstrip(), indent, indent)


def _define_run(lines: list[str], at: int, out: list[str]) -> int:
    """Align the values of macros of one line each. Return the end of the run; 0 if it has other macros."""
    rows: list[tuple[str, str | None]] = []
    comments: list[str | None] = []
    end = at
    if not lines[at].startswith("#define "):
        return 0
    while end < len(lines):
        line = lines[end]
        if line.startswith("#define "):
            match = _DEFINE.fullmatch(line)
            if match is None or line.endswith("\\") or len(line) - len(match[3] or "") > WIDTH:
                return 0
            if "/*" in line and (match[3] is None or match[2] is None or "/*" in match[2]):
                return 0
            rows.append((f"#define {match[1]}", match[2] or None))
            comments.append(match[3])
        elif line.startswith("/*"):
            while "*/" not in line and end + 1 < len(lines):
                rows.append((line, None))
                end += 1
                line = lines[end]
            rows.append((line, None))
            if not line.endswith("*/") or len(line) > WIDTH:
                return 0
        else:
            break
        end += 1
    if any(comments):
        return _commented(rows, comments, out) and end
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


def _commented(rows: list[tuple[str, str | None]], comments: list[str | None], out: list[str]) -> bool:
    """Align the values and comments of macros that all have both; False if others are among them."""
    if len(rows) != len(comments) or not all(comments):
        return False
    width = max(len(name) for name, _ in rows)
    values = max(len(value or "") for _, value in rows)
    aligned = [
        f"{name:{width}} {value:{values}}{comment}" for (name, value), comment in zip(rows, comments, strict=True)
    ]
    if max(map(len, aligned)) > WIDTH - 2:  # the comments are above the macros
        for (name, value), comment in zip(rows, comments, strict=True):
            out += [(comment or "").strip(), f"{name:{width}} {value}"]
        return True
    out += aligned
    return True


def _macro(lines: list[str], at: int, out: list[str]) -> int:
    """Align the backslashes of a macro whose body is statements that fit. Return its end; 0 if it has others."""
    head = lines[at]
    if (
        not head.startswith("#define ")
        or not head.endswith("\\")
        or head.count("(") != 1
        or not head[:-1].rstrip().endswith(")")
    ):
        return 0
    end = at + 1
    while end < len(lines) and lines[end - 1].endswith("\\"):
        end += 1
    if end < len(lines) and lines[end].startswith(("#define", "/*")):
        return 0
    if end - at == 2:
        joined = f"{head[:-1].rstrip()} {lines[at + 1].strip()}"
        if len(joined) <= WIDTH:
            if is_irregular(lines[at + 1].strip()):
                return 0
            out.append(joined)
            return end
    body = [line.rstrip("\\").rstrip() for line in lines[at + 1 : end]]
    if not all(line.startswith("\t") for line in body):
        return 0
    if body[-1][-1] == ")":
        body[-1] += ";"  # the user of the macro adds it
        laid_out = _formatted(body, WIDTH - 2)
        if laid_out != _formatted(body, WIDTH + 1):  # the last line has no backslash
            return 0
        if laid_out is not None:
            laid_out[-1] = laid_out[-1][:-1]
    else:
        laid_out = _formatted(body, WIDTH - 2)
    if laid_out is None or any('"' in line for line in laid_out):
        return 0
    rows = [head[:-1].rstrip(), *laid_out]
    widths = [len(row.expandtabs(TAB)) for row in rows]
    if max(widths) > WIDTH - 2:
        return 0
    out += [f"{row}{' ' * (WIDTH - 1 - width)}\\" for row, width in zip(rows[:-1], widths, strict=False)]
    out.append(rows[-1])
    return end


def _condition(line: str, at: int, out: list[str]) -> int:
    """Break a conditional of the preprocessor at one operator. Return the line behind it; 0 for others."""
    if not line.startswith(("#if ", "#elif ")) or line[-1] == "\\" or "/*" in line or '"' in line:
        return 0
    signs = {sign for sign in SIGNS.findall(line) if sign[0] == " "}
    if len(signs) != 1 or not signs <= {" && ", " || "}:
        return 0
    place = line.rfind(signs.pop(), 0, WIDTH - 1) + 3
    if place < 3 or len(line) - place - 1 > WIDTH - TAB or line.count("(", 0, place) != line.count(")", 0, place):
        return 0
    out += [f"{line[:place]}{' ' * (WIDTH - 1 - place)}\\", f"\t{line[place + 1 :]}"]
    return at + 1


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
        is_head = depth <= 0 and code.endswith(")") and end < len(lines)
        if is_head and (lines[end].startswith("{") or code.lstrip("\t").partition("(")[0].isupper()):
            break
    return end
