# SPDX-License-Identifier: Apache-2.0
"""Read Kconfig files as hostile text (source: Zephyr's Kconfig documentation, the kernel's kconfig-language).

The result has definitions of symbols with their conditions; `KconfigValues` evaluates them. Functions of Kconfig,
such as those of devicetree, are n.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from opwest.base.frozen_dataclass import dataclass

_MAX_FILES = 4000
_MAX_DEPTH = 12
"""Files can include each other; those of Zephyr have at most seven levels."""
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(&&|\|\||!=|<=|>=|[=!<>()])|(\$\([^()]*\))|([\w./-]+))')
_PRIORITY = {"||": 1, "&&": 2, "!": 3, "=": 4, "!=": 4, "<": 4, ">": 4, "<=": 4, ">=": 4}
_VARIABLE = re.compile(r"\$\((\w+)\)")
_LINE = re.compile(r"\s*([a-z_]+)\b\s*(.*)")

Expression = tuple[str, ...]
"""A condition in postfix order; empty if there is none."""
NEVER: Expression = ("n",)


@dataclass(slots=True)
class Definition:
    """One definition of a symbol or of a choice: conditions of its properties include `depends`."""

    name: str
    depends: list[Expression]
    selects: list[tuple[str, Expression]] = field(default_factory=list)
    implies: list[tuple[str, Expression]] = field(default_factory=list)
    defaults: list[tuple[Expression, Expression]] = field(default_factory=list)
    prompts: list[Expression] = field(default_factory=list)
    choice: str | None = None
    """A member's choice."""


class KconfigFiles:
    """The definitions of Kconfig files, in the order of the files."""

    def __init__(self, variables: Mapping[str, str], others: KconfigFiles | None = None) -> None:
        """Start with the definitions of `others`, which follow those of the files."""
        self.symbols: list[Definition] = []
        self.choices: list[Definition] = []
        self._others = others
        self._variables = dict(variables)
        self._files = 0

    @property
    def all_symbols(self) -> list[Definition]:
        """The definitions of symbols, those of `others` last."""
        return self.symbols + (self._others.all_symbols if self._others else [])

    @property
    def all_choices(self) -> list[Definition]:
        """The definitions of choices, those of `others` last."""
        return self.choices + (self._others.all_choices if self._others else [])

    def read(self, files: Sequence[Path]) -> None:
        """Add files and those that they include."""
        for file in files:
            self._read(file, [], None, 0)

    def add(self, text: str) -> None:
        """Add text that includes no files."""
        _Reader(self, Path(), [], None, 99).read(text)

    def _read(self, file: Path, conditions: list[Expression], choice: Definition | None, depth: int) -> None:
        self._files += 1
        if depth > _MAX_DEPTH or self._files > _MAX_FILES or not file.name.startswith("Kconfig"):
            return
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            return
        _Reader(self, file.parent, conditions, choice, depth).read(text)

    def expanded(self, text: str) -> str:
        """Return a text with the values of the variables that are known."""
        return _VARIABLE.sub(lambda match: self._variables.get(match[1], match[0]), text) if "$" in text else text

    def include(self, pattern: str, start: Path, reader: _Reader) -> None:
        """Add the files that match a pattern, relative to a directory."""
        expanded = self.expanded(pattern)
        if "$" in expanded or not expanded:
            return
        path = start / expanded
        try:
            if any(char in expanded for char in "*?["):
                files = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor)))) if path.is_absolute() else []
            else:
                files = [path]
        except (OSError, ValueError, NotImplementedError):  # pathlib rejects the pattern
            return
        for file in files:
            self._read(file, reader.conditions(), reader.choice, reader.depth + 1)

    @property
    def base(self) -> Path:
        """The directory of `source`."""
        return Path(self._variables.get("srctree", "."))


class _Reader:
    """The state of reading one file."""

    def __init__(
        self, files: KconfigFiles, folder: Path, outer: list[Expression], choice: Definition | None, depth: int
    ) -> None:
        self._files, self._folder, self.depth = files, folder, depth
        self._blocks: list[tuple[str, list[Expression]]] = [("", list(outer))]
        self.choice = choice
        self._current: Definition | None = None

    def conditions(self) -> list[Expression]:
        """Return the conditions of the enclosing blocks."""
        return [condition for _, conditions in self._blocks for condition in conditions]

    def read(self, text: str) -> None:
        """Add the definitions of a text."""
        helps = -1  # the indentation of a help text, 0 before its first line
        for line in re.sub(r"\\\r?\n", " ", text).expandtabs(8).splitlines():
            indent = len(line) - len(line.lstrip())
            if helps >= 0:
                if not line.strip() or (indent >= helps and indent > 0):
                    helps = helps or (indent if line.strip() else 0)
                    continue
                helps = -1
            match = _LINE.match(_without_comment(line))
            if match is None:
                continue
            if match[1] == "help":
                helps = 0
            else:
                self._take(match[1], self._files.expanded(match[2].strip()))

    def _take(self, word: str, rest: str) -> None:
        if word in ("config", "menuconfig"):
            self._current = Definition(rest, self.conditions(), choice=self.choice.name if self.choice else None)
            self._files.symbols.append(self._current)
        elif word == "choice":
            name = rest or f"<choice {len(self._files.all_choices)}>"
            self._current = self.choice = Definition(name, self.conditions())
            self._files.choices.append(self._current)
            self._blocks.append(("choice", []))
        elif word in ("if", "menu"):
            self._current = None
            self._blocks.append((word, [expression(rest)] if word == "if" else []))
        elif word in ("endif", "endmenu", "endchoice"):
            self._current = None
            if self._blocks[-1][0] == word.removeprefix("end"):
                self._blocks.pop()
            if word == "endchoice":
                self.choice = None
        elif word in ("source", "osource", "rsource", "orsource"):
            self._current = None
            start = self._folder if "r" in word.removesuffix("source") else self._files.base
            self._files.include(rest.strip("\"'"), start, self)
        elif word == "comment":
            self._current = None
        else:
            self._property(word, rest)

    def _property(self, word: str, rest: str) -> None:
        definition = self._current
        if word == "depends":
            condition = expression(rest.removeprefix("on").strip())
            if definition is not None:
                definition.depends.append(condition)
            elif self._blocks[-1][0] == "menu":
                self._blocks[-1][1].append(condition)
            return
        if definition is None:
            return
        value, condition = _split(rest)
        if word == "select":
            definition.selects.append((value, condition))
        elif word == "imply":
            definition.implies.append((value, condition))
        elif word in ("default", "def_bool"):
            definition.defaults.append((expression(value), condition))
        elif word == "prompt" or (word == "bool" and value):
            definition.prompts.append(condition)


def _without_comment(line: str) -> str:
    if "#" not in line:
        return line
    return re.sub(r'^((?:[^"#]|"(?:[^"\\]|\\.)*")*)#.*', r"\1", line)


def _split(rest: str) -> tuple[str, Expression]:
    """Return a value and the condition after its `if`."""
    match = re.fullmatch(r'((?:[^"]|"(?:[^"\\]|\\.)*")*?)(?:^|\s)if\b(.*)', rest)
    if match is None:
        return rest.strip(), ()
    return match[1].strip(), expression(match[2].strip())


def expression(text: str) -> Expression:
    """Return a condition in postfix order; NEVER for text that is none."""
    output: list[str] = []
    pending: list[str] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return NEVER
        at = match.end()
        quoted, operator, function, word = match.groups()
        if operator is None:
            output.append(quoted or word or ("n" if function else ""))
        elif operator in "(!":
            pending.append(operator)
        elif operator == ")":
            while pending and pending[-1] != "(":
                output.append(pending.pop())
            if not pending:
                return NEVER
            pending.pop()
        else:
            while pending and pending[-1] != "(" and _PRIORITY[pending[-1]] >= _PRIORITY[operator]:
                output.append(pending.pop())
            pending.append(operator)
    while pending:
        operator = pending.pop()
        if operator == "(":
            return NEVER
        output.append(operator)
    return tuple(output)


_OPERATORS = frozenset(["&&", "||", "!", "=", "!=", "<", ">", "<=", ">="])
_MAX_ROUNDS = 40
"""Selections and conditions depend on each other; files with a contradiction have no stable result."""


class KconfigValues:
    """The symbols of Kconfig files that are y."""

    def __init__(self, files: KconfigFiles) -> None:
        self._symbols: dict[str, list[Definition]] = {}
        for definition in files.all_symbols:
            self._symbols.setdefault(definition.name, []).append(definition)
        self._choices: dict[str, list[Definition]] = {}
        for definition in files.all_choices:
            self._choices.setdefault(definition.name, []).append(definition)
        self._members: dict[str, list[str]] = {}
        for definition in files.all_symbols:
            if definition.choice is not None and definition.name not in self._members.setdefault(definition.choice, []):
                self._members[definition.choice].append(definition.name)
        self._with_defaults = [
            name
            for name, all_of in self._symbols.items()
            if any(definition.defaults or definition.choice for definition in all_of)
        ]
        """The symbols that can be y without a selection, an implication or an assigned value."""

    def true(
        self, forced: Iterable[str], assigned: Mapping[str, bool], implied: Iterable[tuple[str, Expression]] = ()
    ) -> frozenset[str]:
        """Return the symbols that are y.

        `forced` are y whatever the files contain. `assigned` are values of configuration files: they apply to symbols
        with a prompt. `implied` are symbols that a model implies, with conditions.
        """
        fixed = frozenset(forced)
        values: frozenset[str] = fixed
        extra = tuple(implied)
        for _ in range(_MAX_ROUNDS):
            following = self._round(values, fixed, assigned, extra)
            if following == values:
                break
            values = following
        return values

    def undefined(self, values: frozenset[str]) -> set[str]:
        """Return the symbols that are y by a selection, and that no file defines."""
        return {name for name in values if name not in self._symbols}

    def _round(
        self,
        values: frozenset[str],
        fixed: frozenset[str],
        assigned: Mapping[str, bool],
        implied: tuple[tuple[str, Expression], ...],
    ) -> frozenset[str]:
        selected = set(fixed)
        wanted = {name for name, condition in implied if holds(condition, values)}
        for name in values:
            for definition in self._symbols.get(name, ()):
                if (definition.selects or definition.implies) and _visible(definition, values):
                    selected.update(target for target, condition in definition.selects if holds(condition, values))
                    wanted.update(target for target, condition in definition.implies if holds(condition, values))
        true = set(selected)
        chosen = {name: self._chosen(name, values, assigned) for name in self._choices}
        for name in {*self._with_defaults, *wanted, *assigned}:
            definitions = self._symbols.get(name)
            if name in true or definitions is None:
                continue
            visible = [definition for definition in definitions if _visible(definition, values)]
            choice = next((definition.choice for definition in definitions if definition.choice is not None), None)
            if choice is not None:
                if visible and chosen.get(choice) == name:
                    true.add(name)
            elif visible and self._own(name, visible, values, assigned, name in wanted):
                true.add(name)
        return frozenset(true)

    @staticmethod
    def _own(
        name: str, visible: list[Definition], values: frozenset[str], assigned: Mapping[str, bool], implied: bool
    ) -> bool:
        """Whether a symbol is y by its assigned value, an implication or its first default with a true condition."""
        given = assigned.get(name)
        if given is not None and any(holds(prompt, values) for definition in visible for prompt in definition.prompts):
            return given
        for definition in visible:
            for value, condition in definition.defaults:
                if holds(condition, values):
                    return implied or holds(value, values)
        return implied

    def _chosen(self, name: str, values: frozenset[str], assigned: Mapping[str, bool]) -> str | None:
        """Return the member of a choice: the assigned one, the first default, or the first visible one."""
        visible = [choice for choice in self._choices[name] if _visible(choice, values)]
        if not any(holds(prompt, values) for definition in visible for prompt in definition.prompts):
            return None
        members = [
            member
            for member in self._members.get(name, ())
            if any(_visible(symbol, values) and symbol.choice == name for symbol in self._symbols[member])
        ]
        given = [member for member in members if assigned.get(member)]
        if given:
            return given[-1]
        for definition in visible:
            for value, condition in definition.defaults:
                if value and value[0] in members and holds(condition, values):
                    return value[0]
        return members[0] if members else None


def _visible(definition: Definition, values: frozenset[str]) -> bool:
    return all(holds(condition, values) for condition in definition.depends)


def holds(condition: Expression, values: frozenset[str]) -> bool:
    """Whether a condition is true; an empty one is."""
    if not condition:
        return True
    stack: list[str] = []
    for token in condition:
        if token == "!":
            stack.append("n" if stack and _is_true(stack.pop(), values) else "y")
        elif token in _OPERATORS:
            if len(stack) < 2:
                return False
            right, left = stack.pop(), stack.pop()
            stack.append("y" if _binary(token, left, right, values) else "n")
        else:
            stack.append(token)
    return len(stack) == 1 and _is_true(stack[0], values)


def _is_true(token: str, values: frozenset[str]) -> bool:
    return token in ("y", '"y"') or token in values


def _binary(operator: str, left: str, right: str, values: frozenset[str]) -> bool:
    if operator == "&&":
        return _is_true(left, values) and _is_true(right, values)
    if operator == "||":
        return _is_true(left, values) or _is_true(right, values)
    equal = _text(left, values) == _text(right, values)
    return equal if operator == "=" else operator == "!=" and not equal


def _text(token: str, values: frozenset[str]) -> str:
    """Return the text of an operand: a literal, or y or n of a symbol."""
    if token.startswith('"'):
        return token[1:-1]
    return "y" if _is_true(token, values) else token if token.isdigit() else "n"
