# SPDX-License-Identifier: Apache-2.0
"""Counters of launches at their limits: every launch is waited for, and unfinished ones have slots of their own."""

from accelerators_support import PROGRAMS, SANITIZED, need_compiler, play
from c_support import RUNTIME, compile_program

SOURCES = (
    *("device_calls", "device_launches", "device_ownership", "devices", "accelerator", "metadata", "registry"),
    *("status", "port_host", "port_host_cache"),
)


def test_counters_at_their_limits(tmp_path):
    need_compiler("gcc", SANITIZED, link=True)
    sources = [PROGRAMS / "launch_counts.c", *(RUNTIME / "src" / f"{name}.c" for name in SOURCES)]
    assert play(compile_program(tmp_path, sources, SANITIZED, [f"-I{RUNTIME / 'include'}"])) == "done\n"
