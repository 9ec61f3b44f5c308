# SPDX-License-Identifier: Apache-2.0
"""Programs in one image of a board and a back end (gallery.py), each with its own models."""

import re
import shutil
import struct
import sys

import names_project
import numpy as np
import pytest
import streams
from busy_project import write_manifest
from cover import configured
from gallery import Program, output
from opwest.frontends.mlf import Options, import_mlf
from zephyr_support import BACK_ENDS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "importers"))
import mlf_made as made

pytestmark = pytest.mark.zephyr
C_ROWS = [row for row in BACK_ENDS if row[1] == "c"]


# --- One workspace and two threads: functions of a running workspace return -EBUSY and change nothing


def write_busy(folder):
    shutil.copy(ROOT / "tests" / "zephyr" / "programs" / "busy" / "main.c", folder)
    return [write_manifest(folder)]


BUSY = Program("busy", write_busy, BACK_ENDS)


@configured("board, back_end", BACK_ENDS)
def test_a_running_workspace_is_refused(workspace, opwest, board, back_end):
    console = output(workspace, opwest, board, back_end, BUSY)
    assert "one workspace, two threads: 0 wrong" in console, console


# --- Names of macros of Zephyr, CMSIS and C libraries, in an application that includes their headers


def write_names(folder):
    manifest = names_project.write(folder)
    text = manifest.read_text()
    assert "application: {sources: [main.c]}\n" in text
    manifest.write_text(text.replace("application: {sources: [main.c]}\n", ""))
    return [manifest]


NAMES = Program("names", write_names, C_ROWS)


@configured("board, back_end", C_ROWS)
def test_model_with_names_of_macros(workspace, opwest, board, back_end):
    assert names_project.EXPECTED in output(workspace, opwest, board, back_end, NAMES)


# --- State between runs: two interleaved streams with failures and resets

FRAMES = 1000


def write_streams(folder):
    shutil.copytree(streams.PROJECT, folder, ignore=shutil.ignore_patterns("main.c"), dirs_exist_ok=True)
    shutil.copy(ROOT / "tests" / "compile" / "programs" / "two_streams.c", folder / "main.c")
    (folder / "two_streams.h").write_text(streams.header(FRAMES))
    return [folder / "manifest.yaml"]


STATE = Program("state", write_streams, BACK_ENDS)


@configured("board, back_end", BACK_ENDS)
def test_two_streams_equal_numpy(workspace, opwest, board, back_end):
    console = output(workspace, opwest, board, back_end, STATE)
    assert f"two streams of {FRAMES} frames: 0 wrong" in console, console


# --- Four imported models, all called `default` by TVM, with one storage in turn, poisoned between runs

MLF_MODELS = {"usmp": made.usmp, "functions": made.workspace, "packed": made.packed, "steps": made.graph}
MLF_MODEL = """\
{NAME}_WORKSPACE_DEFINE({name}_own);
static const struct {name}_devices {name}_context = {NAME}_DEVICES_DT_INIT;

static void run_{name}(struct {name}_workspace *workspace)
{{
	static float y[2];
	uint32_t bits[2];

	if ({name}_open(workspace, &{name}_context) != 0 ||
	    {name}_run(&(struct {name}_inputs){{.x = x}}, &(struct {name}_outputs){{.y = y}}, workspace,
		       &{name}_context) != 0) {{
		printk("{name} failed\\n");
		return;
	}}
	(void){name}_close(workspace, &{name}_context);
	memcpy(bits, y, sizeof(bits));
	printk("{name} %08x %08x\\n", bits[0], bits[1]);
}}
"""

MLF_MAIN = """\
#include <string.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
{includes}

static const float x[4] __aligned(16) = {{1, -2, 3, 0.5f}};
static uint8_t shared[1024] __aligned(64);
{models}
int main(void)
{{
{alone}
	for (int round = 0; round < 3; round++) {{
{in_turn}
	}}
	printk("MLF DONE\\n");
	return 0;
}}
"""


def write_mlf(folder):
    for name, make in MLF_MODELS.items():
        files = {n: c.replace(b"#include <math.h>\n", b"") for n, c in make().items()}
        (folder / f"{name}.tar").write_bytes(made.tar_of(files))
        import_mlf(folder / f"{name}.tar", folder / name, Options(name))
    in_turn = (
        "\t\tmemset(shared, 0xA5 + round, sizeof(shared));\n"
        f"\t\tBUILD_ASSERT({name.upper()}_POOL_SRAM_SIZE <= sizeof(shared));\n"
        f"\t\trun_{name}(&(struct {name}_workspace){{.sram = shared}});"
        for name in MLF_MODELS
    )
    (folder / "main.c").write_text(
        MLF_MAIN.format(
            includes="\n".join(f"#include <{n}.h>\n#include <{n}_devicetree.h>" for n in MLF_MODELS),
            models="\n".join(MLF_MODEL.format(name=n, NAME=n.upper()) for n in MLF_MODELS),
            alone="\n".join(f"\trun_{n}(&{n}_own);" for n in MLF_MODELS),
            in_turn="\n".join(in_turn),
        )
    )
    return [folder / name / "manifest.yaml" for name in MLF_MODELS]


MLF = Program("mlf", write_mlf, C_ROWS)


@configured("board, back_end", C_ROWS)
def test_four_models_share_one_storage(workspace, opwest, board, back_end):
    console = output(workspace, opwest, board, back_end, MLF)
    rows = re.findall(r"^(\w+) ([0-9a-f]{8}) ([0-9a-f]{8})$", console, re.MULTILINE)
    assert [name for name, *_ in rows] == [*MLF_MODELS] * 4, console
    x = np.array([[1, -2, 3, 0.5]], np.float32)
    for name in MLF_MODELS:
        results = [bits for n, *bits in rows if n == name]
        assert all(r == results[0] for r in results), f"{name}: {results}"
        values = [struct.unpack(">f", bytes.fromhex(b))[0] for b in results[0]]
        np.testing.assert_allclose(values, made.reference(x).ravel(), rtol=1e-6)
