# SPDX-License-Identifier: Apache-2.0
"""`opwest bundle install`, `list`, `confirm` and `roll-back` with boards on pseudo terminals."""

import importlib.util
import json

import pytest
from requirements_support import need

need("smpclient", "serial")

from fake_bundles import Bundles, Faults, ShellBundles  # noqa: E402
from opwest.bundles.format import LINKED, AbiFields, Content, Signature, pack, with_signatures  # noqa: E402
from opwest.bundles.link import Job  # noqa: E402
from test_bundle_links import SmpBundles  # noqa: E402

SHELL = ("--transport", "shell", "--timeout", "5")
NATIVE = "CONFIG_ARCH_POSIX=y\nCONFIG_OPWEST_BUNDLE_SERVICE=y\nCONFIG_OPWEST_BUNDLE_SHELL=y\n"
SMP = "CONFIG_OPWEST_BUNDLE_SERVICE=y\nCONFIG_OPWEST_BUNDLE_SMP=y\nCONFIG_OPWEST_BUNDLE_SMP_GROUP=28536\n"


@pytest.fixture
def files(tmp_path):
    """Signed bundles for both slots."""
    paths = []
    for address in (0x8000, 0x18000):
        abi = AbiFields(40, 4, 1, 0, 0, 1, 1, 0, 2, 0, 0, 1, 1, 64, 8, 100, 8, 64, 4)
        signed = pack(Content(LINKED, address, 0, (1, 0, 0), 5, bytes(32), "digits", abi, bytes(2048), ""))
        paths.append(tmp_path / f"digits-{address:x}.bundle")
        paths[-1].write_bytes(with_signatures(signed, [Signature(bytes(8), bytes(64))]))
    return paths


@pytest.fixture
def app(tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text("find_package(Zephyr)\n")
    return folder


def test_a_difference_of_steps_is_1(fail, plug):
    found = {"operator": "conv", "tensor": "a", "step": 1, "element": 7, "count": 2}
    board = plug(ShellBundles(Bundles(answers={Job.STEPS: ("EILSEQ", found)}), Faults(), 1))
    report = json.loads(fail("bundle", "check-steps", "--serial", board.device, *SHELL, "--json").out)
    assert (report["ok"], report["diagnostics"], report["result"]["check"]["first"]["step"]) == (False, [], 1)


@pytest.mark.parametrize("transport", ["smp", "shell"])
def test_life_of_a_bundle(opwest, succeed, fail, plug, files, transport):
    bundles = Bundles(waits_for_confirmation=True)
    device = plug((SmpBundles if transport == "smp" else ShellBundles)(bundles, Faults(), 1)).device
    at = ["--serial", device, "--transport", transport, "--timeout", "5"]
    done = succeed("bundle", "install", *at, *files)
    assert done.out.splitlines()[0] == f"digits 1.0.0 runs from slot 1 at 0x18000 of {device}"
    size = len(files[1].read_bytes())
    assert done.err.splitlines() == [
        f"== waiting for the image on {device}",
        f"== sending {files[1]} to slot 1",
        f"== sending the bundle: {size} of {size} bytes",
        "== installing digits 1.0.0 in slot 1",
    ]
    assert bundles.memory[1] == files[1].read_bytes()
    done = opwest("bundle", "confirm", *at)
    assert (done.code, done.out) == (0, "confirmed: model1 1.2.3 in slot 1\n")
    done = opwest("bundle", "list", *at, "--json")
    found = json.loads(done.out)["result"]
    assert (found["active"], found["trying"], found["previous"], found["fault"]) == (1, None, 0, None)
    assert [slot["roles"] for slot in found["slots"]] == [["previous", "next"], ["active"]]
    done = opwest("bundle", "roll-back", *at)
    assert (done.code, done.out) == (0, "current: model0 1.2.3 in slot 0\n")
    done = opwest("bundle", "roll-back", *at)
    assert (done.code, done.out) == (0, "current: model1 1.2.3 in slot 1\n")
    bundles.previous = 255
    done = fail("bundle", "roll-back", *at)
    assert done.err.splitlines()[-1] == f"opwest: error: {device}: the board has no previous model"
    done = fail("bundle", "check-steps", *at)
    assert "the bundle contains no results of steps\n  hint: make it with --steps" in done.err


def test_simulated_board_is_built_and_started(succeed, plug, files, app, west):
    bundles = Bundles()
    device = plug(ShellBundles(bundles, Faults(), 1)).device
    west.tell(config=NATIVE, run=f"uart connected to pseudotty: {device}")
    board = ["--board", "native_sim/native/64", "--application", app, "--timeout", "5"]
    succeed("bundle", "install", *board, *files)
    assert bundles.memory[1] == files[1].read_bytes()
    configure, build, run = west.calls
    assert "-DSNIPPET=opwest-bundle-service" in configure
    assert build[0] == "build" and run[-1] == "run"
    assert (app / "build" / "bundle_native_sim_native_64").is_dir()
    succeed("bundle", "list", *board, "--no-build")
    assert [words[-1] for words in west.calls] == ["run"]


def test_board_is_flashed(succeed, plug, files, app, west):
    west.tell(config=SMP)
    bundles = Bundles()
    board = ["--board", "nucleo", "--application", app, "--serial", plug(SmpBundles(bundles, Faults(), 1)).device]
    succeed("bundle", "install", *board, "--timeout", 5, *files)
    assert [words[0] for words in west.calls] == ["build", "build", "flash"] and bundles.active == 1


def test_transport_decides_whether_smpclient_is_required(opwest, plug, app, west, monkeypatch):
    absent = {"smpclient"}
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in absent else find(name))

    def listed(*words):
        return opwest("bundle", "list", *words)

    def connected():
        return plug(ShellBundles(Bundles(), Faults(), 1)).device

    for board in (["native_sim", "--transport", "smp"], ["mps2/an385"]):
        done = listed("--board", *board, "--application", app)
        assert done.code == 1 and "missing Python packages: smpclient and pyserial are required" in done.err
        assert not west.calls
    device = connected()
    emulated = f"{SMP}CONFIG_QEMU_TARGET=y\nCONFIG_OPWEST_BUNDLE_SHELL=y\n"
    west.tell(config=emulated, run=f"char device redirected to {device} (label serial0)")
    done = listed("--board", "mps2/an385", "--application", app, "--transport", "shell")
    assert done.code == 0, done.err
    assert done.out.startswith(f"{device}: 2 slots")
    done = listed("--serial", connected(), "--transport", "shell")
    assert done.code == 0, done.err
    west.tell(config=emulated.replace("CONFIG_QEMU_TARGET=y\n", ""))
    given = ["--serial", connected(), "--transport", "shell"]
    flashed = ["--board", "nucleo", "--application", app, *given]
    done = listed(*flashed)
    assert done.code == 0, done.err
    absent.add("serial")
    for words in (flashed, given):
        done = listed(*words)
        assert done.code == 1 and done.err.count("error:") == 1
        assert "missing Python package: pyserial is required to connect to a board" in done.err
        assert "hint: run pip install pyserial" in done.err


def test_image_that_cannot_accept_bundles(fail, app, west):
    board = ["bundle", "list", "--board", "nucleo", "--application", app]
    west.tell(config="CONFIG_OPWEST=y\n")
    done = fail(*board)
    message = "CONFIG_OPWEST_BUNDLE_SERVICE is not set in the configuration for 'nucleo': it depends on "
    assert f"{message}CONFIG_OPWEST_BUNDLE and CONFIG_MULTITHREADING" in done.err
    west.tell(config="CONFIG_OPWEST_BUNDLE_SERVICE=y\n")
    assert "module 'zcbor' not found in the workspace" in fail(*board).err
    west.tell(config="CONFIG_OPWEST_SERVICE=y\n")
    (app / "build" / "bundle_nucleo" / "zephyr" / ".config").write_text("CONFIG_OPWEST_SERVICE=y\n")
    done = fail(*board, "--no-build")
    assert "does not accept bundles (CONFIG_OPWEST_BUNDLE_SERVICE)" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list"], "no board is given\n  expected: --serial DEV, --udp HOST, --ble NAME, or --board"),
        (["list", "--board", "nucleo"], "--board requires --application"),
        (["list", "--serial", "x", "--no-build"], "--no-build requires --board"),
        (["list", "--serial", "x", "--application", "app"], "--application requires --board"),
        (["list", "--board", "nucleo", "--application", "."], "'.' is not an application: no CMakeLists.txt found"),
        (
            ["list", "--board", "native_sim", "--application", "app", "--baud", "9600"],
            "--baud has no effect on board 'native_sim'",
        ),
        (["check-steps", "--serial", "x", "--variant", "v"], "--variant requires a manifest"),
        (
            ["list", "--serial", "x", "--transport", "shell", "--group", "99"],
            "--group has no effect with --transport",
        ),
        (["list", "--serial", "/dev/none"], "serial device '/dev/none' not found"),
        (["install", "--serial", "x", "none.bundle"], "none.bundle: error: cannot read the file: No such file"),
        (["install", "--serial", "x", "text.bundle"], "text.bundle: error: not a bundle"),
        (["install", "--serial", "x", "unsigned.bundle"], "the bundle has no signature: every firmware refuses it"),
        (["install", "--serial", "x", "a.bundle", "b.bundle"], "two bundles for the slot at 0x8000: 'a.bundle' and"),
    ],
)
def test_wrong_options(fail, files, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    content = files[0].read_bytes()
    for name, data in {"text": b"text", "unsigned": content[: -8 - 80], "a": content, "b": content}.items():
        (tmp_path / f"{name}.bundle").write_bytes(data)
    assert message in fail("bundle", *words).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list", "x.bundle"], "unrecognized arguments: x.bundle"),
        (["--install", "x"], "unknown option '--install'\n  hint: did you mean 'opwest bundle install'?"),
        (["list", "--group", "12"], "--group: '12' is no command group; expected a number from 64 to 65535"),
        (["list", "--group", "x"], "--group: 'x' is no command group; expected a number from 64 to 65535"),
        (["install"], "the following arguments are required: FILE"),
        (["list", "--transport", "udp"], "invalid choice: 'udp'"),
    ],
)
def test_wrong_usage(opwest, words, message):
    done = opwest("bundle", *words)
    assert done.code == 2 and message in done.err
