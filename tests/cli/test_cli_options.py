# SPDX-License-Identifier: Apache-2.0
"""Options that have no effect with the other options or the given files are errors."""

import io
import tarfile
from pathlib import Path

import pytest
from elf_writer import build_elf
from golden_support import generate_project
from requirements_support import need

MAIN = "has no effect on the application's main()"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "app", "--host", "--repeat", "1"], f"--repeat {MAIN}"),
        (["run", "app", "--host", "--model", "m"], f"--model {MAIN}"),
        (["run", "app", "--host", "--tolerance", "1"], "--tolerance requires --reference"),
        (["run", "app", "--host", "--check-steps"], "--check-steps requires --board"),
        (["run", "app", "--board", "b", "--bits", "32"], "--bits cannot be used with --board"),
        (["run", "app", "--board", "b", "--cmsis-nn", "x"], "--cmsis-nn cannot be used with --board"),
        (["run", "app", "--board", "native_sim", "--no-flash"], "--no-flash has no effect on board 'native_sim'"),
        (
            ["call", "app", "op", "--board", "native_sim", "--baud", "9600"],
            "--baud has no effect on board 'native_sim'",
        ),
        (["generate", "m.yaml", "-o", "app", "--target", "x86-64"], "--target requires --metadata=llvm"),
        (["plan", "t.csv", "--planner", "greedy", "--nodes", "9"], "--nodes has no effect with --planner greedy"),
        (["report", "m.yaml", "-o", "r.svg", "--compare", "old.html"], "--compare has no effect on a picture"),
        (["plan", "m.yaml", "--capacity", "64"], "--capacity requires a table"),
        (["plan", "m.yaml", "--nodes", "64"], "--nodes requires a table"),
        (["plan", "m.yaml", "--no-offsets"], "--no-offsets requires -o"),
        (["plan", "t.csv", "--no-offsets"], "--no-offsets requires a manifest"),
        (["update", "a", "b", "--manifest", "m.yaml"], "--manifest requires a single project"),
    ],
)
def test_options_without_effect(arguments, message, fail):
    assert f"opwest: error: {message}" in fail(*arguments).err


def test_a_target_of_c_sources_in_a_draft(tmp_path, succeed, fail, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.c").write_text("int f(const float *x, float *y)\n{\n\treturn 0;\n}\n")
    done = fail("init", "a.c", "--target", "x86-64")
    assert "--target has no effect: C and C++ sources are compiled for every board" in done.err
    assert not Path("manifest.yaml").exists()
    succeed("init", "a.c")


def test_cmsis_nn_of_a_model_that_does_not_call_it(tmp_path, fail):
    need("cc")
    app = generate_project("minimal", tmp_path)
    done = fail("run", app, "--host", "--cmsis-nn", tmp_path)
    assert "--cmsis-nn has no effect: no operator includes CMSIS-NN" in done.err


def test_the_version_of_the_given_zephyr_tree(tmp_path, opwest, fail):
    (tmp_path / "VERSION").write_text("VERSION_MAJOR = 4\nVERSION_MINOR = 2\nPATCHLEVEL = 0\n")
    (tmp_path / "boards").mkdir()
    arguments = ["check", tmp_path / "m.yaml", "--zephyr-base", tmp_path, "--zephyr-version"]
    assert f"--zephyr-base has no effect: '{tmp_path}' is Zephyr 4.2" in fail(*arguments, "3.7").err
    assert "has no effect" not in opwest(*arguments, "4.2").err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--target", "cortex-m3"], "--target has no effect: the archive contains no objects"),
        (["--tensor", "x=1,2"], "--tensor has no effect: the graph records the tensors"),
    ],
)
def test_options_of_an_archive(option, message, tmp_path, fail):
    """The options of objects and of the ahead-of-time executor, with a graph and C."""
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        for name, text in (
            ("./codegen/host/src/lib.c", "int tvmgen_default_f(float *x, float *y) { return 0; }\n"),
            ("./executor-config/graph/default.graph", "{}"),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    assert message in fail("import", "mlf", tmp_path / "m.tar", "-o", tmp_path / "out", *option).err


def test_the_target_of_an_image(tmp_path, fail):
    image = tmp_path / "zephyr.elf"
    image.write_bytes(build_elf(kind=2))
    done = fail("inspect", image, "--target", "cortex-m3")
    assert "zephyr.elf: error: --target has no effect on a linked image" in done.err, done.err
