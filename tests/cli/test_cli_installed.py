# SPDX-License-Identifier: Apache-2.0
"""opwest installed from a wheel contains its schemas, templates and runtime, and works in any directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from golden_support import copy_project, emitted, generate_project
from requirements_support import absent

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a directory with opwest installed from a wheel; the build requires hatchling."""
    target = tmp_path_factory.mktemp("site") / "packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(ROOT)]
    command += ["--disable-pip-version-check", "--no-input", "--retries", "0", "--timeout", "10"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except subprocess.TimeoutExpired:
        absent("pip install --target took more than two minutes: no network for hatchling?", "hatchling")
    if done.returncode:
        absent(f"pip cannot build the wheel (no hatchling, or no network): {done.stderr.strip()[-300:]}", "hatchling")
    return target


def run(installed, *arguments, cwd):
    """Run the installed package, without the checkout in sys.path."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    code = "import sys, opwest; assert opwest.__file__.startswith(sys.argv.pop(1)), opwest.__file__; "
    code += "from opwest.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, str(installed), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_wheel_contains_its_resources(installed):
    share = installed / "opwest" / "_share"
    for folder in ("schemas", "project_template", "zephyr_module"):
        assert files_of(share / folder) == files_of(ROOT / folder)


def files_of(folder):
    """Return all files of a directory except compiled Python files."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder): path.read_bytes() for path in found}


def test_generate_from_the_root_directory(installed, tmp_path):
    (manifest,) = copy_project("many_kinds", tmp_path / "source")
    done = run(installed, "generate", manifest, "-o", tmp_path / "app", cwd="/")
    assert done.returncode == 0, done.stderr
    assert emitted(tmp_path / "app") == emitted(generate_project("many_kinds", tmp_path / "again"))


def test_generate_with_relative_paths(installed, tmp_path):
    copy_project("minimal", tmp_path / "a folder" / "source")
    done = run(installed, "generate", "source/manifest.yaml", "-o", "app", cwd=tmp_path / "a folder")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a folder" / "app" / "models" / "minimal" / "include" / "minimal.h").is_file()


def test_check_finds_the_schema(installed, tmp_path):
    (tmp_path / "manifest.yaml").write_text("version: 1\nmodel: m\n")
    done = run(installed, "check", "manifest.yaml", cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "operators" in done.stderr and "objects" in done.stderr
