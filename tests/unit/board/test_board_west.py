# SPDX-License-Identifier: Apache-2.0
"""Build and flash with a west that only records its calls."""

import io
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from board_support import QUIET, failure
from fake_west import DTS, NATIVE, SMP, UART, FakeWest
from opwest.runs.connection import RunningImage
from opwest.runs.progress import StageProgress
from opwest.runs.west import Build, SpaceError, find_west


@pytest.fixture
def west(tmp_path):
    return FakeWest(tmp_path / "workspace")


@pytest.fixture
def build(west, tmp_path):
    return Build(
        *(west.workspace, west.west, tmp_path / "app", "nucleo", tmp_path / "build" / "run_nucleo", QUIET),
        runtime=tmp_path / "runtime",
    )


def fault(build):
    return failure(build.build)


def test_smp_uses_the_console_uart_by_default(west, build):
    build.build()
    first, second = west.calls
    words = ["build", "-p", "auto", "-b", "nucleo", "-d", str(build.folder), str(build.application), "--no-sysbuild"]
    options = [f"-DOPWEST_RUNTIME={build.runtime}", f"-DOPWEST_SERVICES={build.folder}.services"]
    options += [f"-DSNIPPET_ROOT={build.runtime}", "-DSNIPPET=opwest-service", "-DQEMU_PTY=ON"]
    overlay = build.folder / "opwest-service.overlay"
    assert first == [*words, "--cmake-only", "--", *options, "-DEXTRA_DTC_OVERLAY_FILE="]
    assert second == [*words, "--", *options, f"-DEXTRA_DTC_OVERLAY_FILE={overlay}"]
    assert "zephyr,uart-mcumgr = &uart7;" in overlay.read_text()


@pytest.mark.parametrize("option", ["CONFIG_SHELL_BACKEND_SERIAL", "CONFIG_DT_HAS_ARM_CMSDK_UART_ENABLED"])
def test_uart_with_a_shell_is_configured_again(west, build, option):
    """SMP uses the shell; values of the user's snippets and snippet roots follow those of the command."""
    build = replace(build, snippets=("own",), given=("-DSNIPPET_ROOT=mine", "-DCONFIG_X=y"))
    west.tell(config=f"{UART}{option}=y\n", dts=DTS.replace("zephyr,sram = ", "zephyr,uart-mcumgr = &uart7;\n\t\tx = "))
    build.build()
    first, second, _ = west.calls
    assert "-DSNIPPET=opwest-service;own" in first and "-DSNIPPET=opwest-service-shell;own" in second
    assert second[:3] == ["build", "-p", "always"] and "--cmake-only" in second
    assert f"-DSNIPPET_ROOT=mine;{build.runtime}" in second and "-DSNIPPET_ROOT=mine" not in second
    assert "-DCONFIG_X=y" in second


def test_chosen_uart_is_kept(west, build):
    west.tell(dts=DTS.replace("zephyr,sram = ", "zephyr,uart-mcumgr = &usb_cdc;\n\t\tzephyr,sram = "))
    build.build()
    configured, built = west.calls
    assert configured[-1] == "-DEXTRA_DTC_OVERLAY_FILE="
    assert built == ["build", "-d", str(build.folder)], "it does not configure again"


def test_second_build_does_not_configure_again(west, build):
    build.build()
    assert len(west.calls) == 2
    build.build()
    assert west.calls == [["build", "-d", str(build.folder)]]
    (build.folder / "opwest-run.json").write_text("{")
    build.build()
    pristine, built = west.calls
    assert (pristine[2], built[2]) == ("always", "auto"), "another configuration starts with an empty directory"


def test_board_without_any_uart(west, build):
    west.tell(dts="/ {\n\tchosen {\n\t};\n};\n")
    assert fault(build).message == "the devicetree of 'nucleo' has no chosen UART for SMP"


def test_missing_zcbor(west, build):
    west.tell(config="CONFIG_OPWEST_SERVICE=y\n")
    found = fault(build)
    assert "module 'zcbor' not found" in found.message and "west update zcbor" in (found.hint or "")
    west.tell(config=NATIVE)
    build.build()


def test_configuration_without_the_service(west, build):
    west.tell(config="CONFIG_OPWEST=y\n# CONFIG_OPWEST_SERVICE is not set\n")
    assert "CONFIG_OPWEST_SERVICE is not set in the configuration for 'nucleo'" in fault(build).message


def test_failed_build_output_is_shortened(west, build):
    noise = "\n".join(f"[{n}/999] Building C object error.c.obj" for n in range(900))
    error = "/app/src/main.c:7:3: error: 'x' undeclared"
    west.tell(fails="build", build=f"{noise}\n\x1b[31m{error}\x1b[0m\nninja: build stopped")
    found = fault(build)
    assert found.message == "the build failed (west build, exit code 1)"
    assert list(map(str, found.causes)) == [error]
    assert found.hint == f"complete log: {build.log}" and build.log.read_text().count("Building") == 900
    build.folder.joinpath("opwest-run.json").unlink(missing_ok=True)
    west.tell(fails="build", build="ld.bfd: region `ISRAM' overflowed by 812 bytes")
    found = fault(build)
    assert isinstance(found, SpaceError)
    assert [cause.message for cause in found.causes] == ["the image does not fit: region ISRAM lacks 812 bytes"]
    assert "additional memory" in (found.causes[0].hint or "")
    assert len(west.calls) > 2
    assert isinstance(fault(build), SpaceError)
    assert west.calls == [["build", "-d", str(build.folder)]], "it does not configure again"


def test_compiler_of_a_build(build):
    assert build.compiler() is None
    build.folder.mkdir(parents=True)
    cache = "CMAKE_AR:FILEPATH=/usr/bin/ar\nCMAKE_C_COMPILER:STRING=/opt/bin/arm-none-eabi-gcc\n"
    (build.folder / "CMakeCache.txt").write_text(cache)
    assert build.compiler() == "/opt/bin/arm-none-eabi-gcc"


def test_failed_flash(west, build):
    west.tell(fails="flash", flash="Error: no ST-LINK found")
    found = failure(build.flash).message
    assert re.search(r"cannot flash the board .*\n  Error: no ST-LINK found", found), found
    assert west.calls == [["flash", "-d", str(build.folder)]]


def test_search_for_west(west, tmp_path, monkeypatch):
    assert find_west(west.workspace) == west.west
    Path(west.west).unlink()
    other = tmp_path / "bin" / "west"
    other.parent.mkdir()
    other.touch(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_west(west.workspace) == str(other)


def test_native_builds_use_the_host_compiler(build, monkeypatch):
    for name in ("ZEPHYR_TOOLCHAIN_VARIANT", "ZEPHYR_SDK_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VIRTUAL_ENV", "/ours")
    assert "ZEPHYR_TOOLCHAIN_VARIANT" not in build.environment and "VIRTUAL_ENV" not in build.environment
    native = replace(build, board="native_sim")
    assert native.environment["ZEPHYR_TOOLCHAIN_VARIANT"] == "host"


def start(west, build, **behaviour):
    west.tell(**behaviour)
    return RunningImage(build.run_command(), west.top, build.environment)


@pytest.mark.parametrize(
    "output", ["char device redirected to /dev/pts/5 (label con-base)", "uart connected to pseudotty: /dev/pts/5"]
)
def test_device_of_an_image(west, build, output):
    with start(west, build, run=output) as image:
        assert image.device(10) == "/dev/pts/5" and not image.ended(0)
        process = image._process.pid
    assert image.ended(0)
    assert not Path(f"/proc/{process}").exists() or "Z" in Path(f"/proc/{process}/stat").read_text().split()[2]


def test_image_that_exits(west, build):
    with start(west, build, run="qemu: could not load kernel", run_ends=0, fails="run") as image:
        found = failure(image.device, 10).message
    assert found == "the image exited during start-up with code 1:\n  -- west: run\n  qemu: could not load kernel"


def test_image_without_a_device_name(west, build):
    begin = time.monotonic()
    with start(west, build, run="*** Booting Zephyr OS ***") as image:
        found = failure(image.device, 1).message
    assert found.startswith("the image reported no serial device within 1 s; its output:\n")
    assert time.monotonic() - begin < 5


def test_image_that_ignores_sigterm_is_killed(tmp_path):
    code = "trap '' TERM; echo connected to pseudotty: /dev/pts/9; while :; do sleep 1; done"
    with RunningImage(["sh", "-c", code], tmp_path, {"PATH": "/usr/bin:/bin"}) as image:
        assert image.device(10) == "/dev/pts/9"
        process = image._process.pid
    assert subprocess.run(["kill", "-0", str(process)], capture_output=True, check=False).returncode != 0


def test_configurations_are_read(west, build):
    assert build.configuration() == {}
    west.tell(config=SMP)
    build.build()
    assert build.configuration() == {"CONFIG_OPWEST_SERVICE": "y", "CONFIG_OPWEST_SERVICE_SMP": "y"}


@pytest.mark.parametrize("live", [True, False])
def test_steps_of_ninja_are_shown_in_one_line_of_a_terminal(west, build, live):
    stream = io.StringIO()
    stream.isatty = lambda: live
    lines = ["-- other output", "[1/2] Building a\x1b[31m.c", "warning: [1/9]", "[2/2] Linking " + "x" * 300]
    west.tell(config=NATIVE, dts=DTS, build="\n".join(lines))
    replace(build, progress=StageProgress(stream)).build()
    stages = [f"== configuring for nucleo (log: {build.log})", "== building for nucleo"]
    shown = stream.getvalue().split("\n")
    assert build.log.read_text().count("[1/2] Building a\x1b[31m.c\n") == 1
    if live:
        columns = shutil.get_terminal_size().columns
        status = ["[1/2] Building a\\x1b[31m.c", lines[3][: columns - 1]]
        assert shown == [*stages, "".join(f"\r{text}\x1b[K" for text in status), ""]
    else:
        assert shown == [*stages, ""]


def test_qemu_runs_boards_without_a_runner_of_zephyr(build, tmp_path, monkeypatch):
    emulated = replace(build, board="mps2/an386")
    monkeypatch.setenv("PATH", str(tmp_path))
    absent = failure(emulated.run_command).message
    assert "qemu-system-arm not found, which runs images for 'mps2/an386'" in absent
    emulator = tmp_path / "qemu-system-arm"
    emulator.write_text("#!/bin/sh\n")
    emulator.chmod(0o755)
    command = emulated.run_command()
    assert command[:3] == [str(emulator), "-M", "mps2-an386"]
    assert command[-2:] == ["-kernel", str(build.folder / "zephyr" / "zephyr.elf")]
    assert emulated.is_emulated and not build.is_emulated
    assert build.run_command()[-2:] == ["-t", "run"]


@pytest.mark.parametrize("variant", ["zephyr/gnu", "zephyr/llvm", "host/gnu", "host/llvm", "zephyr", "llvm", "host"])
@pytest.mark.parametrize("board", ["native_sim", "mps2/an385"])
def test_builds_keep_the_toolchain_of_the_environment(build, monkeypatch, variant, board):
    """The names of SDK 1.0, and those before it."""
    monkeypatch.delenv("ZEPHYR_SDK_INSTALL_DIR", raising=False)
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", variant)
    assert replace(build, board=board).environment["ZEPHYR_TOOLCHAIN_VARIANT"] == variant
