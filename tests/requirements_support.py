# SPDX-License-Identifier: Apache-2.0
"""The requirements of tests: the only module that skips tests.

`need("clang")` returns if the program (or Python module) is installed. Otherwise it skips the running test, and
fails it in CI (the variable CI is set), because a package of apt or pip provides each name of the table. `make test`
uses only the names of `HOST`: a test that needs more is left to `make test-rest`.

`skip_here(reason)` is for requirements without a package: a Zephyr workspace, downloaded models, another processor.
"""

import functools
import importlib.util
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

HOST = frozenset(
    [
        *"ar as cc gcc git ld nm objcopy strip unshare".split(),
        *"cbor2 coverage hypothesis llvmlite pykwalify serial smpclient west".split(),
    ]
)
"""The requirements of `make test`: Python, a C compiler with its binutils, git, and the packages of `opwest[dev]`."""

_INSTALL = {
    "ar": "apt-get install binutils",
    "as": "apt-get install binutils",
    "ld": "apt-get install binutils",
    "nm": "apt-get install binutils",
    "objcopy": "apt-get install binutils",
    "strip": "apt-get install binutils",
    "cc": "apt-get install gcc libc6-dev",
    "gcc": "apt-get install gcc libc6-dev",
    "g++": "apt-get install g++",
    "gcc -m32": "apt-get install gcc-multilib g++-multilib",
    "static libc": "apt-get install libc6-dev",
    "git": "apt-get install git",
    "make": "apt-get install make",
    "openssl": "apt-get install openssl",
    "patch": "apt-get install patch",
    "unshare": "apt-get install util-linux",
    "clang": "apt-get install clang",
    "clang-14": "apt-get install clang-14",
    "clang-19": "apt-get install clang-19",
    "llvm-objcopy-19": "apt-get install llvm-19",
    "ld.lld-19": "apt-get install lld-19",
    "rustc": "apt-get install rustc",
    "clang++": "apt-get install clang",
    "clang runtime": "apt-get install libclang-rt-14-dev (of the version of clang)",
    "valgrind": "apt-get install valgrind",
    "espeak-ng": "apt-get install espeak-ng",
    "cmake": "apt-get install cmake",
    "ninja": "apt-get install ninja-build",
    "dtc": "apt-get install device-tree-compiler",
    "chromium": "apt-get install chromium",
    "arm-none-eabi-g++": "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "arm-none-eabi-gcc": "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "x86_64-w64-mingw32-gcc": "apt-get install gcc-mingw-w64-x86-64",
    "wine": "apt-get install wine wine64",
    "riscv64-unknown-elf-gcc": "apt-get install gcc-riscv64-unknown-elf",
    "aarch64-linux-gnu": "apt-get install binutils-aarch64-linux-gnu libc6-dev-arm64-cross libgcc-12-dev-arm64-cross",
    "qemu-aarch64": "apt-get install qemu-user",
    "qemu-system-arm": "apt-get install qemu-system-arm",
    "qemu-system-riscv32": "apt-get install qemu-system-misc",
    "qemu-system-riscv64": "apt-get install qemu-system-misc",
    "check_jsonschema": "pip install 'opwest[all]'",
    "docutils": "pip install 'opwest[all]'",
    "cbor2": "pip install smpclient",
    "cryptography": "pip install 'opwest[bundle]'",
    "smpclient": "pip install 'smpclient[serial]'",
    "serial": "pip install 'smpclient[serial]'",
    "llvmlite": "pip install llvmlite",
    "halide": "pip install 'opwest[all]'",
    "mlir-opt": "apt-get install mlir-19-tools",
    "mlir-translate": "apt-get install mlir-19-tools",
    "hatchling": "pip install hatchling",
    "pykwalify": "pip install west",
    "west": "pip install west",
    "spdx_tools": "pip install 'opwest[release]'",
    "build": "pip install 'opwest[release]'",
    "pipx": "pip install 'opwest[release]'",
    "tvm": "pip install 'opwest[tvm]'",
    "onnx": "pip install 'opwest[models]'",
    "tflite": "pip install 'opwest[models]'",
    "onnxruntime": "pip install 'opwest[all]'",
    "ai_edge_litert": "pip install 'opwest[all]'",
    "ethosu": "pip install 'opwest[vela]'",
    "emlearn": "pip install 'opwest[examples]'",
    "ziglang": "pip install 'opwest[compilers]'",
    "m2cgen": "pip install 'opwest[compilers]'",
    "eigen": "apt-get install libeigen3-dev",
    "arm-none-eabi libstdc++": "apt-get install libstdc++-arm-none-eabi-dev",
    "arm-none-eabi picolibc": "apt-get install picolibc-arm-none-eabi",
    "sphinx": "pip install 'opwest[docs]'",
    "sklearn": "pip install 'opwest[examples]'",
}
_MODULES = frozenset(name for name, how in _INSTALL.items() if how.startswith("pip "))
_HEADERS = {
    "eigen": Path("/usr/include/eigen3/Eigen/Core"),
    "arm-none-eabi libstdc++": Path("/usr/include/newlib/c++"),
    "arm-none-eabi picolibc": Path("/usr/lib/picolibc/arm-none-eabi/include"),
}
_BINUTILS = {
    "arm-none-eabi-": "apt-get install binutils-arm-none-eabi",
    "riscv64-unknown-elf-": "apt-get install binutils-riscv64-unknown-elf",
    "aarch64-linux-gnu-": "apt-get install gcc-aarch64-linux-gnu",
}
"""Of the tools with a prefix that _INSTALL does not name."""
LEFT = "left to `make test-rest`: "


class Tier:
    """The tests of this session: set by conftest.py from `--tier`."""

    name = "all"


def need(*names: str) -> None:
    """Skip the running test, or fail it in CI, unless every program and module is installed."""
    for name in names:
        leave_to_rest(name)
        if not is_present(name):
            absent(f"{name} is not installed", name)


def need_x86_64() -> None:
    """Skip the running test if its objects or its code for x86-64 cannot run."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        skip_here(f"the objects are for x86-64, this machine is {platform.machine()}")


def leave_to_rest(name: str) -> None:
    """Leave a test to `make test-rest` in a session of `make test` that does not use `name`."""
    if Tier.name == "host" and name not in HOST:
        pytest.skip(f"{LEFT}needs {name}", allow_module_level=True)


def absent(reason: str, name: str) -> NoReturn:
    """Skip the running test because the package of `name` is missing; fail it in CI."""
    if name in os.environ.get("OPWEST_TESTS_WITHOUT", "").split():
        skip_here(f"{name} is left out on purpose")
    if "CI" in os.environ:
        pytest.fail(f"{reason}. CI has to install it: {how_to_install(name)}", pytrace=False)
    skip_here(f"{reason}: {how_to_install(name)}")


def skip_here(reason: str) -> NoReturn:
    """Skip the running test, in CI too: no package provides what it needs."""
    pytest.skip(reason, allow_module_level=True)


def how_to_install(name: str) -> str:
    """Return the command that installs a program or a module. Raises ValueError for a name without one."""
    found = _INSTALL.get(name) or next((how for prefix, how in _BINUTILS.items() if name.startswith(prefix)), None)
    if found is None:
        raise ValueError(f"requirements_support.py does not name the package of {name!r}")
    return found


def is_present(name: str) -> bool:
    """Return whether a program or a module of the table is installed."""
    how_to_install(name)
    if name in _MODULES:
        return importlib.util.find_spec(name) is not None
    if name in _HEADERS:
        return _HEADERS[name].exists()
    if name == "gcc -m32":
        return fault_of_compiler("gcc", ("-m32",), True) is None
    if name == "clang runtime":
        return fault_of_compiler("clang", ("-fsanitize=address,undefined",), True) is None
    return program(name) is not None


def program(name: str) -> str | None:
    """Return the path of a program; the tools of LLVM can be outside the path, in the directory of a version."""
    found = shutil.which(name)
    versions = sorted(Path("/usr/lib").glob(f"llvm-*/bin/{name}")) if found is None and name.startswith("mlir-") else []
    return str(versions[-1]) if versions else found


def need_compiler(compiler: str, flags: Sequence[str] = (), *, link: bool = False) -> None:
    """Skip the running test, or fail it in CI, if a compiler is missing or does not support `flags`."""
    need(compiler, *(["gcc -m32"] if "-m32" in flags else []))
    if fault := fault_of_compiler(compiler, tuple(flags), link):
        absent(fault, "clang runtime" if compiler.startswith("clang") else compiler)


@functools.cache
def fault_of_compiler(compiler: str, flags: tuple[str, ...], link: bool) -> str | None:
    """Return the reason why an empty program does not compile (or link and run), None if it does."""
    if shutil.which(compiler) is None:
        return f"{compiler} is not installed"
    with tempfile.TemporaryDirectory() as work:
        program = Path(work) / "program"
        language = "c++" if compiler.endswith("++") else "c"
        command = [compiler, *flags, "-x", language, "-", "-o", str(program), *([] if link else ["-c"])]
        text = "#include <errno.h>\n#include <stdint.h>\n#include <stdio.h>\n"
        text += "int main(void) { return 0; }\n" if link else "int32_t x;\n"
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode == 0 and link:
            done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return f"{compiler} {' '.join(flags)} does not work here: {done.stderr.strip()[:200]}"
