# SPDX-License-Identifier: Apache-2.0
"""Completion in shells, by argcomplete: the shell runs `opwest` with _ARGCOMPLETE set, which prints the candidates."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.lexers import split_line

from opwest.cli.arguments import Arguments
from opwest.cli.bundle_options import BOARD_ACTIONS, add_board_action
from opwest.cli.import_options import KINDS, import_parser
from opwest.cli.parser import command_names, parser


def complete() -> None:
    """Print the candidates for the command line in COMP_LINE, and end the process."""
    words = split_line(os.environ.get("COMP_LINE", ""), int(os.environ.get("COMP_POINT", "0")))[3]
    argcomplete.autocomplete(_completed(words[1:]), always_complete_options=False)


def _completed(words: list[str]) -> argparse.ArgumentParser:
    """Return the parser whose arguments complete a command line: as the commands, but with one for each first word."""
    first = words[0] if words else None
    if first == "import" and not any(word in KINDS for word in words[1:]):
        return _with_command(first, import_parser())
    if first == "bundle":
        if len(words) > 1 and words[1] in BOARD_ACTIONS:
            command = argparse.ArgumentParser()
            command.add_argument("action", choices=[words[1]])
            add_board_action(Arguments(command), words[1])
            return _with_command(first, command)
        top = parser(first=first)
        _set_completer(top, first, "file", _Words([*BOARD_ACTIONS]))
        return top
    if first in command_names():
        top = parser(first=first)
        _set_completer(top, first, "target", _targets)
        return top
    top = argparse.ArgumentParser()
    top.add_argument("--version", action="store_true")
    top.add_argument("command", choices=command_names())
    return top


def _with_command(name: str, command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return a parser with one command."""
    top = argparse.ArgumentParser()
    top.add_subparsers().add_parser(name, parents=[command], add_help=False, conflict_handler="resolve")
    return top


class _Words:
    """Completes words, or else files."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)

    def __call__(self, prefix: str, **_: Any) -> list[str]:
        """Return the candidates."""
        found = [word for word in self.words if word.startswith(prefix)]
        return [*found, *FilesCompleter()(prefix)]


def _targets(prefix: str, **_: Any) -> list[str]:
    """Return the named targets."""
    from opwest.objects.targets import named_targets

    return [name for name in named_targets() if name.startswith(prefix)]


def _set_completer(top: argparse.ArgumentParser, command: str, name: str, completer: Any) -> None:
    """Set the completer of an argument of a command."""
    choices: dict[str, argparse.ArgumentParser] = next(a.choices for a in top._actions if isinstance(a.choices, dict))
    for action in choices[command]._actions:
        if action.dest == name:
            action.completer = completer  # type: ignore[attr-defined]
