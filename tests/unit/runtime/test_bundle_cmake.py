# SPDX-License-Identifier: Apache-2.0
"""opwest_add_bundle() without Zephyr: its options, and manifests without a model."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from requirements_support import need

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = ROOT / "examples" / "digits" / "manifest.yaml"


def configured(folder, arguments, manifest=MANIFEST, **environment):
    """Configure a project with one bundle; return the messages and the rules of the build."""
    need("cmake", "make")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(one NONE)\nadd_custom_target(zephyr_generated_headers)\n"
        f"set(PYTHON_EXECUTABLE {sys.executable})\ninclude({ROOT}/zephyr_module/cmake/opwest_bundle.cmake)\n"
        f"opwest_add_bundle(one MANIFEST {manifest} {arguments})\n"
    )
    command = ["cmake", "-G", "Unix Makefiles", "-S", folder, "-B", folder / "build"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    rules = folder / "build" / "CMakeFiles" / "opwest_bundle.one.dir"
    return " ".join(done.stderr.split()), "".join(path.read_text() for path in rules.glob("*make*"))


def test_values_that_cmake_takes_for_false(tmp_path):
    errors, rules = configured(tmp_path, "SLOT 0 UNSIGNED VECTORS 0 VERSION 0 VARIANT off")
    assert not errors
    for option in ("--slot 0", "--vectors 0", "--model-version 0", "--variant off", "--unsigned"):
        assert f" {option}" in rules
    assert "opwest_bundle/one/include/digits_bundle.h" in rules


@pytest.mark.parametrize("arguments", ["SLOT 0", "UNSIGNED", "LLEXT UNSIGNED other"])
def test_missing_and_unknown_arguments(tmp_path, arguments):
    errors, _ = configured(tmp_path, arguments)
    assert "opwest_add_bundle(one): expected MANIFEST <file> SLOT <slot> or LLEXT" in errors


def test_a_manifest_without_the_name_of_a_model(tmp_path):
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text("version: 1\n")
    errors, _ = configured(tmp_path, "LLEXT UNSIGNED", manifest)
    assert "missing key 'model'" in errors
    assert "opwest_add_bundle(one): cannot read the name of the model: see the messages above" in errors


def test_a_build_with_a_key_names_the_package_for_signatures(tmp_path):
    """The workspace's Python lacks cryptography, which requirements.txt does not list."""
    absent = tmp_path / "absent" / "cryptography" / "__init__.py"
    absent.parent.mkdir(parents=True)
    absent.write_text("raise ImportError\n")
    errors, _ = configured(tmp_path, "SLOT 0 KEY key.pem", PYTHONPATH=str(absent.parents[1]))
    assert not errors
    for file in ("key.pem", "build/zephyr/.config", "build/zephyr/zephyr.dts"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    command = ["cmake", "--build", tmp_path / "build"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    text = "opwest: error: signatures require the package 'cryptography', which is not installed\n"
    assert f'{text}  hint: pip install "cryptography>=42"\n' in done.stderr
