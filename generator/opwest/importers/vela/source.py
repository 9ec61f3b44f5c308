# SPDX-License-Identifier: Apache-2.0
"""The C source of the operator that starts the NPU."""

from __future__ import annotations

from opwest.importers.vela.file import VelaFile
from opwest.importers.vela.payloads import WEIGHTS, Meaning

SOURCE = "npu.c"
SYMBOL = "npu"
REGION = "region_"
"""The start of the names of arguments that are base pointers: opwest check compares them with the programs."""
_COMMENTS = ("the weights", "the scratch memory, with inputs and outputs", "the fast scratch memory")
_TEXT = """\
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the NPU, written by `opwest import`. You can edit this file.
 *
 * The program of the step is Vela's command stream; its base pointers are the arguments.
 */
#include <stdint.h>

#include <opwest/accelerator.h>
#include <opwest/ethos_u.h>

{head}
{{
	const struct opwest_ethos_u_inference inference = {{
		.count = {count}U,
		.regions = {{
{regions}
		}},
	}};

	return opwest_ethos_u_enqueue(launch, &inference);
}}
"""


def arguments_of(meaning: Meaning) -> list[int]:
    """Return the regions that are arguments: the arena is one, also if it is two regions."""
    return list(dict.fromkeys(meaning.regions))


def sizes_of(file: VelaFile) -> tuple[int, int, int]:
    """Return the bytes of the weights, the arena, and the fast scratch memory."""
    memory = file.memory
    return memory.weights.nbytes, memory.arena, memory.arena if memory.fast is None else memory.fast


def source_text(file: VelaFile, meaning: Meaning) -> str:
    """Return the file."""
    sizes = sizes_of(file)
    parameters = [
        f"{'const ' if one == WEIGHTS else ''}uint8_t *{REGION}{one}" for one in arguments_of(meaning) if sizes[one]
    ]
    head = f"int32_t {SYMBOL}({', '.join([*parameters, 'const struct opwest_launch *launch'])})"
    regions = "\n".join(
        f"\t\t\t/* {_COMMENTS[one]} */\n\t\t\t{{.data = {REGION}{one}, .size = {sizes[one]}U}},"
        if sizes[one]
        else "\t\t\t{0},"
        for one in meaning.regions
    )
    if len(head) > 100:
        head = head.replace(", const struct", f",\n{_tabs(head.index('(') + 1)}const struct")
    return _TEXT.format(head=head, count=len(meaning.regions), regions=regions)


def _tabs(columns: int) -> str:
    return "\t" * (columns // 8) + " " * (columns % 8)
