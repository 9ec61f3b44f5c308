# SPDX-License-Identifier: Apache-2.0
"""Instruction memory after code was written: results of caches, and fence.i on one and several harts of RISC-V."""

import re
import subprocess
from pathlib import Path

import pytest
from c_support import RUNTIME, run
from requirements_support import need, need_compiler

ZEPHYR = RUNTIME / "bundle" / "zephyr"
STUBS = {
    "cache.h": "int sys_cache_instr_invd_all(void);",
    "kernel.h": """
#include <stdint.h>
#include <zephyr/sys/util.h>
#define K_FOREVER 0
#define ARG_UNUSED(x) ((void)(x))
#define BIT_MASK(n) (BIT(n) - 1U)
#define K_MUTEX_DEFINE(name) int name
struct k_ipi_work { int unused; };
static inline int k_mutex_lock(int *mutex, int wait) { (void)mutex; return wait; }
static inline int k_mutex_unlock(int *mutex) { (void)mutex; return 0; }
unsigned int arch_irq_lock(void);
void arch_irq_unlock(unsigned int key);
unsigned int arch_num_cpus(void);
void k_ipi_work_init(struct k_ipi_work *work);
int k_ipi_work_add(struct k_ipi_work *work, uint32_t cpus, void (*function)(struct k_ipi_work *work));
void k_ipi_work_signal(void);
int k_ipi_work_wait(struct k_ipi_work *work, int wait);
""",
    "logging/log.h": "#define LOG_MODULE_DECLARE(...) extern int declared\n#define LOG_ERR(...) ((void)0)\n",
    "sys/barrier.h": """
static inline void barrier_dsync_fence_full(void) {}
static inline void barrier_isync_fence_full(void) {}
""",
    "sys/sys_io.h": "#include <stdint.h>\nuint32_t sys_read32(uintptr_t address);\n",
    "sys/util.h": """
#include <stdbool.h>
#define BIT(n) (1U << (n))
#define XXXX1 YYYY,
#define IS_ENABLED(option) IS_ENABLED1(option)
#define IS_ENABLED1(value) IS_ENABLED2(XXXX##value)
#define IS_ENABLED2(comma) IS_ENABLED3(comma 1, 0, 0)
#define IS_ENABLED3(ignored, value, ...) value
""",
    "version.h": "#define ZEPHYR_VERSION(a, b, c) ((a) << 16 | (b) << 8 | (c))\n",
}
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zephyr/cache.h>
#include <zephyr/kernel.h>
#include "instructions_internal.h"

static int cache_result;
static uint32_t ccr;

int sys_cache_instr_invd_all(void)
{
	return cache_result;
}

uint32_t sys_read32(uintptr_t address);
uint32_t sys_read32(uintptr_t address)
{
	return address == 0xe000ed14U ? ccr : 0U;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		return 2;
	}
	cache_result = atoi(argv[1]);
	ccr = (uint32_t)strtoul(argv[2], NULL, 0);
	printf("%d %d", opwest_instructions_changed(), opwest_data_cache_result(cache_result));
	return 0;
}
"""
MANAGED = ["-DCONFIG_CACHE_MANAGEMENT=1", "-DCONFIG_DCACHE=1", "-DCONFIG_ICACHE=1", "-DCONFIG_CPU_HAS_ICACHE=1"]
UNMANAGED = ["-DCONFIG_DCACHE=1", "-DCONFIG_ICACHE=1", "-DCONFIG_CPU_HAS_ICACHE=1"]
CORTEX_M = ["-DCONFIG_CPU_CORTEX_M=1"]
ENABLED = "0x20000"
RISCV = ["-DCONFIG_RISCV=1", "-DCONFIG_RISCV_ISA_EXT_ZIFENCEI=1"]
SMP = [*RISCV, "-DCONFIG_SMP=1", "-DCONFIG_MP_MAX_NUM_CPUS=4", "-DCONFIG_SCHED_IPI_SUPPORTED=1"]
ENOTSUP, EIO = -95, -5


def options(folder, version="4,2,0"):
    for name, text in STUBS.items():
        (folder / "zephyr" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "zephyr" / name).write_text(text)
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-DKERNEL_VERSION_NUMBER=ZEPHYR_VERSION({version})"]
    return [*flags, f"-I{folder}", f"-I{ZEPHYR}"]


@pytest.mark.parametrize(
    ("system", "result", "ccr", "instructions", "data"),
    [
        (CORTEX_M, ENOTSUP, "0", 0, 0),  # no cache
        ([*CORTEX_M, *UNMANAGED], ENOTSUP, "0", 0, 0),  # a cache that is off
        ([*CORTEX_M, *UNMANAGED], ENOTSUP, ENABLED, ENOTSUP, 0),  # a boot loader has enabled it
        ([*CORTEX_M, *MANAGED], 0, ENABLED, 0, 0),
        ([*CORTEX_M, *MANAGED], ENOTSUP, ENABLED, ENOTSUP, ENOTSUP),  # the driver lacks the operation
        ([*CORTEX_M, *MANAGED], EIO, ENABLED, EIO, EIO),
        (UNMANAGED, ENOTSUP, "0", ENOTSUP, 0),  # another processor with a cache
        ([], ENOTSUP, "0", 0, 0),
    ],
)
def test_results_of_caches(system, result, ccr, instructions, data, tmp_path):
    need_compiler("gcc", link=True)
    (tmp_path / "main.c").write_text(PROGRAM)
    run(["gcc", *options(tmp_path), *system, "main.c", ZEPHYR / "instructions.c", "-o", "program"], tmp_path)
    done = subprocess.run([tmp_path / "program", str(result), ccr], capture_output=True, text=True, check=True)
    assert done.stdout == f"{instructions} {data}"


def functions(folder, system, version="4,2,0"):
    """Return the disassembled functions of instructions.c for rv32imac."""
    need("riscv64-unknown-elf-gcc")
    target = ["-march=rv32imac_zicsr_zifencei", "-mabi=ilp32", "-O2", "-fno-inline", "-ffreestanding"]
    # Debian's compiler has no C library.
    target += ["-idirafter", str(Path(__file__).parents[2] / "llvm" / "programs" / "include")]
    source = ZEPHYR / "instructions.c"
    run(["riscv64-unknown-elf-gcc", *target, *options(folder, version), *system, "-c", source, "-o", "code.o"], folder)
    command = ["riscv64-unknown-elf-objdump", "-dr", folder / "code.o"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Local labels have a dot.
    return dict(re.findall(r"^\w+ <(\w+)>:\n(.*?)(?=\n\n\w+ <\w|\Z)", text, re.DOTALL | re.MULTILINE))


def test_one_hart_has_a_fence(tmp_path):
    found = functions(tmp_path, RISCV)
    assert "fence.i" in found["fence_hart"]
    assert "fence_hart" in found["fence"]


def test_all_harts_have_a_fence(tmp_path):
    found = functions(tmp_path, SMP, "4,4,0")
    assert "fence.i" in found["fence_hart"]
    assert "fence_hart" in found["fence_other_hart"]
    called = [
        name for name in re.findall(r"R_RISCV_\w+\s+(\w+)", found["fence"]) if name.startswith(("arch_", "fence", "k_"))
    ]
    # The compiler arranges the blocks of the branches after k_ipi_work_add().
    assert called[:3] == ["arch_irq_lock", "fence_hart", "arch_num_cpus"]
    assert {"fence_other_hart", "k_ipi_work_add", "k_ipi_work_signal", "arch_irq_unlock", "k_ipi_work_wait"} <= {
        *called
    }


@pytest.mark.parametrize(
    ("system", "version"),
    [(["-DCONFIG_RISCV=1"], "4,2,0"), (SMP, "4,2,0"), ([o for o in SMP if "IPI" not in o], "4,4,0")],
    ids=["no_zifencei", "old_zephyr", "no_ipi"],
)
def test_a_system_without_a_way_is_refused(system, version, tmp_path):
    found = functions(tmp_path, system, version)
    assert "fence.i" not in "".join(found.values())
    assert re.search(r"li\s+a0,-\d+\s+.*\s+ret$", found["fence"])  # LOG_ERR() is empty
