# SPDX-License-Identifier: Apache-2.0
"""The port to Zephyr: cache lines of unknown size, and operations that a cache lacks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from c_support import RUNTIME, run
from requirements_support import need_compiler

CACHE = """
#include <stddef.h>
static inline size_t sys_cache_data_line_size_get(void) { return LINE; }
static inline int sys_cache_data_flush_range(void *data, size_t size) { (void)data; (void)size; return RESULT; }
static inline int sys_cache_data_flush_and_invd_range(void *data, size_t size)
{ (void)data; (void)size; return RESULT; }
static inline int sys_cache_data_invd_range(void *data, size_t size) { (void)data; (void)size; return RESULT; }
"""
DEVICE = """
#pragma once
#include <stdbool.h>
#include <stddef.h>
struct device { const void *api; };
static inline bool device_is_ready(const struct device *dev) { return dev != NULL; }
"""
POWER = """
#include <zephyr/device.h>
static inline int pm_device_runtime_get(const struct device *dev) { (void)dev; return 0; }
static inline int pm_device_runtime_put(const struct device *dev) { (void)dev; return 0; }
"""
KERNEL = """
#include <stdint.h>
static inline int64_t k_uptime_get(void) { return 0; }
static inline void *k_current_get(void) { return (void *)1; }
"""
PROGRAM = """
#include <stdio.h>
#include <opwest/port.h>
int main(void)
{
	static uint8_t data[64];

	printf("%u %d %d %d", (unsigned int)opwest_port_cache_line(), opwest_port_cache_flush(data, 64),
	       opwest_port_cache_flush_and_invalidate(data, 64), opwest_port_cache_invalidate(data, 64));
	return 0;
}
"""
CACHED = ["-DCONFIG_DCACHE=1", "-DCONFIG_CACHE_MANAGEMENT=1"]


@pytest.mark.parametrize(
    ("options", "result", "expected"),
    [
        ([*CACHED, "-DLINE=32"], 0, "32 0 0 0"),
        ([*CACHED, "-DLINE=0"], 0, "128 0 0 0"),
        ([*CACHED, "-DLINE=32"], -5, "32 -5 -5 -5"),
        ([*CACHED, "-DLINE=32"], -95, "32 -95 -95 -95"),  # -ENOTSUP: the cache lacks the operation
        (["-DCONFIG_DCACHE=1", "-DLINE=32"], -95, "0 0 0 0"),
        (["-DLINE=32"], -95, "0 0 0 0"),
    ],
)
def test_data_cache(options: list[str], result: int, expected: str, tmp_path: Path) -> None:
    need_compiler("gcc", link=True)
    (tmp_path / "zephyr" / "pm").mkdir(parents=True)
    (tmp_path / "zephyr" / "cache.h").write_text(CACHE)
    (tmp_path / "zephyr" / "device.h").write_text(DEVICE)
    (tmp_path / "zephyr" / "toolchain.h").touch()
    (tmp_path / "zephyr" / "kernel.h").write_text(KERNEL)
    (tmp_path / "zephyr" / "pm" / "device_runtime.h").write_text(POWER)
    (tmp_path / "main.c").write_text(PROGRAM)
    paths = [f"-I{tmp_path}", f"-I{RUNTIME / 'include'}"]
    sources = ["main.c", RUNTIME / "src" / "port_devices_zephyr.c"]
    run(
        [
            "gcc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-D__ZEPHYR__",
            f"-DRESULT={result}",
            *options,
            *paths,
            *sources,
            "-o",
            "program",
        ],
        tmp_path,
    )
    assert subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout == expected
