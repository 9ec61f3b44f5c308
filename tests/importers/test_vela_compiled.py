# SPDX-License-Identifier: Apache-2.0
"""`opwest import tflite --npu`: the words for Vela, its messages on failure; with Vela, models of ../shared."""

import os
import subprocess
import sys

import numpy as np
import pytest
from requirements_support import need

need("tflite")

from importers.test_vela_import import imported, lines_of  # noqa: E402
from importers.vela_made import whole  # noqa: E402
from models.real import model_file  # noqa: E402
from opwest.base.diagnostics import OpwestError  # noqa: E402
from opwest.frontends.vela import compile as vela  # noqa: E402
from opwest.frontends.vela.request import Options  # noqa: E402
from opwest.objects.ethos_u.stream import examine  # noqa: E402

FAKE = """\
import json, pathlib, shutil, sys
words = sys.argv[1:]
here = pathlib.Path(__file__).resolve().parents[2]
(here / "words.json").write_text(json.dumps(words))
print("Warning: made up")
if (here / "made.tflite").exists():
    out = pathlib.Path(words[words.index("--output-dir") + 1])
    shutil.copy(here / "made.tflite", out / (pathlib.Path(words[0]).stem + "_vela.tflite"))
else:
    print("Error: no such operator: FANCY", file=sys.stderr)
    sys.exit(3)
"""


def run_import(folder, *words, code=0):
    """Import a model in a directory, whose package `ethosu` is found first; return the messages."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "opwest", "import", *map(str, words), "-o", "model"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.fixture
def fake(tmp_path):
    """Return a directory with a program in place of Vela, and a model."""
    package = tmp_path / "ethosu" / "vela"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(FAKE)
    (tmp_path / "m.tflite").write_bytes(b"\0\0\0\0TFL3")
    return tmp_path


def test_vela_gets_the_options_and_its_file_is_imported(fake):
    (fake / "made.tflite").write_bytes(whole().build())
    (fake / "own.ini").write_text("")
    words = ("--npu-config", "own.ini", "--system-config", "Own", "--memory-mode", "Sram_Only", "--board", "b")
    run_import(fake, "m.tflite", "--npu", "ethos-u55-128", *words)
    given = (fake / "words.json").read_text()
    assert '"--accelerator-config", "ethos-u55-128"' in given
    assert f'"--config", "{fake / "own.ini"}", "--system-config", "Own", "--memory-mode", "Sram_Only"' in given
    manifest = (fake / "model" / "manifest.yaml").read_text()
    assert "# Imported from m.tflite by" in manifest and "\nmodel: m\n" in manifest
    assert "pool: arena}" in manifest and "boards: [b]" in manifest


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        # The last one is for a file that is compiled, the others find none.
        (("--npu", "ethos-u55-100"), ["error: --npu: unknown NPU 'ethos-u55-100'"]),
        (("--npu", "ethos-u55-128", "--compare", "2"), ["error: --compare cannot be used with --npu"]),
        (("--npu", "ethos-u55-128", "--with", "cmsis-nn"), ["error: --with cannot be used with --npu"]),
        (("--npu", "ethos-u55-128", "--kernels", "cmsis-nn"), ["error: --kernels cmsis-nn cannot be used with --npu"]),
        (("--memory-mode", "Sram_Only"), ["error: --memory-mode without --npu"]),
        (
            ("--npu", "ethos-u55-128"),
            [
                "m.tflite: error: Vela ended with exit code 3, its messages are:",
                "  Warning: made up\n  Error: no such operator: FANCY",
            ],
        ),
        (("--npu", "ethos-u55-256"), ["the payload is for ethos-u55-128, the device is ethos-u55-256"]),
    ],
)
def test_errors(fake, words, messages):
    if "ethos-u55-256" in words:
        (fake / "made.tflite").write_bytes(whole().build())
    found = run_import(fake, "tflite", "m.tflite", *words, code=1)
    for message in messages:
        assert message in found
    assert not (fake / "model").exists()


def test_vela_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(vela, "_PACKAGES", (("no_such_package.vela", "ethos-u-vela"),))
    with pytest.raises(OpwestError) as error:
        vela.compiled(tmp_path / "m.tflite", tmp_path, Options(npu="ethos-u55-128"), lambda _: None)
    assert "--npu requires ethos-u-vela, which is not installed" in str(error.value)
    assert 'pip install "opwest[vela]"' in str(error.value)


OPERATIONS = {
    "kws_int8": {"DMA_START": 11, "CONV": 7, "DEPTHWISE": 4, "POOL": 3, "ELEMENTWISE": 26},
    "ad01_int8": {"CONV": 10},
}
"""By model: the operations of Vela 5.2 for ethos-u55-128; waits are left out."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_models_of_vela_are_whole_on_the_npu(tmp_path, name):
    need("ethosu")
    messages = run_import(tmp_path, "tflite", model_file(f"{name}.tflite"), "--npu", "ethos-u55-128")
    assert "1 subgraph for ethos-u55-128, no operator on the processor" in messages
    found = examine((tmp_path / "model/programs/npu_0.cop").read_bytes())
    assert not found.faults
    counts = {name: count for name, count in found.operations.items() if "WAIT" not in name and name != "STOP"}
    assert counts == OPERATIONS[name]
    with np.load(tmp_path / "model/constants.npz") as constants:
        size = constants["npu_weights"].nbytes
    assert max(use.end for use in found.uses if use.region == 0) == size


@pytest.mark.parametrize(
    ("npu", "more", "pools"),
    [
        ("ethos-u55-128", ("--ignore-ops", "DEPTHWISE_CONV_2D,AVERAGE_POOL_2D"), ("sram", "arena")),
        ("ethos-u55-128", ("--output-format", "raw"), ("arena",)),
        (
            "ethos-u65-256",
            ("--config", "Arm/vela.ini", "--system-config", "Ethos_U65_High_End", "--memory-mode", "Dedicated_Sram"),
            ("arena", "fast"),
        ),
    ],
    ids=("mixed", "raw", "dedicated"),
)
def test_files_of_vela_are_imported(tmp_path, npu, more, pools):
    need("ethosu")
    file = model_file("kws_int8.tflite")
    command = [sys.executable, "-m", "ethosu.vela", file, "--output-dir", tmp_path, "--accelerator-config", npu, *more]
    subprocess.run(command, capture_output=True, check=True)
    [made] = tmp_path.glob("*_vela.*")
    _, manifest = imported(tmp_path, made.read_bytes(), kernels="portable")
    assert f"type: {npu}" in manifest
    found = [line.partition(":")[0] for line in lines_of(manifest, "memory") if "#" not in line]
    assert found == list(pools)
    assert manifest.count("device: npu0") == (6 if "--ignore-ops" in more else 1)
