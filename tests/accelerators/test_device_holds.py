# SPDX-License-Identifier: Apache-2.0
"""The order in which runs acquire devices: no deadlock, and no ownership that is longer than this requires."""

import errno
import itertools
import random
from collections.abc import Iterator

import pytest
from accelerators_support import PROGRAMS, THREADED, need_compiler, play
from c_support import RUNTIME, compile_program
from campaign import sized

HANDLES = 4
PAIRS = sized(40, 500)
RUNS = 100
SOURCES = ("devices", "device_ownership", "device_launches", "accelerator", "accelerator_context", "status")
Member = tuple[int, int, int]
"""Handle, first step, the step before which it is released."""


def _build(work, order=None, options=()):
    flags = [*THREADED, *options]
    need_compiler("gcc", flags, link=True)
    names = [*SOURCES, "port_sync_host", "port_host"]
    sources = [RUNTIME / "src" / f"{name}.c" for name in names if order is None or name != "device_ownership"]
    sources = [PROGRAMS / "holds.c", *sources, *([order] if order else [])]
    return compile_program(work, sources, flags, [f"-I{RUNTIME / 'include'}", f"-I{RUNTIME / 'src'}"])


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return _build(tmp_path_factory.mktemp("holds"))


def _shown(members: list[Member]) -> str:
    return " ".join(map(str, [len(members), *itertools.chain(*members)]))


def _used(members: list[Member]) -> dict[int, tuple[int, int]]:
    """Return first and last by handle."""
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


def _check(members: list[Member], line: str) -> int:
    """Check the acquiring steps of a model; return the number of steps that ownership is longer than the use."""
    used = _used(members)
    acquired = {handle: at for handle, at in enumerate(map(int, line.split())) if at >= 0}
    assert acquired.keys() == used.keys(), members
    assert all(acquired[handle] <= first for handle, (first, _) in used.items()), members
    assert _is_ordered(acquired, used), f"{members}: {acquired}"
    longer = sum(first - acquired[handle] for handle, (first, _) in used.items())
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


def test_every_small_model_keeps_the_order_with_the_shortest_ownership(program, record_property):
    models = list(_small_models())
    lines = play(program, "".join(f"order {_shown(members)}\n" for members in models)).splitlines()
    longer = [_check(members, line) for members, line in zip(models, lines, strict=True)]
    print(f"{len(models)} models, {sum(map(bool, longer))} with an ownership that begins before the first use")
    record_property("models", len(models))
    assert 0 < sum(map(bool, longer)) < len(models) // 2


def _random_model(rng: random.Random) -> list[Member]:
    handles = [rng.randrange(HANDLES) for _ in range(rng.randint(2, 6))]
    spans = [sorted(rng.sample(range(12), 2)) for _ in handles]
    return [(handle, first, last) for handle, (first, last) in zip(handles, spans, strict=True)]


def _opposite(members: list[Member]) -> list[Member]:
    """Return a model that uses the handles in the opposite order."""
    return [(HANDLES - 1 - handle, first, last) for handle, first, last in members]


def test_random_pairs_do_not_deadlock(program, record_property):
    rng = random.Random(16)
    firsts = [_random_model(rng) for _ in range(PAIRS)]
    pairs = [(first, _opposite(first) if number % 2 else _random_model(rng)) for number, first in enumerate(firsts)]
    text = "".join(f"race {RUNS} {_shown(first)} {_shown(second)}\n" for first, second in pairs)
    lines = play(program, text, timeout=600).splitlines()
    for pair, line in zip(pairs, lines, strict=True):
        assert line == f"0 0, {RUNS} {RUNS} runs, exclusive, closed", f"{pair}: {line}"
    print(f"{PAIRS} pairs of models, {RUNS} runs of each")
    record_property("pairs of holds", PAIRS)


def test_any_order_would_deadlock(tmp_path):
    """The test above can fail: if models acquire where they first use a device, two wait for each other."""
    source = (RUNTIME / "src" / "device_ownership.c").read_text()
    assert source.count("while (move(set, slots, turn))") == 1
    changed = source.replace("while (move(set, slots, turn))", "while (turn > count_all && move(set, slots, turn))")
    (tmp_path / "any_order.c").write_text("static const unsigned int count_all = 99U;\n" + changed)
    program = _build(tmp_path, tmp_path / "any_order.c", ["-DDEADLOCK_MS=500", "-DSTEP_MS=5"])
    output = play(program, "race 20 2 0 0 4 1 2 6 2 1 0 4 0 2 6\n")
    assert f"{-errno.EBUSY}" in output.partition(",")[0].split(), output
