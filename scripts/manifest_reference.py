# SPDX-License-Identifier: Apache-2.0
"""Generate docs/manifest.md from the JSON Schema, the only source of the keys' descriptions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "schemas" / "device-manifest.schema.json"
PAGE = ROOT / "docs" / "manifest.md"
HEAD = """# The device manifest

A manifest declares one model: operators, tensors, constants, memory, devices and steps. `opwest check` reports all of
its errors:

<!-- run by: tests/docs/test_first_draft.py -->
```sh
opwest check manifest.yaml
```

The texts are those of [the JSON Schema](../schemas/device-manifest.schema.json). Editors with `yaml-language-server`
show them if the file begins with `# yaml-language-server: $schema=PATH/device-manifest.schema.json`.

Paths are relative to the manifest, and inside its directory. YAML 1.2's core schema applies: `on`, `no` and `y` are
strings, `1e-3` is a number, `010` is ten. [The digits example](../examples/digits/manifest.yaml) is commented.
"""


def main() -> int:
    """Write the page; with --check, only compare it."""
    page = reference(json.loads(SCHEMA.read_text(encoding="utf-8")))
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text(encoding="utf-8") != page)
    PAGE.write_text(page, encoding="utf-8")
    return 0


def reference(schema: dict[str, Any]) -> str:
    """Return the page."""
    sections = [HEAD, "## Top level\n", table(schema)]
    sections += ["## `run`\n", table(schema["properties"]["run"])]
    sections += ["## `application`\n", table(schema["properties"]["application"])]
    sections += ["## `tests`\n", table(schema["properties"]["tests"])]
    for name, rule in schema["$defs"].items():
        if "properties" in rule:
            sections += [f"## {name.replace('_', ' ')}\n", f"{rule['description']}\n", table(rule)]
    return "\n".join(sections)


def table(rule: dict[str, Any]) -> str:
    """Return the keys of one mapping."""
    required = rule.get("required", [])
    lines = ["| key | | meaning |", "|---|---|---|"]
    for key, value in rule["properties"].items():
        text = value.get("description", "").replace("|", "\\|")
        lines.append(f"| `{key}` | {'required' if key in required else ''} | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
