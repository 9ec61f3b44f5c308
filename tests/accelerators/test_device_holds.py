# SPDX-License-Identifier: Apache-2.0
"""Devices without a model: the order in which runs acquire them, and counters of launches at their limits.

Runs acquire devices in the order of their addresses, so that two do not wait for each other, and own none longer than
this requires. test_fault_injection.py tests that emitted code acquires and releases them at these steps.
"""

import itertools
from collections.abc import Iterator

from accelerators_support import PROGRAMS, SANITIZED, need_compiler, play
from c_support import RUNTIME, compile_program

SOURCES = (
    *("device_calls", "device_launches", "device_ownership", "devices", "accelerator", "metadata", "registry"),
    *("status", "port_host", "port_host_cache"),
)
Member = tuple[int, int, int]
"""Handle, first step, the step before which it is released."""


def _built(name, work):
    need_compiler("gcc", SANITIZED, link=True)
    sources = [PROGRAMS / f"{name}.c", *(RUNTIME / "src" / f"{part}.c" for part in SOURCES)]
    return compile_program(work, sources, SANITIZED, [f"-I{RUNTIME / 'include'}", f"-I{RUNTIME / 'src'}"])


def _used(members: list[Member]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for handle, first, last in members:
        known = found.get(handle, (first, last))
        found[handle] = (min(known[0], first), max(known[1], last))
    return found


def _is_ordered(acquired: dict[int, int], used: dict[int, tuple[int, int]]) -> bool:
    """No handle is acquired while a higher one is owned; at one step they are acquired in ascending order."""
    return not any(
        acquired[high] < acquired[low] < used[high][1] for low in acquired for high in acquired if low < high
    )


def _later(acquired: dict[int, int], used: dict[int, tuple[int, int]]) -> Iterator[dict[int, int]]:
    """Return every other choice in which no ownership begins earlier."""
    ranges = [range(at, used[handle][0] + 1) for handle, at in acquired.items()]
    for choice in itertools.product(*ranges):
        other = dict(zip(acquired, choice, strict=True))
        if other != acquired:
            yield other


def _check(members: list[Member], line: str) -> bool:
    """Check the acquiring steps of a model; return whether an ownership begins before the first use."""
    used = _used(members)
    acquired = {handle: at for handle, at in enumerate(map(int, line.split())) if at >= 0}
    assert acquired.keys() == used.keys(), members
    assert all(acquired[handle] <= first for handle, (first, _) in used.items()), members
    assert _is_ordered(acquired, used), f"{members}: {acquired}"
    longer = any(acquired[handle] < first for handle, (first, _) in used.items())
    if longer:
        assert not any(_is_ordered(other, used) for other in _later(acquired, used)), f"{members}: {acquired}"
    return longer


def _intervals(steps: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(steps + 1), 2))


def _small_models() -> Iterator[list[Member]]:
    """Return all models of up to three devices over four steps and of four over two, and two members of one handle."""
    for count, steps in ((1, 4), (2, 4), (3, 4), (4, 2)):
        for chosen in itertools.product(_intervals(steps), repeat=count):
            yield [(handle, *interval) for handle, interval in enumerate(chosen)]
    for chosen in itertools.product(_intervals(3), repeat=3):
        for handles in itertools.product(range(2), repeat=3):
            yield [(handle, *interval) for handle, interval in zip(handles, chosen, strict=True)]


def test_every_small_model_keeps_the_order_with_the_shortest_ownership(tmp_path, record_property):
    models = list(_small_models())
    shown = (" ".join(map(str, [len(members), *itertools.chain(*members)])) for members in models)
    lines = play(_built("holds", tmp_path), "\n".join(shown)).splitlines()
    longer = sum(_check(members, line) for members, line in zip(models, lines, strict=True))
    print(f"{len(models)} models, {longer} with an ownership that begins before the first use")
    record_property("models", len(models))
    assert 0 < longer < len(models) // 2


def test_counters_at_their_limits(tmp_path):
    """Every launch is waited for, and unfinished ones have slots of their own."""
    assert play(_built("launch_counts", tmp_path)) == "done\n"
