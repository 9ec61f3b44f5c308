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
    "ar as cc gcc git ld nm objcopy strip unshare "
    "cbor2 coverage hypothesis llvmlite pykwalify serial smpclient west".split()
)
"""The requirements of `make test`: Python, a C compiler with its binutils, git, and the packages of `opwest[dev]`."""

_APT = {
    "binutils": "ar, as, ld, nm, objcopy, strip",
    "gcc libc6-dev": "cc, gcc",
    "gcc-multilib g++-multilib": "gcc -m32",
    "libc6-dev": "static libc",
    "util-linux": "unshare",
    "clang": "clang, clang++",
    "llvm-19": "llvm-mca-19, llvm-objcopy-19",
    "lld-19": "ld.lld-19",
    "libclang-rt-14-dev (of the version of clang)": "clang runtime",
    "ninja-build": "ninja",
    "device-tree-compiler": "dtc",
    "gcc-arm-none-eabi libnewlib-arm-none-eabi": "arm-none-eabi-g++, arm-none-eabi-gcc",
    "gcc-mingw-w64-x86-64": "x86_64-w64-mingw32-gcc",
    "wine wine64": "wine",
    "gcc-riscv64-unknown-elf": "riscv64-unknown-elf-gcc",
    "binutils-aarch64-linux-gnu libc6-dev-arm64-cross libgcc-12-dev-arm64-cross": "aarch64-linux-gnu",
    "qemu-user": "qemu-aarch64",
    "qemu-system-misc": "qemu-system-riscv32, qemu-system-riscv64",
    "mlir-19-tools": "mlir-opt, mlir-translate",
    "libeigen3-dev": "eigen",
    "gnat": "gnatmake",
    "ldc": "ldc2",
    "libstdc++-arm-none-eabi-dev": "arm-none-eabi libstdc++",
    "picolibc-arm-none-eabi": "arm-none-eabi picolibc",
    **{name: name for name in "git make openssl patch clang-14 clang-19 rustc g++ valgrind espeak-ng cmake".split()},
    **{name: name for name in "bash chromium fish gfortran nim perl qemu-system-arm tcc zsh".split()},
}
"""Programs and others by the packages of apt that contain them."""
_PIP = {
    "'opwest[all]'": "check_jsonschema, halide, onnxruntime, ai_edge_litert, sphinx_rtd_theme",
    "smpclient": "cbor2",
    "'opwest[bundle]'": "cryptography",
    "'smpclient[serial]'": "smpclient, serial",
    "llvmlite": "llvmlite",
    "hatchling": "hatchling",
    "west": "pykwalify, west",
    "clang-format==19.1.7": "clang_format",
    "'opwest[release]'": "spdx_tools, build, pipx",
    "'opwest[tvm]'": "tvm",
    "'opwest[models]'": "ml_dtypes, onnx, tflite",
    "'opwest[vela]'": "ethosu",
    "'opwest[examples]'": "emlearn, sklearn",
    "'opwest[compilers]'": "ziglang, m2cgen",
    "'opwest[docs]'": "sphinx",
}
"""Python modules by the requirement of pip that installs them."""
_INSTALL = {
    name: f"{command} {package}"
    for command, packages in (("apt-get install", _APT), ("pip install", _PIP))
    for package, names in packages.items()
    for name in names.split(", ")
} | {"torch": "make torch-environment"}
_MODULES = frozenset(name for names in _PIP.values() for name in names.split(", "))
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
_TORCH = Path(__file__).resolve().parents[1] / "build" / "torch" / "bin" / "python"
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
    if name == "torch":
        return torch_python() is not None
    if name in _HEADERS:
        return _HEADERS[name].exists()
    if name == "gcc -m32":
        return fault_of_compiler("gcc", ("-m32",), True) is None
    if name == "clang runtime":
        return fault_of_compiler("clang", ("-fsanitize=address,undefined",), True) is None
    return program(name) is not None


def torch_python() -> Path | None:
    """Return Python in the environment of PyTorch: that of OPWEST_TORCH, or of `make torch-environment`."""
    path = Path(os.environ.get("OPWEST_TORCH", _TORCH))
    return path if path.is_file() else None


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
