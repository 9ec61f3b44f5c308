# SPDX-License-Identifier: Apache-2.0
"""The main of a directory in Model Library Format as TVM wrote it, compiled by the compiler of its import."""

import re
import subprocess
from pathlib import Path

import numpy as np
from importers_support import ROOT, Built
from opwest.importers.mlf import import_mlf
from opwest.importers.mlf.library import read_library
from opwest.importers.mlf.metadata import read_metadata
from opwest.importers.mlf.wrapper import read_header

PLAN = re.compile(
    r"main is unpacked: (\d+) steps, (\d+) intermediate tensors; memory: (\d+) bytes in TVM's plan, (\d+)"
)
FLAGS = ["-O2", "-w", "-fno-strict-aliasing"]

RUNTIME = """\
#include <stddef.h>
#include <stdint.h>

static uint8_t arena[ARENA] __attribute__((aligned(64)));
static size_t used;

void *TVMBackendAllocWorkspace(int type, int id, uint64_t size, int code, int bits)
{
	void *const found = &arena[used];

	(void)type, (void)id, (void)code, (void)bits;
	used += (size + 15) / 16 * 16;
	return used <= sizeof(arena) ? found : NULL;
}

int TVMBackendFreeWorkspace(int type, int id, void *pointer)
{
	(void)type, (void)id;
	used = (size_t)((uint8_t *)pointer - arena);
	return 0;
}
"""

_DRIVER = """\
#include <stdio.h>
#include <stdint.h>
#include "tvmgen_{module}.h"

int32_t tvmgen_{module}_run(struct tvmgen_{module}_inputs *inputs, struct tvmgen_{module}_outputs *outputs);
static struct {{ {members} }} data;

int main(int argc, char **argv)
{{
	FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");

	(void)argc;
	while ({reads}) {{
		struct tvmgen_{module}_inputs inputs = {{ {inputs} }};
		struct tvmgen_{module}_outputs outputs = {{ {outputs} }};
		if (tvmgen_{module}_run(&inputs, &outputs) != 0) {{
			return 2;
		}}
		{writes}
	}}
	return fclose(out) != 0;
}}
"""


def bytes_of(tensor):
    """Return the bytes of a tensor of a project's record."""
    return int(np.prod(tensor["shape"], dtype=int)) * np.dtype(tensor["dtype"]).itemsize


class Original:
    """The program of the original main."""

    def __init__(self, directory, work, inputs, outputs, module=None):
        library = read_library(directory)
        self.module = read_metadata(library, module).module
        folder = work / "original"
        for name, content in library.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        header = read_header((folder / f"codegen/host/include/tvmgen_{self.module}.h").read_text())
        names = [*header.inputs, *header.outputs]
        sizes = [bytes_of(t) for t in (*inputs, *outputs)]
        count = len(inputs)
        self.outputs, self.work, self.program = outputs, work, work / "original.exe"
        driver = folder / "driver.c"
        driver.write_text(
            _DRIVER.format(
                module=self.module,
                members=" ".join(f"_Alignas(64) uint8_t t{n}[{size}];" for n, size in enumerate(sizes)),
                reads=" && ".join(f"fread(data.t{n}, {sizes[n]}, 1, in) == 1" for n in range(count)),
                inputs=", ".join(f".{names[n]} = data.t{n}" for n in range(count)),
                outputs=", ".join(f".{names[n]} = data.t{n}" for n in range(count, len(names))),
                writes=" ".join(f"fwrite(data.t{n}, {sizes[n]}, 1, out);" for n in range(count, len(names))),
            )
        )
        runtime = folder / "workspace.c"
        runtime.write_text(RUNTIME)
        sources = [str(p) for p in sorted((folder / "codegen/host/src").glob("*.c"))]
        includes = [
            f"-I{folder}/codegen/host/include",
            *(f"-I{ROOT}/zephyr_module/{d}" for d in ("include", "include_tvm")),
        ]
        command = ["cc", *FLAGS, "-DARENA=8388608", *includes, *sources, str(driver), str(runtime)]
        subprocess.run([*command, "-o", str(self.program), "-lm"], check=True, capture_output=True, text=True)

    def run(self, cases):
        """Return the bytes of all outputs for the bytes of all inputs."""
        data, found = self.work / "original.in", self.work / "original.out"
        data.write_bytes(cases)
        subprocess.run([self.program, data, found], check=True, timeout=600)
        return found.read_bytes()


def random_inputs(inputs, count, seed=7):
    """Return the bytes of `count` cases: any bits of integers, floats from -4 to 4."""
    random = np.random.default_rng(seed)
    content = b""
    for _ in range(count):
        for tensor in inputs:
            dtype, size = np.dtype(tensor["dtype"]), int(np.prod(tensor["shape"], dtype=int))
            if dtype.kind == "f":
                content += random.uniform(-4, 4, size).astype(dtype).tobytes()
            else:
                content += random.integers(0, 256, size * dtype.itemsize, np.uint8).tobytes()
    return content


def compared(directory, work, options, count):
    """Import a directory and compare it with the original main on `count` inputs; return the import and its plan.

    The plan is steps, tensors, bytes in TVM's plan and in opwest's; None if main stays one operator.
    """
    folder = work / "mine"
    done = import_mlf(Path(directory), folder, options)
    built = Built(folder, work)
    original = Original(Path(directory), work, built.inputs, built.outputs)
    cases = random_inputs(built.inputs, count)
    wanted = original.run(cases)
    found = built.run_bytes(cases)
    assert len(wanted) == count * sum(map(bytes_of, built.outputs))
    assert found == wanted, f"{directory}: the outputs differ from those of the original main"
    plan = next((m for r in done.remarks if (m := PLAN.match(r))), None)
    return done, None if plan is None else tuple(int(n) for n in plan.groups())
