# SPDX-License-Identifier: Apache-2.0
"""The emulated accelerator as a device: queue, hooks, faults, threads; with every sanitizer."""

import functools
import re

import pytest
from c_support import STRICT, compile_all
from npu_support import FLAGS, INCLUDE, PROGRAMS, build_npu, driver_sources, finish
from requirements_support import need_compiler

NAMES = ("npu_contract", "npu_faults", "npu_programs", "npu_threads", "npu_waits")
COMPILERS = {"gcc": ["gcc"], "gcc-m32": ["gcc", "-m32"], "clang": ["clang"]}


def cases(name: str) -> list[str]:
    """Return the cases that a C program lists."""
    return re.findall(r'^\t\t\{"(\w+)", \w+\},$', (PROGRAMS / f"{name}.c").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build each program once."""
    return functools.cache(lambda name, kind: build_npu(tmp_path_factory.mktemp(f"npu_{kind}"), name, kind))


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", FLAGS)
@pytest.mark.parametrize(("name", "case"), [(name, case) for name in NAMES for case in cases(name)])
def test_device(built, name, case, sanitizer):
    assert finish(built(name, sanitizer), case).endswith(b"ok\n")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_driver_compiles_without_warnings(compiler, tmp_path):
    command, *flags = COMPILERS[compiler]
    need_compiler(command, flags)
    compile_all(tmp_path, driver_sources(), command, [*flags, *STRICT], INCLUDE)


@pytest.mark.parametrize(("suffix", "compiler"), [("c", "gcc"), ("cpp", "g++")])
def test_headers_are_self_contained(suffix, compiler, tmp_path):
    need_compiler(compiler)
    for header in ("accelerator_context", "npu_emul", "npu_emul_state", "port_sync"):
        source = tmp_path / f"{header}.{suffix}"
        source.write_text(f"#include <opwest/{header}.h>\n")
        compile_all(tmp_path, [source], compiler, ["-Wall", "-Wextra", "-Werror"], INCLUDE)
