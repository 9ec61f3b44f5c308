# SPDX-License-Identifier: Apache-2.0
"""Print the dependencies of pyproject.toml and of some extras, without some packages, as a file of requirements."""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def requirements(extras: Collection[str] = (), without: Collection[str] = ()) -> list[str]:
    """Return the dependencies and those of `extras`. Raises KeyError for an unknown extra or package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {_name(one): one for one in project["dependencies"]}
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
    options = parser.parse_args()
    print("\n".join(requirements(options.extra, options.without)))
