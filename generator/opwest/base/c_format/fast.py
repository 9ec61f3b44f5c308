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
_IRREGULAR: Final = (
    r"  |\t|,[^ )]|[\w)]\{|\}\w|[^ ] ;|\( | \)(?<!, \))|\) \)| ,[^ ]|^ |\s$|\{ (?!$)|[^{;,)] \}(?! |;|$)"
)
"""White space that is not Zephyr's: the text needs all stages."""
_STRING: Final = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\''
_CONTROL: Final = ("if (", "for (", "while (", "switch (", "else", "do ")
_SIGNS: Final = re.compile(
    r'[()\[\]{},]|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'| (?:[-+*/%&|^<>!=]=?|&&|\|\||<<|>>|\?|:) |/\*'
)
_DEFINE: Final = re.compile(r"#define (\w+(?:\([^()]*\))?)(?: (\S.*?))??( /\*.*\*/)?")
_OPEN: Final = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[()\[\]{}]', re.DOTALL)


def format_c(text: str) -> str:
    """Return C source text in Zephyr's format."""
    out = _formatted(text.split("\n"), _WIDTH)
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
            out.append(line)
            at += 1
            continue
        body = line.lstrip("\t")
        tabs = len(line) - len(body)
        if _TAB * tabs + len(body) <= width and _is_whole(body, tabs, lines, at):
            if _is_irregular(body):
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
        elif body.endswith("= {") and (table := _table(lines, at, tabs, width)) is not None:
            out += table
            at = lines.index(table[-1], at) + 1
            continue
        end = _end(lines, at)
        if end < 0:
            return None
        laid_out = _statement(lines[at:end], tabs, width)
        if laid_out is None:
            if width < _WIDTH:
                return None
            from opwest.base.c_format.layout import format_part

            laid_out = format_part("\n".join(lines[at:end]), tabs, in_function=in_function)
            if laid_out is None:
                return None
        out += laid_out
        at = end
    return out


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
        and body[-1:] in (";", "{")
        and _is_whole(body, 1, [], 0)
        and not _is_irregular(body)
        and not any(other.endswith("*/") and not other.lstrip().startswith(("/*", "*")) for other in neighbours)
    )


def _is_irregular(body: str) -> bool:
    """Whether the white space of a line is not Zephyr's. Most lines need no regular expression."""
    if (
        "  " in body
        or "( " in body
        or " )" in body
        or " ;" in body
        or "{" in body[:-1]
        or "\t" in body
        or body[0] == " "
        or body[-1] == " "
        or body.count(",") != body.count(", ") + (body[-1] == ",")
    ):
        return (
            re.search(_IRREGULAR, body) is not None and re.search(_IRREGULAR, re.sub(_STRING, '""', body)) is not None
        )
    return False


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
    if body.endswith("};") and _TAB * tabs + len(body) > width == _WIDTH:
        return _numbers(body, tabs)
    if body[-1] == "{" and not body.startswith(_CONTROL):
        return None
    if _TAB * tabs + len(body) <= width:
        is_whole = _is_whole(body, 1, [], 0) or (body[-1] == ")" and tabs == 0)
        return ["\t" * tabs + body] if is_whole and not _is_irregular(body) else None
    return _call(body, tabs, width)


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
    if last != ")" or at + 1 >= len(lines) or body.count("(") != body.count(")"):
        return False
    following = lines[at + 1].lstrip("\t")
    return (tabs == 0 and following == "{") or (following[:1].isalpha() and _is_macro(body))


def _is_macro(body: str) -> bool:
    """Whether a line is a macro in capitals, before a declaration."""
    name, _, arguments = body.partition("(")
    return len(name) > 4 and name.isupper() and name.isidentifier() and arguments.count("(") == 0


def _comment(part: list[str], out: list[str]) -> None:
    if all(len(line) + 7 * line.count("\t") <= _WIDTH for line in part):
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
            if match is None or line.endswith("\\") or len(line) - len(match[3] or "") > _WIDTH:
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
            if not line.endswith("*/") or len(line) > _WIDTH:
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
    if max(map(len, aligned)) > _WIDTH - 2:  # the comments are above the macros
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
        if len(joined) <= _WIDTH:
            if _is_irregular(lines[at + 1].strip()):
                return 0
            out.append(joined)
            return end
    body = [line.rstrip("\\").rstrip() for line in lines[at + 1 : end]]
    if not all(line.startswith("\t") for line in body):
        return 0
    if body[-1][-1] == ")":
        body[-1] += ";"  # the user of the macro adds it
        laid_out = _formatted(body, _WIDTH - 2)
        if laid_out is not None:
            laid_out[-1] = laid_out[-1][:-1]
    else:
        laid_out = _formatted(body, _WIDTH - 2)
    if laid_out is None or any('"' in line for line in laid_out):
        return 0
    rows = [head[:-1].rstrip(), *laid_out]
    widths = [len(row.expandtabs(_TAB)) for row in rows]
    if max(widths) > _WIDTH - 2:
        return 0
    out += [f"{row}{' ' * (_WIDTH - 1 - width)}\\" for row, width in zip(rows[:-1], widths, strict=False)]
    out.append(rows[-1])
    return end


def _condition(line: str, at: int, out: list[str]) -> int:
    """Break a conditional of the preprocessor at one operator. Return the line behind it; 0 for others."""
    if not line.startswith(("#if ", "#elif ")) or line[-1] == "\\" or "/*" in line or '"' in line:
        return 0
    signs = {sign for sign in _SIGNS.findall(line) if sign[0] == " "}
    if len(signs) != 1 or not signs <= {" && ", " || "}:
        return 0
    place = line.rfind(*signs, 0, _WIDTH - 1) + 3
    if place < 3 or len(line) - place - 1 > _WIDTH - _TAB or line.count("(", 0, place) != line.count(")", 0, place):
        return 0
    out += [f"{line[:place]}{' ' * (_WIDTH - 1 - place)}\\", f"\t{line[place + 1 :]}"]
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
        if depth <= 0 and code.endswith(")") and end < len(lines):
            if lines[end].startswith("{") or code.lstrip("\t").partition("(")[0].isupper():
                break
    return end


def _call(body: str, tabs: int, width: int = _WIDTH) -> list[str] | None:
    """Break a statement or the head of a function at one comma between the arguments of its call, or behind || or &&.

    The search breaks there if two lines are enough: a break behind an assignment has a lower penalty, all others have
    a higher one. Conditions with three or more operands are broken behind each last operator that fits, because the
    search does not break such an operand. None if this line is another one.
    """
    is_control = body.startswith("if (")
    if body[-1] not in (";),{" if is_control else ";),") or (body.startswith(_CONTROL) and not is_control):
        return None
    if _is_irregular(body):
        return None
    depth = 0
    comma = assignment = opening = 0
    last = 0
    commas: list[int] = []
    nested: list[int] = []
    operators: list[int] = []
    signs: set[str] = set()
    room = width - _TAB * tabs
    for match in _SIGNS.finditer(body):
        sign = match[0]
        first = sign[0]
        if first in "([":
            depth += 1
            if depth == 1 and sign == "(":
                if opening and (comma or operators):
                    return None
                opening = match.end()
        elif first in ")]":
            depth -= 1
        elif first == ",":
            if depth == 0 and match.end() < len(body):
                return None
            if depth > 1:
                nested.append(match.end())
            elif opening:
                commas.append(match.end())
                comma = match.end() if match.end() <= room else comma
        elif first == " ":
            if sign in (" ? ", " : ") or (depth == 0 and (sign != " = " or assignment)):
                return None
            if depth == 0:
                assignment = match.end()
            elif depth > 1:
                nested.append(match.end())
            else:
                signs.add(sign)
                if sign in (" || ", " && "):
                    operators.append(match.end() - 1)
        elif first in "}/" or (first == "{" and match.end() < len(body)) or (first == '"' and len(sign) > room - _TAB):
            return None
        if first == '"':
            if last and not body[last : match.start()].strip():
                return None
            last = match.end()
    if depth:
        return None
    prefix = "\t" * tabs
    if assignment and assignment - 1 <= room and len(body) - assignment <= room - _TAB:
        return [prefix + body[: assignment - 1], f"{prefix}\t{body[assignment:]}"]
    column = _TAB * tabs + opening
    indent = "\t" * (column // _TAB) + " " * (column % _TAB)
    if not comma and len(operators) > 1 and len(signs) == 1:
        return _chain(body, operators, prefix, indent, width)
    places = [place for place in operators if place <= room]
    place = comma or (places[-1] if places and len(signs) == 1 else 0)
    if not place:
        return None
    if column + len(body) - place - 1 > width:
        is_head = tabs == 0 and not assignment and not signs and len(body) - body[:opening].rfind(" ") - 1 > width
        lines = _chain(body, commas, prefix, indent, width) if comma else None
        if is_head:
            return lines if lines is not None and len(lines) in (3, 4) else None
        if not tabs or signs or any(place < end <= room for end in nested):
            return None
        return (
            _after_parenthesis(body, opening, assignment, tabs, width)
            or _after_assignment(body, opening, assignment, commas, tabs, width)
            or (lines if lines is not None and len(lines) == 3 else None)
        )
    return [prefix + body[:place], indent + body[place + 1 :]]


def _after_parenthesis(body: str, opening: int, assignment: int, tabs: int, width: int) -> list[str] | None:
    """Break a call behind its parenthesis, if all arguments fit on a line."""
    head = body[:opening]
    callee = head[assignment:].removeprefix("return ")
    if not callee[:-1].isidentifier() or len(head) + _TAB * tabs > width:
        return None
    if len(body) - opening + _TAB * (tabs + 1) > width:
        return None
    return ["\t" * tabs + head, "\t" * (tabs + 1) + body[opening:]]


def _after_assignment(
    body: str, opening: int, assignment: int, commas: list[int], tabs: int, width: int
) -> list[str] | None:
    """Break an assignment of a call behind the operator and behind one comma."""
    room = width - _TAB * (tabs + 1)
    places = [place for place in commas if place - assignment <= room]
    if not assignment or not places or not body[assignment : opening - 1].isidentifier():
        return None
    column = _TAB * (tabs + 1) + opening - assignment
    if column + len(body) - places[-1] - 1 > width:
        return None
    indent = "\t" * (column // _TAB) + " " * (column % _TAB)
    prefix = "\t" * tabs
    return [
        prefix + body[: assignment - 1],
        f"{prefix}\t{body[assignment : places[-1]]}",
        indent + body[places[-1] + 1 :],
    ]


def _chain(body: str, operators: list[int], prefix: str, indent: str, width: int) -> list[str] | None:
    """Break a condition behind each last operator that fits."""
    out: list[str] = []
    start, lead, column = 0, prefix, _TAB * len(prefix)
    ends = [*operators, len(body)]
    while start < len(body):
        fitting = [end for end in ends if end > start and column + end - start <= width]
        if not fitting:
            return None
        out.append(lead + body[start : fitting[-1]])
        start, lead, column = fitting[-1] + 1, indent, len(indent.expandtabs(_TAB))
    return out


def _table(lines: list[str], at: int, tabs: int, width: int = _WIDTH) -> list[str] | None:
    """Return the lines of an initialiser with a line for each value; None if its values can be laid out otherwise."""
    head = lines[at]
    if not head.endswith("= {") or len(head) + 7 * tabs > width or head[tabs] == "}":
        return None
    end = at + 1
    prefix = "\t" * (tabs + 1)
    room = width - _TAB * (tabs + 1)
    rows: list[str] = []
    while end < len(lines) and lines[end].startswith(prefix):
        body = lines[end][tabs + 1 :]
        if body == "{" and len(rows) < 4 and (nested := _nested(lines, end, tabs + 1, width)):
            rows.append("\n".join([body, *lines[end + 1 : nested]]))
            end = nested
            continue
        if not body or body[-1] != "," or body[0] in "\t/#" or body.endswith(",},") or _is_irregular(body):
            return None
        if body.count("(") != body.count(")") or body.count("{") != body.count("}"):
            return None
        rows.append(body)
        end += 1
    if not rows or end == len(lines) or lines[end] != "\t" * tabs + "};":
        return None
    out = [head]
    is_grid = rows[0][0] != "." and len(rows) >= 5 and "\n" not in "".join(rows) and 2 * min(map(len, rows)) < _WIDTH
    if is_grid and (max(map(len, rows)) > room or any(_values(row) != 1 for row in rows)):
        return None
    for row in _grid(rows, room) if is_grid else rows:
        if len(row) <= room or (row[0] == "{" and "\n" in row):
            out.append(prefix + row)
        elif row[0].isalpha() and (broken := _call(row, tabs + 1, width)) is not None:
            out += broken
        else:
            return None
    return [*out, lines[end]]


def _nested(lines: list[str], at: int, tabs: int, width: int) -> int:
    """Return the end of a structure with a line for each member in a table; 0 if it is laid out otherwise."""
    end = at + 1
    prefix = "\t" * (tabs + 1) + "."
    while end < len(lines) and lines[end].startswith(prefix):
        row = lines[end]
        if row[-1] != "," or "{" in row or len(row) + 7 * (tabs + 1) > width or _is_irregular(row[tabs + 1 :]):
            return 0
        end += 1
    return end + 1 if end > at + 1 and end < len(lines) and lines[end] == "\t" * tabs + "}," else 0


def _values(row: str) -> int:
    """Return the number of values in a row of a table."""
    depth = count = 0
    for match in _SIGNS.finditer(row):
        sign = match[0]
        depth += (sign in "([{") - (sign in ")]}")
        count += sign == "," and depth == 0
    return count


def _grid(rows: list[str], room: int) -> list[str]:
    """Return values in columns; unchanged if only one column is possible."""
    lengths = [len(row) for row in rows]
    sizes = _sizes(lengths, lengths, room)
    if sizes is None:
        return rows
    lines = [rows[start : start + len(sizes)] for start in range(0, len(rows), len(sizes))]
    return [" ".join(f"{row:{size}}" for row, size in zip(line, sizes, strict=False)).rstrip() for line in lines]


def _sizes(lengths: list[int], ends: list[int], room: int) -> list[int] | None:
    """Return the widths of the columns with which values need the fewest lines, and of those the fewest columns.

    `ends` are the lengths of values at the end of a line. None if only one column is possible.
    """
    layouts: list[tuple[int, int, list[int]]] = []
    for columns in range(1, min(_WIDTH // 3, len(lengths)) + 1):
        parts = [lengths[column::columns] for column in range(columns - 1)] + [ends[columns - 1 :: columns]]
        sizes = [max(part) for part in parts]
        if any(size - min(part) > 10 for size, part in zip(sizes[:-1], parts, strict=False)):
            continue
        width = columns - 1 + sum(sizes)
        if width <= _WIDTH or columns == 1:
            layouts.append((width, -(-len(lengths) // columns), sizes))
    best: tuple[int, list[int]] | None = None
    for width, count, sizes in reversed(layouts):
        if width <= room or len(sizes) == 1:
            if best is not None and count > best[0]:
                break
            best = count, sizes
    return best[1] if best is not None and len(layouts) > 1 else None


def _numbers(body: str, tabs: int) -> list[str] | None:
    """Lay out an array of numbers or names in columns: behind the brace, or on lines of its own if that is better."""
    head, _, rest = body.partition("= {")
    if not rest.endswith("};") or re.search(r"[^\w, -]", rest[:-2]) or head.count("(") or head.count("{"):
        return None
    values = rest[:-2].split(", ")
    if len(values) < 6 or not all(values) or any(" " in value for value in values):
        return None
    texts = [f"{value}," for value in values[:-1]] + [values[-1]]
    lengths = [len(text) for text in texts]
    ends = [*lengths[:-1], lengths[-1] + 2]
    start, inner = _TAB * tabs + len(head) + 3, _TAB * (tabs + 1)
    options: list[tuple[int, int, list[int], int]] = []
    for penalty, column in ((0, start), (74, inner)):
        sizes = _sizes(lengths, ends, _WIDTH - column)
        if sizes is None or sum(sizes) + len(sizes) - 1 > _WIDTH - column:
            return None
        options.append((penalty + 41 * (-(-len(texts) // len(sizes)) - 1), column, sizes, penalty))
    _, column, sizes, own_line = min(options)
    indent = "\t" * (column // _TAB) + " " * (column % _TAB)
    lines = []
    for first in range(0, len(texts), len(sizes)):
        row = texts[first : first + len(sizes)]
        lines.append(indent + " ".join(f"{text:{size}}" for text, size in zip(row, sizes, strict=False)).rstrip())
    lines[-1] += "};"
    prefix = "\t" * tabs + head + "= {"
    return [prefix, *lines] if own_line else [prefix + lines[0].lstrip(), *lines[1:]]
