# SPDX-License-Identifier: Apache-2.0
"""One application with a model for each calling convention: the image of a board and a back end in the matrix.

All models compute the same from integers, floats and scalars of both, in two steps. The values are exact in float32, so
that the results do not depend on fused multiplications.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
from opwest.model.conventions import ConventionName

SOURCES = Path(__file__).parent / "programs" / "matrix"
CONVENTIONS: tuple[str, ...] = get_args(ConventionName)
CASES = 3
END = r"^finished: "
_MANIFEST = """\
version: 1
model: cell_{name}
convention: {name}
objects: [{{files: [{name}.c]}}]
operators:
  mixed:
    symbol: {symbol}
{more}    args:
      - {{name: x, dtype: int32, shape: [2, 3]}}
      - {{name: w, dtype: float32, shape: [2, 3]}}
      - {{name: by, dtype: int32, scalar: true}}
      - {{name: gain, dtype: float32, scalar: true}}
      - {{name: y, dtype: int32, shape: [2, 3], direction: out}}
      - {{name: z, dtype: float32, shape: [2, 3], direction: out}}
run:
  inputs: {{x: {{dtype: int32, shape: [2, 3]}}, w: {{dtype: float32, shape: [2, 3]}}}}
  outputs: {{y: {{dtype: int32, shape: [2, 3]}}, z: {{dtype: float32, shape: [2, 3]}}}}
  steps:
    - {{call: mixed, args: [x, w, -3, 0.5, a, b]}}
    - {{call: mixed, args: [a, b, 5, -1.5, y, z]}}
"""
_MORE = {
    "packed": "    workspace: 64\n",
    "ffi": "    workspace: 64\n",
    "halide": "    workspace: 128\n",
    "memref": "    returns: status\n",
}
_MAIN = """\
#include <stdint.h>
#include <stdio.h>
#include <string.h>

{includes}
static _Alignas(64) int32_t x[6], y[6];
static _Alignas(64) float w[6], z[6];

static void fill(int which)
{{
	for (int i = 0; i < 6; i++) {{
		x[i] = which * 1000 - i * 37;
		w[i] = (float)(which * 16 - i) * 0.125f;
	}}
	memset(y, 0x55, sizeof(y));
	memset(z, 0x55, sizeof(z));
}}

static void show(const char *model, int which)
{{
	printf("%s %d ", model, which);
	for (int i = 0; i < 6; i++) {{
		uint32_t bits;

		memcpy(&bits, &z[i], sizeof(bits));
		printf("%08x%08x", (unsigned int)y[i], (unsigned int)bits);
	}}
	printf("\\n");
}}

{models}
int main(void)
{{
	printf("finished: %d\\n", {calls});
	return 0;
}}
"""
_ONE = """\
CELL_{NAME}_WORKSPACE_DEFINE({name}_workspace);
static const struct cell_{name}_devices {name}_context = CELL_{NAME}_DEVICES_DT_INIT;

static int try_{name}(void)
{{
	int rc = cell_{name}_open(&{name}_workspace, &{name}_context);

	for (int i = 0; rc == 0 && i < {cases}; i++) {{
		fill(i);
		rc = cell_{name}_run(&(struct cell_{name}_inputs){{.x = x, .w = w}},
				     &(struct cell_{name}_outputs){{.y = y, .z = z}}, &{name}_workspace,
				     &{name}_context);
		if (rc == 0) {{
			show("{name}", i);
		}}
	}}
	return rc != 0;
}}
"""


def write(folder: Path) -> list[Path]:
    """Write a manifest for each convention, and main(); return the manifests."""
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    found = []
    for name in CONVENTIONS:
        symbol = f"_mlir_ciface_{name}_mixed" if name == "memref" else f"{name}_mixed"
        manifest = folder / f"{name}.yaml"
        manifest.write_text(_MANIFEST.format(name=name, symbol=symbol, more=_MORE.get(name, "")))
        found.append(manifest)
    text = _MAIN.format(
        includes="".join(
            f"#include <cell_{name}.h>\n#ifdef __ZEPHYR__\n#include <cell_{name}_devicetree.h>\n#endif\n"
            for name in CONVENTIONS
        ),
        models="\n".join(_ONE.format(name=name, NAME=name.upper(), cases=CASES) for name in CONVENTIONS),
        calls=" + ".join(f"try_{name}()" for name in CONVENTIONS),
    )
    (folder / "main.c").write_text(text)
    return found


def application(
    opwest: Callable[..., Any], folder: Path, board: str, base: Path, back_end: str, *options: object
) -> Path:
    """Generate the application of all models for a board of a Zephyr tree, and its main()."""
    manifests = write(folder / "models")
    for manifest in manifests:
        with manifest.open("a") as file:
            file.write(f"boards: [{board}]\n")
    given = ["-o", folder / "app", "--zephyr-base", base, f"--metadata={back_end}", *options]
    opwest("generate", *manifests, *given)
    shutil.copy(folder / "models" / "main.c", folder / "app" / "src")
    return folder / "app"


def expected() -> list[str]:
    """Return the results of each case as main() prints them, computed with numpy."""
    lines = []
    for which in range(CASES):
        x = which * 1000 - np.arange(6, dtype=np.int32) * 37
        w = (which * 16 - np.arange(6)).astype(np.float32) * np.float32(0.125)
        for by, gain in ((-3, 0.5), (5, -1.5)):
            x, w = x * np.int32(by) + np.int32(7), w * np.float32(gain) + np.float32(0.25)
        pairs = zip(x.astype(np.int32).view(np.uint32), w.view(np.uint32), strict=True)
        lines.append("".join(f"{y:08x}{z:08x}" for y, z in pairs))
    return lines


def verdicts(console: str) -> dict[str, str]:
    """Return the verdict of each convention: `ok`, or what differs."""
    found = {name: dict(re.findall(rf"^{name} (\d) ([0-9a-f]+)$", console, re.MULTILINE)) for name in CONVENTIONS}
    wanted = {str(which): line for which, line in enumerate(expected())}
    return {
        name: "ok" if lines == wanted else f"{sum(lines.get(k) == v for k, v in wanted.items())} of {CASES} cases equal"
        for name, lines in found.items()
    }
