# SPDX-License-Identifier: Apache-2.0
"""An unpacked main and TVM's own main in one image: a sample of `make unpacked-models`."""

import sys
from pathlib import Path

from cover import configured
from opwest.importers.mlf import Options
from requirements_support import need

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "importers"))
import mlf_mains as mains
from unpacked_support import Real, compared_in_qemu


@configured(board="mps2/an385")
def test_unpacked_main_in_qemu(workspace, tmp_path):
    """The buffers of the image are filled with other bytes before every run."""
    need("arm-none-eabi-gcc", "qemu-system-arm")
    for name, content in mains.usmp().items():
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    result = compared_in_qemu(Real(tmp_path / "lib", Options("mine")), tmp_path, 10)
    assert result.words() == "10 of 10 identical; 3 steps, 2 tensors; 512 bytes in TVM's plan, 416 bytes in opwest's"
