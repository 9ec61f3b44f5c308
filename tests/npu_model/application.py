# SPDX-License-Identifier: Apache-2.0
"""Emitted applications on the host whose launches of the NPU run on the functional model."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import yaml
from in_process import succeed
from opwest.frontends.vela.request import Options
from opwest.imports.vela import import_vela

from npu_model.vela_support import file_of

TESTS = Path(__file__).resolve().parents[1]
DRIVER = TESTS / "npu_model" / "program" / "ethos_u_on_model.c"


def vela(content: bytes, folder: Path, *options: str) -> Path:
    """Write the file that Vela makes of a model, and return its path."""
    made = folder / f"m_vela.{'npz' if '--output-format=raw' in options else 'tflite'}"
    made.write_bytes(file_of(content, *options))
    return made


@dataclass(frozen=True)
class Application:
    """A generated application of an import, with the function in place of the driver."""

    folder: Path
    manifest: str

    def _run(self, section: str) -> list[Any]:
        """Return the inputs, the outputs or the steps of the manifest, in its order, which is the file's."""
        return list(yaml.safe_load(self.manifest)["run"][section])

    def steps(self) -> list[str]:
        """Return the operator of each step: `npu` is the one of all subgraphs for the NPU."""
        return [step["call"] for step in self._run("steps")]

    def run(self, cases: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return the outputs of each case. All cases are runs of one process, in one workspace."""
        work, results = self.folder / "npu", self.folder / "results"
        work.mkdir(exist_ok=True)
        (work / "launches").unlink(missing_ok=True)
        words: list[object] = ["run", self.folder / "app", "--host", "--output-dir", results]
        for number, name in enumerate(self._run("inputs")):
            np.save(self.folder / f"{name}.npy", np.stack([np.asarray(case[number]) for case in cases]))
            words += ["--stream", f"{name}={self.folder / f'{name}.npy'}"]
        paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            "PYTHONPATH": os.pathsep.join(paths),
            "OPWEST_NPU_MODEL": f"{shlex.quote(sys.executable)} -m npu_model",
            "OPWEST_NPU_FOLDER": str(work),
            "OPENBLAS_NUM_THREADS": "1",  # its threads take longer to start than the layers
        }
        with patch.dict(os.environ, environment):
            succeed(*words)
        assert len((work / "launches").read_text().splitlines()) == self.steps().count("npu") * len(cases)
        outputs = [np.load(results / f"{name}.npy") for name in self._run("outputs")]
        return [[one[number] for one in outputs] for number in range(len(cases))]


def application(file: Path, folder: Path, **options: Any) -> Application:
    """Import a file of Vela, or with `npu` a model, and generate its application."""
    import_vela(file, folder / "model", Options(**{"kernels": "portable", **options}))
    return generated(folder)


def generated(folder: Path) -> Application:
    manifest = (folder / "model" / "manifest.yaml").read_text()
    (folder / "model" / DRIVER.name).write_bytes(DRIVER.read_bytes())
    driver = f"{{files: [{DRIVER.name}], uses: [io, nondeterminism, control]}}"  # files and a process of the model
    own = manifest.replace("- {files: [npu.c]}", f"- {{files: [npu.c]}}\n  - {driver}")
    assert DRIVER.name in own
    # The host has no driver of Zephyr.
    (folder / "model" / "manifest.yaml").write_text(own.partition("\napplication:")[0] + "\n")
    succeed("generate", folder / "model" / "manifest.yaml", "-o", folder / "app")
    return Application(folder, manifest)
