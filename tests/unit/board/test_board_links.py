# SPDX-License-Identifier: Apache-2.0
"""Both transports against boards emulated on pseudo terminals: correct responses, and one message per fault."""

import io
import re
import time

import numpy as np
import pytest
from board_support import QUIET, failure, numbers
from fake_board import HZ, POINTS, SHAPE, STACK_SIZE, STACK_USED, Model, ShellBoard, SmpBoard, server
from opwest.render import arguments
from opwest.render.arguments import ENTRY
from opwest.runs import link as links
from opwest.runs import smp
from opwest.runs.arrays import Runs
from opwest.runs.link import Action, StoppedError
from opwest.runs.progress import StageProgress
from opwest.runs.session import check_tensors, find_model, run_model
from requirements_support import need

need("smpclient", "serial")


X = np.random.default_rng(7).integers(-16000, 16000, SHAPE, dtype=np.int16)


def twice_of(link):
    return find_model(link.describe(), "twice", link.device)


def run_once(link, repeat=1, progress=QUIET):
    outcome = run_model(link, twice_of(link), Runs({"x": X}, repeat), progress=progress)
    assert len(outcome.nanoseconds) == repeat
    return outcome.outputs["y"]


def test_tensors_larger_than_a_frame(plug, connect, kind):
    model = Model()
    shown = io.StringIO()
    link = connect(kind, plug(server(kind, model), b"*** Booting Zephyr OS ***\r\n"))
    y = run_once(link, repeat=3, progress=StageProgress(shown))
    assert y.dtype == np.int16 and y.shape == SHAPE
    np.testing.assert_array_equal(y, 2 * X)
    assert model.runs == 3 and not model.opened
    assert "== sending x: 3000 of 3000 bytes\n" in shown.getvalue()
    assert "== running twice, 3 of 3\n" in shown.getvalue()


@pytest.mark.parametrize("buffer", [128, 129, 200, 256, 300, 384, 512, 1024, 2048])
def test_requests_use_the_whole_buffer_of_the_server(plug, connect, buffer):
    """The fake server asserts that no frame is longer than its buffer."""
    served = SmpBoard(Model(), buffer=buffer)
    np.testing.assert_array_equal(run_once(connect("smp", plug(served))), 2 * X)
    longest = max(len(request["data"]) for group, command, request in served.requests if "data" in request)
    assert longest > buffer - 60 or longest == X.nbytes


def test_lost_responses_are_requested_again(plug, connect, kind):
    model = Model()
    board = server(kind, model)
    board.lose = {1, 8, 11}  # no action: those are not repeated
    np.testing.assert_array_equal(run_once(connect(kind, plug(board))), 2 * X)
    assert model.runs == 1


def test_truncated_shell_responses_are_requested_again(plug, connect):
    board = ShellBoard(Model())
    count = 1 + 1 + 30 + 1  # describe, open, writes, run
    board.garble = {1, 5, count + 4, count + 7}
    np.testing.assert_array_equal(run_once(connect("shell", plug(board))), 2 * X)


def test_console_output_between_frames_does_no_harm(plug, connect):
    board = SmpBoard(Model())
    board.chatter = b"predictions: 9 2 1\r\n\x06 not a frame \x04 \r\nhalf a line "
    np.testing.assert_array_equal(run_once(connect("smp", plug(board))), 2 * X)


def test_failing_model_names_the_step(plug, connect, kind):
    model = Model(fails=True)
    found = failure(run_once, connect(kind, plug(server(kind, model))))
    assert found.message == "twice_run returned EIO in step 3 (double): the operator returned 77"
    assert not model.opened, "closed after the failure"


@pytest.mark.parametrize(
    ("fault", "thread", "hint"),
    [
        ("2: stack overflow", "opwest", "CONFIG_OPWEST_SERVICE_STACK_SIZE; operators run on this stack, and "),
        ("2: stack overflow", "main", "CONFIG_MAIN_STACK_SIZE"),
        ("2: stack overflow", "unknown", "the size of its stack"),
        ("0: exception", "opwest", None),
    ],
)
def test_an_image_that_stops_is_reported_at_once(plug, connect, kind, fault, thread, hint):
    model = Model()
    board = server(kind, model)
    said = f"[00:00:00] <err> os\r\nopwest: fatal error {fault} in thread {thread}\r\n".encode()

    def answer(data):
        answered = board(data)
        return said if model.runs else answered

    link = connect(kind, plug(answer), timeout=30)
    started = time.monotonic()
    found = failure(run_once, link, kind=StoppedError)
    assert time.monotonic() - started < 15
    assert found.message.startswith("the image stopped while the host waited for the ")
    assert found.message.endswith(f": {fault[3:]} in thread '{thread}'")
    assert found.hint is None if hint is None else found.hint.startswith(f"raise {hint}")


@pytest.mark.parametrize("at", [1, 4, 12])
def test_unplugged_board(plug, connect, kind, at):
    answer = server(kind, Model())
    answer.unplug_at = at
    board = plug(answer)
    link = connect(kind, board)
    begin = time.monotonic()
    found = failure(run_once, link)
    assert f"lost the serial device '{board.device}'" in found.message and "unplugged" in found.message
    assert time.monotonic() - begin < 2, "detected at once"


def test_board_without_output(plug, connect, kind):
    board = plug(lambda _: b"")
    link = connect(kind, board, timeout=1.2)
    begin = time.monotonic()
    found = failure(link.describe)
    awaited = "a response to an SMP request" if kind == "smp" else "the response to 'opwest describe'"
    assert found.message.startswith(f"{board.device}: timeout after 1")
    assert found.message.endswith(f" s waiting for {awaited}; received nothing")
    assert 1 < time.monotonic() - begin < 2.5


def test_board_with_only_a_console(plug, connect):
    found = failure(connect("smp", plug(lambda _: b"temperature: 21\r\n"), timeout=1).describe)
    assert "received only console output, last: 'temperature: 21'" in found.message
    assert "--no-build" in found.hint


@pytest.mark.parametrize(
    "noise", [b"\x06\x09AAAA\n", b"\x06\x09!!!!\n", b"\x04\x14AAAA\n", b"\x06\x09\n", b"\x06\x09AAQBAgMEBQYHCA==\n"]
)
def test_random_serial_data_times_out(plug, connect, noise):
    board = plug(lambda _: noise)
    assert f"{board.device}: timeout after 1 s" in failure(connect("smp", board, timeout=1).describe).message


def test_locked_service(plug, connect, kind):
    model = Model(locked=True)
    link = connect(kind, plug(server(kind, model)))
    found = failure(link.describe)
    assert found.message == f"the opwest service of the image on '{link.device}' is locked"
    assert "opwest_service_permit(true)" in found.hint
    model.locked = False
    twice = twice_of(link)
    model.locked = True
    assert "is locked" in failure(link.act, twice, Action.OPEN).message
    assert not model.opened


def test_image_without_the_service(plug, connect, kind):
    lacks = {
        "smp": (SmpBoard(Model(), groups=(0,)), "its SMP server has no command group 28535"),
        "shell": (ShellBoard(Model(), has_service=False), "its shell has no command 'opwest describe'"),
    }
    answer, reason = lacks[kind]
    board = plug(answer)
    found = failure(connect(kind, board).describe)
    assert found.message == f"the image on '{board.device}' has no opwest service: {reason}"


def test_timed_out_run_is_not_repeated(plug, connect, kind):
    model = Model()
    answer = server(kind, model)
    link = connect(kind, plug(answer), timeout=1)
    twice = twice_of(link)
    link.act(twice, Action.OPEN)
    answer.lose = {len(answer.requests) + 1}
    found = failure(link.act, twice, Action.RUN).message
    assert re.search(r"timeout after 1 s waiting for the end of .*run", found), found
    assert model.runs == 1


def test_another_model_in_the_image(plug, connect):
    link = connect("shell", plug(ShellBoard(Model())))
    models = link.describe()
    found = failure(find_model, models, "digits", link.device).message
    assert f"unknown model 'digits'; the image on '{link.device}' has: twice" in found
    expected = [{"role": t.role, "name": t.name, "dtype": t.dtype, "shape": list(t.shape)} for t in models[0].tensors]
    check_tensors(models[0], expected, link.device)
    expected[0]["dtype"] = "int8"
    found = failure(check_tensors, models[0], expected, link.device).message
    assert "another version of model 'twice': it has input x int16 [3, 500]" in found


def test_service_of_another_version(plug, connect, kind, monkeypatch):
    monkeypatch.setattr("opwest.runs.link.VERSION", 2)
    found = failure(connect(kind, plug(server(kind, Model()))).describe)
    assert "has version 1, expected 2" in found.message


def test_measures(plug, connect, kind):
    link = connect(kind, plug(server(kind, Model())))
    profile = link.measures(twice_of(link))
    assert (profile.frequency, profile.stack_used, profile.stack_size) == (HZ, STACK_USED, STACK_SIZE)
    points = [(m.kind, m.name, m.step, m.device, m.runs, m.last, m.min, m.max, m.total) for m in profile.measures]
    assert points == [tuple(None if i in (2, 3) and v == 65535 else v for i, v in enumerate(p)) for p in POINTS]


def test_truncated_measures_are_requested_again(plug, connect):
    board = ShellBoard(Model())
    link = connect("shell", plug(board))
    model = twice_of(link)
    whole = board._answer
    lost = [2, 1]  # lines, of the first answers

    def answer(words):
        lines = whole(words).splitlines(keepends=True)
        if words[0] == "measures" and lost:
            del lines[lost.pop()]
        return "".join(lines)

    board._answer = answer
    assert len(link.measures(model).measures) == len(POINTS) and not lost
    lost = [3] * 10
    assert "truncated responses to 'opwest measures twice'" in failure(link.measures, model).message


def test_numbers_are_those_of_the_runtime():
    commands = numbers("src/service_smp.c", r"COMMAND_(\w+) = (\d+),")
    names = ("MODEL", "TENSOR", "DATA", "ACTION", "MEASURES", "POINT", "UNTIL", "CALL")
    assert commands == {name: vars(smp)[f"_{name}"] for name in names}
    actions = numbers("src/service_internal.h", r"OPWEST_SERVICE_(OPEN|RUN|CLOSE) = (\d+),")
    assert actions == {action.name: int(action) for action in Action}
    version = numbers("include/opwest/service.h", r"#define OPWEST_SERVICE_(VERSION) (\d+)")
    assert version == {"VERSION": links.VERSION}
    group = numbers("Kconfig", r"config OPWEST_SERVICE_SMP_(GROUP)\n(?:\t.*\n)*?\tdefault (\d+)")
    assert group == {"GROUP": smp.DEFAULT_GROUP}
    assert numbers("src/service_call.c", r"(memory)\[(\d+)U \* index") == {"memory": ENTRY}
    # the line of an unknown cache
    lines = numbers("src/port_devices_zephyr.c", r"#define (MAX_LINE) (\d+)U")
    assert lines == {"MAX_LINE": arguments.MIN_ALIGN}
