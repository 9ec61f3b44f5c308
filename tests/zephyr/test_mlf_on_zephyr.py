# SPDX-License-Identifier: Apache-2.0
"""Four imported models, all called `default` by TVM, in one image: with one storage in turn, poisoned between runs."""

import re
import struct
import sys
from pathlib import Path

import numpy as np
from cover import configured
from gallery import Program, output
from opwest.importers.mlf import Options, import_mlf
from zephyr_support import BACK_ENDS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "importers"))
import mlf_made as made

MODELS = {"usmp": made.usmp, "functions": made.workspace, "packed": made.packed, "steps": made.graph}
X = np.array([[1, -2, 3, 0.5]], np.float32)

_MODEL = """\
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

_MAIN = """\
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


def write(folder):
    """Write the models and main.c; return the manifests."""
    manifests = []
    for name, make in MODELS.items():
        files = {n: c.replace(b"#include <math.h>\n", b"") for n, c in make().items()}
        tar = folder / f"{name}.tar"
        tar.write_bytes(made.tar_of(files))
        import_mlf(tar, folder / name, Options(name))
        manifests.append(folder / name / "manifest.yaml")
    in_turn = []
    for name in MODELS:
        in_turn += [
            "\t\tmemset(shared, 0xA5 + round, sizeof(shared));",
            f"\t\tBUILD_ASSERT({name.upper()}_POOL_SRAM_SIZE <= sizeof(shared));",
            f"\t\trun_{name}(&(struct {name}_workspace){{.sram = shared}});",
        ]
    (folder / "main.c").write_text(
        _MAIN.format(
            includes="\n".join(f"#include <{n}.h>\n#include <{n}_devicetree.h>" for n in MODELS),
            models="\n".join(_MODEL.format(name=n, NAME=n.upper()) for n in MODELS),
            alone="\n".join(f"\trun_{n}(&{n}_own);" for n in MODELS),
            in_turn="\n".join(in_turn),
        )
    )
    return manifests


ROWS = [row for row in BACK_ENDS if row[1] == "c"]
PROGRAM = Program("mlf", write, ROWS)


@configured("board, back_end", ROWS)
def test_four_models_share_one_storage(workspace, opwest, board, back_end):
    console = output(workspace, opwest, board, back_end, PROGRAM)
    rows = re.findall(r"^(\w+) ([0-9a-f]{8}) ([0-9a-f]{8})$", console, re.MULTILINE)
    assert [name for name, *_ in rows] == [*MODELS] * 4, console
    for name in MODELS:
        results = [bits for n, *bits in rows if n == name]
        assert all(r == results[0] for r in results), f"{name}: {results}"
        values = [struct.unpack(">f", bytes.fromhex(b))[0] for b in results[0]]
        np.testing.assert_allclose(values, made.reference(X).ravel(), rtol=1e-6)
