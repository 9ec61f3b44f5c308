# SPDX-License-Identifier: Apache-2.0
"""The size of a campaign: a sample in ordinary runs, the whole with `make campaign`."""

import os
from typing import TypeVar

_Size = TypeVar("_Size")


def sized(sample: _Size, whole: _Size) -> _Size:
    """Return the size of this run; OPWEST_CAMPAIGN=1 chooses the whole campaign."""
    return whole if os.environ.get("OPWEST_CAMPAIGN") else sample


SANITIZED_LEVEL = sized("-O0", "-O1")
"""The optimisation of programs with sanitizers: -O1 takes two to four times as long to compile. Other tests compile the
same sources with -O1 and -O2, for the warnings that only these have."""
