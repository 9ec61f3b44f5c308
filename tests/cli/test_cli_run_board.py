# SPDX-License-Identifier: Apache-2.0
"""`opwest run --board` with boards on pseudo terminals and a west that only records its calls."""

import json
import subprocess

import numpy as np
import pytest
from requirements_support import need

need("smpclient", "serial")

import fake_board  # noqa: E402
from fake_board import Model, ShellBoard, SmpBoard, UdpBoard  # noqa: E402
from fake_west import NATIVE, QEMU, SMP  # noqa: E402
from small_models import generated, one_operator  # noqa: E402

X = np.random.default_rng(9).integers(-16000, 16000, fake_board.SHAPE, dtype=np.int16)
TWICE = """#include <stdint.h>
void twice(const int16_t *x, int16_t *y) { for (int i = 0; i < 1500; i++) y[i] = (int16_t)(2 * x[i]); }
"""
MANIFEST = one_operator(
    "twice", "[{files: [twice.c]}]", model="twice", dtype="int16", shape="[3, 500]", keys="returns: void, "
)


@pytest.fixture
def app(succeed, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", 2 * X)
    return generated(succeed, tmp_path, MANIFEST, {"twice.c": TWICE})


@pytest.fixture
def west(west):
    west.tell(config=SMP)
    return west


@pytest.fixture
def run(opwest, app, west):

    def call(board, *arguments):
        return opwest("run", app, "--board", board, "--input", f"x={app.parent / 'x.npy'}", "--timeout", 2, *arguments)

    return call


def tracked_by_git(app):
    """Return the files of an application that `git add` adds."""
    need("git")
    subprocess.run(["git", "init", "-q"], cwd=app, check=True)
    subprocess.run(["git", "add", "."], cwd=app, check=True)
    done = subprocess.run(["git", "ls-files"], cwd=app, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_board_is_built_flashed_and_run(run, app, west, plug):
    board = plug(SmpBoard(Model()))
    out = app.parent / "out"
    reference = f"y={app.parent / 'y.npy'}"
    done = run("nucleo", "--serial", board.device, "--output-dir", out, "--reference", reference, "--repeat", 3)
    assert done.code == 0, done.err
    assert [words[0] for words in west.calls] == ["build", "build", "flash"]
    np.testing.assert_array_equal(np.load(out / "y.npy"), 2 * X)
    lines = done.out.splitlines()
    assert lines[0] == f"twice on nucleo, {board.device}"
    assert "y: equal to the reference" in lines
    assert lines[-1] == "latency: 1.235 ms (median of 3 runs, 1.235 ms to 1.235 ms), without the transfers"
    for stage in ("configuring for nucleo", "building for nucleo", "flashing nucleo", "waiting for the image on"):
        assert f"== {stage}" in done.err
    assert "== sending x: 3000 of 3000 bytes" in done.err and "== fetching y: 3000 of 3000 bytes" in done.err
    assert (app / "build" / "run_nucleo.log").exists() and (app / "build" / "run_nucleo" / "build.ninja").exists()
    tracked = tracked_by_git(app)
    assert "src/main.c" in tracked and not [path for path in tracked if "run_nucleo" in path]


def test_missing_board_is_reported_before_the_build(run, app, west):
    boards = west.workspace.base / "boards" / "vendor" / "known"
    boards.mkdir(parents=True)
    (boards / "board.yml").write_text("board: {name: known, socs: [{name: a}, {name: b}]}\n")
    done = run("knwon/a")
    assert done.code == 1 and not west.calls
    assert f"error: unknown board 'knwon/a' in {west.workspace.base}\n  hint: did you mean 'known'?" in done.err
    done = run("known")
    assert done.code == 1
    assert "board 'known' has several SoCs or CPU clusters: specify one\n  expected: known/a or known/b" in done.err
    assert not west.calls
    own = app / "boards" / "me" / "mine"
    own.mkdir(parents=True)
    (own / "board.yml").write_text("board: {name: mine, socs: [{name: a}]}\n")
    run("mine", "--serial", "/dev/absent")
    assert west.calls  # the application's own
    west_calls = len(west.calls)
    with (app / "CMakeLists.txt").open("a") as file:
        file.write("# list(APPEND BOARD_ROOT elsewhere)\n")
    run("anything", "--serial", "/dev/absent")
    assert len(west.calls) > west_calls  # out-of-tree boards: CMake checks them


def test_json(run, app, west, plug):
    board = plug(SmpBoard(Model()))
    wrong = np.array(2 * X, np.float32)
    wrong[2, 7] += 1.5
    np.save(app.parent / "wrong.npy", wrong)
    done = run("nucleo", "--serial", board.device, "--json", "--reference", f"y={app.parent / 'wrong.npy'}")
    assert done.code == 1 and not done.err
    result = json.loads(done.out)["result"]
    assert result["outputs"]["y"] == (2 * X).tolist() and result["connection"] == board.device
    error = result["errors"]["y"]
    assert (error["differing"], error["largest_error"], error["at"]) == (1, 1.5, [2, 7])
    assert result["latency_ns"] == [1234568] and result["clock"] == "board"


@pytest.mark.parametrize(
    ("board", "answer", "config", "started", "time"),
    [
        ("mps2/an385", SmpBoard, QEMU, "char device redirected to {} (label con-base)", "emulated time"),
        ("native_sim/native/64", ShellBoard, NATIVE, "uart connected to pseudotty: {}", "simulated time"),
    ],
)
def test_simulated_boards_are_started(run, west, plug, board, answer, config, started, time):
    west.tell(config=config, run=started.format(plug(answer(Model())).device))
    done = run(board)
    assert done.code == 0, done.err
    assert west.calls[-1][-2:] == ["-t", "run"]
    assert "latency: 1.235 ms" in done.out and time in done.out


def test_options_without_effect_on_simulated_boards(run, west):
    west.tell(config=QEMU)
    for given in (["--no-flash"], ["--baud", 115200]):
        done = run("mps2/an385", *given)
        assert done.code == 1 and f"error: {given[0]} has no effect: board 'mps2/an385' is simulated\n" in done.err


@pytest.mark.parametrize("seconds", [0, 0.6])
def test_image_that_exits_during_a_request(run, west, plug, seconds):
    answer = SmpBoard(Model())
    answer.unplug_at = 7
    board = plug(answer)
    west.tell(config=QEMU, run=f"redirected to {board.device}\nqemu: fatal: Lockup", run_ends=seconds)
    done = run("mps2/an385")
    assert done.code == 1
    assert f"lost the serial device '{board.device}'" in done.err and "qemu: fatal: Lockup" in done.err


def one_error(done, *texts):
    """Check that a run failed with exactly one error, which contains the texts."""
    assert done.code == 1
    assert done.err.count("opwest: error: ") + done.err.count(": error: not an") == 1 and "Traceback" not in done.err
    for text in texts:
        assert text in done.err, done.err


def test_board_unplugged(run, west, tmp_path):
    west.tell(config=SMP, fails="flash", flash="Error: no debug probe found")
    gone = tmp_path / "ttyACM0"
    one_error(run("nucleo", "--serial", gone), "cannot flash the board", "no debug probe found")
    west.tell(config=SMP)
    one_error(run("nucleo", "--serial", gone), f"serial device '{gone}' not found within 2 s")
    one_error(run("nucleo", "--serial", gone, "--no-flash"), f"serial device '{gone}' not found", "plugged in")


def test_image_without_the_service_or_measurements(run, app):
    one_error(run("nucleo", "--no-build"), f"no build in '{app / 'build' / 'run_nucleo'}'", "--no-build")
    zephyr = app.parent / "other" / "zephyr"
    zephyr.mkdir(parents=True)
    (zephyr / ".config").write_text("CONFIG_OPWEST=y\n")
    done = run("nucleo", "--no-build", "--build-dir", zephyr.parent)
    one_error(done, f"the image in '{zephyr.parent}' has no opwest service", "-DCONFIG_OPWEST_SERVICE=y")
    one_error(run("nucleo", "--profile"), "run_nucleo_profile' does not measure steps (CONFIG_OPWEST_PROFILE)")


def test_smp_group_of_the_build_is_used(run, west, plug):
    board = plug(SmpBoard(Model(), groups=(0, 4711)))
    west.tell(config=SMP + "CONFIG_OPWEST_SERVICE_SMP_GROUP=4711\n")
    assert run("nucleo", "--serial", board.device).code == 0


def test_without_a_board_to_flash(run, west, plug):
    done = run("nucleo", "--serial", plug(SmpBoard(Model())).device, "--no-build", "--no-flash")
    assert done.code == 0 and west.calls == [], done.err


def test_arrays_are_checked_before_the_build(opwest, fail, app, west, tmp_path):
    np.save(tmp_path / "other.npy", np.zeros(3))
    done = opwest("run", app, "--board", "nucleo")
    one_error(done, "missing input 'x'", "--input x=FILE.npy")
    given = ["--input", f"x={tmp_path / 'other.npy'}", "--reference", f"y={tmp_path / 'other.npy'}"]
    done = fail("run", app, "--board", "nucleo", *given, "--reference", "z=1.npy")
    assert done.err.count("error: ") == 3, done.err
    assert "contains float64 [3]" in done.err and "unknown output 'z'" in done.err
    assert west.calls == []


def test_missing_tools_are_named(run, monkeypatch, tmp_path):
    lacks = [("ninja", "apt-get install ninja-build"), ("a compiler for Arm", None)]
    monkeypatch.setattr("opwest.runs.preflight.tool_lacks", lambda *_, **__: (lacks, {}))
    lines = ["error: a build for board 'nucleo' lacks a compiler for Arm", "  hint: run apt-get install ninja-build"]
    assert all(line in run("nucleo").err for line in lines)
    monkeypatch.undo()
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    one_error(run("native_sim"), "no Zephyr workspace found", "ZEPHYR_BASE")
    one_error(run("native_sim", "--zephyr-base", tmp_path), f"'{tmp_path}' is not a Zephyr tree")


def test_missing_module_of_mcumgr(run, west, monkeypatch):
    (west.top / "modules" / "lib" / "zcbor" / "zephyr" / "module.yml").unlink()
    one_error(run("nucleo"), "a build for board 'nucleo' lacks module 'zcbor'", "hint: run `west update zcbor`")
    assert not west.calls
    monkeypatch.setenv("EXTRA_ZEPHYR_MODULES", "/elsewhere/zcbor")
    run("nucleo", "--serial", "/dev/absent")
    assert west.calls


def test_directories(opwest, run, app, west, tmp_path):
    one_error(opwest("run", tmp_path / "nothing", "--board", "nucleo"), "not an application")
    one_error(run("nucleo", "--build-dir", tmp_path / "a b"), "path with a space")
    lock = app / ".opwest" / "lock.json"
    value = json.loads(lock.read_text())
    value["files"]["modules/opwest/src/registry.c"] = 64 * "0"
    lock.write_text(json.dumps(value))
    done = run("nucleo")
    assert done.code == 1
    assert "registry.c: error: the application has the runtime of another version of opwest" in done.err
    assert f"hint: generate it again: opwest update {app}" in done.err


def test_models_that_were_generated_without_the_service(run, app, west, plug):
    """The sources of the service are generated beside the build directory, once; the application is unchanged."""
    files = {path: path.read_bytes() for path in app.rglob("*") if path.is_file()}
    assert run("nucleo", "--serial", plug(SmpBoard(Model())).device).code == 0
    assert files == {path: path.read_bytes() for path in files}
    made = [path for path in app.rglob("*") if path.is_file() and path not in files]
    assert {path.relative_to(app).parts[0] for path in made} == {"build"}
    services = app / "build" / "run_nucleo.services"
    assert [path.name for path in services.iterdir()] == ["twice_service.c"]
    assert f"-DOPWEST_SERVICES={services}" in west.calls[0]
    before = (services / "twice_service.c").stat().st_mtime_ns
    assert run("nucleo", "--serial", plug(SmpBoard(Model())).device).code == 0
    assert (services / "twice_service.c").stat().st_mtime_ns == before


def test_application_not_generated_by_opwest(opwest, succeed, west, plug, app, tmp_path):
    """Without a record, the image describes the model."""
    other = tmp_path / "hello_world"
    other.mkdir()
    (other / "CMakeLists.txt").touch()
    words = ["run", other, "--board", "nucleo", "--serial", plug(SmpBoard(Model())).device]
    succeed(*words, "--input", f"x={tmp_path / 'x.npy'}")
    one_error(opwest(*words), "missing input 'x'")
    one_error(opwest(*words, "--model", "thrice"), "unknown model 'thrice'")


@pytest.mark.not_root
def test_unwritable_build_directory(run, tmp_path):
    (tmp_path / "locked").mkdir(0o500)
    one_error(run("nucleo", "--build-dir", tmp_path / "locked" / "build"), "Permission denied")


def test_profile(run, app, west, plug):
    board = plug(SmpBoard(Model()))
    west.tell(config=SMP + "CONFIG_OPWEST_PROFILE=y\n")
    file = app.parent / "p.json"
    done = run("nucleo", "--serial", board.device, "--output-profile", file)
    assert done.code == 0, done.err
    configured = [words for words in west.calls if "--cmake-only" in words]
    assert configured and all("-DCONFIG_OPWEST_PROFILE=y" in words for words in configured)
    assert (app / "build" / "run_nucleo_profile" / "build.ninja").exists()
    lines = done.out.splitlines()
    start = lines.index("profile: 3 runs, cycles, 25000000 Hz")
    assert lines[start + 1].split() == "step what name device last min max mean share".split()
    assert lines[start + 2].split() == "run twice 900 800 1000 900 100.0 %".split()
    assert lines[start + 6].split()[:2] == ["wait", "npu0"]
    assert lines[-2:] == ["stack: 420 of 4096 bytes used by the thread that ran the model", f"  written to {file}"]
    told = json.loads(file.read_text())
    assert (told["format"], told["kind"], told["model"], told["where"]) == (1, "opwest-profile", "twice", "nucleo")
    assert (told["clock"], told["unit"], told["frequency_hz"]) == ("board", "cycles", fake_board.HZ)
    assert told["stack"] == {"used": 420, "size": 4096}
    shown = [(p["kind"], p["step"], p["steps"], p["operator"], p["device"], p["runs"]) for p in told["points"]]
    assert shown == [
        ("run", None, [], None, None, 3),
        ("launch", 0, [0], "double", "0", 3),  # the application has no devices, unlike the image
        ("launch", 1, [1], "double", "0", 3),
        ("step", 2, [2], "add", None, 3),
        ("wait", None, [0, 1], None, "npu0", 3),
        ("cache", 1, [1], "double", "0", 0),
    ]
    assert told["points"][3]["total"] == 2**41 and told["points"][5]["mean"] == 0


def test_check_steps_prints_the_first_difference(run, app, west, plug):
    """The fake model writes its output at the end of the run only: after the step it is still 0."""
    need("cc")
    west.tell(config=SMP + "CONFIG_OPWEST_PROFILE=y\nCONFIG_OPWEST_CHECK_STEPS=y\n")
    done = run("nucleo", "--serial", plug(SmpBoard(Model(checks=True))).device, "--check-steps")
    assert done.code == 1, done.err
    largest = np.unravel_index(np.argmax(np.abs(2.0 * X)), X.shape)
    line = done.out.splitlines()[1]
    assert line.startswith("step 0 (twice) differs: tensor y: ")
    error, place = 2 * abs(int(X[largest])), [*map(int, largest)]
    assert f" elements differ from the reference: largest error {error} at {place}" in line
    configured = [words for words in west.calls if "--cmake-only" in words]
    assert configured and all("-DCONFIG_OPWEST_CHECK_STEPS=y" in words for words in configured)
    assert (app / "build" / "run_nucleo_check.log").exists()
    np.save(app.parent / "zero.npy", np.zeros_like(X))
    arguments = ["--serial", plug(SmpBoard(Model(checks=True))).device, "--check-steps", "--json"]
    done = run("nucleo", *arguments, "--reference", f"y={app.parent / 'zero.npy'}")
    assert done.code == 0, done.err
    check = json.loads(done.out)["result"]["check"]
    counts = {"tensor_count": 1, "step_count": 1, "all_step_count": 1}
    assert check == {"first": None, **counts, "reference": "the given references"}


def test_shields_snippets_and_options_of_cmake(run, opwest, app, west, plug):
    words = ["--serial", plug(SmpBoard(Model())).device, "--shield", "a", "--shield", "b", "--snippet", "s"]
    done = run("nucleo", *words, "--", "-DCONFIG_X=y", "-DEXTRA_DTC_OVERLAY_FILE=own.overlay")
    assert done.code == 0, done.err
    configured, built, _ = west.calls
    assert configured[-3:] == ["-DSHIELD=a;b", "-DCONFIG_X=y", "-DEXTRA_DTC_OVERLAY_FILE=own.overlay"]
    assert "-DSNIPPET=opwest-service;s" in configured
    assert built == ["build", "-d", str(app / "build" / "run_nucleo")]
    done = run("nucleo", "--", "foo", "-DSHIELD=x", "-DBOARD=other")
    assert done.code == 1 and done.err.count("error: ") == 3
    assert "error: 'foo' after -- is no option of CMake\n  expected: -DNAME=VALUE" in done.err
    assert "error: -DSHIELD cannot be given: the command sets it\n  expected: --shield S\n" in done.err
    done = run("nucleo", "--no-build", "--shield", "a", "--", "-DX=1")
    assert "--shield has no effect with --no-build" in done.err and "options of CMake have no effect" in done.err
    assert "options of CMake require --board" in opwest("run", app, "--host", "--", "-DX=1").err
    assert not west.calls


def test_boards_in_a_network(run, app, west):
    """The image is built with SMP over UDP, then flashed; with --ble, the application provides Bluetooth."""
    west.tell(config=SMP)
    for given, option, hint in (
        (["--udp", "board.local:99"], "CONFIG_MCUMGR_TRANSPORT_UDP", "the driver of a network interface"),
        (["--ble", "opwest-board"], "CONFIG_MCUMGR_TRANSPORT_BT", "the application enables Bluetooth and advertises"),
    ):
        one_error(run("nucleo", *given), f"{option} is not set in the configuration for 'nucleo'", hint)
    udp, ble = west.calls
    assert "-DSNIPPET=opwest-service;opwest-udp" in udp and udp[-2] == "-DCONFIG_MCUMGR_TRANSPORT_UDP_PORT=99"
    assert "-DSNIPPET=opwest-service" in ble and not any("UDP" in word or "BT" in word for word in ble)
    west.tell(config=SMP + "CONFIG_MCUMGR_TRANSPORT_UDP=y\n")
    with UdpBoard(SmpBoard(Model())) as place:
        done = run("nucleo", "--udp", str(place))
        assert done.code == 0 and done.out.startswith(f"twice on nucleo, {place}\n"), done.err
        assert [words[0] for words in west.calls] == ["build", "build", "flash"]
        assert (app / "build" / "run_nucleo_udp").is_dir()
        done = run("nucleo", "--udp", str(place), "--no-build", "--no-flash")
        assert done.code == 0 and not west.calls
    for given, message in (
        (["--udp", "h", "--baud", 9600], "--baud has no effect with --udp"),
        (["--udp", "h", "--serial", "x"], "argument --serial: not allowed with argument --udp"),
        (["--udp", "h:x"], "argument --udp: 'h:x'; expected HOST or HOST:PORT"),
        (["--ble", "h"], "--ble has no effect on board 'native_sim'"),
    ):
        assert message in run("native_sim" if "--ble" in given else "nucleo", *given).err


def test_objects_for_other_processors(run, app, west):
    """The conditions of all targets and the values of the board, before the build."""
    model = app / "models" / "twice" / "model.cmake"
    rows = "set(twice_0_NAME cortex-m4f)\nset(twice_0_KCONFIG CONFIG_CPU_CORTEX_M4=y CONFIG_FPU=y)\nset(twice_0_HOST)\n"
    model.write_text(model.read_text() + rows)
    assert run("mps2/an385").err == (
        f"{model}: error: model 'twice' has no objects for board 'mps2/an385', whose processor is Cortex-M3\n"
        "  expected: objects for cortex-m3, or C sources\n"
        "  hint: cortex-m4f requires CONFIG_CPU_CORTEX_M4=y (is n), CONFIG_FPU=y (is n)\n"
    )
    assert not west.calls
    variant = model.parent / "variants" / "small" / "model.cmake"
    variant.parent.mkdir(parents=True)
    variant.write_text(rows.replace("twice_0", "v").replace("M4=y CONFIG_FPU=y", "M3=y"))
    run("mps2/an385")
    assert west.calls, "a variant fits"
    run("mps2/an386")
    assert west.calls, "CMake compares the options, such as CONFIG_FPU"


def test_options_that_check_steps_excludes(run, app, west):
    for given, message in (
        (["--check-steps", "--repeat", 2], "--check-steps excludes --repeat"),
        (["--check-steps", "--profile"], "--check-steps excludes --profile"),
        (["--check-steps", "--output-dir", app / "out"], "--check-steps excludes --output-dir"),
        (["--tolerance", 0.5], "--tolerance requires --reference or --check-steps"),
        (
            ["--check-steps", "--reference", "y=y.npy", "--cmsis-nn", "x"],
            "--cmsis-nn has no effect with --reference: the model does not run on this machine",
        ),
        (
            ["--no-build", "--no-flash", "--serial", "x", "--zephyr-base", "y"],
            "--zephyr-base has no effect with --no-build, --no-flash and --serial: Zephyr is not used",
        ),
        (["--sanitize"], "--sanitize cannot be used with --board"),
    ):
        done = run("nucleo", *given)
        assert done.code == 1 and done.err == f"opwest: error: {message}\n"
    assert not west.calls


def test_call_reports_faults_before_the_build(fail, app, west):
    argument = ["--arg", f"x={app.parent / 'x.npy'}"]
    for folder, words, message in (
        (app, [], "error: missing argument 'x': int16 [3, 500]"),
        (app, [*argument, "--device", "npu"], "operator 'twice' takes no device"),
        (app.parent, [], "not a directory generated by opwest"),
    ):
        assert message in fail("call", folder, "--board", "nucleo", "twice", *words).err
    assert not west.calls
