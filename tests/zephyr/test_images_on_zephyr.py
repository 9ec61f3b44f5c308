# SPDX-License-Identifier: Apache-2.0
"""What images contain: notes for `opwest inspect`, the list of models, optional metadata, calls on devices by name."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cover import configured
from requirements_support import need
from zephyr_support import ROOT, Workspace, again

pytestmark = pytest.mark.zephyr
BOARD = "native_sim/native/64"
ARM_BOARD = "mps2/an385"
SMALL = "-DCONFIG_MINIMAL_LIBC=y"
RUNTIME = f"-DOPWEST_RUNTIME={ROOT / 'zephyr_module'}"
Opwest = Callable[..., subprocess.CompletedProcess[str]]

LIST_MAIN = """
#include <stdio.h>
#include <opwest/model_list.h>
#include <two_npus.h>
#include <two_npus_devicetree.h>

TWO_NPUS_WORKSPACE_DEFINE(workspace);
static const struct two_npus_devices devices = TWO_NPUS_DEVICES_DT_INIT;

static int8_t image[64], weight[72], result[128];
static int32_t bias[8];

static int call(uint32_t index)
{
	const struct opwest_value args[] = {
		opwest_in(OPWEST_INT8, image, sizeof(image)), opwest_in(OPWEST_INT8, weight, sizeof(weight)),
		opwest_in(OPWEST_INT32, bias, sizeof(bias)), opwest_out(OPWEST_INT8, result, sizeof(result))};
	const struct opwest_call_device device = two_npus_call_device(&workspace, index);

	return opwest_call(opwest_find(&two_npus_registry, "conv_features"), args, 4, &device);
}

int main(void)
{
	const struct opwest_model_list list = opwest_models();
	const struct opwest_build *const build = two_npus_details.build;
	int written = 0;

	for (size_t i = 0; i < list.count; i++) {
		printf("listed %s: %u steps\\n", list.models[i].name, list.models[i].model->step_count);
	}
	printf("found %d\\n", opwest_model_list_find(&list, "two_npus") == &two_npus_model);
	printf("build %s, machine %u, pointers %u\\n", build->target, build->machine, build->pointer_size);
	printf("hash %s\\n", build->model_hash);
	printf("closed %d\\n", call(TWO_NPUS_DEVICE_NPU0_INDEX));
	printf("open %d\\n", two_npus_open(&workspace, &devices));
	for (int i = 0; i < 8; i++) {
		bias[i] = 1000 + 100 * i;
	}
	memset(result, 0x55, sizeof(result));
	printf("called %d\\n", call(TWO_NPUS_DEVICE_NPU0_INDEX));
	for (int i = 0; i < 128; i++) {
		written += result[i] != 0x55;
	}
	printf("written %d\\n", written);
	printf("other program %d\\n", call(TWO_NPUS_DEVICE_NPU1_INDEX));
	printf("end\\n");
	return 0;
}
"""


def inspected(opwest: Opwest, image: Path) -> dict:
    (found,) = json.loads(opwest("inspect", "--json", image).stdout)["result"]
    return found


@configured(board=ARM_BOARD, back_end=("c", "llvm"))
def test_note_is_in_the_image_and_not_in_flash(workspace: Workspace, opwest: Opwest, tmp_path: Path) -> None:
    need("arm-none-eabi-nm")
    app = tmp_path / "app"
    models = {}
    for back_end in ("llvm", "c"):  # in one build
        opwest("generate", ROOT / "examples" / "digits" / "manifest_ir.yaml", "-o", app, f"--metadata={back_end}")
        if not models:
            built = workspace.build(app, ARM_BOARD, SMALL)
            log = built.log
        else:
            code, log = again(workspace, built.folder, ARM_BOARD)
            assert code == 0, log[-3000:]
        assert "orphan" not in log
        found = inspected(opwest, built.folder / "zephyr" / "zephyr.elf")
        (models[back_end],) = found["models"]
        assert (found["abi"]["machine"], found["abi"]["float_abi"]) == ("arm", "soft")
        symbols = subprocess.run(
            ["arm-none-eabi-nm", built.folder / "zephyr" / "zephyr.elf"], capture_output=True, text=True, check=True
        ).stdout
        places = {name: int(at, 16) for at, name in re.findall(r"^(\w+) . (\S+)$", symbols, re.MULTILINE)}
        for constant in models[back_end]["constants"]:
            assert constant["address"] == places[constant["symbol"]] != 0
            del constant["address"]
    assert models["c"] == models["llvm"]
    # The same image without the note.
    binary = (built.folder / "zephyr" / "zephyr.bin").read_bytes()
    (app / "models" / "digits" / "note.S").write_text("")
    code, log = again(workspace, built.folder, ARM_BOARD)
    assert code == 0 and "note.S.obj" in log, log
    assert (built.folder / "zephyr" / "zephyr.bin").read_bytes() == binary


@configured("board", [BOARD, ARM_BOARD], cost=4)
def test_models_are_listed_and_called_without_the_shell(
    workspace: Workspace, opwest: Opwest, tmp_path: Path, board: str
) -> None:
    app = tmp_path / "app"
    folder = ROOT / "examples" / "two_npus"
    opwest("generate", folder / "manifest.yaml", folder / "manifest_serial.yaml", "-o", app)
    (app / "src" / "main.c").write_text("#include <string.h>\n" + LIST_MAIN)
    with (app / "prj.conf").open("a") as file:
        file.write("CONFIG_OPWEST_MODEL_LIST=y\n")
    built = workspace.build(app, board, RUNTIME)
    console = built.run("^end")
    assert "CONFIG_SHELL=y" not in (built.folder / "zephyr" / ".config").read_text()
    expected = ["listed two_npus: 9 steps", "listed two_npus_serial: 9 steps", "found 1"]
    machine = "machine 62, pointers 8" if board == BOARD else "machine 40, pointers 4"
    expected += [f"build any, {machine}", "closed -1", "open 0", "called 0", "written 128", "other program -8", "end"]
    lines = [line.strip() for line in console.splitlines()]
    assert [line for line in lines if line in expected] == expected
    models = inspected(opwest, built.folder / "zephyr" / "zephyr.elf")["models"]
    (model,) = [model for model in models if model["model"] == "two_npus"]
    assert f"hash {model['hash']}" in lines
