# SPDX-License-Identifier: Apache-2.0
"""What `opwest bundle` asks of a board, and what it prints."""

import hashlib
import itertools
from pathlib import Path

import pytest
from board_support import QUIET, failure
from fake_bundles import EMPTY, GOOD, Bundles, FakeLink, Faults
from fake_bundles import client_of as client_over
from fake_bundles import verdict as fields_of
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.bundles.faults import Verdict
from opwest.bundles.format import LINKED, LLEXT, AbiFields, Content, Signature, pack, unpack, with_signatures
from opwest.bundles.install import File, confirm, install, list_slots, roll_back
from opwest.bundles.link import Job
from opwest.bundles.steps import Expected, check_own, check_sent, expected_steps
from opwest.model.types.dtypes import DTYPES
from opwest.render.bundle import StepResult
from opwest.runs.link import LinkError, ModelError

SESSIONS = itertools.count(1)
HARMLESS = Faults(lose=0.1, repeat=0.1, late=0.1)
UNCONFIRMED = (18, "unconfirmed")
INSTALLED = "digits 1.2.3 runs from slot 1 at 0x18000 of /dev/board\nbefore: model0 1.2.3 in slot 0"


def bundle(address: int, name: str = "digits", kind: int = LINKED, size: int = 2000) -> File:
    """Return a signed bundle; only the board verifies the signature."""
    content = Content(
        *(kind, address, 0, (1, 2, 3), 5, bytes(32), name),
        AbiFields(40, 4, 1, 0, 0, 1, 1, 0, 2, 0, 0, 1, 1, 64, 8, 100, 8, 64, 4),
        bytes(range(256)) * (size // 256),
        "",
    )
    data = with_signatures(pack(content), [Signature(bytes(8), bytes(64))])
    return File(Path(f"{name}-{address:x}.bundle"), unpack(data))


BOTH = [bundle(0x8000), bundle(0x18000)]


def client_of(bundles, faults=HARMLESS):
    link = FakeLink(bundles, faults, 3)
    return client_over(link, session=next(SESSIONS), timeout=5.0, reconnects=False)


def refusal(bundles, act=None, kind=ModelError):
    """Return the error of an action, by default of an installation."""
    return failure(act or install_both, client_of(bundles), kind=kind)


def install_both(client):
    return install(client, BOTH, QUIET)


def return_(client):
    return roll_back(client, QUIET)


def test_file_of_the_next_slot_is_installed():
    bundles = Bundles()
    done = install_both(client_of(bundles))
    assert bundles.memory == [b"first", BOTH[1].bundle.data]
    assert done.as_text == INSTALLED
    assert (done.as_json["active"], done.as_json["trying"], done.as_json["previous"]) == (1, None, 0)
    done = install_both(client_of(bundles))
    assert bundles.memory[0] == BOTH[0].bundle.data and bundles.active == 0
    bundles.verdicts[1] = (1, "no bundle", 0, 0, 0)
    done = install(client_of(bundles), [bundle(0, kind=LLEXT)], QUIET)
    assert done.as_text.startswith("digits 1.2.3 runs from slot 1")


def test_model_that_waits_for_its_confirmation():
    bundles = Bundles(waits_for_confirmation=True)
    client = client_of(bundles)
    assert install_both(client).as_text.splitlines()[1:] == [
        "it is not confirmed: 'opwest bundle confirm' keeps it, a restart or 'opwest bundle roll-back' ends it",
        "before: model0 1.2.3 in slot 0",
    ]
    found = failure(install_both, client)
    assert found.message == "/dev/board: the board accepts no upload: its slot is in use, or a model is not confirmed"
    assert confirm(client).as_text == "confirmed: model1 1.2.3 in slot 1"
    found = failure(confirm, client, kind=ModelError)
    assert found.message == "/dev/board: no model waits for its confirmation"
    assert return_(client).as_text == "current: model0 1.2.3 in slot 0"
    assert return_(client).as_text == "current: model1 1.2.3 in slot 1"
    assert refusal(Bundles(), return_).message == "/dev/board: the board has no previous model"


def test_list():
    bundles = Bundles(crashes=2, fault=UNCONFIRMED)
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
def test_files_that_do_not_fit(files, message, hint):
    found = failure(install, client_of(Bundles()), files, QUIET)
    assert (found.message, found.hint) == (message, hint)


def test_board_without_a_free_slot():
    bundles = Bundles(trying=1)
    slot = bundles._slot
    bundles._slot = lambda index: {**slot(index), "is": (1, 2)[index]}
    found = refusal(bundles, kind=LinkError)
    assert found.message == "/dev/board: the board accepts no upload: the model in slot 1 is not confirmed"


FORMAT = "the firmware does not read its version of the format"
FLOAT = "its float ABI is"


@pytest.mark.parametrize(
    ("verdict", "reason", "hint"),
    [
        ((2, "format", 4, 2, 1), f"{FORMAT}; it reads version 1", "opwest of the firmware"),
        ((2, "format", 4, 2, 0), FORMAT, "opwest of the firmware"),
        ((4, "size", 0, 900, 800), "its parts need 900 bytes, there are 800", "larger slot"),
        ((5, "read-back", 0, 0, 0), "the content of the slot differs from the file that was sent", "send the file"),
        ((6, "signature", 0, 0, 1), "no signature is valid for a key of the firmware", "sign the bundle"),
        (
            *((7, "slot", 16, 0x8000, 0x18000), "it is linked for the slot at 0x8000, not for this one at 0x18000"),
            "--slot",
        ),
        (
            (8, "machine", 136, 243, 40),
            "it is for the machine 243 (e_machine of ELF), the firmware runs on 40",
            "build",
        ),
        ((8, "machine", 138, 8, 4), "the pointer size is 8, the firmware has 4", "build"),
        ((9, "float ABI", 139, 2, 1), f"{FLOAT} hard, that of the firmware soft", "build"),
        ((9, "float ABI", 139, 0, 2), f"{FLOAT} the only one of the machine, that of the firmware hard", "build"),
        ((9, "float ABI", 139, 77, 1), f"{FLOAT} 77, that of the firmware soft", "build"),
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
def test_refused_bundle(verdict, reason, hint):
    found = refusal(Bundles(answers={Job.INSTALL: ("EBADMSG", fields_of(verdict))}))
    assert found.message == f"/dev/board: the board refuses digits 1.2.3 ({verdict[1]}): {reason}"
    assert hint in (found.hint or "")
    found = refusal(Bundles(previous=1, answers={Job.ROLL_BACK: ("EBADMSG", fields_of(verdict))}), return_)
    assert found.message == f"/dev/board: the board refuses the previous model ({verdict[1]}): {reason}"


def test_board_whose_flash_fails():
    found = refusal(Bundles(answers={Job.INSTALL: ("EIO", fields_of((20, "storage", -5, 0, 0)))}))
    assert found.message.endswith("(storage): the flash or the records of the board failed with error -5")
    found = refusal(Bundles(answers={Job.INSTALL: ("EIO", fields_of(GOOD))}), kind=LinkError)
    assert found.message == "/dev/board: cannot install digits 1.2.3: EIO"
    found = refusal(Bundles(answers={Job.STATE: ("", {})}), list_slots, LinkError)
    assert "missing or invalid 'active'" in found.message
    found = refusal(Bundles(answers={Job.CONFIRM: ("EIO", {})}), confirm, LinkError)
    assert found.message == "/dev/board: cannot confirm the model: EIO"
    found = refusal(Bundles(answers={Job.ROLL_BACK: ("EIO", {})}), return_, LinkError)
    assert found.message == "/dev/board: cannot return to the previous model: EIO"


def test_other_trial():
    found = refusal(Bundles(answers={Job.INSTALL: ("EBUSY", fields_of(GOOD))}))
    assert found.message == "/dev/board: the board installs nothing: a model is not confirmed"


def test_restart_before_the_installation():
    """The upload is repeated, a bounded number of times."""
    bundles = Bundles()
    client = client_of(bundles, Faults())
    jobs = bundles._install
    failures = [1, 1]

    def restarted():
        if failures:
            failures.pop()
            bundles.restart()
        return jobs()

    bundles._install = restarted
    install_both(client)
    assert bundles.memory[1] == BOTH[1].bundle.data and bundles.done.count(Job.BEGIN) == 3
    failures[:] = [1] * 9
    assert failure(install_both, client).message == "/dev/board: cannot install digits 1.2.3: EPERM"
    assert bundles.done.count(Job.BEGIN) == 6


ACTIONS = {Job.INSTALL: install_both, Job.CONFIRM: confirm, Job.ROLL_BACK: return_}
CURRENT = "current: model0 1.2.3 in slot 0"
NOT_PREVIOUS = "the previous model does not run"
NO_RESULT = "/dev/board: the board does not have the result of"


@pytest.mark.parametrize(
    ("job", "state", "is_done", "outcome"),
    [
        (
            Job.INSTALL,
            {},
            True,
            "digits 1.2.3 runs from slot 1 at 0x18000 of /dev/board\nbefore: model0 1.2.3 in slot 0",
        ),
        (
            *(Job.INSTALL, {}, False),
            f"{NO_RESULT} 'install'; digits 1.2.3 is not installed; the latest trial ended with: unconfirmed",
        ),
        (Job.CONFIRM, {"trying": 1, "verdicts": [GOOD] * 2}, True, "confirmed: model1 1.2.3 in slot 1"),
        (
            *(Job.CONFIRM, {"trying": 1, "verdicts": [GOOD] * 2}, False),
            f"{NO_RESULT} 'confirm'; the model is not confirmed; the latest trial ended with: unconfirmed; {CURRENT}",
        ),
        (Job.CONFIRM, {}, False, f"{NO_RESULT} 'confirm'; the model is not confirmed; {CURRENT}"),
        (Job.ROLL_BACK, {"previous": 1, "verdicts": [GOOD] * 2}, True, "current: model1 1.2.3 in slot 1"),
        # the restart ended the trial
        (Job.ROLL_BACK, {"trying": 1}, False, CURRENT),
        *(
            (Job.ROLL_BACK, {"previous": slot}, False, f"{NO_RESULT} 'roll back'; {NOT_PREVIOUS}; {CURRENT}")
            for slot in (1, 255)
        ),
    ],
)
def test_restart_during_a_job(job, state, is_done, outcome):
    """The board restarts after the effect of the job, or before it. Its state shows how the job ended."""
    bundles = Bundles(slow=2, **state)
    link = FakeLink(bundles, Faults(), 3)
    kept = []
    link.before = lambda: kept.append((bundles.active, bundles.trying, bundles.previous))

    def restarted(answer):
        if bundles.done[-1:] == [job] and bundles._running:
            bundles.restart()
            if not is_done:  # the start ends a trial
                bundles.active, trying, bundles.previous = kept[-1]
                bundles.trying = 255
                bundles.fault = UNCONFIRMED if trying != 255 or job == Job.INSTALL else bundles.fault
        return answer

    link.after = restarted
    client = client_over(link, session=1, timeout=5.0, reconnects=False)
    if outcome.startswith(NO_RESULT):
        found = failure(ACTIONS[job], client, kind=ModelError)
        assert found.message == outcome
        hints = {Job.INSTALL: "run it with 'opwest run --board' first"}
        assert hints.get(job, "'opwest bundle list' prints the current model") in found.hint
    else:
        assert ACTIONS[job](client).as_text == outcome
    assert bundles.done.count(job) == 1


@pytest.mark.parametrize("trying", [255, 1])
def test_restart_after_the_roll_back_without_any_response(trying):
    """The host repeats the request, and the board does not roll back a second time."""
    bundles = Bundles(previous=255 if trying == 1 else 1, trying=trying, verdicts=[GOOD] * 2)
    link = FakeLink(bundles, Faults(), 3)

    def restarted(answer):
        if bundles.done.count(Job.ROLL_BACK) == 1 and answer is not None and bundles._latest is not None:
            bundles.restart()
            return None
        return answer

    link.after = restarted
    current = "model0 1.2.3 in slot 0" if trying == 1 else "model1 1.2.3 in slot 1"
    client = client_over(link, session=1, timeout=5.0, reconnects=False)
    assert return_(client).as_text == f"current: {current}"
    assert bundles.done.count(Job.ROLL_BACK) == 2 and bundles.trying == 255


def test_verdict_for_programs():
    assert Verdict(6, "signature", 0, 0, 1).as_json()["reason"] == "no signature is valid for a key of the firmware"


# --- `--check-steps`: results in the bundle, and results that are sent along in parts

VARIANTS = Path(__file__).resolve().parents[2] / "golden" / "variants" / "manifest.yaml"
SENT = tuple(
    StepResult(point, step, buffer, DTYPES["int32"], bytes(range(200)) * 8)
    for point, step, buffer in ((1, 0, 0), (3, 2, 1))
)
HASH = hashlib.sha256(b"model0").hexdigest()
EXPECTED = Expected(HASH, SENT, ["conv", "pool", "dense"], ["a", "b"])


def test_results_in_the_bundle():
    found = {"operator": "conv", "tensor": "a", "step": 1, "element": 7, "count": 2}
    client = client_of(Bundles(answers={Job.STEPS: ("EILSEQ", found)}))
    checked = check_own(client)
    assert checked.as_text() == (
        "step 1 (conv) differs from those in the bundle: tensor a: 2 elements, the first one at index 7"
    )
    first = {"operator": "conv", "tensor": "a", "step": 1, "at": [7], "differing": 2}
    assert checked.as_json() == {"first": first, "reference": "those in the bundle"}
    checked = check_own(client_of(Bundles(answers={Job.STEPS: ("", {})})))
    assert (checked.as_text(), checked.as_json()["first"]) == ("no step differs from those in the bundle", None)


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        ("ENOTSUP", "the bundle contains no results of steps", "make it with --steps, or with --observable"),
        ("ENOENT", "the board has no model, or the model has no such step", ""),
        ("EIO", "the golden vector failed: EIO", ""),
    ],
)
def test_errors_of_the_board(error, message, hint):
    bundles = Bundles(answers={Job.STEPS: (error, {}), Job.PART: (error, {})})
    found = failure(check_own, client_of(bundles))
    assert found.message == f"/dev/board: {message}" and hint in (found.hint or "")
    if error == "ENOTSUP":
        message = "the model on the board does not report the ends of its steps"
    assert failure(check_sent, client_of(bundles), EXPECTED, QUIET).message == f"/dev/board: {message}"


def test_results_are_sent_in_parts_of_whole_elements():
    """The third part of the second result differs."""
    bundles = Bundles()
    seen = []
    do = bundles._do

    def compare(job, request):
        if job != Job.PART:
            return do(job, request)
        seen.append((request["point"], request["buffer"], request["off"], request["data"]))
        if (request["point"], request["off"]) == (3, 440):
            return "EILSEQ", {"operator": "pool", "tensor": "b", "step": 1, "element": 113, "count": 1}
        return "", {}

    bundles._do = compare
    checked = check_sent(client_of(bundles), EXPECTED, QUIET)
    assert checked.as_text() == (
        "step 2 (dense) differs from those of this machine: tensor b: 1 element, the first one at index 113"
    )
    assert {len(data) for *_, data in seen} == {220, 1600 % 220}
    assert b"".join(data for point, _, _, data in seen if point == 1) == SENT[0].content
    assert [(point, buffer, offset) for point, buffer, offset, _ in seen[-3:]] == [(3, 1, 0), (3, 1, 220), (3, 1, 440)]


def test_unknown_variant():
    with pytest.raises(OpwestError) as caught:
        expected_steps(VARIANTS, "msp", Diagnostics())
    (found,) = caught.value.diagnostics
    assert found.message == "--variant: unknown variant 'msp'" and found.hint is not None and "'dsp'" in found.hint


def test_another_model_on_the_board():
    other = Expected("00" * 32, SENT, ["f"], ["a"])
    found = failure(check_sent, client_of(Bundles()), other, QUIET, kind=ModelError)
    assert found.message == (
        "/dev/board: the board runs another model or version of it: 'model0', hash "
        f"{HASH[:16]}, expected 0000000000000000"
    )
    assert found.hint == "give the manifest of the installed bundle"
    empty = client_of(Bundles(verdicts=[EMPTY] * 2))
    assert "the board has no model" in failure(check_sent, empty, EXPECTED, QUIET, kind=ModelError).message
