# SPDX-License-Identifier: Apache-2.0
"""The kind of `opwest import MODEL`, from the file."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

KINDS = ("tflite", "onnx", "tvm", "mlf", "vela")
"""The kinds of imports."""
_WITH_VALUES = frozenset(
    "-o --output --model --vectors --signature --compare --kernels --rounding --operator --optimize --max-flash "
    "--max-ram --prefer --with --tuning --io --place --pool --color --npu --npu-config --system-config --memory-mode "
    "--board".split()
)
"""Options whose value is no model."""


def with_kind(words: Sequence[str]) -> list[str]:
    """Return the words of a command line; `opwest import MODEL` gets the kind that the file requires."""
    given = list(words)
    files = [word for before, word in itertools.pairwise(given) if before not in _WITH_VALUES]
    if given[:1] != ["import"] or any(word in (*KINDS, "-h", "--help") for word in files):
        return given
    found = next((_kind(Path(word)) for word in files if Path(word).exists()), None)
    if found is None:
        found = next((word.rpartition(".")[2] for word in files if word.endswith((".tflite", ".onnx"))), None)
    return given if found is None else ["import", found, *given[1:]]


def _kind(path: Path) -> str:
    """Return the kind of an existing model: by its content, and for other files than TFLite's by its name."""
    if path.is_dir() or path.suffix == ".tar":
        return "mlf"
    if path.suffix == ".npz" or path.name.endswith("_vela.tflite"):
        return "vela"
    try:
        with path.open("rb") as stream:
            is_tflite = stream.read(8)[4:] == b"TFL3"
    except OSError:  # the import reports it
        is_tflite = path.suffix != ".onnx"
    return "tflite" if is_tflite or path.suffix == ".tflite" else "onnx"
