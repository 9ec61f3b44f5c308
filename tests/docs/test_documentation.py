# SPDX-License-Identifier: Apache-2.0
"""The README's example, generated pages, links, and docs/testing.md are current."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import numpy as np
import pytest
import yaml
from in_process import fail, succeed
from opwest.manifest.schema import schema_path
from pages import PAGES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, containing: str) -> str:
    """Return the fenced block of a language that contains a text."""
    parts = re.split(r"^```(.*)$\n?", README, flags=re.MULTILINE)  # text, language, block, "", text, ...
    blocks = zip(parts[1::4], parts[2::4], strict=False)
    return next(text for name, text in blocks if name == language and containing in text)


def write_example(folder: Path) -> None:
    (folder / "operators.c").write_text(block("c", "int32_t scale"))
    (folder / "manifest.yaml").write_text(block("yaml", "model: twice"))


def test_example_computes_the_expected_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    for arguments in (["check", "manifest.yaml"], ["generate", "manifest.yaml", "-o", "app"], ["run", "app", "--host"]):
        succeed(*arguments)
    np.save(tmp_path / "x.npy", np.array([1, -2, 3, 1000], np.int16))
    words = ("run", "app", "--host", "--input", "x=x.npy", "--output-dir", ".")
    succeed(*words)
    assert np.load(tmp_path / "y.npy").tolist() == [4, -8, 12, 4000]


def test_documented_error_message_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(manifest.read_text().replace("args: [doubled, 2, y]", "args: [duobled, 2, y]"))
    assert block("", "duobled") in fail("check", "manifest.yaml").stderr


def test_manifest_reference_is_current() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "manifest_reference.py", "--check"], check=False)
    assert done.returncode == 0, "run scripts/manifest_reference.py"


def test_links_have_targets() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


# --- docs/testing.md: its manifest is valid, its workflow has the stated number of parts, the named tests exist

PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
TEMPLATES = ROOT / "project_template" / "models" / "model" / "tests"
SUITE = "".join(path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.glob("*.c.jinja")))


def block_page(containing: str) -> str:
    """Return the fenced YAML block that contains a text."""
    return next(text for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S) if containing in text)


def test_manifest_fits_the_schema() -> None:
    schema = json.loads(schema_path().read_bytes())
    rule = {"$schema": schema["$schema"], "$defs": schema["$defs"], **schema["properties"]["tests"]}
    given = yaml.load(block_page("tolerance:"), yaml.BaseLoader)["tests"]
    given["count"] = int(given["count"])
    given["tolerance"] = {name: {k: float(v) for k, v in entry.items()} for name, entry in given["tolerance"].items()}
    assert not [error.message for error in jsonschema_rs.Draft202012Validator(rule).iter_errors(given)]


def test_workflow_runs_every_part() -> None:
    job = yaml.safe_load(block_page("--subset"))["jobs"]["twister"]
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
