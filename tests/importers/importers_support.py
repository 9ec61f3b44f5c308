# SPDX-License-Identifier: Apache-2.0
"""Imports for tests: models, the emitted C on many inputs, references."""

import subprocess
from pathlib import Path

import numpy as np
from opwest.diagnostics import Diagnostics
from opwest.host.compile import HostCompiler, build_program
from opwest.write.writer import read_record
from projects import check, generate
from requirements_support import need

ROOT = Path(__file__).resolve().parents[2]

_DRIVER = """\
#include <stdio.h>
#include <{model}.h>

{MODEL}_WORKSPACE_DEFINE(workspace);
static const struct {model}_devices devices;
static struct {{ {members} }} data;

int main(int argc, char **argv)
{{
	FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
	(void)argc;
	if ({model}_open(&workspace, &devices) != 0) {{
		return 1;
	}}
	while ({reads}) {{
		struct {model}_inputs inputs = {{ {inputs} }};
		struct {model}_outputs outputs = {{ {outputs} }};
		if ({model}_run(&inputs, &outputs, &workspace, &devices) != 0) {{
			return 2;
		}}
{writes}
	}}
	return fclose(out) != 0;
}}
"""


def need_tvm(*packages):
    """Skip unless TVM and the packages are installed."""
    need("cc", "tvm", *packages)


def planned(folder):
    """Return the checked model of an import for any processor, and its plan."""
    faults = Diagnostics()
    (model, plan), *_ = check([folder / "manifest.yaml"], faults)
    return model, plan


class Built:
    """An import as a program of this machine."""

    def __init__(self, folder, work, metadata="c"):
        app = work / "app"
        generate([folder / "manifest.yaml"], app, vendored=True, faults=Diagnostics(), metadata=metadata)
        record = read_record(app)
        [model] = record["models"]
        self.outputs = [t for t in model["tensors"] if t["role"] == "output"]
        self.inputs = [t for t in model["tensors"] if t["role"] == "input"]
        self.work = work
        self.program = work / "driver"
        source = work / "driver.c"
        source.write_text(_driver(model["name"], self.inputs, self.outputs))
        objects = work / "objects"
        objects.mkdir()
        build_program(app, record, HostCompiler(objects, None), [source], self.program)

    def run_bytes(self, cases):
        """Return the bytes of all outputs for the bytes of all inputs."""
        data, found = self.work / "in.bin", self.work / "out.bin"
        data.write_bytes(cases)
        done = subprocess.run([self.program, data, found], check=False, timeout=300, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return found.read_bytes()

    def run(self, cases):
        """Return the outputs of every case, a list of arrays each."""
        content = self.run_bytes(b"".join(np.ascontiguousarray(a).tobytes() for case in cases for a in case))
        results, at = [], 0
        for _ in cases:
            results.append([])
            for tensor in self.outputs:
                shape, dtype = tuple(tensor["shape"]), np.dtype(tensor["dtype"])
                size = int(np.prod(shape, dtype=int)) * dtype.itemsize
                results[-1].append(np.frombuffer(content[at : at + size], dtype).reshape(shape))
                at += size
        assert at == len(content)
        return results


def _driver(model, inputs, outputs):
    def size(t):
        return int(np.prod(t["shape"], dtype=int)) * np.dtype(t["dtype"]).itemsize

    def c_type(t):
        return {"float32": "float", "float64": "double", "bool": "uint8_t"}.get(t["dtype"], f"{t['dtype']}_t")

    def count(t):
        return int(np.prod(t["shape"], dtype=int))

    return _DRIVER.format(
        model=model,
        MODEL=model.upper(),
        members=" ".join(f"_Alignas({t['align']}) {c_type(t)} {t['name']}[{count(t)}];" for t in [*inputs, *outputs]),
        reads=" && ".join(f"fread(data.{t['name']}, {size(t)}, 1, in) == 1" for t in inputs),
        inputs=", ".join(f".{t['member']} = data.{t['name']}" for t in inputs),
        outputs=", ".join(f".{t['member']} = data.{t['name']}" for t in outputs),
        writes="\n".join(f"\t\tfwrite(data.{t['name']}, {size(t)}, 1, out);" for t in outputs),
    )
