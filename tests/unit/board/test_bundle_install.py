# SPDX-License-Identifier: Apache-2.0
"""What `opwest bundle` asks of a board, and what it prints."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_bundles import EMPTY, GOOD, Bundles, FakeLink, Faults
from fake_bundles import verdict as fields_of
from opwest.board.bundle_client import BundleClient
from opwest.board.bundle_faults import Verdict
from opwest.board.bundle_install import confirm, install, list_slots, roll_back
from opwest.board.bundle_link import Job
from opwest.board.bundle_slots import File
from opwest.board.link import LinkError, ModelError
from opwest.board.progress import Progress
from opwest.bundles.format import LINKED, LLEXT, AbiRecord, Content, Signature, pack, unpack, with_signatures

QUIET = Progress(None)
SESSIONS = itertools.count(1)
HARMLESS = Faults(lose=0.1, repeat=0.1, late=0.1)


def bundle(address: int, name: str = "digits", kind: int = LINKED, size: int = 2000) -> File:
    """Return a signed bundle; only the board verifies the signature."""
    content = Content(
        *(kind, address, 0, (1, 2, 3), 5, bytes(32), name),
        AbiRecord(40, 4, 1, 0, 0, 1, 1, 0, 2, 0, 0, 1, 1, 64, 8, 100, 8, 64, 4),
        bytes(range(256)) * (size // 256),
        "",
    )
    data = with_signatures(pack(content), [Signature(bytes(8), bytes(64))])
    return File(Path(f"{name}-{address:x}.bundle"), unpack(data))


BOTH = [bundle(0x8000), bundle(0x18000)]


def client_of(bundles: Bundles, faults: Faults = HARMLESS) -> BundleClient:
    link = FakeLink(bundles, faults, 3)
    return BundleClient(lambda: link, session=next(SESSIONS), timeout=5.0, progress=QUIET, reconnects=False)


def test_file_of_the_next_slot_is_installed() -> None:
    bundles = Bundles()
    done = install(client_of(bundles), BOTH, QUIET)
    assert bundles.memory == [b"first", BOTH[1].bundle.data]
    assert done.as_text.splitlines() == [
        "digits 1.2.3 runs from slot 1 at 0x18000 of /dev/board",
        "before: model0 1.2.3 in slot 0",
    ]
    assert (done.as_json["active"], done.as_json["trying"], done.as_json["previous"]) == (1, None, 0)
    done = install(client_of(bundles), BOTH, QUIET)
    assert bundles.memory[0] == BOTH[0].bundle.data and bundles.active == 0
    bundles.verdicts[1] = (1, "no bundle", 0, 0, 0)
    done = install(client_of(bundles), [bundle(0, kind=LLEXT)], QUIET)
    assert done.as_text.startswith("digits 1.2.3 runs from slot 1")


def test_model_that_waits_for_its_confirmation() -> None:
    bundles = Bundles(waits_for_confirmation=True)
    client = client_of(bundles)
    done = install(client, BOTH, QUIET)
    assert done.as_text.splitlines()[1:] == [
        "it is not confirmed: opwest bundle --confirm keeps it, a restart or --roll-back ends it",
        "before: model0 1.2.3 in slot 0",
    ]
    with pytest.raises(LinkError) as caught:
        install(client, BOTH, QUIET)
    assert caught.value.message == (
        "/dev/board: the board accepts no upload: its slot is in use, or a model is not confirmed"
    )
    assert confirm(client).as_text == "confirmed: model1 1.2.3 in slot 1"
    with pytest.raises(ModelError, match=r"^/dev/board: no model waits for its confirmation$"):
        confirm(client)
    assert roll_back(client, QUIET).as_text == "current: model0 1.2.3 in slot 0"
    assert roll_back(client, QUIET).as_text == "current: model1 1.2.3 in slot 1"
    with pytest.raises(ModelError, match=r"^/dev/board: the board has no previous model$"):
        roll_back(client_of(Bundles()), QUIET)


def test_list() -> None:
    bundles = Bundles(crashes=2, fault=(18, "unconfirmed"))
    bundles.verdicts[1] = (6, "signature", 0, 0, 1)
    found = list_slots(client_of(bundles))
    assert found.as_text.splitlines() == [
        "/dev/board: 2 slots, format version 1",
        "slot 0 at 0x8000, 65536 bytes (active): model0 1.2.3",
        "slot 1 at 0x18000, 65536 bytes (next): model1 1.2.3; refused: no signature is valid for a key of the firmware",
        "starts since the application was healthy: 2",
        "the latest trial ended with: unconfirmed",
    ]
    assert found.as_json["slots"][1]["verdict"]["fault"] == "signature"
    assert found.as_json["slots"][0]["model"]["interface_hash"] == "fffffffffffffffe"
    bundles.verdicts[1] = (3, "header", 8, 0, 0)
    assert list_slots(client_of(bundles)).as_text.splitlines()[2].endswith("(next): its header is damaged")
    bundles.verdicts[1] = EMPTY
    assert list_slots(client_of(bundles)).as_text.splitlines()[2].endswith("(next): empty")


@pytest.mark.parametrize(
    ("files", "message", "hint"),
    [
        (
            [bundle(0x8000), bundle(0x40000, "kws")],
            "no file for slot 1 at 0x18000, which /dev/board uses next; files: 'digits-8000.bundle' for 0x8000, "
            "'kws-40000.bundle' for 0x40000; slots: slot 0 at 0x8000, slot 1 at 0x18000; format version 1",
            "give one file for each slot: opwest bundle MANIFEST --slot ADDRESS",
        ),
        (
            [bundle(0x18000, size=1 << 17)],
            "'digits-18000.bundle' has 131416 bytes, slot 1 of /dev/board 65536",
            "use a larger partition, or fewer golden vectors: --vectors N",
        ),
    ],
)
def test_files_that_do_not_fit(files: Sequence[File], message: str, hint: str) -> None:
    with pytest.raises(LinkError) as caught:
        install(client_of(Bundles()), files, QUIET)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_board_without_a_free_slot() -> None:
    bundles = Bundles(trying=1)
    slot = bundles._slot
    bundles._slot = lambda index: {**slot(index), "is": (1, 2)[index]}  # type: ignore[method-assign]
    with pytest.raises(LinkError) as caught:
        install(client_of(bundles), BOTH, QUIET)
    assert caught.value.message == "/dev/board: the board accepts no upload: the model in slot 1 is not confirmed"


@pytest.mark.parametrize(
    ("verdict", "reason", "hint"),
    [
        (
            (2, "format", 4, 2, 1),
            "the firmware does not read its version of the format; it reads version 1",
            "opwest of the firmware",
        ),
        ((2, "format", 4, 2, 0), "the firmware does not read its version of the format", "opwest of the firmware"),
        ((4, "size", 0, 900, 800), "its parts need 900 bytes, there are 800", "larger slot"),
        ((5, "read-back", 0, 0, 0), "the content of the slot differs from the file that was sent", "send the file"),
        ((6, "signature", 0, 0, 1), "no signature is valid for a key of the firmware", "sign the bundle"),
        (
            (7, "slot", 16, 0x8000, 0x18000),
            "it is linked for the slot at 0x8000, not for this one at 0x18000",
            "--slot",
        ),
        (
            (8, "machine", 136, 243, 40),
            "it is for the machine 243 (e_machine of ELF), the firmware runs on 40",
            "build",
        ),
        ((8, "machine", 138, 8, 4), "the pointer size is 8, the firmware has 4", "build"),
        ((9, "float ABI", 139, 2, 1), "its float ABI is hard, that of the firmware soft", "build"),
        (
            (9, "float ABI", 139, 0, 2),
            "its float ABI is the only one of the machine, that of the firmware hard",
            "build",
        ),
        ((9, "float ABI", 139, 77, 1), "its float ABI is 77, that of the firmware soft", "build"),
        ((10, "cpu", 148, 0x23, 3), "the processor does not have: ARM_DSP", "compile the model"),
        ((11, "layout", 142, 2, 1), "the version of the metadata is 2, the firmware has 1", "opwest of the firmware"),
        ((11, "layout", 146, 2, 0), "the options of the layout is 2, the firmware has 0", "opwest of the firmware"),
        ((12, "descriptor", 32, 2, 0), "its description contradicts its header at 32", "its build was wrong"),
        ((13, "memory", 1, 900, 800), "it needs 900 bytes of memory, session 1 has 800", "more memory"),
        ((13, "memory", -1, 900, 800), "it needs 900 bytes of memory, the trial has 800", "more memory"),
        ((14, "devices", 2, 0, 0), "the firmware has no device for device 2 of the model", "opwest_bundles_config"),
        (
            (15, "downgrade", 44, 0x01000000, 0x01020003),
            "its version 1.0.0 is older than 1.2.3, which was confirmed for this model",
            "higher version",
        ),
        ((16, "run", -5, 0, 0), "the model failed on its golden vectors with error -5", "opwest run --board"),
        ((17, "vector", 2, 0, 0), "the outputs of golden vector 2 differ from the expected ones", "--check-steps"),
        ((21, "no vector", 0, 0, 1), "it contains no golden vector", "tests: vectors:"),
        ((99, "", 1, 2, 3), "unknown fault (99): detail 1, found 2, expected 3", ""),
    ],
)
def test_refused_bundle(verdict: tuple[int, str, int, int, int], reason: str, hint: str) -> None:
    bundles = Bundles(answers={Job.INSTALL: ("EBADMSG", fields_of(verdict))})
    with pytest.raises(ModelError) as caught:
        install(client_of(bundles), BOTH, QUIET)
    assert caught.value.message == f"/dev/board: the board refuses digits 1.2.3 ({verdict[1]}): {reason}"
    assert hint in (caught.value.hint or "")
    bundles = Bundles(previous=1, answers={Job.ROLL_BACK: ("EBADMSG", fields_of(verdict))})
    with pytest.raises(ModelError) as caught:
        roll_back(client_of(bundles), QUIET)
    assert caught.value.message == f"/dev/board: the board refuses the previous model ({verdict[1]}): {reason}"


def test_board_whose_flash_fails() -> None:
    bundles = Bundles(answers={Job.INSTALL: ("EIO", fields_of((20, "storage", -5, 0, 0)))})
    with pytest.raises(ModelError) as caught:
        install(client_of(bundles), BOTH, QUIET)
    assert caught.value.message.endswith("(storage): the flash or the records of the board failed with error -5")
    bundles = Bundles(answers={Job.INSTALL: ("EIO", fields_of(GOOD))})
    with pytest.raises(LinkError, match=r"^/dev/board: cannot install digits 1.2.3: EIO$"):
        install(client_of(bundles), BOTH, QUIET)
    bundles = Bundles(answers={Job.STATE: ("", {})})
    with pytest.raises(LinkError, match="missing or invalid 'active'"):
        list_slots(client_of(bundles))
    bundles = Bundles(answers={Job.CONFIRM: ("EIO", {}), Job.ROLL_BACK: ("EIO", {})})
    with pytest.raises(LinkError, match=r"^/dev/board: cannot confirm the model: EIO$"):
        confirm(client_of(bundles))
    with pytest.raises(LinkError, match=r"^/dev/board: cannot return to the previous model: EIO$"):
        roll_back(client_of(bundles), QUIET)


def test_other_trial() -> None:
    bundles = Bundles(answers={Job.INSTALL: ("EBUSY", fields_of(GOOD))})
    with pytest.raises(ModelError) as caught:
        install(client_of(bundles), BOTH, QUIET)
    assert caught.value.message == "/dev/board: the board installs nothing: a model is not confirmed"


def test_restart_before_the_installation() -> None:
    """The upload is repeated, a bounded number of times."""
    bundles = Bundles()
    client = client_of(bundles, Faults())
    jobs = bundles._install
    failures = [1, 1]

    def restarted() -> tuple[str, dict[str, object]]:
        if failures:
            failures.pop()
            bundles.restart()
        return jobs()

    bundles._install = restarted  # type: ignore[method-assign]
    install(client, BOTH, QUIET)
    assert bundles.memory[1] == BOTH[1].bundle.data and bundles.done.count(Job.BEGIN) == 3
    failures[:] = [1] * 9
    with pytest.raises(LinkError, match=r"^/dev/board: cannot install digits 1.2.3: EPERM$"):
        install(client, BOTH, QUIET)
    assert bundles.done.count(Job.BEGIN) == 6


@pytest.mark.parametrize("succeeds", [True, False])
def test_restart_during_the_installation(succeeds: bool) -> None:
    """The state of the board shows how it ended."""
    bundles = Bundles(slow=2)
    link = FakeLink(bundles, Faults(), 3)
    client = BundleClient(lambda: link, session=1, timeout=5.0, progress=QUIET, reconnects=False)
    send = link._send

    def restarting(act):  # type: ignore[no-untyped-def]
        answer = send(act)
        if bundles.done[-1:] == [Job.INSTALL] and bundles._running:
            bundles.restart()
            if not succeeds:
                bundles.active, bundles.previous, bundles.fault = 0, 255, (18, "unconfirmed")
        return answer

    link._send = restarting  # type: ignore[method-assign]
    if succeeds:
        assert install(client, BOTH, QUIET).as_text.startswith("digits 1.2.3 runs from slot 1")
        return
    with pytest.raises(ModelError) as caught:
        install(client, BOTH, QUIET)
    assert caught.value.message == (
        "/dev/board: the board does not have the result of 'install'; digits 1.2.3 is not installed; "
        "the latest trial ended with: unconfirmed"
    )
    assert bundles.done.count(Job.INSTALL) == 1


def client_of_restarting(bundles: Bundles, job: Job, *, is_done: bool) -> BundleClient:
    """Return a client of a board that restarts while it does a job: after its effect, or before it."""
    link = FakeLink(bundles, Faults(), 3)
    send = link._send

    def restarting(act):  # type: ignore[no-untyped-def]
        before = (bundles.active, bundles.trying, bundles.previous)
        answer = send(act)
        if bundles.done[-1:] == [job] and bundles._running:
            bundles.restart()
            if not is_done:  # the start ends a trial
                bundles.active, _, bundles.previous = before
                bundles.trying = 255
                bundles.fault = (18, "unconfirmed") if before[1] != 255 else bundles.fault
        return answer

    link._send = restarting  # type: ignore[method-assign]
    return BundleClient(lambda: link, session=1, timeout=5.0, progress=QUIET, reconnects=False)


def test_restart_during_the_confirmation() -> None:
    client = client_of_restarting(Bundles(slow=2, trying=1, verdicts=[GOOD] * 2), Job.CONFIRM, is_done=True)
    assert confirm(client).as_text == "confirmed: model1 1.2.3 in slot 1"
    client = client_of_restarting(Bundles(slow=2, trying=1, verdicts=[GOOD] * 2), Job.CONFIRM, is_done=False)
    with pytest.raises(ModelError) as caught:
        confirm(client)
    assert caught.value.message == (
        "/dev/board: the board does not have the result of 'confirm'; the model is not confirmed; "
        "the latest trial ended with: unconfirmed; current: model0 1.2.3 in slot 0"
    )
    assert "'opwest bundle --list' prints the current model" in (caught.value.hint or "")
    client = client_of_restarting(Bundles(slow=2), Job.CONFIRM, is_done=False)
    with pytest.raises(ModelError, match=r"the model is not confirmed; current: model0 1.2.3 in slot 0$"):
        confirm(client)


def test_restart_during_the_roll_back() -> None:
    client = client_of_restarting(Bundles(slow=2, previous=1, verdicts=[GOOD] * 2), Job.ROLL_BACK, is_done=True)
    assert roll_back(client, QUIET).as_text == "current: model1 1.2.3 in slot 1"
    client = client_of_restarting(Bundles(slow=2, trying=1), Job.ROLL_BACK, is_done=False)
    assert roll_back(client, QUIET).as_text == "current: model0 1.2.3 in slot 0", "the restart ended the trial"
    for previous in (1, 255):
        client = client_of_restarting(Bundles(slow=2, previous=previous), Job.ROLL_BACK, is_done=False)
        with pytest.raises(ModelError) as caught:
            roll_back(client, QUIET)
        assert caught.value.message == (
            "/dev/board: the board does not have the result of 'roll back'; the previous model does not run; "
            "current: model0 1.2.3 in slot 0"
        )


@pytest.mark.parametrize("trying", [255, 1])
def test_restart_after_the_roll_back_without_any_response(trying: int) -> None:
    """The host repeats the request, and the board does not roll back a second time."""
    bundles = Bundles(previous=255 if trying == 1 else 1, trying=trying, verdicts=[GOOD] * 2)
    link = FakeLink(bundles, Faults(), 3)
    send = link._send
    restarts = []

    def restarting(act):  # type: ignore[no-untyped-def]
        answer = send(act)
        if bundles.done[-1:] == [Job.ROLL_BACK] and not restarts:
            restarts.append(True)
            bundles.restart()
            return None
        return answer

    link._send = restarting  # type: ignore[method-assign]
    client = BundleClient(lambda: link, session=1, timeout=5.0, progress=QUIET, reconnects=False)
    current = "model0 1.2.3 in slot 0" if trying == 1 else "model1 1.2.3 in slot 1"
    assert roll_back(client, QUIET).as_text == f"current: {current}"
    assert bundles.done.count(Job.ROLL_BACK) == 2 and bundles.trying == 255


def test_verdict_for_programs() -> None:
    assert Verdict(6, "signature", 0, 0, 1).as_json()["reason"] == "no signature is valid for a key of the firmware"
