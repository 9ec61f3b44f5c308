# SPDX-License-Identifier: Apache-2.0
"""`opwest doctor` on machines made of scripts: complete ones, and ones without parts."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from doctor_machines import DEBIAN, accepted, script
from opwest.base import system
from opwest.doctor.features import FEATURES
from opwest.doctor.machine import SerialPort
from opwest.doctor.packages import declared

GNUARMEMB = "export ZEPHYR_TOOLCHAIN_VARIANT=gnuarmemb GNUARMEMB_TOOLCHAIN_PATH="
VARIANT = "ZEPHYR_TOOLCHAIN_VARIANT"


@pytest.fixture
def machine(fake_machine, monkeypatch):
    """A Debian machine."""
    monkeypatch.setattr("opwest.doctor.machine.examine_system", lambda: DEBIAN)
    monkeypatch.setattr("opwest.doctor.machine._ports", lambda: (SerialPort("/dev/ttyACM0", True),))
    monkeypatch.setattr(system.os, "geteuid", lambda: 0)
    monkeypatch.setattr(system.sys, "executable", "/venv/bin/python")
    return fake_machine


def test_with_an_sdk_everything_works(machine, lacks, opwest):
    machine.sdk(machine.home / "zephyr-sdk-0.17.2", "0.17.2", "arm-zephyr-eabi", "riscv64-zephyr-elf")
    found = lacks()
    assert not any(found.values()), found
    extras = {"docs"}  # declared by this opwest or not
    assert found.keys() | extras >= {one.name for one in FEATURES if one.name not in extras}
    text = opwest("doctor").out
    assert "commands that install" not in text
    assert "Zephyr 4.2 (supported), " in text
    assert "  modules     cmsis_6, zcbor, picolibc, cmsis-nn, cmsis-dsp, hal_ethos_u, hal_stm32\n" in text
    sdk = f"SDK 0.17.2 in {machine.home}/zephyr-sdk-0.17.2 (arm-zephyr-eabi, riscv64-zephyr-elf)"
    assert sdk in " ".join(text.split())
    assert "  requires    Python 3.12.1, CMake 3.20, dtc 1.4.6, west 0.14, Zephyr SDK 0.16\n" in text
    assert "arm-none-eabi-gcc 12.2.1, riscv64-unknown-elf-gcc 13.2.0\n" in text
    assert "  host        cc 12.2.0, 32-bit C library present\n" in text


def test_sdks(machine, lacks, tmp_path):
    """An old one, a new one, and one in the registry of CMake."""
    machine.remove("arm-none-eabi-gcc")
    machine.sdk(machine.home / "zephyr-sdk-0.15.2", "0.15.2", "arm-zephyr-eabi")
    ((what, _),) = lacks("build-arm")
    assert what.endswith(f"(found 0.15.2 in {machine.home}/zephyr-sdk-0.15.2)")
    machine.sdk(machine.home / ".local" / "zephyr-sdk-1.0.0", "1.0.0", "arm-zephyr-eabi")
    assert lacks("build-arm") == []
    machine.sdk(tmp_path / "elsewhere", "0.17.0", "arm-zephyr-eabi", "riscv64-zephyr-elf")
    registry = machine.home / ".cmake" / "packages" / "Zephyr-sdk"
    registry.mkdir(parents=True)
    (registry / "0123456789").write_text(f"{tmp_path}/elsewhere/cmake")
    assert lacks("build-riscv") == []


FOLDER, RISCV = "GNUARMEMB_TOOLCHAIN_PATH", "a compiler for RISC-V:"
LACKS = {
    f"gnuarmemb {FOLDER}=/absent": f"bin/arm-none-eabi-gcc in {FOLDER} (/absent): not found",
    f"gnuarmemb {FOLDER}=<top>": f"{RISCV} {VARIANT}=gnuarmemb selects one for Arm",
    "cross-compile CROSS_COMPILE=<top>/bin/arm-none-eabi-": f"{RISCV} <top>/bin/arm-none-eabi-gcc compiles for arm",
    "host/gnu": f"a compiler for Arm: {VARIANT}=host/gnu selects that of this machine",
}


@pytest.mark.parametrize("variables", LACKS)
def test_variables_of_toolchains(machine, lacks, monkeypatch, variables):
    """A toolchain that compiles for one architecture only compiles for Arm."""
    top = str(machine.bin.parent)
    what = LACKS[variables].replace("<top>", top)
    for assignment in f"{VARIANT}={variables}".replace("<top>", top).split():
        monkeypatch.setenv(*assignment.split("="))
    if "RISC-V" not in what:
        assert lacks("build-arm")[0][0] == what
    else:
        assert lacks("build-riscv")[0][0] == what
        assert lacks("build-arm") == []


def test_toolchains_that_are_missing(machine, lacks, monkeypatch):
    what = "a compiler for {}: a Zephyr SDK 0.16 or newer with its toolchain"
    use = f"{GNUARMEMB}{machine.bin.parent}"
    assert lacks("build-arm", "build-riscv") == {
        "build-arm": [(what.format("Arm"), use)],
        "build-riscv": [(what.format("RISC-V"), f"cd {machine.top} && west sdk install")],
    }
    monkeypatch.setenv(VARIANT, "gnuarmemb")
    what = "GNUARMEMB_TOOLCHAIN_PATH, which ZEPHYR_TOOLCHAIN_VARIANT=gnuarmemb requires"
    assert lacks("build-arm") == [(what, use)]
    monkeypatch.setenv(VARIANT, "llvm")
    assert lacks("build-arm") == []
    machine.remove("ld.lld")
    what = "ld.lld, which ZEPHYR_TOOLCHAIN_VARIANT=llvm uses"
    assert lacks("build-arm") == [(what, "apt-get install clang lld")]
    monkeypatch.setenv(VARIANT, "zephyr")
    monkeypatch.setenv("ZEPHYR_SDK_INSTALL_DIR", "/absent")
    what = "a Zephyr SDK: ZEPHYR_SDK_INSTALL_DIR is '/absent', which contains no SDK"
    assert lacks("build-arm") == [(what, None)]


def test_unknown_variant_lacks_for_each_board(machine, lacks, monkeypatch):
    for name in ("gnuarmemb", "host", "zephyr"):
        (machine.top / "zephyr" / "cmake" / "toolchain" / name).mkdir(parents=True)
    machine.sdk(machine.home / "zephyr-sdk-0.17.2", "0.17.2", "arm-zephyr-eabi", "riscv64-zephyr-elf")
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "gnuarmembb")
    what = "a toolchain of Zephyr: ZEPHYR_TOOLCHAIN_VARIANT is 'gnuarmembb', not one of gnuarmemb, host, zephyr"
    for name in ("build-arm", "build-riscv", "build-native-sim"):
        assert lacks(name) == [(what, "unset ZEPHYR_TOOLCHAIN_VARIANT")]
    monkeypatch.setenv("TOOLCHAIN_ROOT", str(machine.home))
    assert lacks("build-arm") == []
    monkeypatch.delenv("TOOLCHAIN_ROOT")
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "zephyr/gnu")
    assert lacks("build-arm") == []


def test_llvm_of_an_sdk_and_its_directory(machine, lacks, monkeypatch):
    folder = machine.home / "zephyr-sdk-1.0.0"
    machine.sdk(folder, "1.0.0", "arm-zephyr-eabi")
    monkeypatch.setenv("ZEPHYR_TOOLCHAIN_VARIANT", "zephyr/llvm")
    monkeypatch.setenv("ZEPHYR_SDK_INSTALL_DIR", f"{folder}/")
    ((what, _),) = lacks("build-arm")
    assert what == f"a compiler for Arm: a Zephyr SDK 0.16 or newer with LLVM (found 1.0.0 in {folder})"
    (folder / "llvm" / "bin").mkdir(parents=True)
    assert lacks("build-arm") == []


def test_without_zephyr(machine, succeed, lacks):
    shutil.rmtree(machine.top)
    done = succeed("doctor")
    assert "\nZephyr: no workspace found\n" in done.out
    command = "west init ~/zephyrproject && cd ~/zephyrproject && west update && west packages pip --install"
    assert f"    {command}\n" in done.out
    assert lacks("west") == [
        ("a Zephyr workspace: ZEPHYR_BASE is not set, and ~/zephyrproject does not exist", command)
    ]
    found = lacks()
    assert not any(found[name] for name in ("generate", "run-host", "tune-arm", "bundle", "run-serial"))
    assert all(found[name] for name in ("build-arm", "build-native-sim", "run-qemu-arm", "west"))


def test_unsupported_zephyr(machine, opwest, lacks, monkeypatch):
    machine.zephyr("3.2.0")
    assert lacks("build-native-sim") == [(f"Zephyr 3.4 or newer (found 3.2 in {machine.top}/zephyr)", None)]
    assert "Zephyr 3.2 (not supported: 3.4 is the oldest), " in opwest("doctor").out
    monkeypatch.setenv("ZEPHYR_BASE", "/absent")
    fault = "ZEPHYR_BASE is '/absent', which is not a Zephyr tree: missing file 'VERSION'"
    assert lacks("west") == [(f"a Zephyr workspace: {fault}", "unset ZEPHYR_BASE")]


def test_without_a_compiler(machine, succeed, fail):
    for path in machine.bin.iterdir():
        if path.name != "git":
            path.unlink()
    shutil.rmtree(machine.top)
    done = succeed("doctor")
    assert "  run-host          lacks a C compiler: 'cc' not found\n" in done.out
    assert "  host        cc missing\n" in done.out
    assert "  run-host, run-host-32, build-native-sim, run-native-sim:\n    apt-get install gcc libc6-dev\n" in done.out
    assert "    apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi\n" in done.out
    fail("doctor", "run-host")
    succeed("doctor", "generate", "update")
    machine.remove("git")
    assert "  update            lacks git 1.5.4 or newer\n" in fail("doctor").out


def test_compiler_without_libraries(machine, lacks):
    script(machine.bin / "cc", "case $1 in --version) echo 'cc 12.2.0';; -print*) echo libgcc.a;; esac")
    assert lacks("run-host") == [("the headers or libraries of the C library", "apt-get install gcc libc6-dev")]
    body = 'case "$*" in *-m32*-S*) echo "fatal error: sys/cdefs.h: No such file" >&2; exit 1;; --version) echo 12.2;;'
    script(machine.bin / "cc", f"{body} *) echo /usr/lib/file;; esac")
    what = "the 32-bit C library (-m32): cc: exit code 1: fatal error: sys/cdefs.h: No such file"
    lack = (what, "apt-get install gcc-multilib g++-multilib")
    assert lacks("run-host", "run-host-32") == {"run-host": [], "run-host-32": [lack]}


def test_hanging_compiler(machine, lacks, monkeypatch):
    """Doctor ends soon, and the compiler and its children end too."""
    pids = machine.home / "pids"
    monkeypatch.setattr("opwest.base.programs.run_all.__defaults__", (0.5,))
    script(machine.bin / "cc", f"echo $$ >>{pids}\n/bin/sleep 60 &\necho $! >>{pids}\nwait")
    began = time.monotonic()
    found = lacks("run-host", "generate", "bundle")
    assert time.monotonic() - began < 10
    assert found["generate"] == [] == found["bundle"]
    ((what, command),) = found["run-host"]
    assert what.startswith("a C compiler that works: cc: no answer within ")
    assert command == "apt-get install gcc libc6-dev"
    time.sleep(0.2)
    for pid in pids.read_text().split():
        state = Path("/proc", pid, "stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_old_programs(machine, lacks):
    script(machine.bin / "git", "echo 'git version 1.5.0'")
    script(machine.bin / "cmake", "echo 'cmake version 3.13.4'")
    script(machine.bin / "dtc", "echo 'Version: DTC 1.4.5'")
    machine.west("0.13.0")
    found = lacks("update", "build-native-sim")
    assert found["update"] == [("git 1.5.4 or newer (found 1.5.0)", "apt-get install git")]
    assert found["build-native-sim"] == [
        ("west 0.14 or newer (found 0.13.0)", "/venv/bin/python -m pip install 'west>=0.14'"),
        ("cmake 3.20 or newer (found 3.13.4)", "/venv/bin/python -m pip install 'cmake>=3.20'"),
        ("dtc 1.4.6 or newer (found 1.4.5)", "apt-get install device-tree-compiler"),
    ]


def test_python_of_the_workspace(machine, lacks):
    packages = {"numpy": None, "jinja2": "2.0", "llvmlite": None}
    machine.workspace_python("3.10.2", {one.name: accepted(one.name) for one in declared().dependencies} | packages)
    python = machine.top / ".venv" / "bin" / "python3"
    what = f"jinja2 >=3.1 (found 2.0), the Python package numpy for {python}"
    assert lacks("west") == [
        ("Python 3.11 or newer (west runs with 3.10.2)", None),
        (what, f"{python} -m pip install 'jinja2>=3.1' 'numpy>=1.26'"),
    ]
    assert lacks("build-native-sim") == [("Python 3.12.1 or newer for Zephyr 4.2 (west runs with 3.10.2)", None)]
    script(python, "echo broken >&2; exit 3")
    (machine.top / ".venv" / "bin" / "west").unlink()
    assert lacks("build-native-sim") == [("west", "/venv/bin/python -m pip install west")]


def test_missing_modules(machine, lacks, opwest):
    shutil.rmtree(machine.top / "modules/hal/cmsis_6")
    shutil.rmtree(machine.top / "modules/lib/zcbor")
    machine.sdk(machine.home / "zephyr-sdk-0.17.2", "0.17.2", "arm-zephyr-eabi", "riscv64-zephyr-elf")
    cmsis, zcbor = (
        (f"the module {name} in the workspace", f"cd {machine.top} && west update {name}")
        for name in ("cmsis_6", "zcbor")
    )
    assert lacks("run-qemu-arm", "run-qemu-riscv") == {"run-qemu-arm": [cmsis, zcbor], "run-qemu-riscv": [zcbor]}
    assert "hal_stm32; missing: cmsis_6, zcbor\n" in opwest("doctor").out


def test_old_qemu(machine, lacks):
    script(machine.bin / "qemu-system-arm", "case $1 in -M) echo 'mps2-an385  x';; *) echo 'version 4.2.1';; esac")
    ((what, command),) = lacks("tune-arm")
    assert what.startswith("a newer qemu-system-arm (found 4.2.1): it has no machine mps2-an386, ")
    assert command == "apt-get install qemu-system-arm"


def test_packages_that_are_missing_or_too_old(machine, lacks, monkeypatch):
    found = {"llvmlite": None, "smpclient": None, "west": None, "onnx": "1.2", "cryptography": None}
    monkeypatch.setattr("opwest.doctor.packages.installed", lambda name: found.get(name, accepted(name)))
    python = "/venv/bin/python -m pip install"
    state = lacks("generate", "llvm", "run-serial", "import-models", "bundle-sign")
    assert state == {
        "generate": [],
        "llvm": [("the Python package llvmlite", f"{python} 'llvmlite>=0.48'")],
        "run-serial": [("the Python package smpclient", f"{python} 'smpclient[serial]>=7.3'")],
        "import-models": [("onnx >=1.16 (found 1.2)", f"{python} 'onnx>=1.16'")],
        "bundle-sign": [("the Python package cryptography", f"{python} 'cryptography>=42'")],
    }
    found |= {"numpy": None, "capstone": None}
    state = lacks("generate", "update", "report", "run-host", "arrays", "stack")
    assert [what for what, _ in state.pop("arrays")] == ["the Python package numpy"]
    assert [what for what, _ in state.pop("stack")] == ["the Python package capstone"]
    assert state == {"generate": [], "update": [], "report": [], "run-host": []}
    found["jinja2"] = None
    monkeypatch.setattr(system.sys, "prefix", "/home/user/.local/pipx/venvs/opwest")
    assert lacks("generate") == [("the Python package jinja2", "pipx inject opwest 'jinja2>=3.1'")]


def test_serial_devices(machine, lacks, monkeypatch):
    monkeypatch.setattr("opwest.doctor.machine._ports", lambda: ())
    assert lacks("run-serial") == [("a serial device of a board: plug in the board", None)]
    monkeypatch.setattr("opwest.doctor.machine._ports", lambda: (SerialPort("/dev/ttyACM0", False),))
    assert lacks("run-serial") == [("permission for /dev/ttyACM0", "sudo usermod -aG dialout $USER")]


def test_named_features_are_printed_without_the_machine(machine, opwest, succeed):
    assert succeed("doctor", "generate").out == "features\n  generate  works\n"
    done = opwest("doctor", "run-hots")
    assert done.code == 2
    assert "argument FEATURE: unknown feature 'run-hots': did you mean 'run-host'?" in done.err


def test_json(machine, opwest):
    result = json.loads(opwest("doctor", "--json").out)["result"]
    assert result["system"]["package_manager"] == "apt"
    assert result["programs"]["cc"] == {"path": str(machine.bin / "cc"), "version": "12.2.0", "fault": None}
    assert result["zephyr"]["modules"]["zcbor"] is True
    assert result["zephyr"]["python"]["version"] == "3.12.1"
    purpose = "check, inspect, init, generate"
    basic = {"basic": True, "works": True, "lacks": []}
    assert result["features"][0] == {"name": "generate", "purpose": purpose, **basic}


def test_this_machine_without_packages(tmp_path):
    """Doctor also runs where none of opwest's packages can be imported."""
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from opwest.cli.main import main; "
    code += "sys.exit(main(['doctor', '--json']))"
    command = [sys.executable, "-S", "-c", code, str(Path(__file__).resolve().parents[2] / "generator")]
    environment = {"PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    states = {one["name"]: one for one in json.loads(done.stdout)["result"]["features"]}
    assert not states["generate"]["works"]
    assert "the Python package jinja2" in states["generate"]["lacks"][0]["what"]
