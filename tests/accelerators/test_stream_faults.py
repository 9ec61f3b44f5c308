# SPDX-License-Identifier: Apache-2.0
"""A fault at every position of a stream: each hook and operator call of open, submit, poll and close fails once.

The device of the test is deterministic and has no thread. stream_oracle.py has the rules.
"""

import errno
import itertools
import re

import pytest
from accelerators_support import PROGRAMS, SANITIZED, build, generate_quickly, play
from campaign import sized
from fault_models import STREAM
from fault_oracle import BITS
from stream_oracle import BrokenError, Oracle

DRIVERS = sized(
    # The pace of the device, the depth of its queue, the cost of programs, the missing hooks.
    ("1 0 1 -", "2 1 1 -", "3 2 0 -", "2 0 1 u", "1 0 2 sd"),
    tuple(map(" ".join, itertools.product("123", "012", "012", ("-", "u", "s", "sd", "usd")))),
)
HOOKS = {"u": BITS["enqueued"], "s": BITS["N"], "d": BITS["W"]}
AGAIN = -errno.EAGAIN
CODES = ((-errno.EILSEQ, 0), (-errno.EINTR, 0))
FULL = ((AGAIN, 0), (AGAIN, 1), (AGAIN, 999))
"""Of operators. The second number is that of the further calls that fail."""


def case(driver, fault="0", cancel=-1):
    """Return a line for journal.c."""
    pace, depth, switching, missing = driver.split()
    mask = sum(BITS.values()) - BITS["K"] - sum(HOOKS[letter] for letter in missing.strip("-"))
    masks, properties = f"{mask:x} " * 3, f"{depth} {switching} 0 " * 3
    return f"{STREAM.name} {pace} -1 {cancel} {masks}{properties}- {fault}"


@pytest.fixture(scope="module", params=["c", "llvm"])
def program(request, tmp_path_factory):
    work = tmp_path_factory.mktemp("faults")
    app = generate_quickly([STREAM.write(work / STREAM.name)], work / "app", metadata=request.param)
    sources = [PROGRAMS / f"{name}.c" for name in ("stream_faults", "journal", "journal_device")]
    return build(app, work / "build", sources, SANITIZED, without=("port_host.c", "port_host_cache.c"))


def played(program, cases):
    *lines, rest = play(program, "".join(f"{case}\n" for case in cases)).split("\n.\n")
    assert (len(lines), rest) == (len(cases), "")
    return lines


def test_every_call_of_a_stream_may_fail(program, record_property):
    clean = [case(driver) for driver in DRIVERS]
    cases = list(clean)
    for driver, line in zip(DRIVERS, played(program, clean), strict=True):
        assert line.count("poll:0") == 5
        assert re.search(r"op0@1:p\S* =0:\d .*op0@1:p\S* =0:\d .*poll:0", line), "two frames were in flight"
        for at, event in enumerate(re.findall(r"(\S+) =", line)):
            codes = (*CODES, *FULL) if "op" in event else CODES
            cases += [case(driver, f"1 {at} {code} {repeats}") for code, repeats in codes]
            cases.append(case(driver, cancel=at))
    failed = 0
    for given, line in zip(cases, played(program, cases), strict=True):
        try:
            Oracle().check(line)
        except BrokenError as rule:
            raise AssertionError(f"{given}\n{line}\n{rule}") from None
        failed += bool(re.search(r"(open|submit\d|poll|close):-", line))
    print(f"{len(cases)} cases, {failed} with a failure")
    record_property("cases", len(cases))
    assert failed > len(cases) // 4


MUTATIONS = {
    "a missing close": (r" C1 =0:0", "", "owned"),
    "two closes": (r" C1 =0:0", " C1 =0:0 C1 =0:0", "without ownership"),
    "a missing deactivation": (r" D2 =0:0", "", "active at the end"),
    "a wrong output": (r"poll:0 [0-9a-f]{8}", "poll:0 00000000", "sequential execution"),
    "devices in another order": (r"O0(\S* =0:0) O1", r"O1\1 O0", "higher address"),
    "a step with another program": (r"op3@2:p", "op3@2:q", "step 3 with q"),
    "a failure without a cause": (r"submit1:0", "submit1:-5", "without a failure"),
}


@pytest.mark.parametrize(("pattern", "by", "rule"), MUTATIONS.values(), ids=MUTATIONS)
def test_the_oracle_detects(program, pattern, by, rule):
    (line,) = played(program, [case("1 0 1 -")])
    changed = re.sub(pattern, by, line, count=1)
    assert changed != line
    with pytest.raises(BrokenError, match=rule):
        Oracle().check(changed)
