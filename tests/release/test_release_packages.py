# SPDX-License-Identifier: Apache-2.0
"""The sdist and the wheel: contents, reproducible builds, and installation without a network."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from campaign import sized
from requirements_support import absent, need, skip_here

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from pythons import find_python  # noqa: E402

PYTHONS = sized((), ("3.11", "3.12", "3.13"))
"""The versions of Python of a campaign; otherwise the running one."""


def run(*command: object, cwd: Path | str = "/", **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_", "COVERAGE"))}
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(output: Path, mask: int) -> dict[str, bytes]:
    """Build both packages with a umask; dist.py fails if their contents differ from the rule."""
    before = os.umask(mask)
    try:
        run(sys.executable, ROOT / "scripts/dist.py", "--changed", "-o", output, SOURCE_DATE_EPOCH="1767225600")
    finally:
        os.umask(before)
    return {path.name: path.read_bytes() for path in output.iterdir()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    need("git", "build", "hatchling")
    if not (ROOT / ".git").exists():
        skip_here("not a git checkout")
    folder = tmp_path_factory.mktemp("dist") / "one"
    build(folder, 0o022)
    return folder


def test_two_builds_are_equal(packages, tmp_path) -> None:
    again = build(tmp_path / "two", 0o077)
    assert again == {path.name: path.read_bytes() for path in packages.iterdir()}
    assert {Path(name).suffix for name in again} == {".gz", ".whl", ""}


def test_rule_reports_missing_and_unexpected_files(packages) -> None:
    spec = importlib.util.spec_from_file_location("dist_contents", ROOT / "scripts/dist_contents.py")
    rule = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rule)
    (wheel,), (sdist,) = packages.glob("*.whl"), packages.glob("*.tar.gz")
    assert f"{sdist.name}: no '{sdist.name[:-7]}/lost.py'" in rule.faults_of_sdist(sdist, ["lost.py"])
    assert f"{sdist.name}: unexpected '{sdist.name[:-7]}/LICENSE'" in rule.faults_of_sdist(sdist, ["lost.py"])
    faults = rule.faults_of_wheel(wheel, ["generator/opwest/lost.py", "schemas/lost.json"])
    expected = ("no 'opwest/lost.py'", "no 'opwest/_share/schemas/lost.json'", "unexpected 'opwest/__main__.py'")
    assert {f"{wheel.name}: {fault}" for fault in expected} <= set(faults)


@pytest.mark.parametrize("kind", sized(["whl"], ["whl", "gz"]))
@pytest.mark.parametrize("version", PYTHONS or ["running"])
def test_empty_environment_without_a_network(packages, kind, version, tmp_path) -> None:
    need("cc", "unshare")
    python = sys.executable if version == "running" else find_python(version)
    if python is None:
        skip_here(f"Python {version} is not installed")
    offline = without_network()
    (package,) = packages.glob(f"*.{kind}")
    environment = tmp_path / "an environment é"
    run(python, "-m", "venv", environment)
    own = environment / "bin/python"
    house = wheels(own, tmp_path, ["hatchling"] if kind == "gz" else [])
    run(*offline, own, "-m", "pip", "--quiet", "install", "--no-index", "--find-links", house, package)
    opwest = environment / "bin/opwest"
    assert run(*offline, opwest, "--version").startswith("opwest ")
    work = tmp_path / "a folder ü"
    shutil.copytree(ROOT / "examples/vibration", work / "example")
    app = work / "app"
    run(*offline, opwest, "check", work / "example/manifest.yaml")
    run(*offline, opwest, "generate", "example/manifest.yaml", "-o", "app", cwd=work)
    assert (app / "models/vibration/src/vibration_metadata.c").is_file()
    run(*offline, opwest, "run", app, "--host")
    run(*offline, opwest, "report", app, "-o", work / "r.html", "--sbom", work / "r.spdx")
    assert (work / "r.html").stat().st_size > 10_000 and (work / "r.spdx").read_text().startswith("SPDXVersion")
    run(*offline, opwest, "new-driver", "my_npu", "-o", work / "driver")
    assert (work / "driver/zephyr/module.yml").is_file()
    run(*offline, opwest, "init", *sorted((work / "example/operators").glob("*.c")), "-o", work / "example/draft.yaml")
    assert "FILL_IN" in (work / "example/draft.yaml").read_text()
    assert "cortex-m4" in run(*offline, opwest, "targets")
    location = run(own, "-c", "import opwest; print(opwest.__file__)")
    assert location.startswith(str(environment))


@pytest.mark.whole
def test_pipx_installs_the_wheel(packages, tmp_path) -> None:
    """`pipx install` of the wheel from downloaded wheels; the command works from any folder."""
    need("pipx", "unshare")
    offline = without_network()
    (wheel,) = packages.glob("*.whl")
    house = wheels(sys.executable, tmp_path, ["pip"])
    names = {"PIPX_HOME": "a home", "PIPX_BIN_DIR": "bin", "PIPX_MAN_DIR": "man"}
    environment = {key: str(tmp_path / name) for key, name in names.items()}
    environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": house.as_uri(), "PIPX_DEFAULT_BACKEND": "pip"}
    run(*offline, sys.executable, "-m", "pipx", "install", "--python", sys.executable, wheel, **environment)
    opwest = tmp_path / "bin" / "opwest"
    assert run(*offline, opwest, "--version").startswith("opwest ")
    report = json.loads(run(*offline, opwest, "doctor", "--json"))
    assert report["ok"]
    lacks = {one["name"]: one["lacks"] for one in report["result"]["features"]}
    assert lacks["generate"] == lacks["report"] == lacks["llvm"] == []
    assert "cryptography" in json.dumps(lacks["bundle-sign"])


def without_network() -> tuple[str, ...]:
    """Return the beginning of a command that runs without a network."""
    if subprocess.run(["unshare", "-r", "-n", "true"], capture_output=True, check=False).returncode:
        skip_here("this user cannot create a network namespace")
    return ("unshare", "-r", "-n")


def wheels(python: Path | str, folder: Path, tools: list[str]) -> Path:
    """Download the dependencies of opwest, and tools, as wheels for an interpreter; return their folder."""
    house = folder / "wheels"
    command = [python, "-m", "pip", "--quiet", "wheel", "--wheel-dir", house, *tools, *requirements()]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        absent(f"pip cannot download the dependencies: {done.stderr.strip()[-300:]}", "hatchling")
    return house


def requirements() -> list[str]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]


def test_locks_satisfy_pyproject() -> None:
    """Each requirement of pyproject.toml has one locked version for every supported Python; all have hashes."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    locks = {"all": list(extras), "dev": ["dev", "test", "bundle"], "release": ["release"], "uv": ["uv"]}
    for lock, wanted in locks.items():
        text = (ROOT / f"requirements/{lock}.txt").read_text()
        blocks = [b for b in text.replace(" \\\n", " ").splitlines() if "==" in b and not b.lstrip().startswith("#")]
        assert all("--hash=sha256:" in block for block in blocks)
        pinned: dict[str, list[str]] = {}
        for block in blocks:
            one = Requirement(block.split(" --hash")[0])
            pinned.setdefault(canonicalize_name(one.name), []).append(next(iter(one.specifier)).version)
        given = [*(project["dependencies"] if lock in ("all", "dev") else []), *(r for e in wanted for r in extras[e])]
        for requirement in map(Requirement, given):
            if requirement.name != "opwest":
                versions = pinned.get(canonicalize_name(requirement.name), [])
                hint = f"run 'make lock': {requirement} in requirements/{lock}.txt"
                assert versions and all(requirement.specifier.contains(v, prereleases=True) for v in versions), hint


def test_requirements_of_the_module_are_those_of_opwest() -> None:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert sorted(line for line in lines if not line.startswith("#")) == sorted(requirements())
