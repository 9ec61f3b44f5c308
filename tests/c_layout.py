# SPDX-License-Identifier: Apache-2.0
"""The layout of C source text by clang-format 19, which tests compare with that of opwest."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from requirements_support import need

ROOT = Path(__file__).resolve().parents[1]
STYLE = ROOT / ".clang-format"


def laid_out(texts: Iterable[str], work: Path, style: Path = STYLE) -> list[str]:
    """Return the texts in the layout of clang-format, with one process for all; `work` is an empty directory."""
    need("clang_format")
    paths = []
    for number, text in enumerate(texts):
        paths.append(work / f"{number}.c")
        paths[-1].write_text(text, encoding="utf-8")
    import clang_format

    program = Path(clang_format.__file__).parent / "data" / "bin" / "clang-format"
    subprocess.run([program, f"--style=file:{style}", "-i", *map(str, paths)], check=True)
    return [path.read_text(encoding="utf-8") for path in paths]


def differing(texts: Mapping[str, str], work: Path, style: Path = STYLE) -> list[str]:
    """Return the names of the texts that clang-format changes. Equal texts are laid out once."""
    names = {text: name for name, text in texts.items()}
    expected = laid_out(names, work, style)
    return [name for (text, name), other in zip(names.items(), expected, strict=True) if text != other]
