# SPDX-License-Identifier: Apache-2.0
"""One application of several imported models that print their results of sequences of inputs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from opwest.project.writer import read_record

_MAIN_C = """\
#include <stdint.h>
#include <stdio.h>

static void show(const char *model, int run, int result, const uint8_t *bytes, unsigned int size)
{{
	printf("%s %d %d ", model, run, result);
	for (unsigned int i = 0; i < size; i++) {{
		printf("%02x", bytes[i]);
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
#include <{name}.h>
#ifdef __ZEPHYR__
#include <{name}_devicetree.h>
#endif

{NAME}_WORKSPACE_DEFINE({name}_workspace);
static const struct {name}_devices {name}_context = {NAME}_DEVICES_DT_INIT;
{arrays}

static int try_{name}(void)
{{
	int rc = {name}_open(&{name}_workspace, &{name}_context);

	for (int i = 0; rc == 0 && i < {count}; i++) {{
		rc = {name}_run(&(struct {name}_inputs){{{inputs}}}, &(struct {name}_outputs){{{outputs}}},
				&{name}_workspace, &{name}_context);
{shown}
	}}
	return rc;
}}
"""


@dataclass(frozen=True)
class Subject:
    """A model file with the inputs of each run, and the expected results."""

    name: str
    file: Path | None
    inputs: Sequence[Sequence[np.ndarray[Any, Any]]]
    outputs: Sequence[Sequence[np.ndarray[Any, Any]]]
    options: tuple[str, ...] = ()
    """Options of the import, instead of those of the application."""
    align: int = 8
    """The alignment of inputs and outputs."""

    def parsed(self, console, end=0):
        """Return the results of each run on the console of an image."""
        assert f"finished: {end}" in console, console[-2000:]
        lines = re.findall(rf"^{self.name} (\d+) (\d+) ([0-9a-f]+)$", console, re.MULTILINE)
        texts = {(int(run), int(result)): text for run, result, text in lines}
        return [
            [
                np.frombuffer(bytes.fromhex(texts[run, number]), one.dtype).reshape(one.shape)
                for number, one in enumerate(arrays)
            ]
            for run, arrays in enumerate(self.outputs)
        ]


def application(opwest, folder, subjects, *options):
    """Import the models with options, and generate their application, whose main() runs each sequence."""
    for subject in subjects:
        words = ["--model", subject.name, "--vectors", 0, *(subject.options or options)]
        opwest("import", subject.file, "-o", folder / subject.name, *words)
    opwest("generate", *(folder / one.name / "manifest.yaml" for one in subjects), "-o", folder / "app")
    assert {one.name for one in subjects} == {model["name"] for model in read_record(folder / "app")["models"]}
    (folder / "app" / "src" / "main.c").write_text(main_of(subjects))
    return folder / "app"


def main_of(subjects):
    """Return the text of main()."""
    calls = " + ".join(f"try_{one.name}()" for one in subjects)
    return _MAIN_C.format(models="\n".join(map(_part, subjects)), calls=calls)


def _part(subject):
    name, arrays, inputs, outputs, shown = subject.name, [], [], [], []
    for number, given in enumerate(zip(*subject.inputs, strict=True)):
        rows = ",\n".join("{{" + ",".join(map(str, one.tobytes())) + "}}" for one in given)
        array = f"{name}_x{number}"
        # Rows of whole words: the second one is aligned too.
        row = f"_Alignas({subject.align}) uint8_t of[{given[0].nbytes}];"
        arrays.append(f"static const struct {{ {row} }} {array}[] = {{{rows}}};")
        inputs.append(f"(const void *){array}[i].of")
    for number, one in enumerate(subject.outputs[0]):
        array = f"{name}_y{number}"
        arrays.append(f"static _Alignas({subject.align}) uint8_t {array}[{one.nbytes}];")
        outputs.append(f"(void *){array}")
        shown.append(f'\t\tshow("{name}", i, {number}, {array}, sizeof({array}));')
    return _ONE.format(
        name=name,
        NAME=name.upper(),
        arrays="\n".join(arrays),
        count=len(subject.inputs),
        inputs=", ".join(inputs),
        outputs=", ".join(outputs),
        shown="\n".join(shown),
    )
