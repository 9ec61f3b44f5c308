# SPDX-License-Identifier: Apache-2.0
"""The preprocessor of C for declarations (ISO C 6.10): includes, conditionals, macros.

An undefined macro in a condition is 0, as in C. Headers that are not found are left out, and named: those of the system
are, because their types are known without them. Text is bounded, so that no header takes long.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import PurePosixPath
from typing import NamedTuple

from opwest.base.frozen_dataclass import dataclass
from opwest.objects.c_expressions import evaluate
from opwest.objects.c_masking import source_tokens

MAX_TOKENS = 1 << 19
_MAX_DEPTH = 64
_DIRECTIVE = re.compile(r"#\s*(\w*)\s*(.*)", re.DOTALL)
_MACRO = re.compile(r"([A-Za-z_]\w*)(\(([^()]*)\))?\s*(.*)", re.DOTALL)
_INCLUDE = re.compile(r'"([^"]+)"|<([^>]+)>')
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_PROBE = re.compile(r"\b__has_\w+\s*\([^()]*\)")
_ALTERNATIVES = ("else", "elif", "elifdef", "elifndef")
PREDEFINED = {
    "__STDC__": "1", "__STDC_VERSION__": "201112L", "__STDC_HOSTED__": "0", "__GNUC__": "12", "__GNUC_MINOR__": "0",
    "__CHAR_BIT__": "8", "__BEGIN_DECLS": "", "__END_DECLS": "", "__restrict": "restrict",
    "__restrict__": "restrict", "__volatile__": "volatile", "__const": "const", "__const__": "const",
    "__inline": "inline", "__inline__": "inline", "__signed__": "signed", "__extension__": "",
}  # fmt: skip
"""Macros of GCC that headers use, those of <sys/cdefs.h>, and the other spellings of keywords."""

Reader = Callable[[PurePosixPath], bytes | None]
"""Returns the content of a file; None if there is none."""


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Fault(NamedTuple):
    """A part of a file that was not read."""

    place: Place
    reason: str


class _Token(NamedTuple):
    kind: str
    text: str
    place: Place
    spaced: bool = True
    """Whether space precedes it."""
    hidden: frozenset[str] = frozenset()
    """The macros that it results from, which it does not call again."""


class _Macro(NamedTuple):
    parameters: tuple[str, ...] | None
    """None for a macro without arguments."""
    body: tuple[_Token, ...]


@dataclass(frozen=True)
class Preprocessed:
    """C without directives; each line of the text is from one line of a file."""

    text: bytes
    places: tuple[Place, ...]
    """By line of the text, from 0."""
    faults: tuple[Fault, ...]
    files: tuple[PurePosixPath, ...]
    """The files that were read, in order."""
    missing: tuple[PurePosixPath, ...]
    """The places where a header in quotes was searched for and not found."""
    packs: bool = False
    """Whether it contains `#pragma pack`."""
    unfound: tuple[str, ...] = ()
    """The headers that were not found, as written."""


@dataclass
class _Branch:
    """An open conditional."""

    active: bool
    """Whether the current branch is compiled."""
    done: bool
    """Whether a branch was, or none can be."""


@dataclass
class Preprocessor:
    """Preprocesses files in order; macros last from one to the next."""

    read: Reader
    folders: Sequence[PurePosixPath] = ()
    _macros: dict[str, _Macro] = field(default_factory=dict)
    _output: list[_Token] = field(default_factory=list)
    _faults: dict[Fault, None] = field(default_factory=dict)
    _files: dict[PurePosixPath, None] = field(default_factory=dict)
    _missing: dict[PurePosixPath, None] = field(default_factory=dict)
    _unfound: dict[str, None] = field(default_factory=dict)
    _once: set[PurePosixPath] = field(default_factory=set)
    _packs: bool = False
    _count: int = 0

    def define(self, macros: Mapping[str, str]) -> None:
        """Define macros without arguments."""
        for name, value in macros.items():
            self._define(f"{name} {value}", Place("", 0))

    def add(self, file: PurePosixPath, content: bytes, depth: int = 0) -> None:
        """Preprocess a file."""
        self._files[file] = None
        lines = [0, *(match.end() for match in re.finditer(rb"\n", content))]
        branches: list[_Branch] = []
        pending: list[_Token] = []
        end = -1
        for token in source_tokens(content.removeprefix(b"\xef\xbb\xbf"), cplusplus=False):
            if self._count > MAX_TOKENS:
                return
            place = Place(str(file), bisect_right(lines, token.start))
            text = token.text.decode("utf-8", "replace")
            if token.kind == "directive":
                self._flush(pending)
                self._directive(text, place, branches, file, depth)
            elif all(branch.active for branch in branches):
                pending.append(_Token(token.kind, text, place, token.start != end))
            end = token.end
        self._flush(pending)

    def result(self) -> Preprocessed:
        """Return the text of all files."""
        lines: list[str] = []
        places: list[Place] = []
        for token in self._output:
            if not places or places[-1] != token.place:
                places.append(token.place)
                lines.append("")
            text = token.text.replace("\n", " ")
            joins = _is_word(lines[-1][-1:]) and _is_word(text[:1])  # where macros meet
            lines[-1] += (" " if (token.spaced or joins) and lines[-1] else "") + text
        content = "\n".join(lines).encode("utf-8", "replace")
        faults, files, missing = tuple(self._faults), tuple(self._files), tuple(self._missing)
        return Preprocessed(content, tuple(places), faults, files, missing, self._packs, tuple(self._unfound))

    def _fault(self, place: Place, reason: str) -> None:
        self._faults[Fault(place, reason)] = None

    def _flush(self, pending: list[_Token]) -> None:
        """Expand the tokens since the last directive."""
        self._output += self._expanded(pending)
        if pending and self._count > MAX_TOKENS:
            self._fault(pending[0].place, f"macros expand to more than {MAX_TOKENS} tokens")
        pending.clear()

    def _directive(self, text: str, place: Place, branches: list[_Branch], file: PurePosixPath, depth: int) -> None:
        parts = _DIRECTIVE.match(_COMMENT.sub(" ", text.replace("\\\r\n", " ").replace("\\\n", " ")))
        name, rest = (parts[1], parts[2].strip()) if parts else ("", "")
        outer = all(branch.active for branch in branches)
        if name in ("if", "ifdef", "ifndef"):
            value = outer and self._condition(name, rest, place)
            branches.append(_Branch(value, value or not outer))
        elif name in _ALTERNATIVES and branches:
            branch = branches[-1]
            enclosing = all(other.active for other in branches[:-1])
            condition = {"elif": "if", "elifdef": "ifdef", "elifndef": "ifndef"}.get(name)
            taken = not branch.done and enclosing
            branch.active = taken and (condition is None or self._condition(condition, rest, place))
            branch.done = branch.done or branch.active
        elif name == "endif" and branches:
            branches.pop()
        elif not outer:
            return
        elif name == "define":
            self._define(rest, place)
        elif name == "undef":
            self._macros.pop(rest, None)
        elif name in ("include", "include_next", "import"):
            self._include(rest, place, file, depth)
        elif name == "pragma" and rest == "once":
            self._once.add(file)
        elif name == "pragma" and rest.startswith("pack"):
            self._packs = True
        elif name == "error":
            self._fault(place, f"#error {rest}")

    def _define(self, text: str, place: Place) -> None:
        parts = _MACRO.match(text)
        if parts is None:
            return
        parameters = None
        if parts[2] is not None:
            names = (name.strip() for name in parts[3].split(","))
            parameters = tuple("__VA_ARGS__" if name == "..." else name.removesuffix("...") for name in names if name)
        self._macros[parts[1]] = _Macro(parameters, tuple(_tokens(parts[4], place)))

    def _include(self, text: str, place: Place, file: PurePosixPath, depth: int) -> None:
        parts = _INCLUDE.match(text) or _INCLUDE.match("".join(t.text for t in self._expanded(_tokens(text, place))))
        if parts is None:
            self._fault(place, f"cannot read #include {text}")
            return
        name, quoted = parts[1] or parts[2], parts[1] is not None
        places = [_normal(folder / name) for folder in ([file.parent] if quoted else []) + [*self.folders]]
        for header in places:
            if header in self._once:
                return
            content = self.read(header)
            if content is not None and depth < _MAX_DEPTH:
                self.add(header, content, depth + 1)
                return
        if quoted:
            self._missing |= dict.fromkeys(places)
            if name not in self._unfound:
                self._fault(place, f"header {name!r} not found")
        self._unfound[name] = None

    def _condition(self, name: str, text: str, place: Place) -> bool:
        """Return whether the branch after a condition is compiled."""
        if name != "if":
            return (text in self._macros) == (name == "ifdef")
        text = _DEFINED.sub(lambda m: "1" if (m[1] or m[2]) in self._macros else "0", text)
        words = [token.text for token in self._expanded(_tokens(_PROBE.sub("0", text), place))]
        value = evaluate([word if not word.isidentifier() else "0" for word in words])
        if value is None:
            self._fault(place, f"cannot evaluate the condition '{text}'")
        return bool(value)

    def _expanded(self, tokens: Iterable[_Token]) -> list[_Token]:
        """Return tokens with all macros replaced (ISO C 6.10.3)."""
        waiting = list(tokens)[::-1]
        done: list[_Token] = []
        while waiting:
            self._count += 1
            if self._count > MAX_TOKENS:
                return []
            token = waiting.pop()
            macro = self._macros.get(token.text) if token.kind == "word" else None
            if macro is None or token.text in token.hidden:
                done.append(token)
                continue
            arguments: list[list[_Token]] = []
            if macro.parameters is not None:
                found = _arguments(waiting)
                if found is None:
                    done.append(token)
                    continue
                arguments = found
            body = self._substituted(macro, arguments, token)
            waiting += body[::-1]
        return done

    def _substituted(self, macro: _Macro, arguments: list[list[_Token]], call: _Token) -> list[_Token]:
        """Return the body of a macro with its arguments."""
        given = _by_name(macro.parameters or (), arguments, call.place)
        hidden = call.hidden | {call.text}
        result: list[_Token] = []
        body = macro.body
        index = 0
        while index < len(body):
            token = body[index]
            index += 1
            following = body[index].text if index < len(body) else ""
            if token.text == "#" and following in given:
                text = " ".join(t.text for t in given[following]).replace("\\", "\\\\").replace('"', '\\"')
                result.append(_Token("string", f'"{text}"', call.place))
                index += 1
            elif token.text == "##" and result and index < len(body):
                right = given.get(following, [body[index]])
                index += 1
                left = result.pop()
                pasted = _tokens(left.text + (right[0].text if right else ""), call.place)
                result += [*pasted, *right[1:]]
            elif token.text in given:
                raw = following == "##"
                argument = given[token.text] if raw else self._expanded(given[token.text])
                # An empty operand of ## is no token; the token before it is not an operand.
                result += argument or ([_Token("other", "", call.place)] if raw else [])
            else:
                result.append(token)
        made = [t._replace(place=call.place, hidden=t.hidden | hidden) for t in result if t.text]
        return [t._replace(spaced=True) if index == 0 else t for index, t in enumerate(made)]


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _tokens(text: str, place: Place) -> list[_Token]:
    tokens = source_tokens(f" {text}".encode("utf-8", "replace"), cplusplus=False)
    ends = [-1, *(t.end for t in tokens)]
    found = [
        _Token(t.kind, t.text.decode("utf-8", "replace"), place, t.start != end)
        for t, end in zip(tokens, ends, strict=False)
        if t.kind != "directive"
    ]
    for token in tokens:  # `#` begins no directive here
        if token.kind == "directive":
            return [*found, *_with_hashes(token.text.decode("utf-8", "replace"), place)]
    return found


def _with_hashes(text: str, place: Place) -> Iterator[_Token]:
    for part in re.split(r"(##?)", text):
        if part.startswith("#"):
            yield _Token("other", part, place)
        elif part.strip():
            yield from _tokens(part, place)


def _arguments(waiting: list[_Token]) -> list[list[_Token]] | None:
    """Take the arguments of a call from the end of `waiting`; None if it is no call, or has no end."""
    if not waiting or waiting[-1].text != "(":
        return None
    arguments: list[list[_Token]] = [[]]
    depth = 0
    for index in range(len(waiting) - 1, -1, -1):
        token = waiting[index]
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            del waiting[index:]
            return arguments
        if token.text == "," and depth == 1:
            arguments.append([])
        elif depth > 1 or token.text != "(":
            arguments[-1].append(token)
    return None


def _by_name(names: Sequence[str], arguments: list[list[_Token]], place: Place) -> dict[str, list[_Token]]:
    """Return the arguments of a call by parameter; the last one of `...` contains the others."""
    given = dict(zip(names, arguments, strict=False))
    if names and names[-1] == "__VA_ARGS__":
        rest: list[_Token] = []
        for number, argument in enumerate(arguments[len(names) - 1 :]):
            rest += [_Token("other", ",", place), *argument] if number else argument
        given["__VA_ARGS__"] = rest
    return {name: given.get(name, []) for name in names}


def _normal(path: PurePosixPath) -> PurePosixPath:
    """Return a path without `.` and inner `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)
