# SPDX-License-Identifier: Apache-2.0
"""Both transports against boards emulated on pseudo terminals: correct responses, and one message per fault."""

import io
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_board import HZ, POINTS, SHAPE, STACK_SIZE, STACK_USED, FakeBoard, Model, ShellBoard, SmpBoard
from opwest.board import link, smp_link
from opwest.board.link import Action, LinkError, StoppedError
from opwest.board.progress import Progress
from opwest.board.session import check_tensors, find_model, run_model
from opwest.board.shell_link import ShellLink
from opwest.board.smp_link import SmpLink
from opwest.host.arrays import Runs
from opwest.render import arguments
from opwest.render.arguments import ENTRY
from requirements_support import need

need("smpclient", "serial")


X = np.random.default_rng(7).integers(-16000, 16000, SHAPE, dtype=np.int16)
QUIET = Progress(None)

Plug = Callable[..., FakeBoard]


@pytest.fixture
def plug() -> Iterator[Plug]:
    boards = []

    def make(answer: Callable[[bytes], bytes], greeting: bytes = b"") -> FakeBoard:
        boards.append(FakeBoard(answer, greeting))
        return boards[-1]

    yield make
    for board in boards:
        board.close()


Connect = Callable[..., SmpLink | ShellLink]


@pytest.fixture
def connect() -> Iterator[Connect]:
    links: list[SmpLink | ShellLink] = []

    def make(kind: str, board: FakeBoard, timeout: float = 3.0) -> SmpLink | ShellLink:
        links.append(SmpLink(board.device, 115200, timeout) if kind == "smp" else ShellLink(board.device, timeout))
        return links[-1]

    yield make
    for one in links:
        one.disconnect()


def server(kind: str, model: Model) -> SmpBoard | ShellBoard:
    return SmpBoard(model) if kind == "smp" else ShellBoard(model)


def run_once(link: SmpLink | ShellLink, repeat: int = 1, progress: Progress = QUIET) -> np.ndarray:
    model = find_model(link.describe(), "twice", link.device)
    outcome = run_model(link, model, Runs({"x": X}, repeat), progress=progress)
    assert len(outcome.nanoseconds) == repeat
    return outcome.outputs["y"]


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_tensors_larger_than_a_frame(plug: Plug, connect: Connect, kind: str) -> None:
    model = Model()
    shown = io.StringIO()
    link = connect(kind, plug(server(kind, model), b"*** Booting Zephyr OS ***\r\n"))
    y = run_once(link, repeat=3, progress=Progress(shown))
    assert y.dtype == np.int16 and y.shape == SHAPE
    np.testing.assert_array_equal(y, 2 * X)
    assert model.runs == 3 and not model.opened
    assert "== sending x: 3000 of 3000 bytes\n" in shown.getvalue()
    assert "== running twice, 3 of 3\n" in shown.getvalue()


@pytest.mark.parametrize("buffer", [128, 129, 200, 256, 300, 384, 512, 1024, 2048])
def test_requests_use_the_whole_buffer_of_the_server(plug: Plug, connect: Connect, buffer: int) -> None:
    """The fake server asserts that no frame is longer than its buffer."""
    served = SmpBoard(Model(), buffer=buffer)
    link = connect("smp", plug(served))
    np.testing.assert_array_equal(run_once(link), 2 * X)
    longest = max(len(request["data"]) for group, command, request in served.requests if "data" in request)
    assert longest > buffer - 60 or longest == X.nbytes


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_lost_responses_are_requested_again(plug: Plug, connect: Connect, kind: str) -> None:
    model = Model()
    board = server(kind, model)
    board.lose = {1, 8, 11}  # no action: those are not repeated
    link = connect(kind, plug(board), timeout=3)
    np.testing.assert_array_equal(run_once(link), 2 * X)
    assert model.runs == 1


def test_truncated_shell_responses_are_requested_again(plug: Plug, connect: Connect) -> None:
    board = ShellBoard(Model())
    count = 1 + 1 + 30 + 1  # describe, open, writes, run
    board.garble = {1, 5, count + 4, count + 7}
    link = connect("shell", plug(board), timeout=3)
    np.testing.assert_array_equal(run_once(link), 2 * X)


def test_console_output_between_frames_does_no_harm(plug: Plug, connect: Connect) -> None:
    board = SmpBoard(Model())
    board.chatter = b"predictions: 9 2 1\r\n\x06 not a frame \x04 \r\nhalf a line "
    link = connect("smp", plug(board))
    np.testing.assert_array_equal(run_once(link), 2 * X)


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_failing_model_names_the_step(plug: Plug, connect: Connect, kind: str) -> None:
    model = Model(fails=True)
    link = connect(kind, plug(server(kind, model)))
    with pytest.raises(LinkError) as caught:
        run_once(link)
    assert caught.value.message == "twice_run returned EIO in step 3 (double): the operator returned 77"
    assert not model.opened, "closed after the failure"


STOPS = [
    ("2: stack overflow", "opwest", "CONFIG_OPWEST_SERVICE_STACK_SIZE; operators run on this stack, and "),
    ("2: stack overflow", "main", "CONFIG_MAIN_STACK_SIZE"),
    ("2: stack overflow", "unknown", "the size of its stack"),
    ("0: exception", "opwest", None),
]


@pytest.mark.parametrize("kind", ["smp", "shell"])
@pytest.mark.parametrize(("fault", "thread", "hint"), STOPS)
def test_an_image_that_stops_is_reported_at_once(
    plug: Plug, connect: Connect, kind: str, fault: str, thread: str, hint: str | None
) -> None:
    model = Model()
    board = server(kind, model)
    said = f"[00:00:00] <err> os\r\nopwest: fatal error {fault} in thread {thread}\r\n".encode()

    def answer(data: bytes) -> bytes:
        answered = board(data)
        return said if model.runs else answered

    link = connect(kind, plug(answer), timeout=30)
    started = time.monotonic()
    with pytest.raises(StoppedError) as caught:
        run_once(link)
    assert time.monotonic() - started < 15
    assert caught.value.message.startswith("the image stopped while the host waited for the ")
    assert caught.value.message.endswith(f": {fault[3:]} in thread '{thread}'")
    assert (caught.value.hint or "").startswith(f"raise {hint}" if hint else "")
    assert (caught.value.hint is None) == (hint is None)


@pytest.mark.parametrize("kind", ["smp", "shell"])
@pytest.mark.parametrize("at", [1, 4, 12])
def test_unplugged_board(plug: Plug, connect: Connect, kind: str, at: int) -> None:
    answer = server(kind, Model())
    answer.unplug_at = at
    board = plug(answer)
    link = connect(kind, board, timeout=3)
    begin = time.monotonic()
    with pytest.raises(LinkError) as caught:
        run_once(link)
    assert f"lost the serial device '{board.device}'" in caught.value.message and "unplugged" in caught.value.message
    assert time.monotonic() - begin < 2, "detected at once"


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_board_without_output(plug: Plug, connect: Connect, kind: str) -> None:
    board = plug(lambda _: b"")
    link = connect(kind, board, timeout=1.2)
    begin = time.monotonic()
    with pytest.raises(LinkError) as caught:
        link.describe()
    awaited = "a response to an SMP request" if kind == "smp" else "the response to 'opwest describe'"
    assert caught.value.message.startswith(f"{board.device}: timeout after 1")
    assert caught.value.message.endswith(f" s waiting for {awaited}; received nothing")
    assert 1 < time.monotonic() - begin < 2.5


def test_board_with_only_a_console(plug: Plug, connect: Connect) -> None:
    board = plug(lambda _: b"temperature: 21\r\n")
    link = connect("smp", board, timeout=1)
    with pytest.raises(LinkError) as caught:
        link.describe()
    assert "received only console output, last: 'temperature: 21'" in caught.value.message
    assert caught.value.hint is not None and "--no-build" in caught.value.hint


@pytest.mark.parametrize(
    "noise", [b"\x06\x09AAAA\n", b"\x06\x09!!!!\n", b"\x04\x14AAAA\n", b"\x06\x09\n", b"\x06\x09AAQBAgMEBQYHCA==\n"]
)
def test_random_serial_data_times_out(plug: Plug, connect: Connect, noise: bytes) -> None:
    board = plug(lambda _: noise)
    link = connect("smp", board, timeout=1)
    with pytest.raises(LinkError) as caught:
        link.describe()
    assert f"{board.device}: timeout after 1 s" in caught.value.message


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_locked_service(plug: Plug, connect: Connect, kind: str) -> None:
    model = Model(locked=True)
    link = connect(kind, plug(server(kind, model)))
    with pytest.raises(LinkError) as caught:
        link.describe()
    assert caught.value.message == f"the opwest service of the image on '{link.device}' is locked"
    assert caught.value.hint is not None and "opwest_service_permit(true)" in caught.value.hint
    model.locked = False
    twice = find_model(link.describe(), "twice", link.device)
    model.locked = True
    with pytest.raises(LinkError, match="is locked"):
        link.act(twice, Action.OPEN)
    assert not model.opened


def test_image_without_the_service(plug: Plug, connect: Connect) -> None:
    board = plug(SmpBoard(Model(), groups=(0,)))
    link = connect("smp", board)
    with pytest.raises(LinkError) as caught:
        link.describe()
    assert caught.value.message == (
        f"the image on '{board.device}' has no opwest service: its SMP server has no command group 28535"
    )
    board = plug(ShellBoard(Model(), has_service=False))
    shell = connect("shell", board)
    with pytest.raises(LinkError) as caught:
        shell.describe()
    assert caught.value.message == (
        f"the image on '{board.device}' has no opwest service: its shell has no command 'opwest describe'"
    )


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_timed_out_run_is_not_repeated(plug: Plug, connect: Connect, kind: str) -> None:
    model = Model()
    answer = server(kind, model)
    link = connect(kind, plug(answer), timeout=1)
    twice = find_model(link.describe(), "twice", link.device)
    link.act(twice, Action.OPEN)
    seen = answer.requests if isinstance(answer, SmpBoard) else answer.commands
    answer.lose = {len(seen) + 1}
    with pytest.raises(LinkError, match=r"timeout after 1 s waiting for the end of .*run"):
        link.act(twice, Action.RUN)
    assert model.runs == 1


def test_another_model_in_the_image(plug: Plug, connect: Connect) -> None:
    link = connect("shell", plug(ShellBoard(Model())))
    models = link.describe()
    with pytest.raises(LinkError, match=r"unknown model 'digits'; the image on '.*' has: twice"):
        find_model(models, "digits", link.device)
    expected = [{"role": t.role, "name": t.name, "dtype": t.dtype, "shape": list(t.shape)} for t in models[0].tensors]
    check_tensors(models[0], expected, link.device)
    expected[0]["dtype"] = "int8"
    with pytest.raises(LinkError, match=r"another version of model 'twice': it has input x int16 \[3, 500\]"):
        check_tensors(models[0], expected, link.device)


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_service_of_another_version(plug: Plug, connect: Connect, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opwest.board.link.VERSION", 2)
    link = connect(kind, plug(server(kind, Model())))
    with pytest.raises(LinkError, match="has version 1, expected 2"):
        link.describe()


@pytest.mark.parametrize("kind", ["smp", "shell"])
def test_measures(plug: Plug, connect: Connect, kind: str) -> None:
    link = connect(kind, plug(server(kind, Model())))
    profile = link.measures(find_model(link.describe(), "twice", link.device))
    assert (profile.frequency, profile.stack_used, profile.stack_size) == (HZ, STACK_USED, STACK_SIZE)
    points = [(m.kind, m.name, m.step, m.device, m.runs, m.last, m.min, m.max, m.total) for m in profile.measures]
    assert points == [tuple(None if i in (2, 3) and v == 65535 else v for i, v in enumerate(p)) for p in POINTS]


def test_truncated_measures_are_requested_again(plug: Plug, connect: Connect) -> None:
    board = ShellBoard(Model())
    link = connect("shell", plug(board))
    model = find_model(link.describe(), "twice", link.device)
    whole = board._answer
    lost = [2, 1]  # lines, of the first answers

    def answer(words: list[str]) -> str:
        lines = whole(words).splitlines(keepends=True)
        if words[0] == "measures" and lost:
            del lines[lost.pop()]
        return "".join(lines)

    board._answer = answer
    assert len(link.measures(model).measures) == len(POINTS) and not lost
    lost = [3] * 10
    with pytest.raises(LinkError, match="truncated responses to 'opwest measures twice'"):
        link.measures(model)


# --- The numbers of the service are the same in the runtime's C and in the host's part

need("smpclient", "serial")


RUNTIME = Path(__file__).resolve().parents[3] / "zephyr_module"


def numbers(file: str, pattern: str) -> dict[str, int]:
    text = (RUNTIME / file).read_text(encoding="utf-8")
    return {name: int(number) for name, number in re.findall(pattern, text)}


def test_commands_of_the_group() -> None:
    commands = numbers("src/service_smp.c", r"COMMAND_(\w+) = (\d+),")
    names = ("MODEL", "TENSOR", "DATA", "ACTION", "MEASURES", "POINT", "UNTIL", "CALL")
    assert commands == {name: vars(smp_link)[f"_{name}"] for name in names}


def test_actions_version_group_and_entries() -> None:
    actions = numbers("src/service_internal.h", r"OPWEST_SERVICE_(OPEN|RUN|CLOSE) = (\d+),")
    assert actions == {action.name: int(action) for action in link.Action}
    assert numbers("include/opwest/service.h", r"#define (OPWEST_SERVICE_VERSION) (\d+)").popitem()[1] == link.VERSION
    group = numbers("Kconfig", r"config (OPWEST_SERVICE_SMP_GROUP)\n(?:\t.*\n)*?\tdefault (\d+)")
    assert group == {"OPWEST_SERVICE_SMP_GROUP": smp_link.DEFAULT_GROUP}
    assert numbers("src/service_call.c", r"(memory)\[(\d+)U \* index") == {"memory": ENTRY}


def test_arguments_are_aligned_to_the_line_of_an_unknown_cache() -> None:
    lines = numbers("src/port_devices_zephyr.c", r"#define (LARGEST_LINE) (\d+)U")
    assert lines == {"LARGEST_LINE": arguments.LEAST_ALIGN}
