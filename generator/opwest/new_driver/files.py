# SPDX-License-Identifier: Apache-2.0
"""The files of a new driver: the templates of this package with its names, as a directory of a Zephyr module."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import jinja2

from opwest.new_driver.names import DriverNames
from opwest.system.paths import spelled

_TEMPLATES: Final = Path(__file__).parent / "templates"
_SUFFIX: Final = ".jinja"
_COLUMN: Final = 99
"""The column of the backslash at the end of a line of a C macro, as in Zephyr."""
_TAB: Final = 8
_C: Final = (".c", ".h")


def driver_files(names: DriverNames) -> dict[str, bytes]:
    """Return the text of each file by its path, relative to the directory of the driver."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # C and Kconfig; all names are checked
        keep_trailing_newline=True,
    )
    identifier = re.sub(r"[^a-z0-9]", "_", names.compatible)
    values = {
        "name": names.name,
        "upper": names.name.upper(),
        "compatible": names.compatible,
        "compatible_c": identifier,
        "compatible_upper": identifier.upper(),
        "vendor": names.vendor,
    }
    paths = sorted(spelled(path.relative_to(_TEMPLATES)) for path in _TEMPLATES.rglob(f"*{_SUFFIX}"))
    texts = {_place(path, names): environment.get_template(path).render(values) for path in paths}
    return {path: (_aligned(text) if path.endswith(_C) else text).encode() for path, text in texts.items()}


def _place(template: str, names: DriverNames) -> str:
    path = Path(template.removesuffix(_SUFFIX))
    if path.name == "binding.yaml":
        return spelled(path.parent / f"{names.compatible}.yaml")
    return spelled(path.parent / re.sub(r"^name(?=[._])", names.name, path.name))


def _aligned(text: str) -> str:
    """Move the backslashes of C macros to one column; lines that are too long keep one space."""
    return re.sub(r"^(.*?)[ \t]*\\$", _with_backslash, text, flags=re.MULTILINE)


def _with_backslash(line: re.Match[str]) -> str:
    width = len(line[1].expandtabs(_TAB))
    return f"{line[1]}{' ' * max(1, _COLUMN - width)}\\"
