# SPDX-License-Identifier: Apache-2.0
"""`--metadata=llvm` of a model with variants: each target has its object in one directory."""

import sys
from pathlib import Path

import pytest
from opwest.cli.main import main
from requirements_support import need

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from golden_support import copy_project


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    need("llvmlite")
    (path,) = copy_project("variants", tmp_path / "source")
    return path


def test_a_variant_has_its_targets_and_the_base_the_others(manifest: Path, tmp_path: Path) -> None:
    assert main(["generate", str(manifest), "-o", str(tmp_path / "app"), "--metadata=llvm"]) == 0
    model = tmp_path / "app/models/adder"
    found = [path.relative_to(model).as_posix() for path in model.rglob("adder_metadata.o")]
    assert sorted(found) == sorted(
        f"{folder}objects/{target}/adder_metadata.o"
        for folder, targets in (
            ("", ("x86-64", "aarch64-host", "cortex-m55", "cortex-m55f")),
            ("variants/mla/", ("cortex-m3",)),
            ("variants/dsp/", ("cortex-m4", "cortex-m4f", "cortex-m4f-softfp")),
            ("variants/dsp/", ("cortex-m7", "cortex-m7f", "cortex-m7f-double")),
            ("variants/mve/", ("cortex-m55f-mvei", "cortex-m55f-mve")),
        )
        for target in targets
    )


def test_a_base_without_a_target(manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["generate", str(manifest), "-o", str(tmp_path / "app"), "--metadata=llvm", "--target", "cortex-m4"]
    assert main(command) == 1
    assert "--metadata=llvm: no target for the base of model 'adder'" in capsys.readouterr().err
