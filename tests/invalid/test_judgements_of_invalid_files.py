# SPDX-License-Identifier: Apache-2.0
"""`opwest inspect` and `opwest check` have the same judgement on every file of the invalid manifests."""

import pytest
from judgements import compare_judgements
from workshop import FILE_NAMES, Workshop

JUDGED = [name for name in FILE_NAMES if name.endswith((".o", ".a", ".so", ".c"))]


@pytest.mark.parametrize("name", JUDGED)
def test_one_judgement(workshop: Workshop, name: str) -> None:
    path = workshop.make(name)
    if not path.exists():
        assert path.is_symlink()  # a loop, or a link to nothing: check reports an invalid path
        return
    compare_judgements(path)
