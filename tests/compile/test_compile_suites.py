# SPDX-License-Identifier: Apache-2.0
"""The generated tests of a model: they compile without warnings, pass on a host, and detect faults."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_support import (
    ON_ZEPHYR,
    RUNTIME,
    SANITIZED,
    STRICT,
    build,
    compile_all,
    execute,
    golden_app,
    includes,
    read_record,
)
from golden_support import PROJECTS, copy_project, generate_quickly
from opwest.runs.compile import CHECK_INPUTS_FLAG
from requirements_support import need_compiler
from test_compile_emitted import BUILDABLE, COMPILERS, FOREIGN

ZTEST = Path(__file__).parent / "ztest_stub"
RUNTIME_OF_SUITES = [RUNTIME / "src" / name for name in ("compare.c", "input_check.c")]


def program_of(app: Path, model: str, work: Path) -> Path:
    """Build the suite of a model for this machine."""
    folder = app / "models" / model / "tests"
    objects = []
    if (folder / "vectors.S").exists():
        objects += compile_all(work / "vectors", [folder / "vectors.S"], "gcc", [], [f"-Wa,-I{folder / 'vectors'}"])
    flags = [*SANITIZED, CHECK_INPUTS_FLAG]
    sources = [*sorted(folder.glob("*.c")), ZTEST / "ztest.c", *RUNTIME_OF_SUITES]
    objects += compile_all(work / "suite", sources, "gcc", flags, [*includes(app), f"-I{ZTEST}"])
    return build(app, work / "build", None, flags=flags, extra_objects=objects)


@pytest.fixture(scope="module", params=PROJECTS)
def app(request, tmp_path_factory):
    return golden_app(request.param, tmp_path_factory.mktemp(f"suite_{request.param}"))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_suites_compile_without_warnings(app, compiler, tmp_path):
    """With GCC, also the sources that compare the inputs of steps."""
    command, *flags = COMPILERS[compiler]
    need_compiler(command, flags)
    sources = [*app.glob("models/*/tests/*.c"), *RUNTIME_OF_SUITES]
    flags += [*ON_ZEPHYR, "-DCONFIG_BOARD_MPS2_AN385=1"] if compiler == "cortex-m3" else STRICT
    flags += [CHECK_INPUTS_FLAG] if compiler in ("gcc", "cortex-m3") else []
    compile_all(tmp_path, sources, command, flags, [*includes(app), f"-I{ZTEST}"])


@pytest.mark.parametrize("name", [name for name in BUILDABLE if name not in FOREIGN])
def test_suites_pass_under_sanitizers(name, tmp_path):
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    app = golden_app(name, tmp_path)
    for model in read_record(app)["models"]:
        done = execute(program_of(app, model["name"], tmp_path / model["name"]))
        lines = done.stdout.splitlines()
        assert done.returncode == 0, done.stdout + done.stderr
        assert not [line for line in lines if line.startswith(("FAIL", "SKIP"))], done.stdout
        for test in ("open_and_close", "run_checks_its_arguments", "inputs_are_not_written"):
            assert f"PASS test_{test}" in lines
        assert ("PASS test_vectors" in lines) == (name in ("vectors", "streams"))


def outcome(folder: Path, work: Path) -> subprocess.CompletedProcess:
    """Generate the project of golden vectors in `folder`, and run its suite."""
    app = generate_quickly([folder / "manifest.yaml"], work / "app", vendored=False)
    return execute(program_of(app, "vectors", work / "program"))


@pytest.fixture
def project(tmp_path):
    need_compiler("gcc", ("-fsanitize=address,undefined",), link=True)
    return copy_project("vectors", tmp_path / "source")[0].parent


VECTORS = {
    # file, output, index, value; patterns of lines
    "different": (
        *("random.npz", "total", (2, 0), 7),
        [
            r"random\.npz, case 2: output total\[0\] is -?\d+, expected 7 exactly; 1 of 1 elements differ",
            r"vectors: 4 of 5 cases match the vectors",
            r".*: 1 of 5 cases differ from the vectors",
            r"FAIL test_vectors",
        ],
    ),
    "out of tolerance": (
        *("vectors/edge cases.npz", "y", (0, 1, 2), -8.001),
        [
            r"vectors/edge cases\.npz, case 0: output y\[5\] is -8, expected -8\.0010004 "
            r"within 1e-06 \+ 1e-05 \* \|expected\|; 1 of 6 elements differ"
        ],
    ),
    "float16": (
        *("random.npz", "signs", (0, 0, 0), 1.5),
        [r".*output signs\[0\] is -?1, expected 1\.5 within 0\.001 \* \|expected\|; 1 of 6 elements differ"],
    ),
}


@pytest.mark.parametrize(("file", "output", "index", "value", "patterns"), VECTORS.values(), ids=VECTORS)
def test_different_vector_is_reported(project, tmp_path, file, output, index, value, patterns):
    with np.load(project / file) as loaded:
        arrays = dict(loaded)
    arrays[output][index] = value
    np.savez(project / file, **arrays)
    done = outcome(project, tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and sum(line.startswith("FAIL") for line in lines) == 1
    for pattern in patterns:
        assert any(re.fullmatch(pattern, line) for line in lines), (pattern, done.stdout)


LENGTH_2 = [
    ("total, dtype: int64, shape: [1]", "total, dtype: int64, shape: [2]"),
    ("total: {dtype: int64, shape: [1]}", "total: {dtype: int64, shape: [2], pool: sram}"),
]
STATEFUL = [("files: [operators/blend.c]", "files: [operators/blend.c], stateful: true")]
OPERATORS = {
    # The operator in place of `total[0] = 0;`, changes of the manifest, which then has no vectors; code and patterns.
    "uninitialized memory": (
        "total[0] = total[1];",
        LENGTH_2,
        1,
        ["FAIL test_workspace_content_is_ignored", "output total changes with the previous content of the workspace"],
    ),
    "a written input": (
        "((int8_t *)bias)[1] ^= 1;\n\ttotal[0] = 0;",
        None,
        1,
        [
            "FAIL test_inputs_are_not_written",
            r"step 1 \(round_off\) wrote its input 'bias': element 1 was -?\d+, is -?\d+\n",
        ],
    ),
    # The manifest declares that runs differ.
    "state": ("static int64_t calls;\n\ttotal[0] = calls++;", STATEFUL, 0, [r"\A(?![\s\S]*test_runs_repeat)"]),
    "a failure for a vector": (
        "if (bias[0] == 127) return 5;\n\ttotal[0] = 0;",
        None,
        1,
        [r"vectors/edge cases\.npz, case 0: run returned -5 in step 1, round_off"],
    ),
    "a failure for zeros": (
        "return -22;\n\ttotal[0] = 0;",
        [],
        0,
        [
            r"vectors: run on zeros returned -22 in step 1, round_off: add vectors to manifest\.yaml \(tests:\)",
            "SKIP test_zeros",
        ],
    ),
}


@pytest.mark.parametrize(("operator", "changes", "code", "patterns"), OPERATORS.values(), ids=OPERATORS)
def test_behaviour_of_an_operator_is_detected(project, tmp_path, operator, changes, code, patterns):
    source, manifest = project / "operators" / "blend.c", project / "manifest.yaml"
    text = source.read_text()
    assert text.count("total[0] = 0;") == 1
    source.write_text(text.replace("total[0] = 0;", operator))
    if changes is not None:
        text = manifest.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        manifest.write_text(text[: text.index("tests:")])
    done = outcome(project, tmp_path)
    assert done.returncode == code, done.stdout
    for pattern in patterns:
        assert re.search(pattern, done.stdout), done.stdout
