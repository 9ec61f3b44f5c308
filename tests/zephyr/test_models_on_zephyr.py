# SPDX-License-Identifier: Apache-2.0
"""Builds besides digits: targets, devices, several models, the shell, updates."""

import shutil

import pytest
from cover import configured
from cpp_project import write_models
from requirements_support import need
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr
BOARD = "native_sim/native/64"

SCALE_C = """
#include <stdint.h>
#include <math.h>
static float by(float x, float factor) { return fmaf(x, factor, 0.0f); }
int32_t scale(const float *data, float factor, float *result)
{
	for (int i = 0; i < 4; i++) { result[i] = by(data[i], factor); }
	return 0;
}
"""

TWICE = """
version: 1
model: {name}
objects: [{{files: [{source}]}}]
operators:
  scale:
    args:
      - {{name: data, dtype: float32, shape: [4]}}
      - {{name: factor, dtype: float32, scalar: true}}
      - {{name: result, dtype: float32, shape: [4], direction: out}}
run:
  inputs: {{x: {{dtype: float32, shape: [4]}}}}
  outputs: {{y: {{dtype: float32, shape: [4]}}}}
  steps:
    - {{call: scale, args: [x, {factor}, middle]}}
    - {{call: scale, args: [middle, 2, y]}}
"""

ON_DEVICE = """
version: 1
model: on_device
objects: [{files: [named.c]}]
devices:
  port: {devicetree: {nodelabel: NODE}, driver: none}
operators:
  named:
    device: {}
    args: [{name: letter, dtype: uint8, shape: [1], direction: out}]
run:
  inputs: {}
  outputs: {letter: {dtype: uint8, shape: [1]}}
  steps: [{call: named, device: port, args: [letter]}]
"""

NAMED_C = """
#include <stdint.h>
#include <zephyr/device.h>
int32_t named(uint8_t *letter, const struct device *dev)
{
	letter[0] = (uint8_t)dev->name[0];
	return 0;
}
"""

MAIN_C = """
#include <stdio.h>
#include <string.h>
#include <zephyr/shell/shell.h>
#include <zephyr/shell/shell_dummy.h>
#include <first.h>
#include <first_devicetree.h>
#include <second.h>
#include <second_devicetree.h>
#include <on_device.h>
#include <on_device_devicetree.h>

FIRST_WORKSPACE_DEFINE(first_workspace);
SECOND_WORKSPACE_DEFINE(second_workspace);
ON_DEVICE_WORKSPACE_DEFINE(third_workspace);
static const struct first_devices first_context = FIRST_DEVICES_DT_INIT;
static const struct second_devices second_context = SECOND_DEVICES_DT_INIT;
static const struct on_device_devices third_context = ON_DEVICE_DEVICES_DT_INIT;

int main(void)
{
	static const float x[4] = {1, 2, 3, 4};
	float a[4], b[4];
	int rc = first_open(&first_workspace, &first_context) | second_open(&second_workspace, &second_context);

	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = first_run(&(struct first_inputs){x}, &(struct first_outputs){a}, &first_workspace, &first_context);
		rc |= second_run(&(struct second_inputs){x}, &(struct second_outputs){b}, &second_workspace, &second_context);
	}
	printf("a %d %d b %d %d\\n", (int)a[0], (int)a[3], (int)b[0], (int)b[3]);

	rc |= on_device_open(&third_workspace, &third_context);
	rc |= on_device_run(&(struct on_device_inputs){0}, &(struct on_device_outputs){0}, &third_workspace,
			    &third_context);
	printf("letter %c\\n", third_workspace.output.letter[0]);

	const struct shell *sh = shell_backend_dummy_get_ptr();
	size_t size;

	while (!shell_ready(sh)) {
		k_msleep(10);
	}
	shell_backend_dummy_clear_output(sh);
	shell_execute_cmd(sh, "opwest models");
	shell_execute_cmd(sh, "opwest operators second");
	shell_execute_cmd(sh, "opwest operators third");
	printf("%s\\n", shell_backend_dummy_get_output(sh, &size));
	printf("end %d\\n", rc);
	return 0;
}
"""

SHELL_CONF = """CONFIG_SHELL=y
CONFIG_SHELL_BACKEND_DUMMY=y
CONFIG_SHELL_BACKEND_SERIAL=n
CONFIG_OPWEST_SHELL=y
CONFIG_SHELL_BACKEND_DUMMY_BUF_SIZE=2000
CONFIG_SERIAL=y
"""


@configured(board=BOARD)
def test_three_models_with_the_shell_and_the_runtime_of_the_workspace(workspace, opwest, tmp_path):
    """Two models define the same symbols; one of them needs an option. An operator of the third one has a device."""
    app = tmp_path / "app"
    (tmp_path / "one.c").write_text(SCALE_C)
    (tmp_path / "two.c").write_text(SCALE_C)
    external = "externals: [{symbol: crc8, from: Zephyr's CRC library, kconfig: CONFIG_CRC}]\n"
    (tmp_path / "first.yaml").write_text(TWICE.format(name="first", source="one.c", factor=10) + external)
    (tmp_path / "second.yaml").write_text(TWICE.format(name="second", source="two.c", factor=100))
    manifests = [tmp_path / "first.yaml", tmp_path / "second.yaml", device_manifest(tmp_path, "uart0")]
    opwest("generate", *manifests, "-o", app, "--runtime=module")
    assert not (app / "modules").exists()
    (app / "src" / "main.c").write_text(MAIN_C)
    assert "CONFIG_CRC=y" in (app / "prj.conf").read_text()
    with (app / "prj.conf").open("a") as file:
        file.write(SHELL_CONF)
    assert "depends on: ['opwest']" in workspace.refused(app, BOARD)
    module = f"-DEXTRA_ZEPHYR_MODULES={ROOT}"
    console = workspace.build(app, BOARD, module).run("^end ")
    for line in (
        *("a 20 80 b 200 800", "letter u", "first: 1 operators, 2 steps", "second: 1 operators, 2 steps"),
        *("float32 [4], 16 bytes", "unknown model 'third'", "end 0"),
    ):
        assert line in console
    log = workspace.refused(app, BOARD, module, "-DCONFIG_CRC=n")
    assert "model first needs crc8 from Zephyr's CRC library: set CONFIG_CRC=y" in log


def device_manifest(folder, node):
    """Write the model whose operator has a device; return its manifest."""
    (folder / "named.c").write_text(NAMED_C)
    (folder / "manifest.yaml").write_text(ON_DEVICE.replace("NODE", node))
    return folder / "manifest.yaml"


@configured(board=BOARD)
def test_missing_devices_are_build_errors_that_name_the_manifest(workspace, opwest, tmp_path):
    """The board has no such node, then no driver for it: the second error is found at the link."""
    app = tmp_path / "app"
    opwest("generate", device_manifest(tmp_path, "npu7"), "-o", app)
    code, built = workspace.try_build(app, BOARD, target="app")
    assert code != 0
    assert "manifest.yaml:6: device port: the board has no enabled devicetree node with nodelabel npu7" in built.log
    opwest("generate", device_manifest(tmp_path, "uart0"), "-o", app)
    code, log = built.again()
    assert code != 0
    assert "manifest.yaml:6: device port: no driver is built for nodelabel uart0: set its option in prj.conf" in log
    assert "undefined reference" not in log


@configured(board="mps3/corstone300/an547")
def test_no_target_matches(workspace, digits):
    log = workspace.refused(digits, "mps3/corstone300/an547")
    assert "model digits has objects for no target that this build (mps3/corstone300/an547) matches" in log
    assert "cortex-m3: CONFIG_CPU_CORTEX_M3=n (needs y)" in log
    assert "CONFIG_ARCH_POSIX=n (needs y)" in log


@configured(board=BOARD)
def test_two_targets_match(workspace, opwest, digits, tmp_path):
    example = shutil.copytree(digits.parent / "example", tmp_path / "example")
    text = (example / "manifest.yaml").read_text()
    own = "targets:\n  mine: {machine: x86-64, bits: 64, kconfig: {CONFIG_64BIT: y}}\nobjects:\n"
    text = text.replace("objects:\n", own + "  - {target: mine, files: [objects/x86-64/operators.o]}\n", 1)
    (example / "manifest.yaml").write_text(text)
    opwest("generate", example / "manifest.yaml", "-o", tmp_path / "app")
    log = workspace.refused(tmp_path / "app", BOARD)
    assert "2 targets that this build (native_sim/native/64) matches: mine and x86-64" in log


@configured(board=BOARD)
def test_open_journal_is_rejected(workspace, digits, tmp_path):
    app = shutil.copytree(digits, tmp_path / "app")
    (app / ".opwest" / "journal.json").write_text("{}")
    assert "run `opwest generate` again" in workspace.refused(app, BOARD)


@configured(board=BOARD)
def test_updated_project_is_built_again(workspace, opwest, tmp_path):
    """The model has another name, and main.c a change of the user. test_update_crash.py kills updates."""
    app, manifest = tmp_path / "app", tmp_path / "manifest.yaml"
    (tmp_path / "one.c").write_text(SCALE_C)
    manifest.write_text(TWICE.format(name="first", source="one.c", factor=10))
    opwest("generate", manifest, "-o", app)
    with (app / "src" / "main.c").open("a") as main:
        main.write("\n/* mine */\n")
    built = workspace.build(app, BOARD)
    assert "first: run returned 0" in built.run(r"run returned -?[0-9]+\s")
    manifest.write_text(TWICE.format(name="second", source="one.c", factor=10))
    opwest("update", app)
    built.rebuilt()
    assert "second: run returned 0" in built.run(r"run returned -?[0-9]+\s")
    assert (app / "src" / "main.c").read_text().endswith("/* mine */\n")


@configured("board", ["mps2/an385", BOARD])
def test_operators_and_an_application_in_cpp(workspace, opwest, tmp_path, board):
    """Two models in one image."""
    if board == "mps2/an385":
        need("arm-none-eabi-g++", "qemu-system-arm")
    opwest("generate", *write_models(tmp_path), "-o", tmp_path / "app")
    built = workspace.build(tmp_path / "app", board)
    assert {"CONFIG_CPP=y", "CONFIG_MINIMAL_LIBCPP=y"} <= set(built.options)
    assert "times_two: -2 4 -6 8\ntimes_five: -5 10 -15 20\n" in built.run("times_five: .*\n")
