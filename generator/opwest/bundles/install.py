# SPDX-License-Identifier: Apache-2.0
"""`opwest bundle install`, `list`, `confirm`, `roll-back`, `check-steps`: what the host asks of a board."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from opwest.base.diagnostics import Diagnostics, Location, OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import Result, counted
from opwest.bundles.client import CONFIRM_HINT, LARGER_HINT, BoardSlot, BundleClient, ForgottenError, State
from opwest.bundles.faults import Verdict, read_verdict, version_text
from opwest.bundles.format import LLEXT, Bundle, read_bundle
from opwest.bundles.link import NO_SLOT, BundleLink, Job
from opwest.runs.connection import Running, need_smpclient, prepare, running
from opwest.runs.link import LinkError, ModelError
from opwest.runs.options import ImageOptions
from opwest.runs.places import Serial, wireless_place
from opwest.runs.ports import check_device, choose_device, need_serial
from opwest.runs.progress import StageProgress

_UPLOADS = 3
"""How often a file is sent: the board may restart between the upload and the installation."""


@dataclass(frozen=True)
class BoardRequest(ImageOptions):
    """What a host asks of a board: of `serial`, or of `board`, for which the application is built."""

    action: Literal["install", "list", "confirm", "roll-back", "check-steps"] = "list"
    files: Sequence[Path] = ()
    """The bundles to install: one for each slot."""
    manifest: Path | None = None
    """With check-steps: the model to run on this machine."""
    variant: str | None = None
    transport: str | None = None
    group: int | None = None


@dataclass(frozen=True)
class File:
    """A bundle that the user gave."""

    path: Path
    bundle: Bundle

    @property
    def place(self) -> str:
        """Its slot as text."""
        content = self.bundle.content
        return "any slot" if content.kind == LLEXT else f"0x{content.slot_address:x}"


def on_board(options: BoardRequest, faults: Diagnostics) -> Result:
    """Do what the options request of a board."""
    files = _read_files(options.files, faults)
    expected = None
    if options.manifest is not None:
        from opwest.bundles.steps import expected_steps  # imports the generator

        expected = expected_steps(options.manifest, options.variant, faults)
    progress = options.progress
    try:
        with _connected(options, progress, faults) as client:
            if files:
                return install(client, files, progress)
            if options.action == "confirm":
                return confirm(client)
            if options.action == "roll-back":
                return roll_back(client, progress)
            if options.action == "check-steps":
                from opwest.bundles.steps import check_own, check_sent

                result = check_own(client) if expected is None else check_sent(client, expected, progress)
                status = int(result.step is not None)
                return Result(result.as_text(), {"connection": client.device, "check": result.as_json()}, status=status)
            return list_slots(client)
    except LinkError as error:
        progress.end()
        raise error.for_user from error


def _read_files(paths: Sequence[Path], faults: Diagnostics) -> list[File]:
    """Return the bundles of the command line. Raises OpwestError with all faults."""
    files: list[File] = []
    places: dict[int, Path] = {}
    for path in paths:
        try:
            bundle = read_bundle(path)
        except OpwestError as error:
            for diagnostic in error.diagnostics:
                faults.add(diagnostic)
            continue
        if not bundle.signatures:
            text = "the bundle has no signature: every firmware refuses it"
            faults.error(text, Location(str(path)), hint="sign it: opwest bundle FILE --key KEY -o FILE")
        content = bundle.content
        address = -1 if content.kind == LLEXT else content.slot_address
        if address in places:
            place = "for LLEXT" if content.kind == LLEXT else f"for the slot at 0x{address:x}"
            faults.error(f"two bundles {place}: '{places[address]}' and '{path}'", expected="one file for each slot")
        places[address] = path
        files.append(File(path, bundle))
    faults.raise_if_errors()
    return files


@contextlib.contextmanager
def _connected(options: BoardRequest, progress: StageProgress, faults: Diagnostics) -> Iterator[BundleClient]:
    """Start or flash an image with --board, or use the one behind --serial, --udp or --ble."""
    place = wireless_place(options)
    is_native = options.board.startswith("native_") and place is None
    is_shell = (options.transport or ("shell" if is_native else "smp")) == "shell"
    if not is_shell:
        need_smpclient()
    with contextlib.ExitStack() as stack:
        if options.board:
            build = prepare(options, None, progress, faults, bundles=True)
            image = stack.enter_context(running(options, build, progress))
        elif place is not None:
            image = Running({}, place, has_shell=False, started=False)
        else:
            need_serial()
            device = choose_device(options.serial)
            check_device(device)
            image = Running({}, Serial(device, options.baud), has_shell=False, started=False)
        progress.show(f"waiting for the image on {image.place}")

        def connect() -> BundleLink:
            if is_shell:
                from opwest.bundles.transports import ShellBundleLink

                return ShellBundleLink(str(image.place), options.timeout, None if image.has_shell else options.baud)
            from opwest.bundles.transports import DEFAULT_GROUP, SmpBundleLink

            group = options.group or int(image.configuration.get("CONFIG_OPWEST_BUNDLE_SMP_GROUP", DEFAULT_GROUP))
            return SmpBundleLink(image.place, options.timeout, group)

        client = BundleClient(
            connect,
            session=secrets.randbits(32),
            timeout=options.timeout,
            progress=progress,
            reconnects=not image.started,
        )
        stack.callback(client.disconnect)
        yield client


def install(client: BundleClient, files: Sequence[File], progress: StageProgress) -> Result:
    """Send the file for the next slot, and make it the current model. Raises ModelError if it is refused."""
    file, target = _choose(client, files)
    content = file.bundle.content
    what = f"{content.name} {content.version_text}"
    for _ in range(_UPLOADS):
        progress.show(f"sending {file.path} to slot {target.index}")
        client.upload(file.bundle.data, target.index)
        progress.show(f"installing {what} in slot {target.index}")
        try:
            done = client.do(Job.INSTALL, "the end of the installation")
        except ForgottenError as error:
            return _after_restart(client, what, target, error)
        if done.error != "EPERM":
            break
    if done.error == "EBADMSG" or (done.result != 0 and read_verdict(done.fields).fault != 0):
        raise _refused(f"the board refuses {what}", read_verdict(done.fields), client.device)
    if done.error == "EBUSY":
        raise ModelError(f"{client.device}: the board installs nothing: a model is not confirmed", CONFIRM_HINT)
    client.check(done, f"cannot install {what}")
    return _installed(client, what, target)


def _choose(client: BundleClient, files: Sequence[File]) -> tuple[File, BoardSlot]:
    """Return the file for the slot that the board uses next. Raises LinkError that lists files and slots."""
    slots, device = client.slots(), client.device
    target = next((slot for slot in slots if "next" in slot.roles), None)
    if target is None:
        trying = next((slot.index for slot in slots if "trying" in slot.roles), NO_SLOT)
        reason = f": the model in slot {trying} is not confirmed" if trying != NO_SLOT else ""
        raise LinkError(f"{device}: the board accepts no upload{reason}", CONFIRM_HINT)
    for file in files:
        content = file.bundle.content
        if content.kind != LLEXT and content.slot_address != target.address:
            continue
        if len(file.bundle.data) > target.size:
            size = len(file.bundle.data)
            text = f"'{file.path}' has {counted(size, 'byte')}, slot {target.index} of {device} {target.size}"
            raise LinkError(text, LARGER_HINT)
        return file, target
    given = ", ".join(f"'{file.path}' for {file.place}" for file in files)
    known = ", ".join(f"slot {slot.index} at 0x{slot.address:x}" for slot in slots)
    raise LinkError(
        f"no file for slot {target.index} at 0x{target.address:x}, which {device} uses next; files: {given}; "
        f"slots: {known}; format version {client.info.format}",
        "give one file for each slot: opwest bundle MANIFEST --slot ADDRESS",
    )


def _refused(what: str, verdict: Verdict, device: str) -> ModelError:
    return ModelError(f"{device}: {what} ({verdict.name}): {verdict.reason}", verdict.hint)


def _after_restart(client: BundleClient, what: str, target: BoardSlot, error: ForgottenError) -> Result:
    """Report an installation whose result is lost: by the state of the board."""
    state = client.state()
    if target.index in (state.active, state.trying):
        return _installed(client, what, target)
    raise ModelError(
        f"{error.message}; {what} is not installed{_trial(state)}",
        "if the board restarted, the model may have stopped it: run it with 'opwest run --board' first",
    ) from error


def _installed(client: BundleClient, what: str, target: BoardSlot) -> Result:
    state = client.state()
    is_trying = state.trying == target.index
    lines = [f"{what} runs from slot {target.index} at 0x{target.address:x} of {client.device}"]
    if is_trying:
        lines.append(
            "it is not confirmed: 'opwest bundle confirm' keeps it, a restart or 'opwest bundle roll-back' ends it"
        )
    slots = client.slots()
    before = _model_text(slots, state.active if is_trying else state.previous)
    if before is not None:
        lines.append(f"before: {before}")
    return Result("\n".join(lines), _state_json(client, state, slots))


def confirm(client: BundleClient) -> Result:
    """Confirm the model that is being tried."""
    before = client.state()
    try:
        done = client.do(Job.CONFIRM, "the confirmation")
    except ForgottenError as error:
        state, slots = client.state(), client.slots()
        if before.trying == NO_SLOT or state.active != before.trying:
            raise _forgotten(error, "the model is not confirmed", state, slots) from error
        return _state_result("confirmed", client, state, slots)
    if done.error == "EPERM":
        raise ModelError(f"{client.device}: no model waits for its confirmation")
    client.check(done, "cannot confirm the model")
    return _state_result("confirmed", client, client.state(), client.slots())


def _state_result(what: str, client: BundleClient, state: State, slots: Sequence[BoardSlot]) -> Result:
    return Result(f"{what}: {_model_text(slots, state.active) or 'no model'}", _state_json(client, state, slots))


def roll_back(client: BundleClient, progress: StageProgress) -> Result:
    """Return to the previous model."""
    progress.show("returning to the previous model")
    before = client.state()
    is_trial = before.trying != NO_SLOT  # a restart ends a trial, too
    try:
        # With the slot of the current model, the same request after a restart does not return to this model.
        done = client.do(Job.ROLL_BACK, "the end of the roll-back", slot=before.trying if is_trial else before.active)
        if done.error == "EALREADY":
            raise client.forgotten(Job.ROLL_BACK)
    except ForgottenError as error:
        state, slots = client.state(), client.slots()
        expected = before.active if is_trial else before.previous
        if expected == NO_SLOT or (state.active, state.trying) != (expected, NO_SLOT):
            raise _forgotten(error, "the previous model does not run", state, slots) from error
        return _state_result("current", client, state, slots)
    if done.error == "ENOENT":
        raise ModelError(f"{client.device}: the board has no previous model")
    if done.error == "EBADMSG":
        raise _refused("the board refuses the previous model", read_verdict(done.fields), client.device)
    client.check(done, "cannot return to the previous model")
    return _state_result("current", client, client.state(), client.slots())


def _trial(state: State) -> str:
    return f"; the latest trial ended with: {state.fault_name}" if state.fault else ""


def _forgotten(error: ForgottenError, what: str, state: State, slots: Sequence[BoardSlot]) -> ModelError:
    """Return the error for a command whose result is lost, and that had no effect by the state of the board."""
    current = _model_text(slots, state.active) or "no model"
    return ModelError(f"{error.message}; {what}{_trial(state)}; current: {current}", error.hint)


def list_slots(client: BundleClient) -> Result:
    """Describe the slots and the state of the board."""
    state, slots = client.state(), client.slots()
    lines = [f"{client.device}: {counted(len(slots), 'slot')}, format version {client.info.format}"]
    lines += [slot.as_text() for slot in slots]
    if state.crashes:
        lines.append(f"starts since the application was healthy: {state.crashes}")
    if state.fault:
        lines.append(f"the latest trial ended with: {state.fault_name}")
    return Result("\n".join(lines), _state_json(client, state, slots))


def _model_text(slots: Sequence[BoardSlot], index: int) -> str | None:
    if index >= len(slots) or (model := slots[index].model) is None:
        return None
    return f"{model.name} {version_text(model.version)} in slot {index}"


def _state_json(client: BundleClient, state: State, slots: Sequence[BoardSlot]) -> dict[str, Any]:
    numbers = {"active": state.active, "trying": state.trying, "previous": state.previous}
    return {
        "connection": client.device,
        "format": client.info.format,
        **{key: None if value == NO_SLOT else value for key, value in numbers.items()},
        "crashes": state.crashes,
        "fault": state.fault_name if state.fault else None,
        "slots": [slot.as_json() for slot in slots],
    }
