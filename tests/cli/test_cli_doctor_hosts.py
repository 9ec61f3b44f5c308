# SPDX-License-Identifier: Apache-2.0
"""The commands of `opwest doctor` on Windows and macOS: both systems are simulated, the programs are scripts."""

import contextlib
import json
import re
import shutil
import sys
import types

import pytest
from doctor_machines import script
from opwest.base import commands, system
from opwest.doctor import machine as examined
from opwest.doctor.machine import SerialPort
from opwest.zephyr import sdk

pytestmark = pytest.mark.slow
MANAGERS = {"Darwin": "brew", "Windows": "winget"}
UNSET = {"Darwin": "unset ZEPHYR_TOOLCHAIN_VARIANT", "Windows": "Remove-Item Env:ZEPHYR_TOOLCHAIN_VARIANT"}
ONLY_ON_POSIX = re.compile(r"\b(sudo|apt|apt-get|export|unset|source|usermod|dnf)\b|&&|~/|\$USER|/bin/")


@pytest.fixture(params=["Darwin", "Windows"])
def kind(request):
    return request.param


@pytest.fixture
def machine(fake_machine, monkeypatch, kind):
    """A machine of a system with its package manager."""
    made = fake_machine
    script(made.bin / MANAGERS[kind], "exit 1")
    monkeypatch.setattr(system.platform, "system", lambda: kind)
    monkeypatch.setattr(system.platform, "release", lambda: "11")
    monkeypatch.setattr(system.platform, "mac_ver", lambda: ("15.1", ("", "", ""), "arm64"))
    monkeypatch.setattr(
        examined, "_ports", lambda: (SerialPort("COM3" if kind == "Windows" else "/dev/cu.usbmodem1", True),)
    )
    monkeypatch.setattr(system.sys, "executable", r"C:\Program Files\Python\python.exe")
    monkeypatch.setattr(commands, "IS_WINDOWS", kind == "Windows")
    monkeypatch.setattr(commands, "SCRIPTS", "bin")
    monkeypatch.setattr("opwest.runs.west.os.access", lambda *_: True)
    monkeypatch.setattr(sys, "platform", {"Darwin": "darwin"}.get(kind, sys.platform))
    if kind == "Windows":
        west = made.top / ".venv" / "bin" / "west"
        west.rename(west.with_name("west.exe"))
    return made


def test_name_of_the_system(machine, opwest, lacks, kind):
    title = {"Darwin": "macOS 15.1", "Windows": "Windows 11"}[kind]
    assert f" on {title}, " in opwest("doctor").out
    found = json.loads(opwest("doctor", "--json").out)["result"]["system"]
    assert found["package_manager"] == MANAGERS[kind]
    what = f"Linux: Zephyr's native_sim does not run on {title}"
    assert (what, None) in lacks("build-native-sim")


def test_every_command_of_an_empty_machine(machine, opwest, lacks, kind):
    """Nothing that a user of the system cannot enter."""
    for path in machine.bin.iterdir():
        if path.name != MANAGERS[kind]:
            path.unlink()
    shutil.rmtree(machine.top)
    found = [command for rows in lacks().values() for _, command in rows if command is not None]
    assert len(set(found)) > 5
    for text in found:
        if kind == "Windows":
            assert not ONLY_ON_POSIX.search(text), text
            assert text.split()[0] in ("winget", "west", "&", "$env:"), text
        else:
            assert text.split()[0] in ("brew", "west", "xcode-select", "'C:\\Program"), text
    assert "commands that provide what is missing" in opwest("doctor").out


PROGRAMS = [
    ("run-host", "cc", "xcode-select --install", "BrechtSanders.WinLibs.POSIX.UCRT"),
    ("update", "git", "brew install git", "Git.Git"),
    ("tune-arm", "arm-none-eabi-gcc", "brew install --cask gcc-arm-embedded", "Arm.GnuArmEmbeddedToolchain"),
    ("tune-arm", "qemu-system-arm", "brew install qemu", "SoftwareFreedomConservancy.QEMU"),
    ("build-native-sim", "ninja", "brew install ninja", "Ninja-build.Ninja"),
    ("build-native-sim", "dtc", "brew install dtc", "oss-winget.dtc"),
]


@pytest.mark.parametrize(("feature", "name", "on_macos", "on_windows"), PROGRAMS)
def test_missing_program(machine, lacks, kind, feature, name, on_macos, on_windows):
    machine.remove(*(["cc", "gcc", "clang"] if name == "cc" else [name]))
    expected = on_macos if kind == "Darwin" else f"winget install {on_windows}"
    assert expected in [command for _, command in lacks(feature)]


def test_compiler_is_the_one_of_run_host(machine, lacks, opwest, kind):
    """MinGW has a gcc and no cc; `opwest run --host` takes the first of cc, gcc and clang."""
    machine.remove("cc")
    assert lacks("run-host") == []
    assert "  host        gcc 12.2.0" in opwest("doctor").out
    machine.remove("gcc")
    assert "  host        clang 14.0.6" in opwest("doctor").out


def test_workspace(machine, lacks, kind, monkeypatch):
    top = machine.top
    shutil.rmtree(top / "modules/lib/zcbor")
    on_windows = kind == "Windows"
    both = "; " if on_windows else " && "
    found = lacks("run-qemu-riscv")
    assert ("the module zcbor in the workspace", f"cd {top}{both}west update zcbor") in found
    assert lacks("build-riscv")[0][1] == f"cd {top}{both}west sdk install"
    shutil.rmtree(top)
    ((_, made),) = lacks("west")
    place = f"{'$HOME' if on_windows else '~'}/zephyrproject"
    assert made == both.join([f"west init {place}", f"cd {place}", "west update", "west packages pip --install"])
    monkeypatch.setenv("ZEPHYR_BASE", "/absent")
    assert lacks("west")[0][1] == ("Remove-Item Env:ZEPHYR_BASE" if on_windows else "unset ZEPHYR_BASE")


def test_variables(machine, lacks, kind, monkeypatch):
    folder = machine.bin.parent
    commands = {
        "Darwin": f"export ZEPHYR_TOOLCHAIN_VARIANT=gnuarmemb GNUARMEMB_TOOLCHAIN_PATH={folder}",
        "Windows": f"$env:ZEPHYR_TOOLCHAIN_VARIANT = 'gnuarmemb'; $env:GNUARMEMB_TOOLCHAIN_PATH = '{folder}'",
    }
    assert lacks("build-arm")[0][1] == commands[kind]
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmemb")
    assert lacks("build-riscv")[0][1] == UNSET[kind]
    (machine.top / "zephyr" / "cmake" / "toolchain" / "zephyr").mkdir(parents=True)
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "zephry")
    what = "a toolchain of Zephyr: ZEPHYR_TOOLCHAIN_VARIANT is 'zephry', not one of zephyr"
    assert (what, UNSET[kind]) in lacks("build-arm")


def registry(values):
    """Return a module winreg with CMake's package registry."""

    @contextlib.contextmanager
    def opened(root, name):
        assert (root, name) == ("user", r"Software\Kitware\CMake\Packages\Zephyr-sdk")
        if not values:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        yield values

    return types.SimpleNamespace(
        HKEY_CURRENT_USER="user",
        OpenKey=opened,
        QueryInfoKey=lambda key: (0, len(key), 0),
        EnumValue=lambda key, index: (f"{index:032x}", key[index], 1),
    )


def test_sdk_of_the_registry_of_windows(machine, tmp_path, monkeypatch):
    values = []
    monkeypatch.setitem(sys.modules, "winreg", registry(values))
    monkeypatch.setattr(sdk.sys, "platform", "win32")
    assert sdk.find_sdks() == ()
    machine.sdk(tmp_path / "sdk", "0.17.0", "arm-zephyr-eabi")
    values += [str(tmp_path / "sdk" / "cmake"), str(tmp_path / "absent")]
    [found] = sdk.find_sdks()
    assert (found.version, found.folder, found.builds("arm")) == ("0.17.0", tmp_path / "sdk", True)
