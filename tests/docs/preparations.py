# SPDX-License-Identifier: Apache-2.0
"""The files that the commands of a page need."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from in_process import succeed
from pages import ROOT
from requirements_support import need

sys.path.insert(0, str(ROOT / "tests" / "unit" / "manifest"))  # the example without compiled objects

from manifest_support import copy_digits

TWO_MODELS = """version: 1
model: {name}
objects: [{{files: [{name}.c]}}]
operators: {{reduce: {{returns: {{name: y, dtype: int32}}, args: [{{name: x, dtype: int16, shape: [8]}}]}}}}
run:
  inputs: {{x: {{dtype: int16, shape: [8]}}}}
  outputs: {{y: {{dtype: int32, shape: [1]}}}}
  steps: [{{call: reduce, args: [x, y]}}]
"""
SMALL = ROOT / "tests" / "golden" / "minimal"


OPERATORS = {
    "centre": """(const int16_t sound[256], int16_t frame[256])
{
	int32_t sum = 0;

	for (int i = 0; i < 256; i++) {
		sum += sound[i];
	}
	for (int i = 0; i < 256; i++) {
		frame[i] = (int16_t)(sound[i] - sum / 256);
	}
	return 0;
}
""",
    "bands": """(const int16_t frame[256], float energy[4])
{
	for (int i = 0; i < 256; i++) {
		energy[i / 64] = (i % 64 ? energy[i / 64] : 0) + frame[i] * frame[i] / 64.0f;
	}
	return 0;
}
""",
}


def readme(folder: Path) -> None:
    """A model with an input; the archive of the header on the page, without debug information, and an input."""
    need("tflite")
    from models.commands import dense

    dense("int8", results=8).save(folder / "model.tflite")
    np.save(folder / "image.npy", np.arange(-20, 20, dtype=np.int8).reshape(1, 40))
    archive(folder)
    np.save(folder / "sound.npy", (1000 * np.sin(np.arange(256) / 3)).astype(np.int16))


def archive(folder: Path) -> None:
    """The archive of README.md."""
    need("cc", "ar", "strip")
    bodies = "".join(f"int32_t {name}{body}" for name, body in OPERATORS.items())
    for command in ("cc -Os -x c -c - -o ops.o", "ar rcs libops.a ops.o", "strip --strip-debug libops.a"):
        given = f"#include <stdint.h>\n{bodies}" if "-x c" in command else None
        subprocess.run(command.split(), cwd=folder, input=given, text=True, check=True)
    (folder / "ops.o").unlink()


def regeneration(folder: Path) -> None:
    """Projects, one with a copied manifest, and the template directory of the page."""
    for place in (".", "models", "firmware/one", "firmware/two"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name in ("manifest.yaml", "negate.c"):
            shutil.copy(SMALL / name, folder / place)
    for place in (".", "firmware/one", "firmware/two"):
        succeed("generate", folder / place / "manifest.yaml", "-o", folder / place / "app")
    layout = re.search(r"^company/\n((?:  .*\n)+)", (ROOT / "docs" / "module.md").read_text(), re.MULTILINE)
    assert layout is not None
    for line in layout[1].splitlines():
        path = folder / "company" / line.split()[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{{ application }}\n" if path.name == "NOTES.md.jinja" else "\n")


def digits(folder: Path) -> None:
    """The example, its operators as C sources, and an image."""
    succeed("generate", copy_digits(folder), "-o", folder / "app")
    np.save(folder / "image.npy", np.zeros((1, 8, 8, 1), np.int8))


def report(folder: Path) -> None:
    """The same with measurements of a run, an earlier report, and a table of buffers, MiniMalloc's example."""
    digits(folder)
    lines = ("id,lower,upper,size", "b1,0,3,4", "b2,3,9,4", "b3,0,9,4", "b4,9,21,4", "b5,0,21,4")
    (folder / "buffers.csv").write_text("\n".join(lines) + "\n")
    done = succeed("run", folder / "app", "--host", "--input", f"image={folder}/image.npy", "--json")
    (folder / "run.json").write_text(done.stdout, encoding="utf-8")
    succeed("report", folder / "app", "-o", folder / "old.html")


def two_models(folder: Path) -> None:
    """Manifests of two models with operators of one name, and an input."""
    for name, result in (("mean", "sum / 8"), ("peak", "x[7]")):
        body = f"int32_t sum = 0; for (int i = 0; i < 8; i++) {{ sum += x[i]; }} return {result};"
        source = f"#include <stdint.h>\nint32_t reduce(const int16_t *x) {{ {body} }}\n"
        (folder / f"{name}.c").write_text(source)
        (folder / f"{name}.yaml").write_text(TWO_MODELS.format(name=name))
    np.save(folder / "x.npy", np.arange(8, dtype=np.int16))


def repository(folder: Path) -> None:
    """A clone of the repository."""
    (folder / "opwest").symlink_to(ROOT)


PREPARATIONS: dict[str, Callable[[Path], None]] = {
    "README.md": readme,
    "drivers-in-bundles.md": repository,
    "module.md": regeneration,
    "report.md": report,
    "using-a-model.md": two_models,
    "writing-drivers.md": repository,
}
