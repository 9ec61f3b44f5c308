# SPDX-License-Identifier: Apache-2.0
"""The lengths of the paths that opwest emits: Windows limits paths to 260 characters (docs/windows-and-macos.md)."""

import re

import pytest
from golden_support import GOLDEN, PROJECTS, generate_project

PAGE = (GOLDEN.parents[1] / "docs" / "windows-and-macos.md").read_text(encoding="utf-8")
STATED = int(re.search(r"longest relative path of the\s+golden projects has (\d+) characters", PAGE)[1])
"""The figure of the page."""


def longest(app):
    """Return the longest relative path of an application."""
    paths = [path.relative_to(app).as_posix() for path in app.rglob("*") if path.is_file()]
    return max(paths, key=len)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The longest path of each golden project."""
    return {name: longest(generate_project(name, tmp_path_factory.mktemp(name))) for name in PROJECTS}


def test_no_path_is_longer_than_the_page_states(found):
    assert {name: path for name, path in found.items() if len(path) > STATED} == {}


def test_the_page_states_the_longest_one(found):
    path = max(found.values(), key=len)
    assert len(path) == STATED, path
    model = path.split("/")[1]
    extra = int(re.search(r"(\d+) characters and the name of the model", PAGE)[1])
    assert len(path) == extra + len(model)
    assert re.fullmatch(r"models/\w+/constants/opwest_program_[0-9a-f]{32}\.bin", path)
