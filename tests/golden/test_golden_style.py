# SPDX-License-Identifier: Apache-2.0
"""The style of emitted C, over all golden projects: line length, macro prefixes, no bare offsets."""

import re

LINE = 100


def test_emitted_c(tree):
    _, emission = tree
    models = {model.name.upper() for model, _ in emission.planned}
    copies = {path.name for path in emission.source.rglob("*")}
    checked = [
        path
        for path in emission.files
        if path.endswith((".c", ".h"))
        and (path.startswith("models/") or path == "src/main.c")
        and path.split("/")[-1] not in copies
    ]
    assert len(checked) > 5
    for path in checked:
        text = emission.files[path].decode()
        name = path.split("/")[-1]
        assert not [line for line in text.split("\n") if len(line.expandtabs(8)) > LINE], path
        if name != "rename.h" and not name.startswith("tvmgen_"):  # names of microTVM
            macros = re.findall(r"^#\s*define (\w+)", text, re.MULTILINE)
            others = [m for m in macros if not m.startswith(("OPWEST_", *(f"{model}_" for model in models)))]
            assert others == (["printk"] if name == "main.c" else []), path  # without Zephyr's header
        assert not re.search(r"pool_\w+ \+ \d", text), path
