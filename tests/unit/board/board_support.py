# SPDX-License-Identifier: Apache-2.0
"""Errors of the clients of boards, and numbers of the runtime's files."""

import re
from pathlib import Path

import pytest
from opwest.runs.link import LinkError
from opwest.runs.progress import StageProgress

RUNTIME = Path(__file__).resolve().parents[3] / "zephyr_module"
QUIET = StageProgress(None)


def failure(call, *arguments, kind=LinkError, **options):
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    return caught.value


def numbers(file, pattern):
    """Return the numbers of a file of the runtime by name: the groups of the pattern."""
    text = (RUNTIME / file).read_text(encoding="utf-8")
    return {name: int(number) for name, number in re.findall(pattern, text)}
