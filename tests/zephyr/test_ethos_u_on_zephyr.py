# SPDX-License-Identifier: Apache-2.0
"""Arm Ethos-U: Zephyr's driver with registers in memory that a timer simulates, as QEMU has no NPU; Vela's output."""

import re
import shutil
from pathlib import Path

import pytest
from cover import configured
from models.real import model_file
from requirements_support import need
from zephyr_support import ROOT, need_module

pytestmark = pytest.mark.zephyr
BOARD = "mps3/corstone300/an547"

CMAKE = """
cmake_minimum_required(VERSION 3.20.0)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(ethos_u)
file(GLOB sources *.c)
target_sources(app PRIVATE ${sources})
"""
# Messages are printed on the stack of main, from within load().
PRJ_CONF = """
CONFIG_OPWEST=y
CONFIG_ETHOS_U=y
CONFIG_LOG=y
CONFIG_LOG_MODE_IMMEDIATE=y
CONFIG_MAIN_STACK_SIZE=2048
CONFIG_SYS_CLOCK_TICKS_PER_SEC=1000
CONFIG_INIT_STACKS=y
CONFIG_THREAD_STACK_INFO=y
CONFIG_THREAD_MONITOR=y
CONFIG_THREAD_NAME=y
CONFIG_PM_DEVICE=y
CONFIG_PM_DEVICE_RUNTIME=y
CONFIG_SHELL=y
CONFIG_SHELL_BACKEND_SERIAL=n
CONFIG_SHELL_BACKEND_DUMMY=y
CONFIG_SHELL_BACKEND_DUMMY_BUF_SIZE=2048
CONFIG_SHELL_LOG_BACKEND=n
CONFIG_SHELL_VT100_COLORS=n
CONFIG_OPWEST_SHELL=y
CONFIG_OPWEST_PROFILE=y
CONFIG_OPWEST_ETHOS_U_PMU=y
"""

# The board's NPU, which QEMU lacks, and two at the end of its ISRAM. Memory reads as an unprivileged NPU.
NPUS = """
/ {
	ethosu {
		fake0: ethosu@313ff000 {
			compatible = "arm,ethos-u";
			reg = <0x313ff000>;
			interrupts = <57 3>;
			secure-enable;
		};
		fake1: ethosu@313ff800 {
			compatible = "arm,ethos-u";
			reg = <0x313ff800>;
			interrupts = <58 3>;
			secure-enable;
		};
	};
	fast: sram@313fe000 {
		compatible = "mmio-sram";
		reg = <0x313fe000 0x100>;
	};
	npu0: npu0 {
		compatible = "opwest,ethos-u";
		npu = <&fake0>;
		queue-depth = <3>;
		queue-timeout-ms = <20>;
		zephyr,pm-device-runtime-auto;
	};
	npu1: npu1 {
		compatible = "opwest,ethos-u";
		npu = <&fake1>;
		fast-memory = <&fast>;
	};
	absent: npu2 {
		compatible = "opwest,ethos-u";
		npu = <&ethosu0>;
	};
};
"""


@configured(board=BOARD)
def test_npus_simulated_by_a_timer_and_an_absent_one(with_hal, tmp_path):
    """The hooks, queues that overlap, faults, aborts, power and counters: through the vendor's own driver.

    The absent NPU reads as zero: Zephyr's driver, opwest's driver and the model's open return errors.
    """
    programs = Path(__file__).parent / "programs"
    for name, text in (("CMakeLists.txt", CMAKE), ("prj.conf", PRJ_CONF), ("app.overlay", NPUS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in ("ethos_u.c", "ethos_u_registers.c", "ethos_u_registers.h"):
        shutil.copy(programs / name, tmp_path)
    built = with_hal.build(tmp_path, BOARD, f"-DEXTRA_ZEPHYR_MODULES={ROOT}", "-DOPWEST_TESTS_CFLAGS=-Wextra")
    found = {name: address for name, (address, _) in built.symbols.items()}
    # The vendor's driver is linked with Zephyr's semaphores, and opwest's is in Zephyr's list of accelerators.
    assert {"ethosu_invoke_async", "ethosu_semaphore_take", "opwest_ethos_u_enqueue"} <= set(found)
    listed = range(found["_opwest_accelerator_driver_api_list_start"], found["_opwest_accelerator_driver_api_list_end"])
    assert found["ethos_u_api"] in listed
    assert "CONFIG_OPWEST_ETHOS_U=y" in built.options
    console = built.run("^done:")
    assert "absent: activate -19, handle 0" in console and "npu2: ethosu@48102000 is not ready" in console
    assert "WRONG" not in console, console
    assert re.search(r"^done: \d{3} checks, 0 wrong$", console, re.MULTILINE), console
    shown = re.search(r"npu1: cycles of the device\n.*\n +7 slow +1 +50000 +50000 +50000 +50000\n(.*)\n", console)
    assert shown, console
    # The events are numbers of the vendor's enumeration, and the NPU of the test counts those of the register.
    assert re.fullmatch(r" +last of events \d+: 48, \d+: 32, \d+: 17, \d+: 35", shown[1]), console
    free = re.findall(r"^stack of npu\d: (\d+) of \d+ unused$", console, re.MULTILINE)
    assert len(free) == 2 and all(int(size) > 512 for size in free), console


# --- Vela's output for the shared models, linked only: QEMU has no NPU

MODELS = {"kws_int8": (31104, 22192), "ad01_int8": (201184, 768), "ic_int8": (79248, 51840), "vww_int8": (76000, 74480)}
"""By model: the bytes of the weights and of the arena, of Vela 5.2 for ethos-u55-128."""


def used(log, region):
    """Return the bytes of a memory region that an image uses."""
    found = re.search(rf"^\s*{region}:\s+(\d+) (B|KB)", log, re.MULTILINE)
    assert found is not None, log[-2000:]
    return int(found[1]) * (1024 if found[2] == "KB" else 1)


@configured("name", MODELS, board=BOARD)
def test_models_of_vela_are_linked(workspace, opwest, tmp_path, name):
    """Flash has the weights once, RAM the arena once. A second model has both in memory that the NPU reaches."""
    need("ethosu", "tflite")
    need_module(workspace, "hal/ethos_u")
    other = "ad01_int8" if name != "ad01_int8" else "kws_int8"
    pools = ("--pool", f"arena={BOARD}:isram", "--pool", f"weights={BOARD}:isram")
    for one, options in ((name, ()), (other, pools)):
        words = ("--npu", "ethos-u55-128", "--board", BOARD, *options)
        opwest("import", "tflite", model_file(f"{one}.tflite"), "-o", tmp_path / one, *words)
    opwest("generate", *(tmp_path / one / "manifest.yaml" for one in (name, other)), "-o", tmp_path / "app")
    log = workspace.build(tmp_path / "app", BOARD).log
    (weights, arena), (copied, _) = MODELS[name], MODELS[other]
    assert weights + copied < used(log, "FLASH") < weights + copied + 48 * 1024
    assert arena < used(log, "RAM") < arena + 24 * 1024
    assert sum(MODELS[other]) <= used(log, "ISRAM") < sum(MODELS[other]) + 4096
