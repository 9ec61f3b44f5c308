# SPDX-License-Identifier: Apache-2.0
"""The emulated accelerator as a device: queue, hooks, faults, threads; with every sanitizer."""

import re

import pytest
from c_support import STRICT, compile_all
from npu_support import FLAGS, PROGRAMS, RUNTIME, build_npu, driver_sources, finish
from requirements_support import need_compiler

NAMES = ("npu_contract", "npu_faults", "npu_programs", "npu_threads", "npu_waits")
COMPILERS = {"gcc": ["gcc"], "gcc-m32": ["gcc", "-m32"], "clang": ["clang"]}


def cases(name: str) -> list[str]:
    """Return the cases that a C program lists."""
    return re.findall(r'^\t\t\{"(\w+)", \w+\},$', (PROGRAMS / f"{name}.c").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build each program once."""
    programs = {}

    def get(name: str, sanitizer: str):
        if (name, sanitizer) not in programs:
            programs[name, sanitizer] = build_npu(tmp_path_factory.mktemp(f"npu_{sanitizer}"), name, sanitizer)
        return programs[name, sanitizer]

    return get


@pytest.mark.parametrize("sanitizer", FLAGS)
@pytest.mark.parametrize(("name", "case"), [(name, case) for name in NAMES for case in cases(name)])
def test_device(built, name, case, sanitizer):
    assert finish(built(name, sanitizer), case).endswith(b"ok\n")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_driver_compiles_without_warnings(compiler, tmp_path):
    command, *flags = COMPILERS[compiler]
    need_compiler(command, flags)
    compile_all(tmp_path, driver_sources(), command, [*flags, *STRICT], [f"-I{RUNTIME / 'include'}"])


def test_headers_are_self_contained_and_compile_as_cpp(tmp_path):
    need_compiler("g++")
    for header in ("accelerator_context", "npu_emul", "npu_emul_state", "port_sync"):
        for suffix, compiler in (("c", "gcc"), ("cpp", "g++")):
            source = tmp_path / f"{header}.{suffix}"
            source.write_text(f"#include <opwest/{header}.h>\n")
            flags = ["-Wall", "-Wextra", "-Werror"]
            compile_all(tmp_path / suffix, [source], compiler, flags, [f"-I{RUNTIME / 'include'}"])
