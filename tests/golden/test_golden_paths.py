# SPDX-License-Identifier: Apache-2.0
"""The lengths of the paths that opwest emits: Windows limits paths to 260 characters (PAGE)."""

import re

from golden_support import GOLDEN, PROJECTS

PAGE = (GOLDEN.parents[1] / "docs" / "contributing" / "windows-and-macos.md").read_text(encoding="utf-8")
STATED = int(re.search(r"longest relative path of the\s+golden projects has (\d+) characters", PAGE)[1])
"""The figure of the page."""


def test_the_page_states_the_longest_path(emission):
    path = max((path for name in PROJECTS for path in emission(name).files), key=len)
    assert len(path) == STATED, path
    model = path.split("/")[1]
    extra = int(re.search(r"(\d+) characters and the name of the model", PAGE)[1])
    assert len(path) == extra + len(model)
    assert re.fullmatch(r"models/\w+/constants/opwest_program_[0-9a-f]{32}\.bin", path)
