# SPDX-License-Identifier: Apache-2.0
"""Device handles are typed end to end: none is passed as `void *`, and a wrong one does not compile."""

import re
import subprocess
from pathlib import Path

import pytest
from accelerators_support import generate_quickly
from c_support import ROOT, RUNTIME, golden_app, includes
from device_models import write_manifest
from fault_models import SUBJECTS
from requirements_support import need_compiler

# The untyped binary interfaces of TVM and Halide, and of threads: lines with a context of their names.
HANDLE = r".*\bvoid \*(resource_handle|handle)\b.*"
INTERFACES = {"tvm_packed.h", "tvm_ffi.h", "conventions_internal.h", "conventions_tvm_crt.c", "model_tvm_crt.c.jinja"}
TYPED = """\
#include <stdint.h>

struct device;
struct alpha_npu;
struct beta_npu;
int32_t on_alpha(const int8_t *x, int8_t *y, struct alpha_npu *npu) { y[0] = x[0]; return npu == 0; }
int32_t on_beta(const int8_t *x, int8_t *y, const struct beta_npu *npu) { y[0] = x[0]; return npu == 0; }
int32_t on_device(const int8_t *x, int8_t *y, const struct device *dev) { y[0] = x[0]; return dev == 0; }
"""


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)


def _typed(folder: Path) -> Path:
    folder.mkdir()
    (folder / "typed.c").write_text(TYPED)
    tensor = {"dtype": "int8", "shape": [1]}
    args = [{"name": "x", **tensor}, {"name": "y", **tensor, "direction": "out"}]
    handles = {"a": "struct alpha_npu *", "b": "const struct beta_npu *"}
    devices = {n: {"handle": {"type": t, "header": "vendor.h", "expression": f"&{n}"}} for n, t in handles.items()}
    steps = (("on_alpha", "a", "x", "t"), ("on_beta", "b", "t", "u"), ("on_device", "d", "u", "y"))
    manifest = {
        "version": 1,
        "model": "typed",
        "devices": {**devices, "d": {"devicetree": {"nodelabel": "d"}}},
        "operators": {
            "on_alpha": {"args": args, "device": {"handle": handles["a"]}},
            "on_beta": {"args": args, "device": {"handle": handles["b"]}},
            "on_device": {"args": args, "device": {}},
        },
        "run": {
            "inputs": {"x": tensor},
            "outputs": {"y": tensor},
            "steps": [{"call": call, "device": device, "args": given} for call, device, *given in steps],
        },
    }
    return write_manifest(folder, manifest, "files: [typed.c]")


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    work = tmp_path_factory.mktemp("typed")
    return generate_quickly([_typed(work / "source")], work / "app")


@pytest.fixture(scope="module")
def emitted(typed, tmp_path_factory):
    """Return all C of the runtime, of models with devices and conventions, and of the templates."""
    work = tmp_path_factory.mktemp("emitted")
    apps = [typed, generate_quickly([s.write(work / s.name) for s in SUBJECTS], work / "faults")]
    apps += [golden_app(name, work / name) for name in ("asynchronous", "conventions", "devices", "tvmgen")]
    found = [path for app in apps for path in (app / "models").rglob("*") if path.suffix in (".c", ".h")]
    found = [path for path in found if "objects" not in path.parts]  # the user's own
    others = RUNTIME / "bundle" / "ext"
    found += [path for path in RUNTIME.rglob("*") if path.suffix in (".c", ".h") and not path.is_relative_to(others)]
    return [*found, *(ROOT / "project_template").rglob("*.[ch].jinja")]


def test_no_untyped_contexts(emitted):
    assert len(emitted) > 60
    names = "dev|device|devices|context|ctx|handle|resource_handle|self"
    used = set()
    for path in emitted:
        for line in _without_comments(path.read_text()).splitlines():
            if re.search(rf"\bvoid\s*\*\s*({names})\b", line):
                assert path.name in INTERFACES and re.fullmatch(HANDLE, line.strip()), f"{path}: {line}"
                used.add(path.name)
    assert used == INTERFACES


FRAME = """\
#include <stddef.h>
#include <opwest/accelerator.h>
#include <typed.h>
#include "../src/typed_internal.h"

struct alpha_npu { int nothing; };
struct beta_npu { int nothing; };
extern struct alpha_npu alpha;
extern const struct beta_npu beta;
extern const struct device zephyr;
extern int8_t x[1], y[1];
int use(void);
%s
"""
GOOD = {
    "context": "static struct typed_devices context = {&alpha, &beta, &zephyr};\n"
    "int use(void) { return context.a == NULL; }",
    "call": "int use(void) { return (int)typed__on_alpha(x, y, &alpha) + (int)typed__on_beta(x, y, &beta)\n"
    "\t+ (int)typed__on_device(x, y, &zephyr); }",
    "hooks": "int use(void) { return opwest_accelerator_open(&zephyr, 0); }",
}
WRONG = [
    *(("context", "&alpha, &beta", wrong) for wrong in ("&beta, &beta", "&alpha, &alpha", "&zephyr, &beta")),
    *(("context", "&zephyr}", wrong) for wrong in ("&alpha}", "&beta}")),
    *(("call", "(x, y, &alpha)", f"(x, y, {wrong})") for wrong in ("&beta", "&zephyr")),
    *(("call", "(x, y, &beta)", f"(x, y, {wrong})") for wrong in ("&alpha", "&zephyr")),
    *(("call", "(x, y, &zephyr)", f"(x, y, {wrong})") for wrong in ("&alpha", "&beta")),
    *(("hooks", "&zephyr", wrong) for wrong in ("&alpha", "&beta")),
]
COMPILERS = {"gcc": ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror"], "g++": ["g++", "-std=c++17"]}


def _compile(compiler: str, app: Path, text: str) -> subprocess.CompletedProcess:
    command = [*COMPILERS[compiler], "-x", "c++" if compiler == "g++" else "c", "-fsyntax-only", "-"]
    command += [*includes(app), f"-I{app / 'models' / 'typed' / 'include'}"]
    return subprocess.run(command, input=FRAME % text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_wrong_handle_does_not_compile(typed, compiler):
    need_compiler(compiler)
    for text in GOOD.values():
        done = _compile(compiler, typed, text)
        assert (done.returncode, done.stderr) == (0, "")
    for frame, right, wrong in WRONG:
        assert GOOD[frame].count(right) == 1
        done = _compile(compiler, typed, GOOD[frame].replace(right, wrong))
        assert done.returncode != 0, f"{right} -> {wrong}"
        errors = r"incompatible pointer|cannot convert|no matching|invalid conversion"
        assert re.search(errors, done.stderr), done.stderr
