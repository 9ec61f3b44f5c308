# SPDX-License-Identifier: Apache-2.0
"""Command lines: for the user's shell, which is sh or, on Windows, PowerShell, and from variables and build files."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def module(name: str) -> Any:
    """Return a standard module that some systems lack; None on these."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


IS_WINDOWS = os.name == "nt"
SCRIPTS = "Scripts" if IS_WINDOWS else "bin"
"""The directory of the programs of a virtual environment."""
C_COMPILERS = ("cc", "gcc", "clang")
CPP_COMPILERS = ("c++", "g++", "clang++")
_PLAIN_IN_POWERSHELL = r"[A-Za-z0-9_./:\\+=%~^-]+"
"""Words without characters that PowerShell interprets (Microsoft Learn, about_Special_Characters)."""


def compiler_words(variable: str, defaults: Sequence[str]) -> list[str]:
    """Return the command of a compiler in `variable`, else the first default that is installed, else the first one.

    Raises ValueError for unbalanced quotes.
    """
    import shutil

    default = next((name for name in defaults if shutil.which(name)), defaults[0])
    return split(os.environ.get(variable, default))


def quoted(text: str) -> str:
    """Return a word for the user's shell."""
    if not IS_WINDOWS:
        return shlex.quote(text)
    return text if re.fullmatch(_PLAIN_IN_POWERSHELL, text) else "'" + text.replace("'", "''") + "'"


def program(path: str) -> str:
    """Return the path of a program as the first word of a command."""
    word = quoted(path)
    return f"& {word}" if IS_WINDOWS and word.startswith("'") else word


def pip_install(requirement: str) -> str:
    """Return the command that installs a Python package. Its double quotes are those of sh, PowerShell and cmd."""
    return f'pip install "{requirement}"' if re.search(r"[^\w.-]", requirement) else f"pip install {requirement}"


def both(first: str, second: str) -> str:
    """Return two commands, of which the second requires the first one's success.

    Windows PowerShell 5.1, which Windows contains, has no `&&`, and stops at a failed `cd` only by its error message.
    """
    return f"{first}; {second}" if IS_WINDOWS else f"{first} && {second}"


def in_directory(folder: str, command: str) -> str:
    """Return a command that runs in a directory."""
    return both(f"cd {quoted(folder)}", command)


def setting(variables: Mapping[str, str]) -> str:
    """Return the command that sets environment variables for the commands after it."""
    if IS_WINDOWS:
        return "; ".join(f"$env:{name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in variables.items())
    return "export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


def unsetting(name: str) -> str:
    """Return the command that removes an environment variable."""
    return f"Remove-Item Env:{name}" if IS_WINDOWS else f"unset {name}"


def home(path: str) -> str:
    """Return a path in the user's home directory. PowerShell expands ~ only for its own commands."""
    return f"$HOME/{path}" if IS_WINDOWS else f"~/{path}"


def joining_group(device: str) -> str | None:
    """Return the command that permits this user a serial device; None where users need no group for it.

    The group is that of the device: dialout (Debian, Fedora), uucp (Arch).
    """
    groups = module("grp")
    if sys.platform != "linux" or groups is None:
        return None
    try:
        name = groups.getgrgid(os.stat(device).st_gid).gr_name  # noqa: PTH116 -- one call
    except (OSError, KeyError, ValueError):
        name = "dialout"
    return f"sudo usermod -aG {shlex.quote(name)} $USER" if name != "root" else None


def joined(words: Iterable[str]) -> str:
    """Return the text of a command that was run: with the quotes of sh, or those of Windows' command lines."""
    if not IS_WINDOWS:
        return shlex.join(words)
    import subprocess

    return subprocess.list2cmdline(words)


def split(text: str) -> list[str]:
    """Return the words of a command in a variable or a build file. Raises ValueError for unbalanced quotes.

    On Windows a backslash is part of a path, except before a double quote (CommandLineToArgvW), and the path of a
    program may be given without quotes.
    """
    if not IS_WINDOWS:
        return shlex.split(text)
    import shutil

    return [text] if text.strip() and shutil.which(text) else _split_of_windows(text)


def _split_of_windows(text: str) -> list[str]:
    """Split a command line as C programs of Windows do (Microsoft C, "Parsing C command-line arguments")."""
    words: list[str] = []
    word: str | None = None
    inside = False
    for slashes, char in re.findall(r"(\\*)(\"|\s|[^\\\"\s]+|\Z)", text):
        if kept := slashes if char != '"' else slashes[: len(slashes) // 2]:
            word = (word or "") + kept
        if char == '"' and len(slashes) % 2:
            word = (word or "") + char
        elif char == '"':
            inside, word = not inside, word or ""
        elif char.isspace() and not inside:
            words += [] if word is None else [word]
            word = None
        elif char:
            word = (word or "") + char
    if inside:
        raise ValueError("No closing quotation")
    return words if word is None else [*words, word]
