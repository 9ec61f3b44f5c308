# SPDX-License-Identifier: Apache-2.0
"""The portable part of the service, in C."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from c_support import RUNTIME, SANITIZED, run
from requirements_support import need_compiler


@pytest.mark.parametrize("flags", [(), ("-m32",)])
def test_requests_of_a_host(flags: tuple[str, ...], tmp_path: Path) -> None:
    need_compiler("gcc", ("-fsanitize=address,undefined", *flags), link=True)
    sources = [
        Path(__file__).parent / "programs" / "service.c",
        *(RUNTIME / "src" / name for name in ("errors.c", "service.c")),
    ]
    run(["gcc", *SANITIZED, *flags, f"-I{RUNTIME / 'include'}", *sources, "-o", "service"], tmp_path)
    done = subprocess.run([tmp_path / "service"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("flags", [(), ("-m32",)])
def test_calls_of_a_host(flags: tuple[str, ...], tmp_path: Path) -> None:
    need_compiler("gcc", ("-fsanitize=address,undefined", *flags), link=True)
    program = Path(__file__).parent / "programs" / "service.c"
    sources = [program, *(RUNTIME / "src" / name for name in ("errors.c", "service.c", "service_call.c", "metadata.c"))]
    options = [f"-I{RUNTIME / 'include'}", "-DCONFIG_OPWEST_SERVICE_CALL=1", "-Wno-unused-function"]
    # The program defines opwest_find() for operators without a registry.
    registry = [RUNTIME / "src" / "registry.c", "-Dopwest_find=unused_find"]
    run(["gcc", *SANITIZED, *flags, *options, *registry, "-c", "-o", "registry.o"], tmp_path)
    run(["gcc", *SANITIZED, *flags, *options, *sources, "registry.o", "-o", "service"], tmp_path)
    done = subprocess.run([tmp_path / "service"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_error_of_the_runtime_has_a_name() -> None:
    text = (RUNTIME / "src" / "errors.c").read_text()
    named = dict(re.findall(r"\{-(E[A-Z]+), \"(\w+)\"\}", text))
    assert all(error == name for error, name in named.items())
    files = [path for path in RUNTIME.rglob("*.[ch]") if path.name != "errors.c"]
    used = {error for path in files for error in re.findall(r"(?<![\w\"])-(E[A-Z]{3,})\b", path.read_text())}
    assert {"EXDEV", "ENOEXEC"} <= used
    assert used - named.keys() == set()
