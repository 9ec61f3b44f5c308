# SPDX-License-Identifier: Apache-2.0
"""`--metadata=llvm` for models that have only C sources: examples, output of importers, `--target`, and errors."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from campaign import sized
from golden_support import copy_project
from in_process import opwest
from opwest.cli.main import main
from requirements_support import need, need_x86_64

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
TWO_NPUS = ["x86-64", "aarch64-host", "cortex-m3", "cortex-m55", "cortex-m55f", "cortex-m55f-mve", "cortex-m55f-mvei"]
SOURCE = "#include <stdint.h>\nint32_t copy(const int8_t *a, int8_t *b)\n{\n\tb[0] = a[0];\n\treturn 0;\n}\n"
MANIFEST = """\
version: 1
model: tiny
{more}
objects: [{{files: [copy.c]}}]
operators:
  copy: {{args: [{{name: a, dtype: int8, shape: [4]}}, {{name: b, dtype: int8, shape: [4], direction: out}}]}}
run:
  inputs: {{x: {{dtype: int8, shape: [4]}}}}
  outputs: {{y: {{dtype: int8, shape: [4]}}}}
  steps: [{{call: copy, args: [x, y]}}]
"""
DECLARED = (
    "targets: {own: {machine: arm, bits: 32, arch: v7-M, float_abi: soft, kconfig: {CONFIG_SOC_OWN: y}, "
    "llvm: {triple: thumbv7m-unknown-none-eabi, cpu: cortex-m3}}}"
)


@pytest.fixture(autouse=True)
def without_zephyr(monkeypatch):
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)


@pytest.fixture
def manifest(tmp_path):
    def write(more=""):
        (tmp_path / "copy.c").write_text(SOURCE)
        (tmp_path / "manifest.yaml").write_text(MANIFEST.format(more=more))
        return tmp_path / "manifest.yaml"

    return write


def targets_of(app, model):
    """Return the targets of a model's metadata objects."""
    return sorted(path.parent.name for path in app.glob(f"models/{model}/objects/*/{model}_metadata.o"))


def generated(done, app, model):
    assert done.returncode == 0, done.stderr
    assert not list(app.glob(f"models/{model}/src/{model}_run.c"))
    return targets_of(app, model)


@pytest.mark.needs("llvmlite", "cc")
@pytest.mark.whole
@pytest.mark.parametrize("name", ["manifest.yaml", "manifest_serial.yaml"])
def test_two_npus(tmp_path, name):
    """The boards of one manifest determine the targets; examples/test_two_npus.py generates both."""
    need_x86_64()
    app = tmp_path / "app"
    done = opwest("generate", EXAMPLES / "two_npus" / name, "-o", app, "--metadata=llvm")
    assert generated(done, app, "two_npus_serial" if "serial" in name else "two_npus") == sorted(TWO_NPUS)
    done = opwest("run", app, "--host")
    assert done.returncode == 0, done.stderr
    assert ("100.00 %" in done.stdout) == (name == "manifest.yaml")


@pytest.mark.needs("llvmlite", "cc")
@pytest.mark.parametrize("name", ["manifest.yaml", "manifest_ir.yaml"])
def test_digits(tmp_path, name):
    """Objects and IR name the targets."""
    need_x86_64()
    example = shutil.copytree(
        EXAMPLES / "digits", tmp_path / "digits", ignore=shutil.ignore_patterns("objects", "__pycache__")
    )
    if name == "manifest.yaml":
        done = subprocess.run([sys.executable, example / "compile_operators.py"], capture_output=True, check=False)
        assert done.returncode == 0
    app = tmp_path / "app"
    assert "x86-64" in generated(opwest("generate", example / name, "-o", app, "--metadata=llvm"), app, "digits")
    done = opwest("run", app, "--host")
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("llvmlite", "cc")
@pytest.mark.parametrize("kind", sized(["packed"], ["usmp", "workspace", "packed", "graph"]))
def test_imported_models(tmp_path, kind):
    """The output of `import mlf` has only C sources and no boards: the default board is native_sim."""
    need_x86_64()
    sys.path.insert(0, str(ROOT / "tests" / "importers"))
    try:
        import mlf_made
    finally:
        sys.path.pop(0)
    (tmp_path / "net.tar").write_bytes(mlf_made.tar_of(getattr(mlf_made, kind)()))
    done = opwest("import", "mlf", tmp_path / "net.tar", "-o", tmp_path / "net")
    assert done.returncode == 0, done.stderr
    manifest = tmp_path / "net" / "manifest.yaml"
    model = next(line.split()[1] for line in manifest.read_text().splitlines() if line.startswith("model:"))
    app = tmp_path / "app"
    done = opwest("generate", manifest, "-o", app, "--metadata=llvm")
    assert generated(done, app, model) == ["aarch64-host", "x86-64"]
    outputs = {}
    for metadata in ("c", "llvm"):
        app = tmp_path / metadata
        assert opwest("generate", manifest, "-o", app, f"--metadata={metadata}").returncode == 0
        done = opwest("run", app, "--host")
        assert done.returncode == 0, done.stderr
        outputs[metadata] = done.stdout
    assert outputs["c"] == outputs["llvm"]
    done = opwest("generate", manifest, "-o", tmp_path / "boards", "--metadata=llvm", "--board", "mps2/an386")
    assert generated(done, tmp_path / "boards", model) == ["cortex-m4", "cortex-m4f", "cortex-m4f-softfp"]


@pytest.mark.needs("llvmlite")
def test_targets_of_the_command_line_are_recorded(manifest, tmp_path):
    app = tmp_path / "app"
    options = ["--metadata=llvm", "--target", "cortex-m3", "--target", "rv32imac", "--target", "cortex-m3"]
    done = opwest("generate", manifest("boards: [unknown_board]"), "-o", app, *options)
    assert generated(done, app, "tiny") == ["cortex-m3", "rv32imac"]
    assert json.loads((app / ".opwest/origin.json").read_text())["targets"] == ["cortex-m3", "rv32imac"]
    done = opwest("update", app, "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    origin = app / ".opwest/origin.json"
    origin.write_text(origin.read_text().replace('"rv32imac"', '"x86-64"'))
    assert opwest("update", app).returncode == 0
    assert targets_of(app, "tiny") == ["cortex-m3", "x86-64"]


@pytest.mark.needs("llvmlite")
def test_declared_targets_are_added_to_those_of_the_boards(manifest, tmp_path):
    app = tmp_path / "app"
    done = opwest("generate", manifest(f"{DECLARED}\nboards: [own_board, native_sim]"), "-o", app, "--metadata=llvm")
    assert generated(done, app, "tiny") == ["i386", "own"]
    done = opwest("generate", manifest(DECLARED), "-o", app, "--metadata=llvm", "--target", "own")
    assert generated(done, app, "tiny") == ["own"]


FAULTS = [
    (
        "boards: [own_board, native_sim]",
        (),
        "manifest.yaml:3:10: error: --metadata=llvm: unknown processor of board 'own_board' of model 'tiny'\n"
        "  expected: --target NAME for each target of its boards, or a target under 'targets' in the manifest\n"
        "  hint: set ZEPHYR_BASE or give --zephyr-base: the processor is read from Zephyr's tree\n",
    ),
    (
        "",
        ("--target", "cortex-m33x"),
        "opwest: error: --target: unknown target 'cortex-m33x'\n"
        "  hint: did you mean 'cortex-m33'? (`opwest targets` lists all)\n",
    ),
    (
        "targets: {own: {machine: arm, bits: 32, kconfig: {CONFIG_SOC_OWN: y}}}",
        ("--target", "own"),
        "manifest.yaml:2:8: error: --metadata=llvm: target 'own' has no parameters for LLVM\n"
        "  expected: llvm: {triple: ..., cpu: ...} in the target\n",
    ),
]


@pytest.mark.needs("llvmlite")
@pytest.mark.parametrize(("more", "options", "expected"), FAULTS)
def test_faults_name_the_way_out(manifest, tmp_path, monkeypatch, more, options, expected):
    manifest(more)
    monkeypatch.chdir(tmp_path)
    done = opwest("generate", "manifest.yaml", "-o", "app", "--metadata=llvm", *options)
    assert (done.returncode, done.stderr) == (1, expected)
    assert not (tmp_path / "app").exists()


def test_option_without_effect(manifest, tmp_path):
    done = opwest("generate", manifest(), "-o", tmp_path / "app", "--target", "cortex-m3")
    assert (done.returncode, done.stderr) == (1, "opwest: error: --target requires --metadata=llvm\n")
    ir = EXAMPLES / "digits" / "manifest_ir.yaml"
    done = opwest("generate", ir, "-o", tmp_path / "app", "--target", "cortex-m3", "--metadata=llvm")
    assert done.returncode == 1 and done.stderr == (
        "opwest: error: --target has no effect: the objects of every model name their targets\n"
        "  hint: use it for models that have only C sources\n"
    )


# --- A model with variants: each target has its object in one directory


@pytest.fixture
def variants(tmp_path):
    need("llvmlite")
    (path,) = copy_project("variants", tmp_path / "source")
    return path


def test_a_variant_has_its_targets_and_the_base_the_others(variants, tmp_path):
    assert main(["generate", str(variants), "-o", str(tmp_path / "app"), "--metadata=llvm"]) == 0
    model = tmp_path / "app/models/adder"
    found = [path.relative_to(model).as_posix() for path in model.rglob("adder_metadata.o")]
    assert sorted(found) == sorted(
        f"{folder}objects/{target}/adder_metadata.o"
        for folder, targets in (
            ("", ("x86-64", "aarch64-host", "cortex-m55", "cortex-m55f")),
            ("variants/mla/", ("cortex-m3",)),
            ("variants/dsp/", ("cortex-m4", "cortex-m4f", "cortex-m4f-softfp")),
            ("variants/dsp/", ("cortex-m7", "cortex-m7f", "cortex-m7f-double")),
            ("variants/mve/", ("cortex-m55f-mvei", "cortex-m55f-mve")),
        )
        for target in targets
    )


def test_a_base_without_a_target(variants, tmp_path, capsys):
    command = ["generate", str(variants), "-o", str(tmp_path / "app"), "--metadata=llvm", "--target", "cortex-m4"]
    assert main(command) == 1
    assert "--metadata=llvm: no target for the base of model 'adder'" in capsys.readouterr().err
