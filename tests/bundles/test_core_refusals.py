# SPDX-License-Identifier: Apache-2.0
"""Every check of an installation: one bundle, or one board, for each."""

import dataclasses
import re

import pytest
from bundle_files import FIELDS, HEADER, PROGRAMS, Signer, Variant, image_of, signed_part, version_of
from core_board import ONE, SESSION, TRIAL, TWO, Fault, State, code

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]
MODEL = Variant(mark=2000, slot=1, devices=1, state=True, steps=True)
"""One with all optional parts."""
DEVICES = {"host_devices": 1, "devices": "first:npu"}


def refused(board, verdict, fault):
    """Check that a bundle is refused before its trial, and that the first model continues."""
    assert (verdict.rc, verdict.fault) == (code("EBADMSG"), fault)
    assert board.state() == State(active=0), "no trial was recorded"
    assert board.mark() == 1000
    return verdict


def test_numbers_of_verdicts(make_board):
    """test_core_random.py has the faults themselves, test_core_format.py all those of files and of ABI records."""
    board = make_board().with_one()
    verdict = refused(board, board.install(board.bundle(ONE)), Fault.SLOT)
    assert (verdict.found, verdict.expected, verdict.detail) == (0x1000_0000, 0x1010_0000, 16)
    verdict = refused(board, board.install(board.bundle(TWO, format=2)), Fault.FORMAT)
    assert (verdict.found, verdict.expected, verdict.detail) == (2, 1, 4)
    verdict = refused(board, board.install(board.bundle(TWO, metadata_version=1)), Fault.LAYOUT)
    assert (verdict.found, verdict.detail) == (1, FIELDS["metadata_version"][0])
    assert board.install(board.bundle(TWO, version=version_of(1, 0, 1))).rc == 0
    verdict = board.roll_back()
    assert (verdict.detail, verdict.found, verdict.expected) == (44, version_of(1), version_of(1, 0, 1))


def test_keys_are_rotated(make_board):
    board = make_board().with_one()
    other = Signer("next year")
    assert board.install(board.file(other.bundle(signed_part(TWO)))).fault == Fault.SIGNATURE
    board("key", 1, other.public.hex())
    assert board.install(board.file(other.bundle(signed_part(TWO)))).rc == 0
    # the old key is dropped: its bundle is no longer used
    board("key", 0, other.public.hex())
    assert board.start() == 0 and board.roll_back().fault == Fault.SIGNATURE


BROKEN = sorted(
    set(re.findall(r"\b[A-Z_]+\b", re.search(r"enum broken \{(.*?)\}", (PROGRAMS / "stand_in.c").read_text(), re.S)[1]))
    - {"NOTHING", "FOREIGN", "OUTPUT_LAST"}
)


def test_all_broken_parts_are_known():
    assert len(BROKEN) == 59


@pytest.mark.parametrize("part", BROKEN)
def test_descriptor_that_is_broken(make_board, part):
    board = make_board(**DEVICES).with_one()
    refused(board, board.install(board.bundle(dataclasses.replace(MODEL, broken=part))), Fault.DESCRIPTOR)


NUMBERS = "input_count output_count workspace_size workspace_align pools_size pools_align inputs_size outputs_size"


@pytest.mark.parametrize("field", [*NUMBERS.split(), "device_count"])
def test_header_that_differs_from_the_descriptor(make_board, field):
    board = make_board(**DEVICES).with_one()
    value = 32 if field.endswith("align") else 5
    verdict = refused(board, board.install(board.bundle(MODEL, **{field: value})), Fault.DESCRIPTOR)
    assert verdict.detail == FIELDS[field][0] and value in (verdict.found, verdict.expected)


def test_descriptor_behind_the_image(make_board):
    board = make_board().with_one()
    image = image_of(TWO)
    for offset in (HEADER + image.descriptor + 4, HEADER + len(image.data) - 8, HEADER + 8):
        refused(board, board.install(board.bundle(TWO, descriptor_offset=offset)), Fault.DESCRIPTOR)


def test_last_bytes_of_the_image(make_board):
    """An expected output that ends with the image is read, and differs."""
    board = make_board().with_one()
    assert board.install(board.bundle(dataclasses.replace(TWO, broken="OUTPUT_LAST"))).fault == Fault.VECTOR


def test_layout_of_steps_and_its_function(make_board):
    board = make_board().with_one()
    steps = dataclasses.replace(TWO, steps=True)
    assert refused(board, board.install(board.bundle(steps, layout=0)), Fault.DESCRIPTOR).detail == 146
    refused(board, board.install(board.bundle(TWO, layout=1)), Fault.DESCRIPTOR)


def test_memory_of_sessions_and_of_trials(make_board):
    larger = dataclasses.replace(TWO, pool_size=600, padding=100)
    board = make_board().with_one()
    assert board.session(1, 1000) == 0
    verdict = refused(board, board.install(board.bundle(larger)), Fault.MEMORY)
    assert (verdict.detail, verdict.expected) == (0, SESSION) and SESSION < verdict.found < TRIAL
    assert board.mark(1) == 1000
    # the second session
    board = make_board()
    board.start()
    assert board.session(0, 1000) == 0 and board.session(1, 600) == 0
    assert board.install(board.bundle(ONE)).rc == 0 and board.mark(1) == 1000
    assert refused(board, board.install(board.bundle(larger)), Fault.MEMORY).detail == 1
    # that of the trial
    board = make_board(trial=800)
    board.start()
    assert board.session(0, 1000) == 0
    assert board.install(board.bundle(ONE)).rc == 0 and board.mark() == 1000
    verdict = refused(board, board.install(board.bundle(larger)), Fault.MEMORY)
    assert (verdict.detail, verdict.expected) == (-1, 800)
    # without sessions and without memory for trials
    board = make_board(trial=0)
    board.start()
    assert board.install(board.bundle(ONE)).detail == -1
    # the first session has too little memory for the outputs
    needs = int(board("needs", board.bundle(ONE))[1])
    assert board.session(0, 300) == 0
    assert board.install(board.bundle(ONE)).fault == Fault.MEMORY
    board("set", "trial", needs)
    assert board.install(board.bundle(ONE)).rc == 0 and board.mark() == 1000


def test_buffer_at_the_end_of_its_pool(make_board):
    board = make_board().with_one()
    assert board.install(board.bundle(dataclasses.replace(TWO, pool_size=80))).rc == 0 and board.mark() == 2000
    smaller = dataclasses.replace(ONE, pool_size=79)
    assert board.install(board.bundle(smaller)).fault == Fault.DESCRIPTOR


def test_smallest_memory(make_board):
    """opwest_bundles_needs() is enough at any alignment; the sanitizer finds accesses behind it."""
    board = make_board(trial=0)
    needs = int(board("needs", board.bundle(ONE))[1])
    accepted = 0
    for size in range(200, needs + 1, 8):
        board.start()
        board("record", 0)
        board.start()
        assert board.session(0, size) == 0
        verdict = board.install(board.bundle(ONE))
        assert verdict.fault in (Fault.MEMORY, Fault.GOOD)
        if verdict.fault == Fault.GOOD:
            assert board.mark() == 1000
            accepted += 1
    assert accepted > 0
    board.start()
    board("record", 0)
    board.start()
    assert board.session(0, needs) == 0 and board.install(board.bundle(ONE)).rc == 0


def test_pool_with_a_memory_of_its_own(make_board):
    # the pool 'fast' has 20 bytes at 4
    for size, offset, fault in ((19, 0, Fault.MEMORY), (20, 2, Fault.MEMORY), (20, 4, Fault.GOOD)):
        board = make_board(trial=0, fast=size * 64 + offset)
        board.start()
        assert board.session(0, 1000) == 0
        assert board.install(board.bundle(ONE)).fault == fault
        if fault == Fault.GOOD:
            assert board.mark() == 1000


@pytest.mark.parametrize(
    ("devices", "first", "count", "fault", "detail"),
    [
        ("first:npu", 0, 1, Fault.GOOD, 0),
        ("-:npu", 0, 1, Fault.GOOD, 0),
        ("second:npu,first:npu", 0, 2, Fault.GOOD, 0),
        ("a:npu,b:npu", 0, 2, Fault.GOOD, 0),
        ("second:npu,b:npu", 0, 2, Fault.GOOD, 0),
        ("first:npu", 0, 2, Fault.DEVICES, 1),
        ("first:npu,clock:npu", 0, 3, Fault.DEVICES, 2),
        ("first:npu,second:npu,x:timer", 0, 3, Fault.GOOD, 0),
        ("first:-", 0, 1, Fault.DEVICES, 0),
        ("first:dsp", 0, 1, Fault.DEVICES, 0),
        ("untyped:dsp", 3, 1, Fault.GOOD, 0),
        ("other:dsp", 3, 1, Fault.DEVICES, 0),
        (",", 0, 1, Fault.DEVICES, 0),  # none
    ],
)
def test_devices(make_board, devices, first, count, fault, detail):
    board = make_board(host_devices=1, devices=devices).with_one()
    verdict = board.install(board.bundle(dataclasses.replace(TWO, devices=count, first_device=first)))
    if fault == Fault.GOOD:
        assert verdict.rc == 0 and board.mark() == 2000
    else:
        assert refused(board, verdict, fault).detail == detail


def test_devices_without_the_accelerator_runtime(make_board):
    board = make_board(devices="first:npu").with_one()
    model = dataclasses.replace(TWO, devices=1)
    refused(board, board.install(board.bundle(model)), Fault.DEVICES)
    board("set", "host_devices", 1)
    assert board.install(board.bundle(model)).rc == 0
    # a firmware without the device: the previous model is used
    board("set", "host_devices", 0)
    assert board.start() == 0 and board.session() == 0 and board.mark() == 1000
    assert board.state() == State(active=0, fault=Fault.DEVICES)


def test_handles_of_other_types(make_board):
    board = make_board(**DEVICES).with_one()
    model = dataclasses.replace(TWO, devices=1, broken="FOREIGN")
    refused(board, board.install(board.bundle(model)), Fault.DEVICES)


def test_images_that_a_loader_links(make_board):
    board = make_board().with_one()
    offset = HEADER + image_of(TWO).descriptor
    name = board.bundle(TWO, kind=1, slot_address=0, descriptor_offset=0, version=version_of(2))
    # the loader fails, finds nothing, or finds an image with another header
    for value, fault in ((-8, Fault.KIND), (code("ENOMEM"), Fault.MEMORY)):
        board("set", "link_code", value)
        assert refused(board, board.install(name), fault).detail == value
    board("set", "link_code", 0)
    refused(board, board.install(name), Fault.DESCRIPTOR)
    board("set", "descriptor", offset)
    other = board.bundle(TWO, kind=1, slot_address=0, descriptor_offset=0, workspace_size=1)
    refused(board, board.install(other), Fault.DESCRIPTOR)
    assert board("operations")[5:8] == ["0", "0", "0"], "refused images are unlinked"
    assert board.install(name).rc == 0 and board.mark() == 2000
    assert board("operations")[5:8] == ["0", "1", "0"]
    assert board.install(board.bundle(ONE, version=version_of(2))).rc == 0 and board.mark() == 1000
    assert board("operations")[5:8] == ["0", "0", "0"], "it is not current"
    assert board.roll_back().rc == 0 and board.mark() == 2000
    assert board.start() == 0 and board.session() == 0 and board.mark() == 2000
    assert board("operations")[5:8] == ["0", "1", "0"]
    # a firmware without a loader
    board("set", "link", 0)
    board("set", "unlink", 0)
    assert board.start() == 0 and board.session() == 0 and board.mark() == 1000
    assert board.install(name).fault == Fault.KIND


def test_loaded_images_that_fail_are_unlinked(make_board):
    board = make_board().with_one()
    fields = {"kind": 1, "slot_address": 0, "descriptor_offset": 0}
    for variant, more, fault in (
        (dataclasses.replace(TWO, wrong=1), {}, Fault.VECTOR),
        (TWO, {"version": 0}, Fault.DOWNGRADE),
        (dataclasses.replace(TWO, pool_size=600, padding=100), {}, Fault.MEMORY),
        (dataclasses.replace(TWO, devices=1), {}, Fault.DEVICES),
    ):
        board("set", "descriptor", HEADER + image_of(variant).descriptor)
        assert board.install(board.bundle(variant, **fields, **more)).fault == fault
        assert board("operations")[5:8] == ["0", "0", "0"], fault
    board("set", "descriptor", HEADER + image_of(TWO).descriptor)
    whole = board.signer.bundle(signed_part(TWO, **fields))
    assert board.install(board.file(whole + b"\0")).fault == Fault.SIZE
    assert board.send(board.file(whole)) == 0
    board("disturb", 1, 0, 0, -5)
    assert board.install().rc == -5
    assert board("operations")[5:8] == ["0", "0", "0"]
