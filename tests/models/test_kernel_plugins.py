# SPDX-License-Identifier: Apache-2.0
"""Entry points opwest.kernels: the example of writing-kernels.md as an installed package, faults of packages."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from requirements_support import need

need("arm-none-eabi-gcc", "qemu-system-arm", "cc", "tflite")

from models.made import of_one  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs/contributing/writing-kernels.md"
EXAMPLE = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]


@pytest.fixture
def installed(tmp_path):
    """Return a function that installs a module with an entry point, and returns one that runs Python with it."""

    def run(*words):
        paths = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", *map(str, words)]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    def install(text):
        info = tmp_path / "site/acme_kernels-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-kernels\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[opwest.kernels]\nacme = acme_kernels\n")
        (tmp_path / "site/acme_kernels.py").write_text(text)
        return run

    return install


def pool_model(path):
    options = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2, "padding": "VALID"}
    options["fused_activation_function"] = "RELU"
    return of_one("MAX_POOL_2D", [("int8", (1, 8, 8, 6), 0.1, 3)], ("int8", 0.1, 3), **options).save(path)


def test_the_example_is_exact_and_measured(installed, tmp_path):
    run = installed(EXAMPLE)
    done = run("opwest.tuning.check", "--core", "cortex-m4", "--layers", "4", "dsp-acme-pool")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("dsp-acme-pool on cortex-m4: 4 layers, 0 wrong; ")
    file = pool_model(tmp_path / "m.tflite")
    assert run("opwest", "import", file, "-o", tmp_path / "m", "-q").returncode == 0
    assert "acme" not in (tmp_path / "m/manifest.yaml").read_text()
    done = run("opwest", "tune", tmp_path / "m", "--core", "cortex-m4")
    assert done.returncode == 0, done.stderr
    assert "dsp-acme-pool" in done.stdout
    assert "dsp-acme-pool: [" in (tmp_path / "m/tuning.yaml").read_text()
    done = run("opwest", "import", file, "-o", tmp_path / "preferred", "--prefer", "dsp-acme-pool")
    assert done.returncode == 0, done.stderr
    assert "op_acme_pool" in (tmp_path / "preferred/dsp/operators.c").read_text()


def test_a_wrong_variant_is_found(installed, tmp_path):
    run = installed(EXAMPLE.replace("int32_t most = -128;", "int32_t most = -127;"))
    done = run("opwest.tuning.check", "--core", "cortex-m4", "--layers", "40", "dsp-acme-pool")
    assert done.returncode == 1
    assert re.search(r"40 layers, [1-9]\d* wrong; ", done.stdout), done.stdout
    assert "  wrong: Pool(" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_such\n", "cannot load {}: No module named 'nothing_such'"),
        ("raise SystemError('x')\n", "cannot load {}: x"),
        (EXAMPLE.replace('"dsp-acme-pool"', '"acme"'), "{}: invalid name of a variant: 'acme'"),
        (EXAMPLE.replace('"dsp-acme-pool"', '"dsp-pool"'), "{}: a variant 'dsp-pool' of Pool exists"),
        (EXAMPLE.replace("(Pool, ", "(int, "), "{}: <class 'int'> is no operation"),
        (
            EXAMPLE.replace("    images,", "    images = 1 // 0\n    images,"),
            "variant 'dsp-acme-pool' of {} failed for 0",
        ),
    ],
)
def test_faults_name_the_package(text, message, installed, tmp_path):
    run = installed(text)
    done = run("opwest", "import", pool_model(tmp_path / "m.tflite"), "-o", tmp_path / "m")
    assert done.returncode == 1
    assert "error: " + message.format("package 'acme-kernels' (entry point 'acme' of opwest.kernels)") in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m").exists()


def test_an_unknown_variant(installed):
    done = installed("")("opwest.tuning.check", "--core", "cortex-m4", "dsp-none")
    assert done.returncode == 2
    assert "error: unknown variant 'dsp-none'" in done.stderr
