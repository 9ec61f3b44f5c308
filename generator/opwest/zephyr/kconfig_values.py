# SPDX-License-Identifier: Apache-2.0
"""The values of Kconfig symbols: which are y, from the definitions of Kconfig files and assigned values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opwest.zephyr.kconfig import Definition, Expression, KconfigFiles

_OPERATORS = frozenset(["&&", "||", "!", "=", "!=", "<", ">", "<=", ">="])
_MOST_ROUNDS = 40
"""Selections and conditions depend on each other; files with a contradiction have no stable result."""


class KconfigValues:
    """The symbols of Kconfig files that are y."""

    def __init__(self, files: KconfigFiles) -> None:
        self._symbols: dict[str, list[Definition]] = {}
        for one in files.all_symbols:
            self._symbols.setdefault(one.name, []).append(one)
        self._choices: dict[str, list[Definition]] = {}
        for one in files.all_choices:
            self._choices.setdefault(one.name, []).append(one)
        self._members: dict[str, list[str]] = {}
        for one in files.all_symbols:
            if one.choice is not None and one.name not in self._members.setdefault(one.choice, []):
                self._members[one.choice].append(one.name)
        self._with_defaults = [
            name for name, all_of in self._symbols.items() if any(one.defaults or one.choice for one in all_of)
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
        for _ in range(_MOST_ROUNDS):
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
            for one in self._symbols.get(name, ()):
                if (one.selects or one.implies) and _visible(one, values):
                    selected.update(target for target, condition in one.selects if holds(condition, values))
                    wanted.update(target for target, condition in one.implies if holds(condition, values))
        found = set(selected)
        chosen = {name: self._chosen(name, values, assigned) for name in self._choices}
        for name in {*self._with_defaults, *wanted, *assigned}:
            definitions = self._symbols.get(name)
            if name in found or definitions is None:
                continue
            visible = [one for one in definitions if _visible(one, values)]
            choice = next((one.choice for one in definitions if one.choice is not None), None)
            if choice is not None:
                if visible and chosen.get(choice) == name:
                    found.add(name)
            elif visible and self._own(name, visible, values, assigned, name in wanted):
                found.add(name)
        return frozenset(found)

    @staticmethod
    def _own(
        name: str,
        visible: list[Definition],
        values: frozenset[str],
        assigned: Mapping[str, bool],
        implied: bool,
    ) -> bool:
        """Whether a symbol is y by its assigned value, an implication or its first default with a true condition."""
        given = assigned.get(name)
        if given is not None and any(holds(prompt, values) for one in visible for prompt in one.prompts):
            return given
        for one in visible:
            for value, condition in one.defaults:
                if holds(condition, values):
                    return implied or holds(value, values)
        return implied

    def _chosen(self, name: str, values: frozenset[str], assigned: Mapping[str, bool]) -> str | None:
        """Return the member of a choice: the assigned one, the first default, or the first visible one."""
        visible = [one for one in self._choices[name] if _visible(one, values)]
        if not any(holds(prompt, values) for one in visible for prompt in one.prompts):
            return None
        members = [
            member
            for member in self._members.get(name, ())
            if any(_visible(one, values) and one.choice == name for one in self._symbols[member])
        ]
        given = [member for member in members if assigned.get(member)]
        if given:
            return given[-1]
        for one in visible:
            for value, condition in one.defaults:
                if value and value[0] in members and holds(condition, values):
                    return value[0]
        return members[0] if members else None


def _visible(one: Definition, values: frozenset[str]) -> bool:
    return all(holds(condition, values) for condition in one.depends)


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
