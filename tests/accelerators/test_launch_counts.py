# SPDX-License-Identifier: Apache-2.0
"""Counters of launches at their limits: every launch is waited for, and unfinished ones have slots of their own."""

from __future__ import annotations

from accelerators_support import PROGRAMS, SANITIZED, need_compiler, play
from c_support import RUNTIME, run

SOURCES = (
    *("device_calls", "device_launches", "device_ownership", "devices", "accelerator", "metadata", "registry"),
    *("status", "port_host", "port_host_cache"),
)


def test_counters_at_their_limits(tmp_path):
    flags = [*SANITIZED, f"-I{RUNTIME / 'include'}"]
    need_compiler("gcc", flags, link=True)
    sources = [RUNTIME / "src" / f"{name}.c" for name in SOURCES]
    run(["gcc", *flags, PROGRAMS / "launch_counts.c", *sources, "-o", "counts"], tmp_path)
    assert play(tmp_path / "counts") == "done\n"
