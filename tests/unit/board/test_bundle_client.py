# SPDX-License-Identifier: Apache-2.0
"""Uploads and jobs over connections that lose, repeat, reorder and damage messages; the text of every error."""

import io
import random

import pytest
from board_support import failure
from campaign import sized
from fake_bundles import Bundles, FakeLink, Faults, client_of
from opwest.bundles.client import BundleClient, ForgottenError
from opwest.bundles.link import Job
from opwest.runs.progress import StageProgress

DATA = random.Random(5).randbytes(7001)
NONE = Faults()


def link_to(bundles=None, faults=NONE, **at):
    """Return a connection; `at` are the numbers of requests at which it is lost, or the board restarts."""
    link = FakeLink(bundles or Bundles(), faults, 1)
    vars(link).update(at)
    return link


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Replace the clock of the client: a request takes 10 ms, a pause its time. Its element is the time."""
    now = [0.0]

    def monotonic():
        now[0] += 0.01
        return now[0]

    def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr("opwest.bundles.client.time.monotonic", monotonic)
    monkeypatch.setattr("opwest.bundles.client.time.sleep", sleep)
    return now


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
def test_file_arrives_whole_in_a_bounded_number_of_parts(faults, space):
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


def test_progress_is_shown():
    shown = io.StringIO()
    BundleClient(link_to, session=1, timeout=5.0, progress=StageProgress(shown), reconnects=False).upload(DATA)
    assert shown.getvalue() == f"== sending the bundle: {len(DATA)} of {len(DATA)} bytes\n"


def test_upload_continues_after_the_connection_was_lost():
    bundles = Bundles()
    client_of(link_to(bundles, lost_at={9}), link_to(bundles, lost_at={12}), link_to(bundles)).upload(DATA)
    assert bundles.received == DATA
    assert bundles.parts == -(-len(DATA) // 300), "nothing is sent twice"


def test_upload_begins_again_after_a_restart_of_the_board():
    bundles = Bundles()
    client_of(link_to(bundles, restart_at={10, 20})).upload(DATA)
    assert bundles.received == DATA and bundles.done.count(Job.BEGIN) == 3


def test_upload_of_another_host_in_between():
    """The file of the first host is not mixed with that of the second one."""
    bundles = Bundles()
    first = link_to(bundles)

    def interrupt():
        if first.requests == 12:
            client_of(link_to(bundles), session=8).upload(DATA[::-1])

    first.before = interrupt
    found = failure(client_of(first).upload, DATA)
    assert "timeout waiting for the receipt of the part at" in found.message
    assert bundles.received == DATA[::-1]


def test_board_that_restarts_all_the_time():
    found = failure(client_of(link_to(restart_at=range(3, 10**4, 3))).upload, DATA)
    assert found.message == "/dev/board: the upload was interrupted 9 times"
    assert found.hint == "the board restarts, or another host sends a bundle, too"


def test_connection_that_does_not_return():
    found = failure(client_of(link_to(lost_at={9})).upload, DATA)
    assert found.message == (
        "lost the serial device '/dev/board'; it has not returned within 10 s, while waiting for the receipt of the "
        "part at 1800: serial device '/dev/board' not found"
    )
    assert found.hint == "plug in the board and repeat the command: an upload of the same file continues"
    link = link_to(lost_at={9})
    client = client_of(link, reconnects=False)
    assert failure(client.upload, DATA).message == "lost the serial device '/dev/board'"
    client.disconnect()
    client.disconnect()
    assert not link.is_open


def test_slow_reconnection_is_no_silence(clock):
    """The time-out begins again after it."""

    def slow(link):
        def before():
            if link.requests == 1:
                clock[0] += 11.0

        link.before = before
        return link

    bundles = Bundles()
    links = [link_to(bundles, lost_at={9}), slow(link_to(bundles, lost_at={12})), slow(link_to(bundles))]
    client_of(*links).upload(DATA)
    assert bundles.received == DATA and not links[1].is_open
    assert client_of(link_to(lost_at={2}), slow(link_to())).do(Job.STATE, "the end").result == 0


def test_slow_erase_is_no_silence():
    """The slot is erased again after a restart of the board, for longer than the time-out; the next part is lost."""
    bundles = Bundles(slow=1500)
    link = link_to(bundles, restart_at={1510})
    lost_part = 1510 + 1 + bundles.slow + 1
    link.after = lambda answer: None if link.requests == lost_part else answer
    client_of(link).upload(DATA)
    assert bundles.received == DATA and bundles.done == [Job.BEGIN] * 2


def test_restart_while_a_slot_is_erased():
    bundles = Bundles(slow=1)
    client_of(link_to(bundles, restart_at={3, 5})).upload(DATA)
    assert bundles.received == DATA and bundles.done == [Job.BEGIN] * 3
    link = link_to(bundles, restart_at=range(3, 10**4, 2))
    assert "the upload was interrupted 9 times" in failure(client_of(link, session=8).upload, DATA).message


def test_question_is_repeated_after_a_restart():
    bundles = Bundles(slow=1)
    client = client_of(link_to(bundles, restart_at={3, 5}))
    assert client.ask(Job.LIST, "the slot", slot=1).fields.number("address") == 0x18000
    assert bundles.done == [Job.LIST] * 3
    client = client_of(link_to(bundles, restart_at=range(3, 10**4, 2)), session=8)
    found = failure(client.ask, Job.STATE, "the state", kind=ForgottenError)
    assert found.message == "/dev/board: the board does not have the result of 'state'"
    assert "'opwest bundle list' prints the current model" in found.hint
    assert bundles.done.count(Job.STATE) == 9


def test_board_that_disappears_at_every_job():
    found = failure(client_of(*(link_to(lost_at={2}) for _ in range(20))).do, Job.STEPS, "the end")
    assert found.message == "lost the serial device '/dev/board'; it was lost 9 times while waiting for the end"
    assert found.hint == "the board restarts repeatedly: read its console"


def test_silent_board():
    silent = Faults(lose=1.0)
    link = link_to(faults=silent)
    assert "timeout waiting for a description of the slots" in failure(client_of, link).message
    assert not link.is_open
    link = link_to()
    client = client_of(link)
    link.faults = silent
    assert "timeout waiting for the end" in failure(client.do, Job.CONFIRM, "the end").message
    link.faults = NONE
    client.do(Job.BEGIN, "the slot", size=10, digest=bytes(64))
    link.faults = silent
    assert "timeout waiting for" in failure(client.upload, DATA).message


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        ("EBUSY", "the board accepts no upload: its slot is in use, or a model is not confirmed", "bundle confirm"),
        ("EFBIG", "the bundle of 7001 bytes is larger than slot 1", "or fewer golden vectors: --vectors N"),
        ("ENOENT", "the board has no slot 1", "'opwest bundle list' prints the slots"),
        ("EIO", "cannot erase the slot: EIO", "the flash or its driver failed; try again"),
    ],
)
def test_slot_that_cannot_be_used(error, message, hint):
    client = client_of(link_to(Bundles(answers={Job.BEGIN: (error, {"off": 0, "slot": 255})})))
    found = failure(client.upload, DATA, 1)
    assert found.message == f"/dev/board: {message}"
    assert hint in found.hint
    by_default = message.replace("than slot 1", "than the slot of the next upload")
    by_default = by_default.replace("no slot 1", "no slot for an upload")
    assert failure(client.upload, DATA).message == f"/dev/board: {by_default}"


def test_answers_to_parts():
    """An offset outside of the file, and a flash that fails."""
    client = client_of(link_to(Bundles(answers={Job.BEGIN: ("", {"off": 7002, "slot": 1})})))
    assert "the board expects the bundle at 7002 of 7001 bytes" in failure(client.upload, DATA).message
    bundles = Bundles()
    bundles.part = lambda offset, data, check: {"at": offset, "off": -1, "result": 0, "error": ""}
    found = failure(client_of(link_to(bundles)).upload, DATA)
    assert "the board expects the bundle at -1 of 7001 bytes" in found.message
    bundles.part = lambda offset, data, check: {"at": offset, "off": 0, "result": -5, "error": "EIO"}
    found = failure(client_of(link_to(bundles), session=8).upload, DATA)
    assert found.message == "/dev/board: cannot write the bundle at 0: EIO"
    assert found.hint == "the flash of the slot may be worn out, or its driver failed"


def test_job_that_runs_longer_than_the_timeout():
    bundles = Bundles()
    client = client_of(link_to(bundles))
    bundles.slow = 1500  # 30 s
    assert client.do(Job.STATE, "the end").result == 0
    bundles.slow = 10**6
    found = failure(client.do, Job.ROLL_BACK, "the end")
    assert found.message.startswith("/dev/board: 'roll back' has not ended after 200 s")
    assert "opwest_session_hold" in found.hint


def test_job_of_another_host():
    bundles = Bundles(slow=3)
    first = link_to(bundles)
    client, other = client_of(first), client_of(link_to(bundles), session=8)
    bundles.job({"do": 0, "session": 9, "number": 1})
    bundles._running = 40
    found = failure(client.do, Job.STATE, "the end")
    assert "the end of another host's command, before 'state'" in found.message
    bundles._running = 0
    assert other.do(Job.STATE, "the end").result == 0
    # The result of a job is lost when another host requests one.
    third = first.requests + 3

    def interrupt():
        if first.requests == third:
            bundles._running = 0
            other.do(Job.STATE, "the end")

    first.before = interrupt
    found = failure(client.do, Job.INSTALL, "the end", kind=ForgottenError)
    assert found.message == "/dev/board: the board does not have the result of 'install'"


def test_number_of_an_earlier_job():
    bundles = Bundles()
    client = client_of(link_to(bundles))
    bundles.job({"do": 0, "session": 7, "number": 10})
    found = failure(client.do, Job.INSTALL, "the end")
    assert found.message == "/dev/board: the board refuses 'install': EALREADY"


def test_service_of_another_version_and_without_fields():
    bundles = Bundles()
    bundles.info["service"] = 2
    found = failure(client_of, link_to(bundles))
    assert found.message == "the bundle service of the image on '/dev/board' has version 2, expected 1"
    for wrong in ({"service": "x"}, {"service": True}, {}, {"service": b"1"}):
        bundles.info = wrong
        found = failure(client_of, link_to(bundles))
        assert "missing or invalid 'service' in a response about bundles" in found.message
