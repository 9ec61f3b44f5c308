# SPDX-License-Identifier: Apache-2.0
"""The style of emitted C, over all golden projects: line length, macro prefixes, no bare offsets."""

import re
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent
EMITTED = sorted(
    path
    for project in GOLDEN.glob("*/expected")
    for path in (*project.glob("models/*/**/*"), *project.glob("src/main.c"))
    if path.suffix in (".c", ".h") and "/objects/any/operators" not in path.as_posix()
)
LINE = 100


def test_there_is_something_to_check():
    assert len(EMITTED) > 50


@pytest.mark.parametrize("path", EMITTED, ids=lambda p: p.relative_to(GOLDEN).as_posix())
def test_emitted_c(path):
    text = path.read_text(encoding="utf-8")
    long = [line for line in text.split("\n") if len(line.expandtabs(8)) > LINE]
    assert not long
    if path.name != "rename.h" and not path.name.startswith("tvmgen_"):  # names of microTVM
        macros = re.findall(r"^#\s*define (\w+)", text, re.MULTILINE)
        models = {
            folder.name.upper() for folder in (GOLDEN / path.relative_to(GOLDEN).parts[0]).glob("expected/models/*")
        }
        others = [m for m in macros if not m.startswith(("OPWEST_", *(f"{model}_" for model in models)))]
        assert others == (["printk"] if path.name == "main.c" else [])  # without Zephyr's header
    assert not re.search(r"pool_\w+ \+ \d", text)
