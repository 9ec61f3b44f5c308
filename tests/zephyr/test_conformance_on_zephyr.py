# SPDX-License-Identifier: Apache-2.0
"""The conformance suite under Zephyr, as ztest: interrupts, priorities and power management in addition to a host.

The page writing-drivers.md runs it for the driver of the example (test_pages_on_zephyr.py), on the same boards.
"""

import re
import subprocess

import pytest
from cover import configured
from requirements_support import need
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr
NATIVE, AN547 = "native_sim/native/64", "mps3/corstone300/an547"
MODULE = f"-DEXTRA_ZEPHYR_MODULES={ROOT}"
END = r"^PROJECT EXECUTION (SUCCESSFUL|FAILED)"
CASES = re.findall(r"^\tX\((\w+)\)", (ROOT / "zephyr_module/conformance/src/cases.h").read_text(), re.MULTILINE)
ON_HARDWARE = "/ { npu@40000 { interrupt-parent = <&nvic>; interrupts = <56 3>; };\n"
ON_HARDWARE += "npu@41000 { interrupt-parent = <&nvic>; interrupts = <57 3>; }; };\n"


def check_passed(console, skipped):
    """Each case passes on some device, except for those that are skipped on all."""
    results = re.findall(r"^ - (\w+) - \[opwest_conformance\.test_(\w+)\]", console, re.MULTILINE)
    assert {name for _, name in results} == set(CASES), console
    assert {name for result, name in results if result == "SKIP"} == skipped
    assert {result for result, _ in results} <= {"PASS", "SKIP"} and "PROJECT EXECUTION SUCCESSFUL" in console, console


@configured("board", [AN547, NATIVE])
def test_emulated_accelerator(workspace, board):
    if board == AN547:
        need("qemu-system-arm")
    built = workspace.build(ROOT / "tests" / "conformance" / "npu_emul", board, MODULE, "-DOPWEST_TESTS_CFLAGS=-Wextra")
    check_passed(built.run(END), {"early", "twice", "interrupt"})


@configured(board=AN547)
def test_ethos_u(with_hal):
    """The vendor's driver and Zephyr's are real, the registers of two NPUs are simulated."""
    built = with_hal.build(ROOT / "tests" / "conformance" / "ethos_u", AN547, MODULE, "-DOPWEST_TESTS_CFLAGS=-Wextra")
    # An NPU is stopped at the end of a job and signals it once; the driver's thread ends the job.
    check_passed(built.run(END), {"twice", "interrupt"})


@configured(board=(NATIVE, AN547))
def test_new_driver(workspace, opwest, tmp_path):
    """It passes all cases as written, and its part for hardware compiles."""
    opwest("new-driver", "my_npu", "-o", tmp_path / "my_npu")
    app = tmp_path / "my_npu" / "tests" / "conformance"
    built = workspace.build(app, NATIVE, MODULE, "-DOPWEST_TESTS_CFLAGS=-Wextra")
    assert "my_npu" not in "".join(line for line in built.log.splitlines() if "warning:" in line)
    check_passed(built.run(END), set())
    (tmp_path / "hardware.overlay").write_text(ON_HARDWARE)
    options = (f"-DEXTRA_DTC_OVERLAY_FILE={tmp_path / 'hardware.overlay'}", "-DCONFIG_MY_NPU_EMUL=n")
    # The adapter uses the emulated device, so only the library of the driver is built.
    code, built = workspace.try_build(app, AN547, MODULE, *options, target="my_npu")
    assert code == 0, built.log[-3000:]
    assert "warning:" not in built.log.partition("Building C object")[2]
    library = next(built.folder.rglob("libmy_npu.a"))
    names = subprocess.run(["arm-none-eabi-nm", library], capture_output=True, text=True, check=True).stdout
    defined = set(re.findall(r"^[0-9a-f]+ [TRr] (\w+)$", names, re.MULTILINE))
    assert {"my_npu_isr", "my_npu_read", "my_npu_api"} <= defined and not any("_emul_" in name for name in defined)
