# SPDX-License-Identifier: Apache-2.0
"""The effects of functions of C libraries that are not visible in their arguments, from effects.txt.

`opwest check`, `inspect`, `bundle build` and the check of compiled operators use this module: one judgement.
It requires Python 3.8 and the standard library only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

EFFECTS = ("state", "heap", "io", "nondeterminism", "control", "fenv")
"""The effects that an operator must declare: `state` by `stateful: true`, the others by `uses`."""
EXPECTED = "an operator whose results depend on its arguments only"

_WORDS = {
    "state": "keeps state in static data",
    "heap": "uses the heap",
    "io": "reads or writes files or devices",
    "nondeterminism": "depends on the time, a random source or the environment",
    "control": "can end, suspend or interrupt the program",
    "fenv": "reads or changes the floating-point environment",
}
_WAYS = {
    "state": "pass the state as an argument",
    "heap": "pass the memory as an argument with `direction: scratch`",
    "io": "remove it",
    "nondeterminism": "pass the value as an argument",
    "control": "return an error code",
    "fenv": "remove it",
}
_ASSERTIONS = ("__assert", "__assert_fail", "__assert_func", "__assert_no_args", "__assert_perror_fail", "assert")
_VARIABLES = (
    *("stdin", "stdout", "stderr", "environ", "__environ", "daylight", "timezone", "tzname", "signgam", "_impure_ptr"),
    *("optarg", "optind", "opterr", "optopt"),
)
_HARMLESS = ("pure", "errno")


class Hidden(NamedTuple):
    """A called function, or an instruction, with effects that the manifest does not permit."""

    name: str
    effects: tuple[str, ...]
    text: str
    """What was found, without the name of the object."""
    hint: str
    remedy: str
    """What a manifest can add so that the object is accepted."""


@lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8
def table(libc: str) -> dict[str, tuple[str, ...]]:
    """Return the effects of each function in `libc`: host, picolibc, newlib or minimal."""
    found: dict[str, list[str]] = {}
    effect = ""
    for line in (Path(__file__).parent / "effects.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            effect, _, only = line.strip("[]").partition(": ")
            if only and only != libc:
                effect = ""
        elif effect and not line.startswith("#"):
            for name in line.split():
                found.setdefault(name, []).append(effect)
    return {name: tuple(effects) for name, effects in found.items()}


def hidden(functions: Iterable[str], libcs: Iterable[str], permitted: Collection[str] = ()) -> list[Hidden]:
    """Return the functions with effects, in any of the libraries `libcs`, that are not permitted."""
    tables = [table(libc) for libc in libcs]
    found = []
    for function in functions:
        effects = {effect for one in tables for effect in one.get(function, ())}
        missing = tuple(effect for effect in EFFECTS if effect in effects and effect not in permitted)
        if missing:
            found.append(_hidden(function, missing, tables[0]))
    return found


def instruction(text: str, function: str, effect: str) -> Hidden:
    """Return the effect of an instruction in a function; `function` is empty for assembly in a source."""
    where = f" in function {function!r}" if function else " in inline assembly"
    return _described(text, f"executes {text!r}{where}", (effect,), _WAYS[effect])


def _hidden(function: str, effects: tuple[str, ...], known: dict[str, tuple[str, ...]]) -> Hidden:
    return _described(
        function,
        f"{'uses' if function in _VARIABLES else 'calls'} {function!r}",
        effects,
        _way(function, effects, known),
    )


def _described(name: str, found: str, effects: tuple[str, ...], way: str) -> Hidden:
    uses = ", ".join(effect for effect in effects if effect != "state")
    keys = [*["`stateful: true`"] * ("state" in effects), *[f"`uses: [{uses}]`"] * bool(uses)]
    what = " and ".join(_WORDS[effect] for effect in effects)
    return Hidden(
        name,
        effects,
        f"{found}, which {what}",
        f"{way}, or set {' and '.join(keys)}",
        f"{' and '.join(keys)} permit{'s' * (len(keys) == 1)} it",
    )


def _way(function: str, effects: tuple[str, ...], known: dict[str, tuple[str, ...]]) -> str:
    """Return what the author of an operator can do instead of a call."""
    if function in _ASSERTIONS:
        return "compile with -DNDEBUG"
    reentrant = f"{function}_r"
    if set(known.get(reentrant, ("io",))) <= set(_HARMLESS):
        return f"call {reentrant!r}"
    return _WAYS[effects[0]]
