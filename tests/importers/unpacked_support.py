# SPDX-License-Identifier: Apache-2.0
"""The main of a directory in Model Library Format as TVM wrote it, compiled by the compiler of its import."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import mlf_made as made
import numpy as np
from cmsis_nn_support import cmsis_nn_modules
from importers_support import ROOT, Built, bytes_of, driver, generated, output_of, ports
from opwest.base.diagnostics import OpwestError
from opwest.frontends.mlf import Imported, Options, import_mlf
from opwest.frontends.mlf.library import read_library
from opwest.frontends.mlf.metadata import read_metadata
from opwest.frontends.mlf.wrapper import read_header
from opwest.project.writer import read_record
from opwest.zephyr.cmsis_nn import find_cmsis_nn, required_sources, uses_cmsis_nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "zephyr"))
from zephyr_support import Workspace, console_of, find_base, find_west

PLAN = re.compile(
    r"main is unpacked: (\d+) steps, (\d+) intermediate tensors; memory: (\d+) bytes in TVM's plan, (\d+)"
)
SECONDS = 300
"""The longest run of an image in QEMU."""
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

_HEAD = """\
#include "tvmgen_{module}.h"
int32_t tvmgen_{module}_run(struct tvmgen_{module}_inputs *inputs, struct tvmgen_{module}_outputs *outputs);"""


class Original:
    """The program of the original main."""

    def __init__(self, directory, work, inputs, outputs):
        library = read_library(directory)
        module = read_metadata(library, None).module
        folder = made.unpack(library.files, work / "original")
        header = read_header((folder / f"codegen/host/include/tvmgen_{module}.h").read_text())
        self.work, self.program = work, work / "original.exe"
        main, runtime = folder / "driver.c", folder / "workspace.c"
        members = [*header.inputs, *header.outputs]
        main.write_text(driver(f"tvmgen_{module}", _HEAD.format(module=module), inputs, outputs, members))
        runtime.write_text(RUNTIME)
        operators = sorted((folder / "codegen/host/src").glob("*.c"))
        sources = [*operators, main, runtime]
        folders = [folder / "codegen/host/include", *(ROOT / "zephyr_module" / d for d in ("include", "include_tvm"))]
        if uses_cmsis_nn(operators):
            root = find_cmsis_nn(None, module, directory)
            sources += required_sources(root, operators)
            folders.append(root / "Include")
        command = ["cc", *FLAGS, "-DARENA=8388608", *(f"-I{one}" for one in folders), *sources]
        subprocess.run([*command, "-o", self.program, "-lm"], check=True, capture_output=True, text=True)

    def run(self, cases):
        """Return the bytes of all outputs for the bytes of all inputs."""
        data, found = self.work / "original.in", self.work / "original.out"
        data.write_bytes(cases)
        output_of(self.program, data, found)
        return found.read_bytes()


def random_inputs(inputs, count):
    """Return the bytes of `count` cases: any bits of integers, floats from -4 to 4."""
    random = np.random.default_rng(7)

    def values(tensor):
        dtype, size = np.dtype(tensor["dtype"]), bytes_of(tensor)
        if dtype.kind == "f":
            return random.uniform(-4, 4, size // dtype.itemsize).astype(dtype)
        return random.integers(0, 256, size, np.uint8)

    return b"".join(values(tensor).tobytes() for _ in range(count) for tensor in inputs)


@dataclass
class Real:
    """A directory, and the options of its import."""

    path: Path
    options: Options


@dataclass
class Result:
    """An import whose outputs equal those of the original main; `plan` is None if main is one operator.

    `plan` has the steps, the tensors, and the bytes in TVM's plan and in opwest's.
    """

    done: Imported
    plan: tuple[int, ...] | None
    cases: int

    def words(self):
        """Return a line for a table."""
        equal = f"{self.cases} of {self.cases} identical"
        if self.plan is None:
            return f"{equal}; {self.done.remarks[0]}"
        steps, tensors, before, after = self.plan
        return f"{equal}; {steps} steps, {tensors} tensors; {before} bytes in TVM's plan, {after} bytes in opwest's"


class NotHere(Exception):  # noqa: N818 (a reason, not an error)
    """The directory cannot run here."""


def _imported(real, work):
    done = import_mlf(real.path, work / "mine", real.options)
    plan = next((m for r in done.remarks if (m := PLAN.match(r))), None)
    return done, None if plan is None else tuple(int(n) for n in plan.groups())


def _processor(done):
    """Return the remark on the required processor."""
    return next((r for r in done.remarks if " are only for " in r or " and require a Cortex-M" in r), None)


def compared(real, work, count):
    """Import a directory and compare it with the original main on `count` inputs."""
    done, plan = _imported(real, work)
    remark = _processor(done)
    if remark is not None and ("CMSIS-NN" not in remark or remark.endswith("(MVE)")):
        raise NotHere(remark)
    if remark is not None:
        try:
            find_cmsis_nn(None, "mine", work)
        except OpwestError as reason:
            raise NotHere(reason.diagnostics[0].message) from None
    built = Built(work / "mine", work)
    original = Original(real.path, work, built.inputs, built.outputs)
    cases = random_inputs(built.inputs, count)
    wanted = original.run(cases)
    found = built.run_bytes(cases)
    assert len(wanted) == count * sum(map(bytes_of, built.outputs))
    assert found == wanted, f"{real.path}: the outputs differ from those of the original main"
    return Result(done, plan, count)


_ON_TARGET = """\
#include <string.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
#include <mine.h>
#include <mine_devicetree.h>
{head}
MINE_WORKSPACE_DEFINE(workspace);
static const struct mine_devices context = MINE_DEVICES_DT_INIT;
static struct {{ {members} }} data, found;
static uint32_t state = 7;

static void fill(uint8_t *bytes, size_t size, bool is_float)
{{
	for (size_t i = 0; i < size; i += is_float ? 4 : 1) {{
		state = state * 1664525U + 1013904223U;
		if (is_float) {{
			const float value = (float)((int32_t)state) / 536870912.0f;

			memcpy(&bytes[i], &value, 4);
		}} else {{
			bytes[i] = (uint8_t)(state >> 24);
		}}
	}}
}}

int main(void)
{{
	int same = 0;

	if (mine_open(&workspace, &context) != 0) {{
		printk("OPEN FAILED\\n");
		return 0;
	}}
	for (int i = 0; i < {count}; i++) {{
		struct tvmgen_{module}_inputs inputs = {{ {inputs} }};
		struct tvmgen_{module}_outputs outputs = {{ {outputs} }};
		const int32_t original = ({fills} tvmgen_{module}_run(&inputs, &outputs));

		memset(workspace.sram, 0xA5 + i, MINE_POOL_SRAM_SIZE);
		const int mine = mine_run(&(struct mine_inputs){{ {mine_inputs} }}, &(struct mine_outputs){{ {mine_outputs} }},
					  &workspace, &context);
		const bool equal = {equal};

		printk("case %d: %d %d %s\\n", i, (int)original, mine, equal ? "identical" : "different");
		same += original == 0 && mine == 0 && equal;
	}}
	printk("END %d of {count} identical, %u bytes\\n", same, (unsigned int)MINE_POOL_SRAM_SIZE);
	return 0;
}}
"""

_CMAKE = """
target_sources(app PRIVATE {sources})
set_source_files_properties({sources} PROPERTIES COMPILE_OPTIONS
  "-w;-DARENA={arena};-DTVMBackendAllocWorkspace=original_alloc;-DTVMBackendFreeWorkspace=original_free")
target_include_directories(app PRIVATE {folders})
"""


def compared_in_qemu(real, work, count):
    """Compare an import with the original main in one image, which QEMU runs on the processor that it requires."""
    base = find_base()
    west = find_west(base)
    missing = [p for p in ("arm-none-eabi-gcc", "qemu-system-arm", "cmake", "ninja") if shutil.which(p) is None]
    if not (base / "VERSION").is_file() or west is None or missing:
        raise NotHere(f"missing: {', '.join(missing) or 'a Zephyr workspace with west'}")
    done, plan = _imported(real, work)
    remark = _processor(done)
    machine = "an385" if remark is None or remark.endswith("(without DSP and MVE)") else "an386"
    app = generated(work)
    [record] = read_record(app)["models"]
    inputs, outputs = ([t for t in record["tensors"] if t["role"] == r] for r in ("input", "output"))
    library = read_library(real.path)
    module = read_metadata(library, real.options.module).module
    folder = app / "original"
    folder.mkdir()
    for name, content in library.files.items():
        if name.startswith("codegen/host/") and name.endswith((".c", ".h")):
            (folder / Path(name).name).write_bytes(content)
    (folder / "workspace.c").write_text(RUNTIME)
    header = read_header((folder / f"tvmgen_{module}.h").read_text())
    ins, outs = list(enumerate(inputs)), list(enumerate(outputs, len(inputs)))
    (app / "src/main.c").write_text(
        _ON_TARGET.format(
            module=module,
            head=_HEAD.format(module=module),
            count=count,
            fills=" ".join(f"fill(data.t{n}, {bytes_of(t)}, {int('float' in t['dtype'])})," for n, t in ins),
            mine_inputs=", ".join(f".{t['member']} = (const void *)data.t{n}" for n, t in ins),
            mine_outputs=", ".join(f".{t['member']} = (void *)found.t{n}" for n, t in outs),
            equal=" && ".join(f"memcmp(data.t{n}, found.t{n}, {bytes_of(t)}) == 0" for n, t in outs),
            **ports(inputs, outputs, [*header.inputs, *header.outputs]),
        )
    )
    folders = [folder, *(ROOT / "zephyr_module" / d for d in ("include", "include_tvm"))]
    sources = " ".join(f"original/{p.name}" for p in sorted(folder.glob("*.c")))
    arena = (plan[2] if plan else done.workspace_bytes) + 4096
    with (app / "CMakeLists.txt").open("a") as text:
        text.write(_CMAKE.format(sources=sources, arena=arena, folders=" ".join(map(str, folders))))
    workspace = Workspace(base, west, work)
    # Newlib is compiled already, but Zephyr's port of it needs another one for threads, which allocations require.
    threads = "    workspace:" in (work / "mine/manifest.yaml").read_text()
    libc = ["-DCONFIG_PICOLIBC=y"] if threads else ["-DCONFIG_NEWLIB_LIBC=y", "-DCONFIG_MULTITHREADING=n"]
    try:
        modules = cmsis_nn_modules(base, work) if uses_cmsis_nn(folder.glob("*.c")) else []
    except FileNotFoundError as reason:
        raise NotHere(str(reason)) from None
    options = (*libc, "-DCONFIG_MAIN_STACK_SIZE=65536", *modules)
    code, built = workspace.try_build(app, f"mps2/{machine}", *options)
    assert code == 0, built.log[-3000:]
    command = ["qemu-system-arm", "-machine", f"mps2-{machine}", "-nographic", "-kernel", str(built.elf)]
    console = console_of(command, "^END .*|FAILED", SECONDS)
    ended = re.search(r"END (\d+) of (\d+) identical, (\d+) bytes", console)
    assert ended is not None, f"{real.path}: no end in\n{console[-2000:]}"
    assert ended[1] == ended[2] == str(count), f"{real.path}: {ended[0]}"
    assert plan is None or int(ended[3]) == plan[3], f"{real.path}: {ended[3]} bytes in the image"
    return Result(done, plan, count)
