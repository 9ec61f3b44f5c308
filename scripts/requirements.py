# SPDX-License-Identifier: Apache-2.0
"""Print dependencies of pyproject.toml as a file of requirements: those of opwest and extras, without some packages."""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def requirements(
    extras: Collection[str] = (), without: Collection[str] = (), *, only_extras: bool = False
) -> list[str]:
    """Return the dependencies and those of `extras`. Raises KeyError for an unknown extra or package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {_name(one): one for one in ([] if only_extras else project["dependencies"])}
    for package in without:
        del found[package]
    for extra in extras:
        found |= {_name(one): one for one in project["optional-dependencies"][extra]}
    return sorted(found.values())


def _name(requirement: str) -> str:
    """Return the name of the package of a requirement."""
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra", nargs="*", default=[], metavar="NAME", help="an extra of pyproject.toml")
    parser.add_argument("--without", nargs="*", default=[], metavar="PACKAGE", help="a dependency to leave out")
    parser.add_argument("--only-extras", action="store_true", help="without the dependencies of opwest")
    options = parser.parse_args()
    print("\n".join(requirements(options.extra, options.without, only_extras=options.only_extras)))
