# SPDX-License-Identifier: Apache-2.0
"""What images contain: notes for `opwest inspect`, and the list of models."""

import json
import re
import subprocess

import pytest
from cover import configured
from requirements_support import need
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr
BOARD = "native_sim/native/64"
ARM_BOARD = "mps2/an385"

LIST_MAIN = """
#include <stdio.h>
#include <opwest/model_list.h>
#include <two_npus.h>

int main(void)
{
	const struct opwest_model_list list = opwest_models();
	const struct opwest_build *const build = two_npus_details.build;

	for (size_t i = 0; i < list.count; i++) {
		printf("listed %s: %u steps\\n", list.models[i].name, list.models[i].model->step_count);
	}
	printf("found %d\\n", opwest_model_list_find(&list, "two_npus") == &two_npus_model);
	printf("build %s, machine %u, pointers %u\\n", build->target, build->machine, build->pointer_size);
	printf("hash %s\\n", build->model_hash);
	printf("end\\n");
	return 0;
}
"""


def inspected(opwest, image):
    (found,) = json.loads(opwest("inspect", "--json", image).stdout)["result"]
    return found


@configured(board=ARM_BOARD, back_end=("c", "llvm"))
def test_note_is_in_the_image_and_not_in_flash(workspace, opwest, tmp_path):
    need("arm-none-eabi-nm")
    app = tmp_path / "app"
    models = {}
    for back_end in ("llvm", "c"):  # in one build
        opwest("generate", ROOT / "examples" / "digits" / "manifest_ir.yaml", "-o", app, f"--metadata={back_end}")
        if not models:
            built = workspace.build(app, ARM_BOARD)
            log = built.log
        else:
            log = built.rebuilt()
        assert "orphan" not in log
        found = inspected(opwest, built.elf)
        (models[back_end],) = found["models"]
        assert (found["abi"]["machine"], found["abi"]["float_abi"]) == ("arm", "soft")
        symbols = subprocess.run(["arm-none-eabi-nm", built.elf], capture_output=True, text=True, check=True).stdout
        places = {name: int(at, 16) for at, name in re.findall(r"^(\w+) . (\S+)$", symbols, re.MULTILINE)}
        for constant in models[back_end]["constants"]:
            assert constant["address"] == places[constant["symbol"]] != 0
            del constant["address"]
    assert models["c"] == models["llvm"]
    # The same image without the note.
    binary = (built.folder / "zephyr" / "zephyr.bin").read_bytes()
    (app / "models" / "digits" / "note.S").write_text("")
    assert "note.S.obj" in built.rebuilt()
    assert (built.folder / "zephyr" / "zephyr.bin").read_bytes() == binary


@configured("board", [BOARD, ARM_BOARD], cost=4)
def test_models_are_listed_without_the_shell(workspace, opwest, tmp_path, board):
    app = tmp_path / "app"
    folder = ROOT / "examples" / "two_npus"
    opwest("generate", folder / "manifest.yaml", folder / "manifest_serial.yaml", "-o", app)
    (app / "src" / "main.c").write_text(LIST_MAIN)
    built = workspace.build(app, board, f"-DOPWEST_RUNTIME={ROOT / 'zephyr_module'}", "-DCONFIG_OPWEST_MODEL_LIST=y")
    console = built.run("^end")
    assert "CONFIG_SHELL=y" not in built.options
    expected = ["listed two_npus: 9 steps", "listed two_npus_serial: 9 steps", "found 1"]
    machine = "machine 62, pointers 8" if board == BOARD else "machine 40, pointers 4"
    expected += [f"build any, {machine}", "end"]
    lines = [line.strip() for line in console.splitlines()]
    assert [line for line in lines if line in expected] == expected
    models = inspected(opwest, built.elf)["models"]
    (model,) = [model for model in models if model["model"] == "two_npus"]
    assert f"hash {model['hash']}" in lines
