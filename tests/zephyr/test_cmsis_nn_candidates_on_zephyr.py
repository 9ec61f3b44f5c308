# SPDX-License-Identifier: Apache-2.0
"""A model with CMSIS-NN chosen for one layer on some processors: golden vectors, and images without CMSIS-NN."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cmsis_nn_support import cmsis_nn_directory, cmsis_nn_modules, planted_table
from cover import configured
from opwest.objects.elf import parse_elf
from requirements_support import need, skip_here
from zephyr_support import Workspace

need("tflite")

from models.test_max_ram import convolutions  # noqa: E402

pytestmark = pytest.mark.zephyr
Opwest = Callable[..., subprocess.CompletedProcess[str]]

BOARDS = {"mps2/an385": ("mla", []), "mps3/corstone300/an547": ("mve", ["-DCONFIG_FPU=y"])}
"""By board: the variant of the model, and options; GCC has MVE only with the registers of the FPU."""


@pytest.fixture(scope="module")
def app(opwest: Opwest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the application of a model whose second layer calls CMSIS-NN on an M3 and an M55."""
    folder = tmp_path_factory.mktemp("candidates")
    file = folder / "m.tflite"
    file.write_bytes(convolutions())
    table = planted_table(file, 1, ["cortex-m3", "cortex-m55"], folder / "planted.yaml")
    words = ["--vectors", 3, "--with", "cmsis-nn", "--tuning", table]
    opwest("import", "tflite", file, "-o", folder / "model", *words)
    opwest("generate", folder / "model" / "manifest.yaml", "-o", folder / "app")
    return folder / "app"


def names_of(image: Path) -> set[str]:
    """Return the symbols of an image."""
    elf = parse_elf(image.read_bytes())
    table = elf.symbol_table()
    assert table is not None
    strings = elf.strings_of(table)
    return {strings.name(symbol.name) for symbol in elf.raw_symbols(table)}


@configured("board", BOARDS)
def test_golden_vectors_with_cmsis_nn(workspace: Workspace, app: Path, board: str, tmp_path: Path) -> None:
    cmsis_nn_directory()
    try:
        modules = cmsis_nn_modules(workspace.base, tmp_path)
    except FileNotFoundError as reason:
        skip_here(str(reason))
    variant, options = BOARDS[board]
    built = workspace.build(app / "tests" / "m", board, *options, *modules)
    assert f"opwest: model m: variant {variant}\n" in built.log
    names = names_of(built.folder / "zephyr" / "zephyr.elf")
    assert "arm_convolve_wrapper_s8" in names
    # The linker drops the functions that no operator calls.
    assert not any(name.startswith(("arm_depthwise_conv_wrapper", "arm_avgpool")) for name in names)
    assert "SUITE PASS" in built.run("SUITE (PASS|FAIL)")


@configured(board="mps2/an386")
def test_other_images_need_no_cmsis_nn(workspace: Workspace, app: Path) -> None:
    """On an M4 the same model calls no function of CMSIS-NN: the module is not among those of the build."""
    found = workspace.base.parent / "modules"
    rest = [one for one in (found / "hal/cmsis", found / "hal/cmsis_6") if one.is_dir()]
    if not rest:
        skip_here(f"neither module cmsis nor cmsis_6 in {found}")
    built = workspace.build(app / "tests" / "m", "mps2/an386", f"-DZEPHYR_MODULES={';'.join(map(str, rest))}")
    assert "opwest: model m: variant dsp\n" in built.log
    assert "CONFIG_CMSIS_NN" not in (built.folder / "zephyr" / ".config").read_text()
    assert not any("convolve" in name for name in names_of(built.folder / "zephyr" / "zephyr.elf"))
    assert "SUITE PASS" in built.run("SUITE (PASS|FAIL)")


@configured(board="mps2/an386")
def test_a_missing_module_is_reported(workspace: Workspace, app: Path) -> None:
    found = workspace.base.parent / "modules"
    rest = [one for one in (found / "hal/cmsis", found / "hal/cmsis_6") if one.is_dir()]
    if not rest:
        skip_here(f"neither module cmsis nor cmsis_6 in {found}")
    status, built = workspace.try_build(app, "mps2/an385", f"-DZEPHYR_MODULES={';'.join(map(str, rest))}")
    assert status != 0
    words = " ".join(built.log.split())
    assert "model m needs arm_convolve_wrapper_s8 from CMSIS-NN, Zephyr's module modules/lib/cmsis-nn" in words
    assert "CONFIG_CMSIS_NN=y" in words
