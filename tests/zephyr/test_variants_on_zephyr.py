# SPDX-License-Identifier: Apache-2.0
"""Variants: each board builds its own, in an application, its tests and with `opwest_add_model()`."""

import re
import shutil
import sys

import pytest
from cover import configured
from image_sizes import check_sizes, check_symbols, prefix_of, reported
from zephyr_support import ROOT

sys.path.insert(0, str(ROOT / "tests" / "golden"))

from golden_support import copy_project

pytestmark = pytest.mark.zephyr

BOARDS = {
    "native_sim/native/64": ("base", 0, {"add", "weights"}, []),
    "mps2/an385": ("mla", 1000, {"add", "weights"}, []),
    "mps2/an386": ("dsp", 2000, {"widen", "add_packed", "packed"}, []),
    "mps3/corstone300/an547": ("mve", 3000, {"add", "weights"}, ["-DCONFIG_FPU=y"]),
}
POOLS = {"base": {}, "mla": {}, "dsp": {"fast": 96}, "mve": {"sram": 256}}
"""The size of the pool of each variant."""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    (manifest,) = copy_project("variants", tmp_path_factory.mktemp("variants") / "source")
    return manifest


@pytest.fixture(scope="module")
def app(source, opwest):
    folder = source.parents[1] / "app"
    opwest("generate", source, "-o", folder)
    return folder


@configured("board", reversed(BOARDS))
def test_an_image_has_its_variant_only(workspace, app, board):
    """Its report describes this variant, with the sizes of nm and of the map file."""
    variant, number, own, options = BOARDS[board]
    built = workspace.build(app, board, *options)
    expected = "the base, without a variant" if variant == "base" else f"variant {variant}"
    assert f"opwest: model adder: {expected}\n" in built.log
    found = {name for name in built.symbols if re.match("adder_(_|constant_)", name)}
    assert found <= {f"adder_{kind}{name}" for kind in ("_", "constant_") for name in own}
    pools = {name: size for name, (_, size) in built.symbols.items() if name.startswith("adder_workspace_")}
    assert pools == {f"adder_workspace_{name}": size for name, size in POOLS[variant].items()}
    y = " ".join(str(number + i) for i in range(4))
    assert f"adder: y: {y}" in built.run("adder: run returned 0")
    model = reported(app, built.folder)
    assert model["variant"] == (None if variant == "base" else variant)
    check_sizes(model, built.elf, prefix_of(board))


@configured("board", ["mps2/an386", "mps3/corstone300/an547"])
def test_suite_of_a_variant(workspace, app, board):
    built = workspace.build(app / "tests" / "adder", board, *BOARDS[board][3])
    assert "SUITE PASS" in built.run("SUITE (PASS|FAIL)")


@configured(board="mps2/an386")
@pytest.mark.usefixtures("packages")
def test_model_of_a_module(workspace, source, app):
    folder = source.parents[1] / "module"
    shutil.copytree(source.parent, folder / "adder")
    (folder / "src").mkdir()
    shutil.copy(app / "src" / "main.c", folder / "src")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20.0)\nfind_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\n"
        "project(module)\ntarget_sources(app PRIVATE src/main.c)\n"
        "opwest_add_model(adder MANIFEST adder/manifest.yaml)\ntarget_link_libraries(app PRIVATE adder)\n"
    )
    (folder / "prj.conf").write_text("CONFIG_OPWEST=y\nCONFIG_CRC=y\n")
    built = workspace.build(folder, "mps2/an386", f"-DEXTRA_ZEPHYR_MODULES={ROOT}")
    assert "adder: y: 2000 2001 2002 2003" in built.run("adder: run returned 0")
    model = reported(source, built.folder)  # the objects are those of the application
    check_symbols(model, built.elf, prefix_of("mps2/an386"))
    files = {item["object"] for item in model["images"][0]["items"]}
    assert {"dsp.c", "constants.S", "adder_run.c", "status.c"} <= files and "main.c" not in files


@configured(board="mps2/an386")
def test_a_missing_option_of_a_variant(workspace, app):
    log = workspace.refused(app, "mps2/an386", "-DCONFIG_CRC=n")
    assert "model adder needs crc32_ieee from Zephyr: set CONFIG_CRC=y in prj.conf" in log
