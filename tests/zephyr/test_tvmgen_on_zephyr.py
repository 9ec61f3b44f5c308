# SPDX-License-Identifier: Apache-2.0
"""Applications of microTVM's C interface, unchanged, with `west build`; operators and mains that TVM builds.

OPWEST_MICROTVM names a directory with such an application of a public project: `main.c`, the model in Model Library
Format (`*.tar`), and optionally further sources and headers. OPWEST_MICROTVM_BOARD is the board (default: mps2/an385),
OPWEST_MICROTVM_CONSOLE a regular expression for the console output that ends the run.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from cover import configured
from opwest.frontends.mlf import Options
from requirements_support import need, need_x86_64, skip_here
from sequence_support import Subject, main_of
from zephyr_support import ROOT

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "importers"))
import interface_project
import mlf_made as made
import mlf_mains as mains
import stock_project as stock
from unpacked_support import Real, compared_in_qemu

pytestmark = pytest.mark.zephyr
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".inc", ".S")

_DEVICES = """\
#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/sys/printk.h>
#include <string.h>

#include "tvmgen_digits.h"
#include "held_out.h"

int main(void)
{
	int8_t image[TVMGEN_DIGITS_IMAGE_SIZE];
	int32_t label = -1;
	struct tvmgen_digits_inputs inputs = {.image = image};
	struct tvmgen_digits_outputs outputs = {.label = &label};
	struct tvmgen_digits_devices devices = {0};
	int32_t status;

	for (size_t i = 0; i < sizeof(image); i++) {
		image[i] = (int8_t)(@text@[i] - 'a');
	}
	devices.npu0 = (void *)DEVICE_DT_GET(DT_NODELABEL(gpio0));
	printk("wrong class: %d\\n", tvmgen_digits_run(&inputs, &outputs, &devices));
	devices.npu0 = (void *)DEVICE_DT_GET(DT_NODELABEL(npu0));
	devices.npu1 = NULL;
	for (int i = 0; i < 3; i++) {
		label = -1;
		status = tvmgen_digits_run(&inputs, &outputs, i == 2 ? NULL : &devices);
		printk("run: %d label: %d\\n", status, label);
	}
	printk("close: %d\\n", tvmgen_digits_close());
	return 0;
}
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory, opwest):
    """An import with an application in C and C++."""
    folder = tmp_path_factory.mktemp("interface")
    files = {name: content.replace(b"#include <math.h>\n", b"") for name, content in made.usmp().items()}
    (folder / "net.tar").write_bytes(made.tar_of(files))
    opwest("import", "mlf", folder / "net.tar", "-o", folder / "net", "--compat", "tvmgen")
    opwest("generate", interface_project.add_application(folder / "net"), "-o", folder / "app")
    return folder / "app"


@configured("board", ["mps2/an385", "native_sim/native/64"])
def test_application_in_the_style_of_microtvm(workspace, app, board):
    if board == "mps2/an385":
        need("arm-none-eabi-g++", "qemu-system-arm")
    console = workspace.build(app, board).run("^workspace: .*\n|^TVMPlatformAbort")
    expected = made.reference(np.array([interface_project.INPUT], np.float32))[0]
    assert interface_project.lines(tuple(expected)) in console


@configured(board="native_sim/native/64")
def test_accelerators(workspace, opwest, tmp_path):
    shutil.copytree(ROOT / "examples" / "two_npus", tmp_path / "two_npus")
    manifest = tmp_path / "two_npus/manifest.yaml"
    text = manifest.read_text()
    text = text.replace("\nmodel: two_npus\n", "\nmodel: two_npus\ncompat: {tvmgen: {module: digits}}\n")
    text = re.sub(r"  console:\n(    - .*\n)+", "  kconfig: {CONFIG_GPIO: y}\n", text)
    manifest.write_text(text)
    held_out = (tmp_path / "two_npus/application/held_out.h").read_text()
    row = re.search(r'^\t\{("[a-q]{64}"), (\d+), (\d+)', held_out, re.MULTILINE)
    assert row, held_out[:1000]
    main = _DEVICES.replace("@text@", row[1]).replace('#include "held_out.h"\n', "")
    (tmp_path / "two_npus/application/main.c").write_text(main)
    opwest("generate", manifest, "-o", tmp_path / "app")
    console = workspace.build(tmp_path / "app", "native_sim/native/64").run("^close: .*\n")
    assert re.search(r"^wrong class: -\d+$", console, re.MULTILINE), console
    found = re.findall(r"^run: 0 label: (\d+)$", console, re.MULTILINE)
    assert len(found) == 3 and set(found) == {row[3]}, console
    assert "close: 0\n" in console


def test_application_of_a_public_project(workspace, opwest, tmp_path):
    given, until = os.environ.get("OPWEST_MICROTVM"), os.environ.get("OPWEST_MICROTVM_CONSOLE")
    if not given or not until:
        skip_here("OPWEST_MICROTVM and OPWEST_MICROTVM_CONSOLE name no microTVM application")
    folder = Path(given)
    (tar,) = folder.glob("*.tar")
    board = os.environ.get("OPWEST_MICROTVM_BOARD", "mps2/an385")
    opwest("import", "mlf", tar, "-o", tmp_path / "net", "--compat", "tvmgen")
    files = sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)
    for path in files:
        place = tmp_path / "net/application" / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    manifest = tmp_path / "net/manifest.yaml"
    names = ", ".join(f"application/{path.relative_to(folder)}" for path in files)
    head, mark, tail = manifest.read_text().partition("\napplication:\n")
    manifest.write_text(f"{head}{mark or chr(10) + 'application:' + chr(10)}  sources: [{names}]\n{tail}")
    opwest("generate", manifest, "-o", tmp_path / "app")
    for path in folder.glob("*.c"):
        assert (tmp_path / "app/src" / path.name).read_bytes() == path.read_bytes()
    built = workspace.build(tmp_path / "app", board)
    console = built.run(until)
    print(console)


# --- An unpacked main and TVM's own main in one image: a sample of `make unpacked-models`


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


# --- Operators that TVM builds by default, C and LLVM, with and without assertions, and a plain one


@configured(board="native_sim/native/64", convention=("packed", "ffi", "unpacked"))
def test_every_variant_of_stock_operators_in_one_image(workspace, opwest, tmp_path):
    need("cc", "tvm")
    need_x86_64()
    opwest("generate", stock.write_project(tmp_path / "stock"), "-o", tmp_path / "app")
    given = stock.inputs(1)
    sums, halves = stock.expected(*given)
    count = len(stock.VARIANTS)
    model = Subject("stock", None, [given] * 3, [[sums] * count + [halves] * count] * 3, align=64)
    (tmp_path / "app" / "src" / "main.c").write_text(main_of([model]))
    console = workspace.build(tmp_path / "app", "native_sim/native/64").run("^finished: ")
    for results in model.parsed(console):
        np.testing.assert_array_equal(results[:count], [sums] * count)
        np.testing.assert_allclose(results[count:], [halves] * count, rtol=0, atol=2e-4)
