# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a measurement are, by the clock: texts, and which numbers vary between runs of one image."""

from __future__ import annotations

from typing import Final

from opwest.reports import data

_VARYING: Final = {
    "host": "host time: it varies with the load of the machine",
    "emulated": "QEMU: what is not counted in instructions varies with the load of the machine",
}
_LATENCIES: Final = {
    "host": "host time",
    "simulated": "simulated time, without code execution",
    "emulated": "emulated time: it differs from the time on the board",
    "board": "measured on the board",
}


def varying(clock: str | None) -> str | None:
    """Return why two runs of one image differ; None if a limit can compare them."""
    return _VARYING.get(clock or "")


def latency_text(clock: str | None) -> str:
    """Return what a latency is."""
    return _LATENCIES.get(clock or "", clock or "")


def profile_text(profile: data.Profile) -> str:
    """Return what the numbers of a profile are."""
    instructions = profile.unit == "instructions"
    if profile.clock == "host":
        return f"host time of {'native_sim' if profile.where.startswith('native_') else 'this machine'}: it varies"
    if profile.clock == "emulated":
        return "instructions of several threads in QEMU: they vary" if instructions else "timer of QEMU: it varies"
    return {"counted": "instructions counted in QEMU", "board": "cycles of the board"}.get(profile.clock, profile.clock)


def modelled_text(profile: data.Profile) -> str:
    """Return the modelled cycles of a run; empty without a model of the processor."""
    if profile.run.modelled_cycles is None or profile.modelled_processor is None:
        return ""
    return f"{profile.run.modelled_cycles:,} cycles, modelled for a {profile.modelled_processor} without wait states"
