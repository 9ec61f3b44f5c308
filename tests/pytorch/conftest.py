# SPDX-License-Identifier: Apache-2.0
"""No test of this directory imports PyTorch or opens a pickle."""

import pytest
from pytorch.pytorch_support import closed


@pytest.fixture(autouse=True)
def without_torch_and_pickle():
    with closed():
        yield
