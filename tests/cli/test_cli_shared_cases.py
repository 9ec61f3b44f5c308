# SPDX-License-Identifier: Apache-2.0
"""Operators with hidden effects and broken promises that earlier versions accepted, from ../shared/cases."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from c_support import RUNTIME, run
from requirements_support import need, need_x86_64, skip_here

ROOT = RUNTIME.parent
SHARED = ROOT.parent / "shared" / "cases"
GIVEN = ("input-overlaps-output", "run-while-owned-by-name", "close-leaks-ownership", "launch-count-16bit")
SANITIZE = "-fsanitize=address,undefined"


@pytest.fixture
def case(request, tmp_path):
    """Return a copy of the directory of a case."""
    if not SHARED.is_dir():
        skip_here(f"no directory {SHARED}")
    need("gcc")
    need_x86_64()
    return Path(shutil.copytree(SHARED / request.param, tmp_path / "case"))


def script(folder: Path, **variables: str | Path) -> str:
    """Run the script of a case; return its output."""
    environment = os.environ | {"PROJECT": str(ROOT), "SAN": SANITIZE, "ASAN_OPTIONS": "detect_leaks=0"}
    environment |= {name: str(value) for name, value in variables.items()}
    done = subprocess.run(
        ["bash", "run.sh"], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("case", ["libc-hidden-state"], indirect=True)
@pytest.mark.parametrize(
    ("source", "function"),
    [
        ("a", "setlocale"),
        ("libc_exit", "exit"),
        ("libc_fesetround", "fesetround"),
        ("libc_setlocale", "setlocale"),
        ("rand", "rand"),
        ("strtok", "strtok"),
    ],
)
def test_hidden_state_of_the_library(case, source, function, opwest):
    run(["gcc", "-c", f"{source}.c", "-o", "a.o"], case)
    done = opwest("check", case / "m.yaml")
    assert done.code == 1 and f"a.o calls '{function}', which " in done.err, done.err


@pytest.mark.parametrize("case", ["fesetround"], indirect=True)
def test_rounding_mode(case, opwest):
    run(["gcc", "-c", "f.c"], case)
    done = opwest("check", case / "m.yaml")
    assert done.code == 1 and "f.o calls 'fesetround', which " in done.err
    text = (case / "m.yaml").read_text().replace("  up: &o\n", "  up: &o\n    uses: [fenv]\n")
    (case / "m.yaml").write_text(text)
    assert opwest("check", case / "m.yaml").code == 0


@pytest.mark.parametrize("case", ["operator-writes-its-input"], indirect=True)
@pytest.mark.parametrize("manifest", ["m.yaml", "ms.yaml"])
def test_written_input(case, manifest, opwest):
    run(["gcc", "-g", "-c", "f.c"], case)
    done = opwest("check", case / manifest)
    assert done.code == 0 and "function 'f' can write the input 'x'" in done.err, done.err
    assert opwest("generate", case / manifest, "-o", case / "app").code == 0
    done = opwest("run", case / "app", "--host")
    assert done.code == 1 and "step 0 (f) wrote its input 'x': element 0 was " in done.err


@pytest.mark.parametrize("case", ["abi-attribute"], indirect=True)
@pytest.mark.parametrize("options", [[], ["-g"]])
def test_convention_of_another_system(case, options, opwest):
    run(["gcc", *options, "-c", "a.c"], case)
    done = opwest("check", case / "m.yaml")
    assert done.code == 1 and "a.o" in done.err and "calling convention" in done.err, done.err


@pytest.mark.parametrize("case", ["abi-attribute"], indirect=True)
@pytest.mark.parametrize("options", [[], ["-g"]])
@pytest.mark.parametrize(("source", "floats"), [("arm_pcs_vfp", "softfp"), ("arm_pcs_aapcs", "hard")])
def test_convention_of_another_float_abi(case, source, floats, options, opwest):
    need("arm-none-eabi-gcc")
    flags = ["-O1", *options, "-mcpu=cortex-m4", "-mthumb", f"-mfloat-abi={floats}", "-mfpu=fpv4-sp-d16"]
    run(["arm-none-eabi-gcc", *flags, "-ffreestanding", "-c", f"{source}.c", "-o", "a.o"], case)
    manifest = case / "arm_pcs.yaml"
    if floats == "hard":
        manifest.write_text(manifest.read_text().replace("cortex-m4f-softfp", "cortex-m4f"))
    done = opwest("check", manifest)
    assert done.code == 1 and "a.o" in done.err and "calling convention" in done.err, done.err


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("host-run-exit/exit0", "the program exited with code 0 in step 0 (f)"),
        ("host-run-exit/exit3", "the program exited with code 3 in step 0 (f)"),
        ("host-run-exit/retmin", "in step 0 (f): the operator returned -2147483648"),
    ],
    indirect=["case"],
)
def test_ends_of_operators(case, expected, opwest):
    run(["gcc", "-c", "a.c"], case)
    text = (case / "m.yaml").read_text().replace("    symbol: f\n", "    symbol: f\n    uses: [control]\n")
    (case / "m.yaml").write_text(text)
    assert opwest("generate", case / "m.yaml", "-o", case / "app").code == 0
    np.save(case / "x.npy", np.zeros(8, np.int32))
    done = opwest("run", case / "app", "--host", "--input", f"x={case / 'x.npy'}")
    assert done.code == 1 and done.err.count("error:") == 1 and expected in done.err, done.err


@pytest.mark.parametrize("case", ["one-workspace-two-threads"], indirect=True)
def test_two_threads(case, digits_app):
    text = script(case, APP=digits_app)
    assert "two threads, one workspace: wrong 0 + 0, refused " in text
    assert re.search(r"digits_open\(&ws,&dv\) +0\n.*digits_open\(&ws,&dv\) +-114\n", text, re.DOTALL)


@pytest.mark.parametrize("case", GIVEN, indirect=True)
def test_programs(case, request, opwest):
    name = request.node.callspec.params["case"]
    manifest = next(iter([*case.glob("m.yaml"), *case.glob("manifest.yaml")]), None)
    if manifest:
        sys.path.insert(0, str(RUNTIME / "drivers" / "npu_emul"))
        from make_program import make_program

        (case / "adders.c").write_bytes((SHARED / "run-while-owned-by-name" / "adders.c").read_bytes())
        for number, program in enumerate(("one", "two"), 2):
            (case / f"{program}.onpu").write_bytes(make_program([("add", {"id": 1}), ("relu", {"id": number})]))
        assert opwest("generate", manifest, "-o", case / "app").code == 0
    text = script(case)
    for line in {
        "input-overlaps-output": ["open 0", "run -22: 1 2 3 4 5 6 7 8 "],
        "run-while-owned-by-name": ["run while owned by name: -16, ", "release 0\nrun 0\n", "close -16\nwait 0, "],
        "close-leaks-ownership": ["close -16 ", "wait 0, release 0\n", "after 3 s: open 0, own returned 0\n"],
        "launch-count-16bit": ["wait 0: launched 65536, waited for 65536, unfinished 0\n"],
    }[name]:
        assert line in text, text
