# SPDX-License-Identifier: Apache-2.0
"""Zephyr's checkpatch, and the remarks that remain in the C of the runtime and in generated C, with their reasons."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path

import pytest
from requirements_support import need, skip_here

OPTIONS = ["--summary-file", "--typedefsfile=scripts/checkpatch/typedefsfile", "--max-line-length=100"]
OPTIONS += ["--ignore", "PRINTK_WITHOUT_KERN_LEVEL,SPLIT_STRING,VOLATILE,PREFER_KERNEL_TYPES"]
OPTIONS += ["--ignore", "PREFER_SECTION,AVOID_EXTERNS,NETWORKING_BLOCK_COMMENT_STYLE,DATE_TIME,MINMAX,CONST_STRUCT"]
OPTIONS += ["--ignore", "SPDX_LICENSE_TAG,C99_COMMENT_TOLERANCE,REPEATED_WORD,TRAILING_SEMICOLON,COMPLEX_MACRO"]
OPTIONS += ["--ignore", "MULTISTATEMENT_MACRO_USE_DO_WHILE,ENOSYS,IS_ENABLED_CONFIG,EXPORT_SYMBOL,FILE_PATH_CHANGES"]
"""Those of Zephyr's .checkpatch.conf, for a tree without this file."""
ALLOWED = {
    ("BYTE_ORDER", "runtime/include/opwest/port.h"): "a host and the image of a bundle have no CONFIG_BIG_ENDIAN",
    ("MACRO_WITH_FLOW_CONTROL", "runtime/conformance/src/cases.h"): "a failed check ends its case, as zassert does",
    ("DEEP_INDENTATION", "import/*/operators.c"): "the loops of a window; a function for the inner ones costs calls",
}
"""The reasons for what remains, by type and file."""
_ROW = re.compile(r"(.*):(\d+): (?:ERROR|WARNING|CHECK):(\w+): (.*)")


def zephyr_with_checkpatch() -> Path:
    """Return the newest tree of Zephyr with checkpatch, if possible with its configuration."""
    need("perl")
    named = [Path(os.environ["ZEPHYR_BASE"])] if "ZEPHYR_BASE" in os.environ else []
    trees = [*named, *sorted(Path.home().glob("zephyrproject*/zephyr"))]
    found = [path for path in trees if (path / "scripts" / "checkpatch.pl").is_file()]
    if not found:
        skip_here("no Zephyr tree with scripts/checkpatch.pl: neither ZEPHYR_BASE nor ~/zephyrproject*/zephyr")
    return max(found, key=lambda path: ((path / ".checkpatch.conf").is_file(), str(path)))


Remark = tuple[str, str, str]
"""A type, the name of a file, and line and text."""


def remarks(zephyr: Path, files: Mapping[str, str], work: Path) -> list[Remark]:
    """Return what checkpatch reports of texts by name, with one process for all files."""
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    options = [] if (zephyr / ".checkpatch.conf").is_file() else OPTIONS
    words = ["perl", "scripts/checkpatch.pl", "--no-tree", "--quiet", "--terse", "--show-types", *options, "--file"]
    words += [str(work / name) for name in files]
    done = subprocess.run(words, cwd=zephyr, capture_output=True, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if " total: " not in line]
    assert len(done.stdout.splitlines()) - len(rows) == len(files), done.stderr
    found = [_ROW.fullmatch(line) or pytest.fail(line) for line in rows]
    return [(row[3], str(Path(row[1]).relative_to(work)), f"{row[2]}: {row[4]}") for row in found]


def unexpected(found: Iterable[Remark]) -> list[Remark]:
    """Return the remarks without a reason in ALLOWED."""
    return [row for row in found if not any(row[0] == kind and fnmatch(row[1], name) for kind, name in ALLOWED)]
