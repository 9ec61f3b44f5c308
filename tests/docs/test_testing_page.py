# SPDX-License-Identifier: Apache-2.0
"""docs/testing.md: its manifest is valid, its workflow has the stated number of parts, the named tests exist."""

import json
import re
from pathlib import Path

import jsonschema_rs
import yaml
from opwest.manifest.schema import schema_path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
TEMPLATES = ROOT / "project_template" / "models" / "model" / "tests"
SUITE = "".join(path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.glob("*.c.jinja")))


def block(containing: str) -> str:
    """Return the fenced YAML block that contains a text."""
    return next(text for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S) if containing in text)


def test_manifest_fits_the_schema() -> None:
    schema = json.loads(schema_path().read_bytes())
    rule = {"$schema": schema["$schema"], "$defs": schema["$defs"], **schema["properties"]["tests"]}
    given = yaml.load(block("tolerance:"), yaml.BaseLoader)["tests"]
    given["count"] = int(given["count"])
    given["tolerance"] = {name: {k: float(v) for k, v in entry.items()} for name, entry in given["tolerance"].items()}
    assert not [error.message for error in jsonschema_rs.Draft202012Validator(rule).iter_errors(given)]


def test_workflow_runs_every_part() -> None:
    job = yaml.safe_load(block("--subset"))["jobs"]["twister"]
    parts = job["strategy"]["matrix"]["part"]
    (command,) = [step["run"] for step in job["steps"] if "twister -T" in step.get("run", "")]
    assert parts == list(range(1, len(parts) + 1))
    assert f"--subset ${{{{ matrix.part }}}}/{len(parts)} " in command


def test_listed_tests_exist() -> None:
    table = PAGE.partition("| test | what |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", table, re.M)
    listed = {name.rstrip("…_") for row in rows for name in re.findall(r"`(\w+…?)`", row)}
    tests = set(re.findall(r"^ZTEST\(\{\{ suite \}\}, test_([a-z_]+)", SUITE, re.M))
    assert {name for name in listed if not any(test.startswith(name) for test in tests)} == set()
    assert {test for test in tests if not any(test.startswith(name) for name in listed)} == set()
