# SPDX-License-Identifier: Apache-2.0
"""Add the front end to the imported model: operators, tables, steps, and vectors with the answers of a reference."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import features
import numpy as np
import yaml

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

HERE = Path(__file__).resolve().parent
ADDED = HERE / "front_end.yaml"


def add(model: Path, file: Path, audio: Array) -> None:
    """Change an imported model (a directory) so that its input is sound; `audio`, [runs, 1600], becomes its vectors."""
    path = model / "manifest.yaml"
    text = path.read_text(encoding="utf-8")
    run = yaml.safe_load(text)["run"]
    (name, port), (output,) = next(iter(run["inputs"].items())), run["outputs"]
    tables = features.tables(**port["quantization"])
    path.write_text(merged(text, ADDED.read_text(encoding="utf-8").replace("input_1", name)), encoding="utf-8")
    shutil.copy(HERE / "operators" / "features.c", model)
    np.savez(model / "features.npz", **tables)
    front = features.FrontEnd(tables)
    inputs = np.stack([front.run(block) for block in audio])[..., None]
    np.savez(model / "features_of_vectors.npz", features=inputs)
    np.savez(model / "vectors.npz", **{"audio": audio, output: answers(file, inputs)})


def merged(text: str, added: str) -> str:
    """Return the text of an imported manifest with the entries of another one at the begin of its sections."""
    return "\n".join(_with_entries(text.splitlines(), _sections(added.splitlines()))) + "\n"


def _with_entries(manifest: list[str], extra: dict[str, list[str]]) -> list[str]:
    lines = []
    for header, body in _sections(manifest).items():
        if header == "  steps:" and "  state:" in extra:
            lines += ["  state:", *extra["  state:"]]
        old = [] if header == "  inputs:" else body  # what was the input is a tensor between steps now
        if header == "  outputs:":
            words = ", ".join(f'"{word}"' for word in features.WORDS)  # "no" and "on" are quoted as in YAML 1.1
            old = [f"{body[0][:-1]},", f"             labels: [{words}]}}"]
        if header == "variants:":
            old = _variants(body, {name: entries for name, entries in extra.items() if name != "  state:"})
        lines += [header, *(line for line in extra.get(header, []) if header and line), *old]
    return lines[1:]


def _variants(lines: list[str], extra: dict[str, list[str]]) -> list[str]:
    """Return the variants with the entries: a section of a variant replaces that of the manifest as a whole."""
    found = []
    starts = [number for number, line in enumerate(lines) if re.match(r"  \w+:$", line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = [line for line in lines[start + 1 : end] if line.startswith(" ")]
        comment = lines[start + 1 + len(body) : end]  # of the section after the variants
        changed = _with_entries([line[4:] for line in body], extra)
        found += [lines[start], *(f"    {line}" for line in changed), *comment]
    return found


def _sections(lines: list[str]) -> dict[str, list[str]]:
    """Return the lines of each section, and of each section in `run`, by its first line."""
    found: dict[str, list[str]] = {"": []}
    parent = header = ""
    for line in lines:
        if re.match(r"\w+:$" if parent != "run:" else r"(  )?\w+:$", line):
            header = line
            parent = parent if line.startswith(" ") else line
            found[header] = []
        else:
            found[header].append(line)
    return found


def answers(file: Path, inputs: Array) -> Array:
    """Return the scores of features, [runs, 1, 12], from LiteRT's reference kernels; without LiteRT, from opwest."""
    from opwest.imports.comparison import answers as answers_of_model

    return np.stack([case[0] for case in answers_of_model(file, [[one[None]] for one in inputs])])
