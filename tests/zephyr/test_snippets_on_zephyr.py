# SPDX-License-Identifier: Apache-2.0
"""What a workspace with the module adds to images: nothing by itself, a service with `-S opwest-service`."""

import re
import sys

import pytest
from cover import configured
from opwest.runs.connection import RunningImage
from opwest.runs.places import Serial
from opwest.runs.shell import ShellLink
from opwest.runs.smp import SmpLink
from zephyr_support import ROOT, need_smp

pytestmark = pytest.mark.zephyr
NATIVE, AN386 = "native_sim/native/64", "mps2/an386"
MODULE = f"-DEXTRA_ZEPHYR_MODULES={ROOT}"


OPERATOR = """#include <stdint.h>
int32_t add(const int32_t *x, int32_t *y);
int32_t add(const int32_t *x, int32_t *y)
{
	*y = *x + 7;
	return 0;
}
"""
MANIFEST = """version: 1
model: adder
objects: [{files: [add.c]}]
operators:
  add: {args: [{name: x, dtype: int32, shape: [1]}, {name: y, dtype: int32, shape: [1], direction: out}]}
run:
  inputs: {x: {dtype: int32, shape: [1]}}
  outputs: {y: {dtype: int32, shape: [1]}}
  steps: [{call: add, args: [x, y]}]
"""


@pytest.fixture
def manifest(tmp_path):
    (tmp_path / "add.c").write_text(OPERATOR)
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    return tmp_path / "manifest.yaml"


def code_of(built):
    """Return the sections of an image that a board loads, or the host."""
    image = built.folder / "zephyr" / "zephyr.bin"
    return image.read_bytes() if image.exists() else built.elf.stat().st_size


@configured(board=AN386)
def test_the_module_alone_adds_no_byte(workspace):
    """An absent module, one that nothing uses, and one with CONFIG_OPWEST=n give equal images."""
    sample = workspace.base / "samples" / "hello_world"
    images = [workspace.build(sample, AN386, *options) for options in ((), (MODULE,), (MODULE, "-DCONFIG_OPWEST=n"))]
    without, unused, off = map(code_of, images)
    assert without == unused == off
    assert isinstance(without, bytes) and len(without) > 1000
    # An absolute symbol of Zephyr's configs.c for each module, without bytes.
    names = {name for image in images for name in image.symbols if "opwest" in name.lower()}
    assert names <= {"CONFIG_ZEPHYR_OPWEST_MODULE"}


@configured("board, runtime", [(NATIVE, "vendored"), (AN386, "module"), ("qemu_cortex_m3", "vendored")])
def test_snippet_adds_the_service_to_an_application_without_it(workspace, opwest, manifest, board, runtime, tmp_path):
    """With a copy of the runtime, the installed opwest writes what the application does not contain."""
    if board != NATIVE:
        need_smp(workspace)
    opwest("generate", manifest, "--runtime", runtime, "-o", tmp_path / "app")
    written = [path.name for path in (tmp_path / "app").rglob("*_service.c")]
    assert written == (["adder_service.c"] if runtime == "module" else [])
    options = ["-DSNIPPET=opwest-service", f"-DOPWEST_PYTHON={sys.executable}", "-DQEMU_PTY=ON"]
    built = workspace.build(tmp_path / "app", board, *options, *([MODULE] if runtime == "module" else []))
    assert "CONFIG_OPWEST_SERVICE=y" in built.options
    assert not re.search(r"was assigned the value", built.log), "every value of the snippet has an effect"
    command = [str(built.folder / "zephyr" / "zephyr.exe")]
    if board == AN386:
        command = ["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "pty"]
        command += ["-kernel", str(built.elf)]
    elif board != NATIVE:
        command = [workspace.west, "build", "-d", str(built.folder), "-t", "run"]
    with RunningImage(command, workspace.base.parent, built.env) as image:
        device = image.device(60)
        link = ShellLink(device, 20) if board == NATIVE else SmpLink(Serial(device), 20)
        try:
            assert [model.name for model in link.describe()] == ["adder"]
        finally:
            link.disconnect()


@configured(board=NATIVE)
def test_errors_of_builds_without_what_the_service_needs(workspace, opwest, manifest, tmp_path):
    """A copy of the runtime and no installed opwest; a model that is off."""
    opwest("generate", manifest, "-o", tmp_path / "app")
    none = "-DOPWEST_PYTHON=/nowhere/python"
    log = workspace.refused(tmp_path / "app", NATIVE, "-DSNIPPET=opwest-service", none, target="")
    assert "this copy of the runtime has no src/" in log and "give the Python that has it (-DOPWEST_PYTHON=)" in log
    log = workspace.refused(tmp_path / "app", NATIVE, "-DCONFIG_OPWEST_MODEL_ADDER=n", target="app")
    assert "adder.h: No such file or directory" in log
