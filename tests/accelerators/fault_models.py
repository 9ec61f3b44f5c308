# SPDX-License-Identifier: Apache-2.0
"""The models of the fault injection, with hand-written actions of open and run."""

from fault_subjects import ELEMENTS, Kept, Member, Subject

OVERLAPPING = (
    *("launch d0 x x -> a", "cpu x x -> b", "cpu a c -> d", "launch d2 d d -> e", "cpu e x -> f", "npu d1 f f -> y"),
)
SUBJECTS = [
    Subject(
        "one_sync",
        (Member("d0", 0, program="alpha", timeout=100),),
        ("npu d0 x x -> a", "cpu_void a x -> b", "npu d0 b a -> y"),
        ("0", "1", "2"),
        external=("y",),
    ),
    Subject(
        "one_async",
        (Member("d0", 1),),
        (
            "launch d0 x x -> a", "launch d0 a x -> b", "cpu x x -> c", "cpu b c -> d", "launch d0 d d -> e",
            "cpu c x -> f", "cpu e f -> y",
        ),
        ("0", "1", "2", "wait d0", "3", "4", "5", "wait d0", "6"),
    ),
    Subject(
        "two_sync",
        (Member("first", 2, program="alpha", timeout=5), Member("second", 0, program="beta")),
        ("npu first x x -> a", "npu second a a -> b", "cpu b a -> c", "npu second c c -> y"),
        ("0", "1", "2", "3"),
    ),
    Subject(
        "two_async",
        (Member("first", 2, program="alpha", timeout=0), Member("second", 0, program="alpha", timeout=2147483647)),
        (
            "launch first x x -> a", "launch second x x -> b", "cpu x x -> c", "launch first a c -> d",
            "cpu d c -> e", "cpu b e -> f", "launch second f f -> g", "launch first e e -> h", "cpu g h -> y",
            "launch first h h -> z",
        ),
        (
            "0", "1", "2", "3", "wait first", "4", "wait second", "5", "6", "7", "wait second", "wait first", "8",
            "9", "wait first",
        ),
        outputs=("y", "z"),
        external=("x", "z"),
        stateful=True,
    ),
    Subject(
        "same_handle",
        (
            Member("m0", 1, program="alpha"),
            Member("m1", 1, program="alpha", power="run"),
            Member("m2", 0, program="beta"),
        ),
        (
            "launch m0 x x -> a", "launch m1 x a -> b", "npu m2 x x -> c", "launch m1 b b -> e", "cpu a c -> d",
            "cpu b d -> f", "cpu e f -> y",
        ),
        ("0", "wait m0", "1", "2", "3", "4", "wait m1", "5", "6"),
    ),
    Subject(
        "cached",
        (Member("d0", 0), Member("d1", 1, coherent=True)),
        (
            "launch d0 x w -> a", "cpu x x -> b", "launch d1 b b -> c", "cpu a v -> e", "npu d0 c w -> f",
            "cpu f e -> y",
        ),
        (
            "flush 0 d0", "flush 0 d0", "clean 0 d0", "0", "1", "2", "wait d0", "drop 0 d0", "3", "wait d1",
            "flush 4 d0", "flush 4 d0", "clean 4 d0", "4", "drop 4 d0", "5",
        ),
        constants={"w": [9, 8, 7, -6, 5, 4, 3, 2], "v": [1] * ELEMENTS},
        line=64,
        opening=("flush d0",),
        stateful=True,
    ),
    Subject(
        "mixed",
        (Member("odd", None, "foreign"), Member("plain", 2, "plain"), Member("d0", 1, program="beta")),
        ("vendor odd x x -> a", "launch d0 a a -> c", "npu plain x x -> b", "cpu b c -> y"),
        ("0", "1", "2", "wait d0", "3"),
        stateful=True,
    ),
    Subject(
        "stateful",
        (Member("d0", 0, program="alpha", timeout=100), Member("d1", 1)),
        ("launch d0 z x -> a", "launch d1 h x -> b", "cpu a x -> c", "launch d0 c c -> z", "cpu b c -> y"),
        ("0", "1", "wait d0", "2", "3", "wait d1", "4", "wait d0"),
        states={"z": Kept([5, 0, -1, 2, 9, 9, 100000, 4]), "h": Kept([1] * ELEMENTS, next="y")},
    ),
    Subject(
        "all_next",
        (Member("d0", 2, program="beta"),),
        ("launch d0 h x -> a", "cpu g x -> c", "cpu a c -> y"),
        ("0", "1", "wait d0", "2"),
        states={"g": Kept([-3, 6, 2, 8, 1, 0, 0, 7], next="c"), "h": Kept([2, -2] * 4, next="y")},
        external=("y",),
    ),
    Subject(
        "cached_state",
        (Member("d0", 0),),
        ("launch d0 left x -> a", "cpu a right -> b", "launch d0 b b -> right", "cpu b x -> c", "cpu c left -> y"),
        (
            "flush 0 d0", "flush 0 d0", "clean 0 d0", "0", "wait d0", "drop 0 d0", "1", "flush 2 d0", "flush 2 d0",
            "clean 2 d0", "2", "3", "wait d0", "drop 2 d0", "4",
        ),
        line=64,
        states={"ring": Kept([*range(8), *range(50, 58)])},
        views={"left": ("ring", 0), "right": ("ring", ELEMENTS)},
    ),
    # Programs of steps: the schedule waits before a load, except where the manifest calls it free.
    Subject(
        "programs",
        (
            Member("d0", 1, program="alpha", timeout=100),
            Member("d1", 0, program="alpha", switching="free", timeout=50),
        ),
        (
            "launch d0 x x -> a", "launch d1 x x -> b", "launch d1 b x -> c", "launch d0 a x -> d", "npu d0 d d -> e",
            "launch d1 c c -> f", "cpu e f -> y",
        ),
        ("0", "1", "2", "wait d0", "3", "wait d0", "4", "5", "wait d1", "6"),
        programs={2: "beta", 3: "gamma", 4: "alpha"},
    ),
    Subject(
        "alone",
        (Member("d0", 2, program="alpha", switching="exclusive", own_timeout=15),),
        ("launch d0 x x -> a", "cpu x x -> b", "launch d0 a x -> c", "cpu b c -> y"),
        ("0", "1", "wait d0", "2", "wait d0", "3"),
        programs={2: "beta"},
    ),
    # The queue of the manifest has two places.
    Subject(
        "deep",
        (Member("d0", 0, program="alpha", depth=2, timeout=70),),
        (
            "launch d0 x x -> a", "launch d0 x a -> b", "launch d0 a b -> c", "cpu x x -> d", "npu d0 c b -> e",
            "launch d0 e d -> f", "cpu f e -> y",
        ),
        ("0", "1", "wait d0 1", "2", "3", "wait d0 1", "4", "5", "wait d0", "6"),
    ),
    # The same interval of ownership in both orders of addresses, and two that overlap in part.
    Subject(
        "rising",
        (
            Member("d0", 0, program="alpha", power="run", own_timeout=25),
            Member("d1", 1, own_timeout=0, power="open"),
            Member("d2", 2, power="run", timeout=40),
        ),
        (*OVERLAPPING[:2], "launch d1 a b -> c", *OVERLAPPING[2:]),
        ("0", "1", "wait d0", "2", "wait d1", "3", "4", "wait d2", "5", "6"),
    ),
    Subject(
        "falling",
        (
            Member("d0", 2, program="alpha", power="run", own_timeout=25),
            Member("d1", 1, own_timeout=0, power="open"),
            Member("d2", 0, power="run", timeout=40, own_timeout=10),
        ),
        (*OVERLAPPING[:2], "launch d1 x b -> c", *OVERLAPPING[2:]),
        ("0", "1", "2", "wait d0", "wait d1", "3", "4", "wait d2", "5", "6"),
    ),
]  # fmt: skip
STREAM = Subject(
    "faulty",
    (Member("first", 1, program="p"), Member("second", 0, program="q"), Member("third", 2)),
    (
        "launch first x x -> a", "launch second a x -> b", "cpu b x -> c", "launch third c kept -> d",
        "launch third d c -> e", "cpu e c -> kept", "cpu kept x -> y",
    ),
    (),
    programs={3: "p", 4: "q"},
    states={"kept": Kept([0] * ELEMENTS)},
    external=("y",),
    stream=True,
)  # fmt: skip
"""Three devices, two programs on one of them, a state that a late step writes."""
