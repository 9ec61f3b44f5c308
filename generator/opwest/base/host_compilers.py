# SPDX-License-Identifier: Apache-2.0
"""The compilers of this machine that opwest selects: $CC and $CXX, else the first that is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from opwest.base import commands

C = ("cc", "gcc", "clang")


CPP = ("c++", "g++", "clang++")


def compiler_words(variable: str, defaults: Sequence[str]) -> list[str]:
    """Return the command in `variable`, else the first default that is installed, else the first one.

    Raises ValueError for unbalanced quotes.
    """
    default = next((name for name in defaults if shutil.which(name)), defaults[0])
    return commands.split(os.environ.get(variable, default))
