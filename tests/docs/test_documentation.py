# SPDX-License-Identifier: Apache-2.0
"""Generated pages, the size of the pages, links, and docs/testing.md."""

import json
import re
import runpy
import subprocess
import sys

import jsonschema_rs
import pytest
import yaml
from opwest.manifest.schema import schema_path
from pages import COMMANDS, PAGES, ROOT, block, blocks


@pytest.mark.parametrize("command", ["manifest_reference.py --check", "command_reference.py"])
def test_generated_pages_are_current(command: str) -> None:
    script, *options = command.split()
    done = subprocess.run([sys.executable, ROOT / "scripts" / script, *options], check=False)
    assert done.returncode == 0, f"run python scripts/{script} (--write)"


def test_size_of_the_pages_for_users() -> None:
    """Those of the sidebar, compilers included: what a user may have to read."""
    size = runpy.run_path(str(ROOT / "scripts" / "docs_size.py"))
    pages = size["users_pages"]()
    assert len(pages) <= size["PAGES"] and sum(map(size["words"], pages)) <= size["WORDS"], (
        "python scripts/docs_size.py"
    )


def test_pages_for_users_begin_with_a_command() -> None:
    for page in runpy.run_path(str(ROOT / "scripts" / "docs_size.py"))["users_pages"]():
        first = next((block for block in blocks(page) if block.language in (*COMMANDS, "c", "cmake")), None)
        assert first is not None and first.section == "", f"{page.name}: expected a command before the first section"


def test_files_of_pages_have_visible_names() -> None:
    """The comment that names a file is not shown."""
    for page in runpy.run_path(str(ROOT / "scripts" / "docs_size.py"))["users_pages"]():
        for before, name in re.findall(r"(.*)\n+<!-- file: (\S+) -->", page.read_text(encoding="utf-8")):
            assert f"`{name}`" in before, f"{page.name}: expected a line with `{name}` before the block"


def test_links_have_targets() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


# --- docs/testing.md: its manifest is valid, its workflow has the stated number of parts, the named tests exist

TESTING = ROOT / "docs" / "testing.md"
TEMPLATES = ROOT / "project_template" / "models" / "model" / "tests"
SUITE = "".join(path.read_text(encoding="utf-8") for path in sorted(TEMPLATES.glob("*.c.jinja")))


def test_manifest_fits_the_schema() -> None:
    schema = json.loads(schema_path().read_bytes())
    rule = {"$schema": schema["$schema"], "$defs": schema["$defs"], **schema["properties"]["tests"]}
    given = yaml.load(block(TESTING, "yaml", "tolerance:"), yaml.BaseLoader)["tests"]
    given["count"] = int(given["count"])
    given["tolerance"] = {name: {k: float(v) for k, v in entry.items()} for name, entry in given["tolerance"].items()}
    assert not [error.message for error in jsonschema_rs.Draft202012Validator(rule).iter_errors(given)]


def test_workflow_runs_every_part() -> None:
    job = yaml.safe_load(block(TESTING, "yaml", "--subset"))["jobs"]["twister"]
    parts = job["strategy"]["matrix"]["part"]
    (command,) = [step["run"] for step in job["steps"] if "twister -T" in step.get("run", "")]
    assert parts == list(range(1, len(parts) + 1))
    assert f"--subset ${{{{ matrix.part }}}}/{len(parts)} " in command


def test_listed_tests_exist() -> None:
    table = TESTING.read_text(encoding="utf-8").partition("| test | what |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", table, re.M)
    listed = {name.rstrip("…_") for row in rows for name in re.findall(r"`(\w+…?)`", row)}
    tests = set(re.findall(r"^ZTEST\(\{\{ suite \}\}, test_([a-z_]+)", SUITE, re.M))
    assert {name for name in listed if not any(test.startswith(name) for test in tests)} == set()
    assert {test for test in tests if not any(test.startswith(name) for name in listed)} == set()
