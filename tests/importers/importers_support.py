# SPDX-License-Identifier: Apache-2.0
"""Imports for tests: models, the emitted C on many inputs, references."""

import subprocess
from pathlib import Path

import numpy as np
from opwest.base.diagnostics import Diagnostics
from opwest.project.writer import read_record
from opwest.runs.compile import HostCompiler, build_program
from projects import check, generate
from requirements_support import need

ROOT = Path(__file__).resolve().parents[2]

_DRIVER = """\
#include <stdint.h>
#include <stdio.h>
{head}
static struct {{ {members} }} data;

int main(int argc, char **argv)
{{
	FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");

	(void)argc;
	if ({opened} != 0) {{
		return 1;
	}}
	while ({reads}) {{
		struct {prefix}_inputs inputs = {{ {inputs} }};
		struct {prefix}_outputs outputs = {{ {outputs} }};

		if ({prefix}_run(&inputs, &outputs{more}) != 0) {{
			return 2;
		}}
		{writes}
	}}
	return fclose(out) != 0;
}}
"""
_HEAD = """#include <{model}.h>
{MODEL}_WORKSPACE_DEFINE(workspace);
static const struct {model}_devices devices;"""


def need_tvm(*packages):
    """Skip unless TVM and the packages are installed."""
    need("cc", "tvm", *packages)


def planned(folder):
    """Return the checked model of an import for any processor, and its plan."""
    faults = Diagnostics()
    (model, plan), *_ = check([folder / "manifest.yaml"], faults)
    return model, plan


def generated(work, folders=("mine",), metadata="c"):
    """Generate the application of imports below `work`."""
    manifests = [work / folder / "manifest.yaml" for folder in folders]
    generate(manifests, work / "app", vendored=True, faults=Diagnostics(), metadata=metadata)
    return work / "app"


def linked(app, main, sources=(), folders=()):
    """Return the program of an application with another main function, and sources that include headers of folders."""
    work = app.parent
    (work / "driver.c").write_text(main)
    (work / "objects").mkdir()
    compiler = HostCompiler(work / "objects", None)
    for source in sources:
        compiler.compile(source, folders, ["-w"])
    build_program(app, read_record(app), compiler, [work / "driver.c"], work / "driver")
    return work / "driver"


def output_of(program, *arguments):
    done = subprocess.run([program, *arguments], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Built:
    """An import as a program of this machine."""

    def __init__(self, folder, work, metadata="c"):
        app = generated(work, [folder], metadata)
        [model] = read_record(app)["models"]
        self.outputs = [t for t in model["tensors"] if t["role"] == "output"]
        self.inputs = [t for t in model["tensors"] if t["role"] == "input"]
        self.work = work
        name, members = model["name"], [t["member"] for t in (*self.inputs, *self.outputs)]
        head = _HEAD.format(model=name, MODEL=name.upper())
        open_and_more = f"{name}_open(&workspace, &devices)", ", &workspace, &devices"
        self.program = linked(app, driver(name, head, self.inputs, self.outputs, members, *open_and_more))

    def run_bytes(self, cases):
        """Return the bytes of all outputs for the bytes of all inputs."""
        data, found = self.work / "in.bin", self.work / "out.bin"
        data.write_bytes(cases)
        output_of(self.program, data, found)
        return found.read_bytes()

    def run(self, cases):
        """Return the outputs of every case, a list of arrays each."""
        content = self.run_bytes(b"".join(np.ascontiguousarray(a).tobytes() for case in cases for a in case))
        outputs = np.dtype([(t["name"], t["dtype"], tuple(t["shape"])) for t in self.outputs])
        rows = np.frombuffer(content, outputs)
        assert len(rows) == len(cases)
        return [[row[name] for name in outputs.names] for row in rows]


def bytes_of(tensor):
    """Return the bytes of a tensor of a project's record."""
    return int(np.prod(tensor["shape"], dtype=int)) * np.dtype(tensor["dtype"]).itemsize


def ports(inputs, outputs, members):
    """Return fields of a template: the memory of all inputs and outputs, and the content of the structures of them."""
    every = [*inputs, *outputs]
    pointers = [f".{member} = (void *)data.t{n}" for n, member in enumerate(members)]
    return {
        "members": " ".join(
            f"_Alignas({max(64, t['align'])}) uint8_t t{n}[{bytes_of(t)}];" for n, t in enumerate(every)
        ),
        "inputs": ", ".join(pointers[: len(inputs)]),
        "outputs": ", ".join(pointers[len(inputs) :]),
    }


def driver(prefix, head, inputs, outputs, members, opened="0", more=""):
    """Return a main function that runs a model on each case of a file; `members` are those of its structures."""
    reads = (f"fread(data.t{n}, {bytes_of(t)}, 1, in) == 1" for n, t in enumerate(inputs))
    writes = (f"fwrite(data.t{n}, {bytes_of(t)}, 1, out);" for n, t in enumerate(outputs, len(inputs)))
    fields = {"reads": " && ".join(reads), "writes": " ".join(writes), **ports(inputs, outputs, members)}
    return _DRIVER.format(prefix=prefix, head=head, opened=opened, more=more, **fields)
