# SPDX-License-Identifier: Apache-2.0
"""Uploads and jobs over connections that lose, repeat, reorder and damage messages; the text of every error."""

import io
import random

import pytest
from campaign import sized
from fake_bundles import Bundles, FakeLink, Faults
from opwest.board.bundle_client import BundleClient, ForgottenError
from opwest.board.bundle_link import Info, Job
from opwest.board.link import LinkError
from opwest.board.progress import Progress

DATA = random.Random(5).randbytes(7001)
QUIET = Progress(None)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock of the client: a request takes 10 ms, a pause its time. Its element is the time."""
    now = [0.0]

    def monotonic() -> float:
        now[0] += 0.01
        return now[0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("opwest.board.bundle_client.time.monotonic", monotonic)
    monkeypatch.setattr("opwest.board.bundle_client.time.sleep", sleep)
    return now


def client_of(*links: FakeLink, timeout: float = 10.0, session: int = 7, reconnects: bool = True) -> BundleClient:
    """Return a client of the first connection, which finds the others after a loss."""
    left = list(links)

    def connect() -> FakeLink:
        if not left:
            raise LinkError("serial device '/dev/board' not found")
        return left.pop(0)

    return BundleClient(connect, session=session, timeout=timeout, progress=QUIET, reconnects=reconnects)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(),
        Faults(lose=0.2),
        Faults(repeat=0.3),
        Faults(late=0.2),
        Faults(damage=0.2),
        Faults(lose=0.1, repeat=0.1, late=0.1, damage=0.1),
    ],
    ids=["none", "lose", "repeat", "late", "damage", "all"],
)
@pytest.mark.parametrize("space", [64, 300])
def test_file_arrives_whole_in_a_bounded_number_of_parts(faults: Faults, space: int) -> None:
    least = -(-len(DATA) // space)
    for seed in range(sized(25, 1000)):
        bundles = Bundles(slow=seed % 3)
        client = client_of(FakeLink(bundles, faults, seed, space))
        assert client.upload(DATA) == 1
        assert bundles.received == DATA
        if faults == Faults():
            assert bundles.parts == least
        assert least <= bundles.parts <= 3 * least + 20, seed
        done = client.do(Job.INSTALL, "the installation")
        assert done.result == 0 and bundles.memory[1] == DATA
        assert bundles.done.count(Job.INSTALL) == 1, "a repeated request does not install twice"
        assert (bundles.active, bundles.previous) == (1, 0)


def test_progress_is_shown() -> None:
    shown = io.StringIO()
    client = BundleClient(
        lambda: FakeLink(Bundles(), Faults(), 1), session=1, timeout=5.0, progress=Progress(shown), reconnects=False
    )
    client.upload(DATA)
    assert shown.getvalue() == f"== sending the bundle: {len(DATA)} of {len(DATA)} bytes\n"


def test_upload_continues_after_the_connection_was_lost() -> None:
    bundles = Bundles()
    links = [FakeLink(bundles, Faults(), number) for number in range(3)]
    links[0].lost_at = {9}
    links[1].lost_at = {12}
    client = client_of(*links)
    client.upload(DATA)
    assert bundles.received == DATA
    assert bundles.parts == -(-len(DATA) // 300), "nothing is sent twice"


def test_upload_begins_again_after_a_restart_of_the_board() -> None:
    bundles = Bundles()
    link = FakeLink(bundles, Faults(), 1)
    link.restart_at = {10, 20}
    client_of(link).upload(DATA)
    assert bundles.received == DATA and bundles.done.count(Job.BEGIN) == 3


def test_upload_of_another_host_in_between() -> None:
    """The file of the first host is not mixed with that of the second one."""
    bundles = Bundles()
    first, other = FakeLink(bundles, Faults(), 1), FakeLink(bundles, Faults(), 2)
    count = [0]
    send = first._send

    def interrupted(act):  # type: ignore[no-untyped-def]
        count[0] += 1
        if count[0] == 12:
            client_of(other, session=8).upload(DATA[::-1])
        return send(act)

    first._send = interrupted  # type: ignore[method-assign]
    with pytest.raises(LinkError, match="timeout waiting for the receipt of the part at"):
        client_of(first).upload(DATA)
    assert bundles.received == DATA[::-1]


def test_board_that_restarts_all_the_time() -> None:
    link = FakeLink(Bundles(), Faults(), 1)
    link.restart_at = set(range(3, 10**4, 3))
    with pytest.raises(LinkError) as caught:
        client_of(link).upload(DATA)
    assert caught.value.message == "/dev/board: the upload was interrupted 9 times"
    assert caught.value.hint == "the board restarts, or another host sends a bundle, too"


def test_connection_that_does_not_return() -> None:
    link = FakeLink(Bundles(), Faults(), 1)
    link.lost_at = {9}
    with pytest.raises(LinkError) as caught:
        client_of(link).upload(DATA)
    assert caught.value.message == (
        "lost the serial device '/dev/board'; it has not returned within 10 s, while waiting for the receipt of the "
        "part at 1800: serial device '/dev/board' not found"
    )
    assert caught.value.hint == "plug in the board and repeat the command: an upload of the same file continues"
    link = FakeLink(Bundles(), Faults(), 1)
    link.lost_at = {9}
    client = client_of(link, reconnects=False)
    with pytest.raises(LinkError, match=r"^lost the serial device '/dev/board'$"):
        client.upload(DATA)
    client.disconnect()
    client.disconnect()
    assert not link.is_open


def test_slow_reconnection_is_no_silence(clock: list[float]) -> None:
    """The time-out begins again after it."""
    bundles = Bundles()
    links = [FakeLink(bundles, Faults(), number) for number in range(3)]
    links[0].lost_at = {9}
    links[1].lost_at = {12}

    def slow(link: FakeLink) -> None:
        info = link.info

        def late(seconds: float) -> Info | None:
            clock[0] += 11.0
            return info(seconds)

        link.info = late  # type: ignore[method-assign]

    slow(links[1])
    slow(links[2])
    client = client_of(*links)
    client.upload(DATA)
    assert bundles.received == DATA and not links[1].is_open
    links = [FakeLink(Bundles(), Faults(), number) for number in range(2)]
    links[0].lost_at = {2}
    slow(links[1])
    assert client_of(*links).do(Job.STATE, "the end").result == 0


def test_slow_erase_is_no_silence() -> None:
    """The slot is erased again after a restart of the board, for longer than the time-out; the next part is lost."""
    bundles = Bundles(slow=1500)
    link = FakeLink(bundles, Faults(), 1)
    link.restart_at = {1510}
    lost_part = 1510 + 1 + bundles.slow + 1
    send = link._send

    def losing(act):  # type: ignore[no-untyped-def]
        answer = send(act)
        return None if link.requests == lost_part else answer

    link._send = losing  # type: ignore[method-assign]
    client_of(link).upload(DATA)
    assert bundles.received == DATA and bundles.done == [Job.BEGIN] * 2


def test_restart_while_a_slot_is_erased() -> None:
    bundles = Bundles(slow=1)
    link = FakeLink(bundles, Faults(), 1)
    link.restart_at = {3, 5}
    client_of(link).upload(DATA)
    assert bundles.received == DATA and bundles.done == [Job.BEGIN] * 3
    link = FakeLink(bundles, Faults(), 1)
    link.restart_at = set(range(3, 10**4, 2))
    with pytest.raises(LinkError, match="the upload was interrupted 9 times"):
        client_of(link, session=8).upload(DATA)


def test_question_is_repeated_after_a_restart() -> None:
    bundles = Bundles(slow=1)
    link = FakeLink(bundles, Faults(), 1)
    link.restart_at = {3, 5}
    assert client_of(link).ask(Job.LIST, "the slot", slot=1).fields.number("address") == 0x18000
    assert bundles.done == [Job.LIST] * 3
    link = FakeLink(bundles, Faults(), 1)
    link.restart_at = set(range(3, 10**4, 2))
    with pytest.raises(ForgottenError) as caught:
        client_of(link, session=8).ask(Job.STATE, "the state")
    assert caught.value.message == "/dev/board: the board does not have the result of 'state'"
    assert caught.value.hint is not None and "'opwest bundle --list' prints the current model" in caught.value.hint
    assert bundles.done.count(Job.STATE) == 9


def test_board_that_disappears_at_every_job() -> None:
    links = [FakeLink(Bundles(), Faults(), number) for number in range(20)]
    for link in links:
        link.lost_at = {2}
    with pytest.raises(LinkError) as caught:
        client_of(*links).do(Job.STEPS, "the end")
    assert caught.value.message == (
        "lost the serial device '/dev/board'; it was lost 9 times while waiting for the end"
    )
    assert caught.value.hint == "the board restarts repeatedly: read its console"


def test_silent_board() -> None:
    link = FakeLink(Bundles(), Faults(lose=1.0), 1)
    with pytest.raises(LinkError, match="timeout waiting for a description of the slots"):
        client_of(link)
    assert not link.is_open
    link = FakeLink(Bundles(), Faults(), 1)
    client = client_of(link)
    link.faults = Faults(lose=1.0)
    with pytest.raises(LinkError, match="timeout waiting for the end"):
        client.do(Job.CONFIRM, "the end")
    link.faults = Faults()
    client.do(Job.BEGIN, "the slot", size=10, digest=bytes(64))
    link.faults = Faults(lose=1.0)
    with pytest.raises(LinkError, match="timeout waiting for"):
        client.upload(DATA)


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        ("EBUSY", "the board accepts no upload: its slot is in use, or a model is not confirmed", "--confirm"),
        ("EFBIG", "the bundle of 7001 bytes is larger than slot 1", "or fewer golden vectors: --vectors N"),
        ("ENOENT", "the board has no slot 1", "'opwest bundle --list' prints the slots"),
        ("EIO", "cannot erase the slot: EIO", "the flash or its driver failed; try again"),
    ],
)
def test_slot_that_cannot_be_used(error: str, message: str, hint: str) -> None:
    bundles = Bundles(answers={Job.BEGIN: (error, {"off": 0, "slot": 255})})
    client = client_of(FakeLink(bundles, Faults(), 1))
    with pytest.raises(LinkError) as caught:
        client.upload(DATA, 1)
    assert caught.value.message == f"/dev/board: {message}"
    assert hint in (caught.value.hint or "")
    with pytest.raises(LinkError) as caught:
        client.upload(DATA)
    by_default = message.replace("than slot 1", "than the slot of the next upload").replace(
        "no slot 1", "no slot for an upload"
    )
    assert caught.value.message == f"/dev/board: {by_default}"


def test_offset_outside_of_the_file() -> None:
    bundles = Bundles(answers={Job.BEGIN: ("", {"off": 7002, "slot": 1})})
    with pytest.raises(LinkError, match="the board expects the bundle at 7002 of 7001 bytes"):
        client_of(FakeLink(bundles, Faults(), 1)).upload(DATA)
    bundles = Bundles()
    bundles.part = lambda offset, data, check: {"at": offset, "off": -1, "result": 0, "error": ""}  # type: ignore[method-assign]
    with pytest.raises(LinkError, match="the board expects the bundle at -1 of 7001 bytes"):
        client_of(FakeLink(bundles, Faults(), 1)).upload(DATA)


def test_flash_that_fails() -> None:
    bundles = Bundles()
    bundles.part = lambda offset, data, check: {"at": offset, "off": 0, "result": -5, "error": "EIO"}  # type: ignore[method-assign]
    with pytest.raises(LinkError) as caught:
        client_of(FakeLink(bundles, Faults(), 1)).upload(DATA)
    assert caught.value.message == "/dev/board: cannot write the bundle at 0: EIO"
    assert caught.value.hint == "the flash of the slot may be worn out, or its driver failed"


def test_job_that_runs_longer_than_the_timeout() -> None:
    bundles = Bundles()
    client = client_of(FakeLink(bundles, Faults(), 1))
    bundles.slow = 1500  # 30 s
    assert client.do(Job.STATE, "the end").result == 0
    bundles.slow = 10**6
    with pytest.raises(LinkError) as caught:
        client.do(Job.ROLL_BACK, "the end")
    assert caught.value.message.startswith("/dev/board: 'roll back' has not ended after 200 s")
    assert caught.value.hint is not None and "opwest_session_hold" in caught.value.hint


def test_job_of_another_host() -> None:
    bundles = Bundles(slow=3)
    first, second = FakeLink(bundles, Faults(), 1), FakeLink(bundles, Faults(), 2)
    client, other = client_of(first), client_of(second, session=8)
    bundles.job({"do": 0, "session": 9, "number": 1})
    bundles._running = 40
    with pytest.raises(LinkError, match="the end of another host's command, before 'state'"):
        client.do(Job.STATE, "the end")
    bundles._running = 0
    assert other.do(Job.STATE, "the end").result == 0
    # The result of a job is lost when another host requests one.
    send = first._send
    seen = []

    def interrupted(act):  # type: ignore[no-untyped-def]
        seen.append(1)
        if len(seen) == 3:
            bundles._running = 0
            other.do(Job.STATE, "the end")
        return send(act)

    first._send = interrupted  # type: ignore[method-assign]
    with pytest.raises(ForgottenError) as caught:
        client.do(Job.INSTALL, "the end")
    assert caught.value.message == "/dev/board: the board does not have the result of 'install'"


def test_number_of_an_earlier_job() -> None:
    bundles = Bundles()
    client = client_of(FakeLink(bundles, Faults(), 1))
    bundles.job({"do": 0, "session": 7, "number": 10})
    with pytest.raises(LinkError, match=r"^/dev/board: the board refuses 'install': EALREADY$"):
        client.do(Job.INSTALL, "the end")


def test_service_of_another_version_and_without_fields() -> None:
    bundles = Bundles()
    bundles.info = {**bundles.info, "service": 2}
    with pytest.raises(LinkError) as caught:
        client_of(FakeLink(bundles, Faults(), 1))
    assert caught.value.message == "the bundle service of the image on '/dev/board' has version 2, expected 1"
    for wrong in ({"service": "x"}, {"service": True}, {}, {"service": b"1"}):
        bundles.info = wrong
        with pytest.raises(LinkError, match="missing or invalid 'service' in a response about bundles"):
            client_of(FakeLink(bundles, Faults(), 1))
