# SPDX-License-Identifier: Apache-2.0
"""Boards with TF-M (`…/ns`): the application is the non-secure image, and TF-M, which the build compiles, starts it."""

import os
from pathlib import Path

import pytest
from cover import configured
from digits_support import of_sources
from requirements_support import skip_here

pytestmark = [pytest.mark.zephyr, pytest.mark.needs("arm-none-eabi-gcc", "qemu-system-arm")]
VARIABLE = "OPWEST_TFM_MODULES"
PLACES = ("modules/tee/tf-m/trusted-firmware-m", "modules/crypto/mbedtls")


def modules(workspace):
    """Return the option that adds the modules to a build; skips the test without them."""
    given = os.environ.get(VARIABLE, "").split(os.pathsep)
    folders = [Path(folder) for folder in given if folder] or [workspace.base.parent / place for place in PLACES]
    missing = [str(folder) for folder in folders if not (folder / "zephyr" / "module.yml").is_file()]
    if missing:
        skip_here(f"TF-M TESTS SKIPPED: no {', '.join(missing)}, and {VARIABLE} is not set to directories of both")
    return f"-DEXTRA_ZEPHYR_MODULES={';'.join(map(str, folders))}"


@configured(board="mps2/an521/cpu0/ns")
def test_digits(workspace, opwest, tmp_path):
    """Without MCUboot, which needs a module and more Python packages."""
    option = modules(workspace)
    board = "mps2/an521/cpu0/ns"
    given = ["--board", board, "--zephyr-base", workspace.base]
    opwest("generate", of_sources(tmp_path / "example"), "-o", tmp_path / "app", *given)
    built = workspace.build(tmp_path / "app", board, option, "-DCONFIG_TFM_BL2=n")
    assert {"CONFIG_TRUSTED_EXECUTION_NONSECURE=y", "CONFIG_BUILD_WITH_TFM=y"} <= set(built.options)
    console = built.run(r"^accuracy: .*$")
    assert "Booting TF-M" in console
    assert "predictions: 360 of 360 equal the reference" in console
