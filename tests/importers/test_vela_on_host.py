# SPDX-License-Identifier: Apache-2.0
"""An imported model on the host, with a function in place of the driver that executes convolutions of the tests.

The function adds 1 to each byte of the IFM: it shows the program, the base pointers and the order of each launch.
"""

from pathlib import Path

import numpy as np
from in_process import succeed
from requirements_support import need

need("tflite", "cc")

from importers.test_vela_import import imported  # noqa: E402
from importers.vela_made import clashing, mixed, whole  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DRIVER = """\
#include <string.h>

#include <opwest/accelerator.h>
#include <opwest/ethos_u.h>

#define SET_IFM_BASE0 0x4000U
#define SET_OFM_BASE0 0x4010U

int opwest_ethos_u_enqueue(const struct opwest_launch *launch,
			   const struct opwest_ethos_u_inference *inference)
{
	const uint8_t *const data = launch->program->data;
	uint8_t *const arena = (uint8_t *)inference->regions[1].data;
	uint32_t at = 0, to = 0;

	/* The command stream begins at byte 32 of the payload. */
	for (uint32_t i = 32; i + 8 <= launch->program->size; i += 4) {
		uint32_t command, value;

		memcpy(&command, &data[i], 4);
		memcpy(&value, &data[i + 4], 4);
		at = command == SET_IFM_BASE0 ? value : at;
		to = command == SET_OFM_BASE0 ? value : to;
	}
	if (inference->count != 2U || inference->regions[0].size != 192U || inference->regions[1].size != 128U ||
	    ((uintptr_t)arena & 15U) != 0U || inference->regions[0].data[40] != 40U) {
		return -22;
	}
	for (uint32_t i = 0; i < 16U; i++) {
		arena[to + i] = (uint8_t)(arena[at + i] + 1U);
	}
	return 0;
}
"""


def result(folder: Path, content: bytes, image: np.ndarray) -> np.ndarray:
    """Return the scores of a model."""
    model, manifest = imported(folder, content, kernels="portable")
    (model / "driver.c").write_text(DRIVER)
    own = manifest.replace("- {files: [npu.c]}", "- {files: [npu.c, driver.c]}")
    own = own.partition("\napplication:")[0] + "\n"
    assert "driver.c" in own
    (model / "manifest.yaml").write_text(own)
    succeed("generate", model / "manifest.yaml", "-o", folder / "app")
    np.save(folder / "image.npy", image)
    given = ("--input", f"image={folder / 'image.npy'}", "--output-dir", folder / "results")
    succeed("run", folder / "app", "--host", *given)
    [found] = (folder / "results").glob("*scores*.npy")
    return np.load(found)


IMAGE = np.arange(-8, 8, dtype=np.int8).reshape(1, 1, 1, 16)


def test_whole_model_runs_in_place(tmp_path: Path) -> None:
    np.testing.assert_array_equal(result(tmp_path, whole().build(), IMAGE), IMAGE + 1)


def test_subgraphs_and_operators_of_the_processor_run_in_order(tmp_path: Path) -> None:
    """The RELU has the zero point 3 on both sides."""
    np.testing.assert_array_equal(result(tmp_path, mixed().build(), IMAGE), np.maximum(IMAGE + 1, 3) + 1)


def test_tensor_with_memory_of_its_own_keeps_its_content(tmp_path: Path) -> None:
    """LOGISTIC of the first result is read after the NPU has written to the place that the file plans for it."""
    scores = result(tmp_path, clashing(needed_by_npu=False).build(), IMAGE)
    first = (IMAGE.astype(float) + 1 - 3) * 0.5
    logistic = np.clip(np.rint(256 / (1 + np.exp(-first))), 0, 255) / 256
    second = (IMAGE.astype(float) + 2 - 3) * 0.5
    expected = np.rint((logistic + second) / 0.5) + 3
    assert np.abs(scores - expected).max() <= 1
