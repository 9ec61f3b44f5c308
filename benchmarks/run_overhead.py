# SPDX-License-Identifier: Apache-2.0
"""Instructions of `<model>_run` outside the operators, compared with hand-written sequences of the same calls.

A bare Cortex-M3 image (QEMU's mps2-an385, compiled with Zephyr's flags for size) contains the output of
`opwest generate` for a chain of steps, each with data, weight, bias and result, and three functions written by hand.
A QEMU plugin counts every instruction from the call to the return and subtracts those of the operators, which
only return 0. The counts are exact: a second run gives the same.

  direct      only the calls and `if (rc != 0) return rc`: the linker knows the addresses of buffers and parameters
  reentrant   the same through a pointer to the intermediate memory, so that two runs are possible at the same time
  checked     the same with the checks that run makes on entry (NULL, alignment, opened, overlaps, another run of
              the workspace) and the record of the step that failed

Per step: the cost of an additional step, from the shortest model to the longest. Fixed: the rest (negative if the
first or the last step is cheaper than the others).
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import (
    DENSE,
    Report,
    SkippedError,
    execute,
    host_compiler,
    opwest_command,
    parser,
    positive,
    require,
    write_model,
)
from zephyr_images import EMULATOR, symbols

SIZES = (10, 100)
MAX_RATIO = 1.05
COMPILER = "arm-none-eabi-gcc"
HERE = Path(__file__).resolve().parent / "cortex_m3"
# The options of a Zephyr 4.2 build for mps2/an385 (build.ninja), except paths, warnings and debug information.
ZEPHYR_FLAGS = shlex.split(
    "-Os -std=c99 -ffreestanding -mcpu=cortex-m3 -mthumb -mabi=aapcs -mfp16-format=ieee -ffunction-sections "
    "-fdata-sections -fno-asynchronous-unwind-tables -fno-common -fno-defer-pop -fno-pic -fno-pie "
    "-fno-reorder-functions -fno-strict-aliasing"
)
HANDWRITTEN = ("direct", "reentrant", "checked")


def offsets(run_source: str, steps: int) -> list[int]:
    """Return the offsets of intermediate results in the emitted run; the hand-written sequences use the same."""
    values = dict(re.findall(r"^#define (\w+_OFFSET_\w+) +(\d+) ", run_source, re.MULTILINE))
    found = [int(values[name]) for name in re.findall(r"\(int8_t \*\)\(void \*\)\(pool_sram \+ (\w+)\)\)", run_source)]
    if len(found) != steps - 1:
        raise AssertionError(f"{len(found)} results in the pool, {steps - 1} expected")
    return found


def sequence(steps: int, places: Sequence[int], pool: str, image: str, result: str, failure: str) -> str:
    """Return the hand-written calls."""
    lines = []
    for i in range(steps):
        data = f"{pool} + {places[i - 1]}" if i else image
        written = f"{pool} + {places[i]}" if i + 1 < steps else result
        lines += [
            f"\trc = chain__op_{i:05d}({data}, chain_constant_weight_{i}, chain_constant_bias_{i}, {written});",
            f"\tif (rc != 0) {{\n\t\treturn {failure.format(step=i)};\n\t}}",
        ]
    return "\n".join(lines)


def handwritten(steps: int, places: Sequence[int]) -> str:
    """Return the C source of the hand-written sequences and of measure()."""
    direct = sequence(steps, places, "pool", "image", "result", "rc")
    reentrant = sequence(steps, places, "memory", "input", "output", "rc")
    checked = sequence(steps, places, "memory", "inputs->x", "outputs->y", "refused(rc, workspace, {step})")
    return f"""/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <chain.h>

#include "chain_internal.h"
#include "image.h"

CHAIN_WORKSPACE_DEFINE(workspace);
static const struct chain_devices devices = CHAIN_DEVICES_DT_INIT;
static _Alignas(CHAIN_POOL_SRAM_ALIGN) int8_t pool[CHAIN_POOL_SRAM_SIZE];
static _Alignas(16) int8_t image[CHAIN_INPUT_X_SIZE];
static _Alignas(16) int8_t result[CHAIN_OUTPUT_Y_SIZE];

int direct(void);
int reentrant(const int8_t *input, int8_t *output, int8_t *memory);
int checked(const struct chain_inputs *inputs, const struct chain_outputs *outputs,
	struct chain_workspace *workspace, const struct chain_devices *devices);

int direct(void)
{{
	int32_t rc;

{direct}
	return 0;
}}

int reentrant(const int8_t *input, int8_t *output, int8_t *memory)
{{
	int32_t rc;

{reentrant}
	return 0;
}}

static int __attribute__((noinline, cold)) refused(int32_t code, struct chain_workspace *workspace, uint16_t step)
{{
	workspace->status.code = code;
	workspace->status.step = step;
	return code > 0 ? -EIO : (int)code;
}}

static inline bool usable(const void *buffer, uintptr_t align)
{{
	return buffer != NULL && ((uintptr_t)buffer & (align - 1U)) == 0U;
}}

static int alone(const struct chain_inputs *inputs, const struct chain_outputs *outputs,
	struct chain_workspace *workspace, const struct chain_devices *devices)
{{
	if (inputs == NULL || outputs == NULL || devices == NULL) {{
		return -EINVAL;
	}}
	if (!usable(inputs->x, CHAIN_INPUT_X_ALIGN) || !usable(outputs->y, CHAIN_OUTPUT_Y_ALIGN)) {{
		return -EINVAL;
	}}
	if (!workspace->opened) {{
		return -EPERM;
	}}
	if (opwest_overlap(inputs->x, CHAIN_INPUT_X_SIZE, workspace->sram, CHAIN_POOL_SRAM_SIZE) ||
	    opwest_overlap(inputs->x, CHAIN_INPUT_X_SIZE, workspace, sizeof(*workspace)) ||
	    opwest_overlap(outputs->y, CHAIN_OUTPUT_Y_SIZE, inputs->x, CHAIN_INPUT_X_SIZE) ||
	    opwest_overlap(outputs->y, CHAIN_OUTPUT_Y_SIZE, workspace->sram, CHAIN_POOL_SRAM_SIZE) ||
	    opwest_overlap(outputs->y, CHAIN_OUTPUT_Y_SIZE, workspace, sizeof(*workspace))) {{
		return -EINVAL;
	}}
	workspace->status.code = 0;
	workspace->status.step = OPWEST_NO_STEP;

	int8_t *const memory = (int8_t *)workspace->sram;
	int32_t rc;

{checked}
	return 0;
}}

int checked(const struct chain_inputs *inputs, const struct chain_outputs *outputs,
	struct chain_workspace *workspace, const struct chain_devices *devices)
{{
	int rc;

	if (workspace == NULL) {{
		return -EINVAL;
	}}
	if (!opwest_port_take(&workspace->running)) {{
		return -EBUSY;
	}}
	rc = alone(inputs, outputs, workspace, devices);
	opwest_port_give(&workspace->running);
	return rc;
}}

bool measure(void)
{{
	const struct chain_inputs inputs = {{image}};
	const struct chain_outputs outputs = {{result}};

	return chain_open(&workspace, &devices) == 0 &&
	       invoke(&inputs, &outputs, &workspace, &devices, (any_run_t)chain_run) == 0 &&
	       invoke(NULL, NULL, NULL, NULL, (any_run_t)direct) == 0 &&
	       invoke(image, result, pool, NULL, (any_run_t)reentrant) == 0 &&
	       invoke(&inputs, &outputs, &workspace, &devices, (any_run_t)checked) == 0;
}}
"""


def build(work: Path, steps: int) -> tuple[Path, int]:
    """Return the image for a chain of `steps` calls, and the bytes of the emitted run in it."""
    compiler = [COMPILER, *ZEPHYR_FLAGS]
    manifest = write_model(work, steps, "cortex-m3", compiler, arguments=DENSE, body="return 0;")
    application = work / "app"
    execute([*opwest_command(), "generate", manifest, "-o", application])
    model, runtime = application / "models" / "chain", application / "modules" / "opwest"
    run_source = (model / "src" / "chain_run.c").read_text()
    own = work / "handwritten.c"
    own.write_text(handwritten(steps, offsets(run_source, steps)))
    sources = [
        HERE / "startup.c",
        own,
        model / "src" / "chain_run.c",
        model / "src" / "chain_metadata.c",
        runtime / "src" / "status.c",
    ]
    includes = [f"-I{path}" for path in (HERE, model / "include", model / "src", runtime / "include")]
    image = work / "image.elf"
    execute(
        [
            *compiler,
            *includes,
            *("-nostdlib", "-Wl,--gc-sections", f"-Wl,-T,{HERE / 'image.ld'}", f"-Wa,-I{model / 'constants'}"),
            *sources,
            model / "constants.S",
            *sorted((model / "objects").rglob("*.o")),
            *("-lgcc", "-o", image),
        ]
    )
    size = execute(["arm-none-eabi-nm", "-S", image])
    found = re.search(r"^\S+ (\S+) T chain_run$", size, re.MULTILINE)
    return image, int(found[1], 16) if found else 0


def count(image: Path, plugin: Path) -> list[int]:
    """Run an image; return the instructions outside the operators, for each function that it measures."""
    places = symbols(image)
    out = image.with_suffix(".counts")
    arguments = {
        "from": places["invoke_call"],
        "to": places["invoke_return"],
        "skip": places["operators_start"],
        "skip_end": places["operators_end"],
    }
    listed = ",".join(f"{key}={value:#x}" for key, value in arguments.items())
    execute(
        [
            *(EMULATOR, "-M", "mps2-an385", "-display", "none", "-serial", "null", "-monitor", "none"),
            *("-semihosting", "-kernel", image, "-plugin", f"{plugin},{listed},out={out}"),
        ],
        timeout=120,
    )
    rows = [[int(word) for word in line.split()[:2]] for line in out.read_text().splitlines()]
    steps = places_of_operators(places)
    for total, skipped in rows:
        if skipped != 2 * steps:  # movs r0, #0; bx lr
            raise AssertionError(f"{skipped} of {total} instructions in the operators, {2 * steps} expected")
    return [total - skipped for total, skipped in rows]


def places_of_operators(places: dict[str, int]) -> int:
    """Return the number of operators in an image."""
    return sum(name.startswith("chain__op_") for name in places)


def main() -> int:
    """Measure, print, compare with the limit."""
    options = parser(__doc__)
    options.add_argument(
        "--steps", type=positive, nargs="+", default=list(SIZES), metavar="N", help="steps of the models"
    )
    given = options.parse_args()
    report = Report("Overhead of run")
    try:
        require(COMPILER, EMULATOR, "arm-none-eabi-nm")
        opwest_command()
        host_compiler()
        if given.keep is not None:
            return run(given, given.keep, report)
        with tempfile.TemporaryDirectory(prefix="opwest-overhead-") as work:
            return run(given, Path(work), report)
    except SkippedError as reason:
        report.skip("overhead of run", reason)
    return report.finish(given.json)


def run(given: argparse.Namespace, work: Path, report: Report) -> int:
    """Measure every length in a directory."""
    from opwest.tuning.measure import built_plugin

    found: dict[int, list[int]] = {}
    sizes = {}
    plugin = built_plugin(work)
    for steps in sorted(given.steps):
        image, sizes[steps] = build(work / f"steps_{steps}", steps)
        found[steps] = count(image, plugin)
        if count(image, plugin) != found[steps]:
            raise AssertionError("two runs gave different counts")
    version = execute([COMPILER, "-dumpversion"]).strip()
    columns = ["run", *HANDWRITTEN]
    report.table(
        f"Instructions outside the operators, Cortex-M3, {COMPILER} {version}, -Os.",
        ["steps", *columns, *(f"run / {name}" for name in HANDWRITTEN), "bytes of run"],
        [[f"{n}", *row, *(row[0] / other for other in row[1:]), sizes[n]] for n, row in found.items()],
        "instructions",
    )
    if len(found) > 1:
        (small, few), *_, (large, many) = found.items()
        marginal = [(b - a) / (large - small) for a, b in zip(few, many, strict=True)]
        fixed = [a - small * m for a, m in zip(few, marginal, strict=True)]
        title = f"The difference per step, from {small} steps to {large}."
        report.table(title, ["", *columns], [["per step", *marginal], ["fixed", *fixed]], "instructions")
        for name, other in zip(HANDWRITTEN, marginal[1:], strict=True):
            report.limit(f"one more step, run / {name}", marginal[0] / other, MAX_RATIO)
    # For the total, only the sequence with the same work is a fair limit; the table also shows the others.
    for steps, row in found.items():
        report.limit(f"{steps} steps in all, run / {HANDWRITTEN[-1]}", row[0] / row[-1], MAX_RATIO)
    print()
    return report.finish(given.json)


if __name__ == "__main__":
    sys.exit(main())
