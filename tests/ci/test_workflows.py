# SPDX-License-Identifier: Apache-2.0
"""The workflows, the action and the templates of .github: their form, their versions, and their commands, run here."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from opwest.cli.main import main
from requirements_support import need

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTION = GITHUB / "actions" / "opwest" / "action.yml"
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
SCHEMAS = [(path, "github-workflows") for path in WORKFLOWS]
SCHEMAS += [(ACTION, "github-actions"), *((path, "github-issue-forms") for path in FORMS)]
SCHEMAS += [(GITHUB / "ISSUE_TEMPLATE" / "config.yml", "github-issue-config")]


def read(path: Path):
    # YAML 1.1 reads the key `on` as true.
    return {"on" if key is True else key: value for key, value in yaml.safe_load(path.read_text()).items()}


@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda value: getattr(value, "name", value))
def test_files_match_their_schemas(path, schema):
    need("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def steps_of(path: Path):
    content = read(path)
    if "jobs" in content:
        return [(name, step) for name, job in content["jobs"].items() for step in job["steps"]]
    return [("action", step) for step in content["runs"]["steps"]]


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_actions_and_images_are_pinned(path):
    """Every action has a complete version, and the container that docs/testing.md names."""
    for _, step in steps_of(path):
        used = step.get("uses", "")
        assert not used or used.startswith("./") or re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", used), used
    images = set(re.findall(r"ghcr\.io/[\w/-]+:(\S+)", path.read_text()))
    documented = set(re.findall(r"ghcr\.io/[\w/-]+:(\S+)", (ROOT / "docs/testing.md").read_text()))
    assert images <= documented


def test_zephyr_is_that_of_west_yml():
    """The workspace is made from west.yml; no workflow names another version of Zephyr."""
    (zephyr,) = read(ROOT / "west.yml")["manifest"]["projects"][:1]
    texts = "".join(path.read_text() for path in (*WORKFLOWS, ACTION))
    assert "west init -l opwest" in texts
    assert "west init -m" not in texts
    named = re.findall(r"\bzephyr[-_ @:]+(?:version[:= ]+)?v?(\d+\.\d+(?:\.\d+)?)", texts, re.IGNORECASE)
    assert {f"v{one}" for one in named} <= {zephyr["revision"]}


def test_python_versions_are_the_supported_ones():
    matrix = read(GITHUB / "workflows/ci.yml")["jobs"]["hosts"]["strategy"]["matrix"]
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert matrix["python"][0] == oldest[1]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert [os.partition("-")[0] for os in matrix["os"]] == ["ubuntu", "windows", "macos"]


def test_expressions_are_not_part_of_scripts():
    """Inputs and names of branches reach a shell as variables: as text they could be commands."""
    for path in (*WORKFLOWS, ACTION):
        for job, step in steps_of(path):
            assert "${{" not in step.get("run", ""), (path.name, job)


def test_targets_of_make_exist():
    """Targets that other parts of the repository provide: make test, make docs, make dist."""
    scripts = [step.get("run", "") for path in WORKFLOWS for _, step in steps_of(path)]
    used = {target for text in scripts for target in re.findall(r"^make (\S+)$", text, re.MULTILINE)}
    assert {"test", "docs", "dist"} == used
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert used <= targets


def test_paths_of_workflows_exist():
    for path in WORKFLOWS:
        for word in re.findall(r"(?<![\w/.-])((?:opwest/)?(?:tests|examples|generator)/[\w/.-]+)", path.read_text()):
            assert (ROOT / word.removeprefix("opwest/")).exists(), (path.name, word)


def test_templates_ask_for_the_output_of_doctor():
    for path in FORMS:
        fields = {field["id"]: field for field in read(path)["body"]}
        assert len(fields) == len(read(path)["body"])
        if path.stem != "feature":
            assert "`opwest doctor`" in fields["doctor"]["attributes"]["label"]
            assert fields["doctor"]["validations"]["required"] is True
    assert "make test" in (GITHUB / "pull_request_template.md").read_text()


class Runner:
    """Runs the steps of the action as a runner of GitHub does, as far as the action uses its features."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "github_output"
        self.output.write_text("")

    def run(self, **inputs: str):
        """Return the exit code and the output of each step that is not skipped, by its name."""
        values = {name: entry.get("default", "") for name, entry in read(ACTION)["inputs"].items()}
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= values.keys()
        values |= given
        results = {}
        for step in read(ACTION)["runs"]["steps"]:
            if not self.is_enabled(step.get("if"), values, results):
                continue
            environment = {name: self.value(text, values) for name, text in step["env"].items()}
            path = os.pathsep.join([str(self.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
            script = self.folder / "step.sh"
            script.write_text(step["run"])
            # The command of GitHub for `shell: bash`.
            # The command of GitHub for `shell: bash`.
            command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
            environment = {**os.environ, **environment, "PATH": path, "GITHUB_OUTPUT": str(self.output)}
            one = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            done = subprocess.run(command, cwd=self.folder, env=environment, check=False, **one)
            results[step["name"]] = (done.returncode, done.stdout)
        return results

    @staticmethod
    def value(text, values):
        found = re.fullmatch(r"\$\{\{ (.*) \}\}", text)
        names = [part.strip().removeprefix("inputs.") for part in found[1].split("||")]
        return next((values[name] for name in names if values[name]), "")

    @staticmethod
    def is_enabled(condition, values, results):
        if condition is None:
            return True
        after = r"\$\{\{ !cancelled\(\) && steps\.install\.outcome == 'success' && \(?(.*?)\)? \}\}"
        names = re.findall(r"inputs\.([\w-]+) != ''", re.fullmatch(after, condition)[1])
        assert names, condition
        return results["Install opwest"][0] == 0 and any(values[name] for name in names)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A directory with a manifest, its project, and a report of both as baseline."""
    folder = tmp_path_factory.mktemp("reported")
    shutil.copytree(ROOT / "tests/golden/minimal", folder / "model")
    assert main(["generate", str(folder / "model/manifest.yaml"), "-o", str(folder / "app")]) == 0
    assert main(["report", str(folder / "app"), "-o", str(folder / "baseline.json")]) == 0
    return folder


@pytest.fixture
def runner(reported, tmp_path):
    shutil.copytree(reported, tmp_path, dirs_exist_ok=True)
    return Runner(tmp_path)


MANIFEST = "model/manifest.yaml"
INPUTS = {"opwest": "", "manifests": MANIFEST, "projects": "app"}
INPUTS |= {"baseline": "baseline.json", "fail_on": "arena=+0,constants=+0"}
CHECK, UPDATE = "Check the manifests", "Check that the projects are up to date"
REPORT = "Report and compare the sizes"


@pytest.mark.slow
def test_action_passes_on_an_unchanged_project(runner):
    results = runner.run(**INPUTS)
    assert {name: code for name, (code, _) in results.items()} == {"Install opwest": 0, CHECK: 0, UPDATE: 0, REPORT: 0}
    assert results["Install opwest"][1].splitlines()[1:] == [
        f"  {command:9} works" for command in ("generate", "update", "report")
    ]
    assert (runner.folder / "opwest-report.html").read_text().startswith("<!DOCTYPE html>")
    assert runner.output.read_text() == "report=opwest-report.html\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [("shape: [4]", "shape: [8]", {CHECK: 0, UPDATE: 1}), ("version: 1", "version: 7", {CHECK: 1, REPORT: 1})],
    ids=["outdated project", "invalid manifest"],
)
def test_action_fails(runner, old, new, codes):
    manifest = runner.folder / MANIFEST
    manifest.write_text(manifest.read_text().replace(old, new))
    results = runner.run(**INPUTS)
    assert {name: results[name][0] for name in codes} == codes
    assert REPORT in results and ("error: " in results[CHECK][1]) == (codes[CHECK] == 1)


@pytest.mark.slow
def test_action_fails_on_an_exceeded_limit(runner):
    shutil.copytree(ROOT / "tests/golden/asynchronous", runner.folder / "other")
    manifest, baseline = "other/manifest.yaml", runner.folder / "old.json"
    assert main(["report", str(runner.folder / manifest), "-o", str(baseline)]) == 0
    report = json.loads(baseline.read_text())
    report["models"][0]["pools"][0]["planned"] -= 8
    baseline.write_text(json.dumps(report))
    inputs = {"opwest": "", "manifests": manifest, "baseline": "old.json", "report": "out/report.json"}
    code, output = runner.run(**inputs, fail_on="arena=+7, constants=+0")[REPORT]
    assert code == 1
    assert "opwest: error: arena of model 'asynchronous' grew from 432 to 440 bytes (+8, +1.9%), limit +7\n" in output
    assert (runner.folder / "out/report.json").is_file()
    assert runner.output.read_text() == "report=out/report.json\n"
    assert runner.run(**inputs, fail_on="arena=+2%")[REPORT][0] == 0


@pytest.mark.slow
def test_action_skips_what_is_not_given(runner):
    results = runner.run(opwest="", manifests="model/manifest.yaml\n")
    assert list(results) == ["Install opwest", CHECK, REPORT]
    assert [code for code, _ in results.values()] == [0, 0, 0]


@pytest.mark.slow
def test_report_of_a_variant(runner):
    shutil.copytree(ROOT / "tests/golden/variants", runner.folder / "other")
    inputs = {"opwest": "", "projects": "", "manifests": "other/manifest.yaml", "report": "dsp.json"}
    assert runner.run(**inputs, variant="dsp")[REPORT][0] == 0
    assert main(["report", str(runner.folder / "other/manifest.yaml"), "-o", str(runner.folder / "base.json")]) == 0
    dsp, base = (json.loads((runner.folder / f"{name}.json").read_text())["models"][0] for name in ("dsp", "base"))
    assert dsp["steps"] != base["steps"] and dsp["name"] == base["name"]
    code, output = runner.run(**inputs, variant="dps")[REPORT]
    assert code == 1 and "unknown variant 'dps'\n  hint: did you mean 'dsp'?" in output


@pytest.mark.slow
def test_several_projects_have_no_report(runner):
    shutil.copytree(runner.folder / "app", runner.folder / "second")
    results = runner.run(opwest="", projects="app second")
    notice = "::notice::no report: it is of one project, and several are given\n"
    assert results[UPDATE][0] == 0 and results[REPORT] == (0, notice)
    assert runner.output.read_text() == ""
    code, output = runner.run(opwest="", projects="app second", fail_on="arena=+0")[REPORT]
    error = "::error::baseline, fail-on and firmware are of one project: use the action once for each project\n"
    assert (code, output) == (1, error)


@pytest.mark.slow
def test_twister_step(runner):
    """The command of twister, with a substitute that prints its arguments."""
    west = runner.folder / "bin" / "west"
    west.parent.mkdir()
    west.write_text('#!/bin/sh\necho "west $*"\n')
    west.chmod(0o755)
    results = runner.run(opwest="", twister="apps/one apps/two", twister_options="--integration -v")
    assert results["Run the tests"] == (0, "west twister --integration -v -T apps/one -T apps/two\n")


def test_examples_of_the_documentation_have_the_versions_of_the_workflows():
    used = re.compile(r"uses:\s*(actions/[\w-]+)@(\S+)")
    own = {found for path in WORKFLOWS for found in used.findall(path.read_text())}
    shown = {path: used.findall(path.read_text()) for path in sorted((ROOT / "docs").rglob("*.md"))}
    assert sum(map(len, shown.values())) >= 4
    for path, found in shown.items():
        assert set(found) <= own, f"{path.name}: {sorted(set(found) - own)}"
