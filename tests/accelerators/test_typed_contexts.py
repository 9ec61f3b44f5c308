# SPDX-License-Identifier: Apache-2.0
"""Device handles are typed end to end: none is passed as `void *`, and a wrong one does not compile."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import projects
import pytest
from accelerators_support import generate_quickly
from c_support import ROOT, RUNTIME, includes
from fault_models import SUBJECTS
from golden_support import PROJECTS, copy_project
from opwest.diagnostics import Diagnostics, OpwestError
from requirements_support import need_compiler

# Every permitted `void *` with its purpose; lines are compared without comments and margins.
DATA = (
    # Data whose dtype is in the same structure: constants, values of calls by name.
    r"const void \*data;",
    r"const void \*in;",
    r"void \*out;",
    r"static inline struct opwest_value opwest_(in|out)\(uint8_t dtype, (const )?void \*data, size_t size\)",
    # Elements of two tensors, compared by the given dtype.
    r"(static uint64_t load|double opwest_float_value)\(uint8_t dtype, const void \*element\);?",
    r"uint32_t opwest_compare\(uint8_t dtype, const void \*got, const void \*expected, uint32_t count,",
    # The argument of an application's callback, as in Zephyr.
    r"void \*user;",
    r".*(, |\(|^)void \*user\)(;|\)|, void \*user\);?)?",
    # Inputs and outputs of a supervisor thread's run, by their numbers and sizes.
    r".*\b(const void \*const|void \*const) \*(inputs|outputs|pointers).*",
    r".*\((const )?void \*const \*\)(\(const void \*\))?(inputs|outputs).*",
    r"(const )?void \*(from|to)\[OPWEST_RUNNER_TENSORS\];",
    r"(const )?void \*(place|memory);",
    r"static void \*memory_of\(const struct opwest_runner_tensor \*tensor\)",
    r"static bool is_constant\(const void \*data, size_t size\)",
    # A check of a buffer's address, a transfer of a buffer's bytes.
    r"static inline bool usable\(const void \*buffer, uintptr_t align\)",
    r"static bool get\(FILE \*file, bool next, void \*data, size_t size\)",
    # State: its bytes, in the memory of any workspace.
    r"int (\w+|\{\{ model \}\})_save\(const struct .*_workspace \*workspace, void \*data, uint32_t size\);?",
    r"int (\w+|\{\{ model \}\})_restore\(struct .*_workspace \*workspace, const void \*data, uint32_t size\);?",
    r"static int (save|restore)_workspace\(.*_workspace \*workspace, (const )?void \*data,( uint32_t size\))?",
    r"\{\{ head\(\"(save|restore)\", .*, (const )?void \*data, uint32_t size\"\) \}\}",
    r"int opwest_state_save\(const struct opwest_state \*state, const void \*workspace, void \*data,",
    r"int opwest_state_restore\(const struct opwest_state \*state, void \*workspace, const void \*data,",
    r"void opwest_state_reset\(const struct opwest_state \*state, void \*workspace\);?",
    r"static uint8_t \*memory_of\(const struct opwest_state_tensor \*tensor, const void \*workspace\)",
    r"const void \*initial;",
    # The only member of a structure without tensors of the caller.
    r"const void \*reserved;",
    # The size of a pointer.
    r"#define OPWEST_ABI_POINTER_SIZE sizeof\(void \*\)",
    r"(OPWEST_STATIC_ASSERT|BUILD_ASSERT)\(.*sizeof\(void \*\).*",
    # Bytes of a pool, or of a view of an input or output, are used as elements: the planner aligned them.
    r".*\((const )?u?(int|float|double)[a-z0-9_]* \*\)\(void \*\)\((pool_|\(uint8_t \*\)(in|out)puts->).*",
)
_RUN = ("inputs", "outputs", "workspace")


def _memory(*names: str) -> str:
    """Return the pattern of a line whose untyped pointers have these names."""
    other = r"(?:(?!\bvoid \*).)*"
    return rf"{other}(?:\bconst void \*(?:const \*)?(?:{'|'.join(names)})\b{other})+"


# Signatures of the system: of threads, whose only argument is cast in the first line; of ztest's hooks, whose
# fixture is unused here.
SYSTEM = {
    "port_sync_host.c": (r"static void \*start\(void \*argument\)",),
    "port_sync_zephyr.c": (r"static void start\(void \*first, void \*second, void \*third\)",),
    "ethos_u.c": (r"k_thread_create\(&data->thread, config->stack, STACK_SIZE, ethos_u_work, \(void \*\)dev, NULL,",),
    "ethos_u_queue.c": (r"void ethos_u_work\(void \*p1, void \*p2, void \*p3\)",),
    "ethos_u_internal.h": (r"void ethos_u_work\(void \*p1, void \*p2, void \*p3\);",),
    "runner_zephyr.c": (
        r"static void serve\(void \*first, void \*second, void \*third\)",
        r"k_timer_user_data_set\(&data->cancel, \(void \*\)runner\);",
        r"\(void \*\)runner, NULL, NULL, config->priority, OPTIONS, K_NO_WAIT\);",
    ),
    # Ranges of memory: only their addresses and sizes are used.
    "/status.h": (_memory("a", "b", *_RUN, "other_inputs", "other_outputs"),),
    "/status.c": (_memory("buffer", "others", "at", *_RUN, "other_inputs", "other_outputs"),),
    "/registry.c": (r"(static const void \*memory_of\(|const void \*const memory = memory_of\().*",),
    # The comparison of inputs finds tensors by the metadata, and compares their bytes.
    "/profile.h": (_memory("before", "after", "address", *_RUN),),
    "/input_check.c": (r".*\bconst void \*.*",),
    "port_input_check_host.c": (r"static void faulted\(int number, siginfo_t \*info, void \*registers\)",),
    # The handler of fatal errors is Zephyr's; the type of the frame has two names in its versions.
    "port_zephyr.c": (r"(__weak )?void opwest_fatal_error\(unsigned int reason, const void \*esf\).*",),
    "_suite.c": (r"static void [a-z_]+\(void \*fixture\)",),
    # Bundles: pointers of an image before they are checked, tensors by their tables, memory of a session.
    "_bundle.c": (
        r"return \(const struct .*_devices \*\)\(const void \*\)devices;",
        r"const struct .* \*const (from|to) = \(const struct .* \*\)\(const void \*\)(inputs|outputs);",
        r"(if \(|.* && ).*(inputs|outputs)\[.*\] != \((const )?void \*\)workspace->model\.(input|output)\..*\) \{",
        r"static const void \*const .*_(inputs|outputs)\[\] = \{",
    ),
    "bundle_internal.h": (r"void \*\*outputs;",),
    "descriptor.c": (
        r"static bool is_inside\(const struct examination \*at, const void \*pointer, uint64_t size,",
        r"return is_inside\(at, \(const void \*\)\(\(uintptr_t\)function & ~\(uintptr_t\)1\), 2U, 1U\);",
        r"static bool are_values\(const struct examination \*at, const void \*const \*values,",
    ),
    "placement.c": (
        r"static uint64_t place_outputs\(const struct opwest_model \*model, uint64_t cursor, void \*\*outputs\)",
        r".*sizeof\(void \*\).*",
        r"placement->outputs = \(void \*\*\)\(uintptr_t\)table;",
    ),
    "steps.c": (
        r"const void \*expected, uint32_t size\)",
        r"struct watch \*const watch = \(struct watch \*\)\(void \*\)observer;",
    ),
    "bundle.h": (r"const void \*expected;",),
    # Zephyr's flash, NVS, caches and LLEXT; records of the storage.
    "bundle_port.h": (
        r"int \(\*(load|store)\)\(const struct opwest_bundle_storage \*storage, uint16_t id, (const )?void \*data,",
    ),
    "storage.c": (
        r"rc = opwest_data_cache_result\(sys_cache_data_invd_range\(\(void \*\)own->memory, own->size\)\);",
        r"static int (load|store)\(const struct opwest_bundle_storage \*storage, uint16_t id, (const )?void \*data,",
        r"static int replace\(struct nvs_fs \*nvs, uint16_t id, const void \*data, uint32_t size\)",
    ),
    "llext.c": (
        r"static int read_symbols\(struct llext_loader \*loader, void \*data, size_t size\)",
        r"static size_t room_(in|at)\(.*const void \*pointer\)",
        r"const void \*found;",
    ),
    "llext_check.c": (
        r"#define CLASS +\(sizeof\(void \*\) == 8U \? 2U : 1U\)",
        r".*\(const elf_(ehdr|shdr|sym|rel)_t \*\)\(const void \*\).*",
    ),
    "flash_emul.c": (
        r"static int flash_emul_\w+\(const struct device \*dev, off_t offset, (const )?void \*data, size_t size\)",
    ),
    "flash_emul_native.c": (
        r"void \*const wanted = \(void \*\)address;",
        r"void \*const found = mmap\(wanted, size, PROT_READ \| PROT_WRITE \| PROT_EXEC,",
    ),
    # The functions of the C library, for toolchains without one.
    "memory.c": (r"(LOOPS )?(void \*|int )mem(cpy|move|set|cmp)\(.*\);?",),
}
# The untyped binary interfaces of TVM, Halide and MLIR. Devices are typed up to the bridge.
_HANDLE = r"(int \*out_ret_tcode, )?void \*resource_handle\);?"
_FILL = r"arrays->(tensors\[\d+\]\.data|values\[\d+\]\.v_(handle|ptr)) = \(void \*\)\(uintptr_t\)arg\d+;"
_ARRAYS = r"(struct (\w+|\{\{ bridge\.name \}\})_arrays \*const arrays = )?\(struct .*_arrays \*\)\(void \*\).*;"
_FIRST = r"static void \*data\(const TVMValue \*value\)"
_HALIDE = (r"(int|void|void \*)\s*halide_\w+\(void \*user_context(,.*)?\)?;?", r"void \*padding;")
_MEMREF = (r"void \*(allocated|aligned);\s*\\?",)
_DESCRIPTORS = r"arrays->tensor_\d+\.(host|allocated|aligned) = \(void \*\)\(uintptr_t\)arg\d+;"
_WORKSPACE = (
    r"(extern )?int \(\*const __TVMBackendFreeWorkspace\)\(int, int, void \*\)( = .*)?;",
    r"(extern )?void \*\(\*const __TVMBackendAllocWorkspace\)\(int, int, uint64_t, int, int\)( = .*)?;",
    r"int TVMBackendFreeWorkspace\(int device_type, int device_id, void \*ptr\);?",
    r"void \*TVMBackendAllocWorkspace\(.*",
)
INTERFACE = {
    "dlpack.h": (r"void \*data;",),
    "tvm_packed.h": (r"void \*v_handle;", _HANDLE),
    "tvm_ffi.h": (r"void \*v_ptr;", r"typedef int \(\*TVMFFISafeCallType\)\(void \*handle, .*"),
    "tvm_backend.h": _WORKSPACE,
    "tvm_backend.c": _WORKSPACE,
    "platform.h": (
        r"tvm_crt_error_t TVMPlatformMemoryAllocate\(size_t size, DLDevice device, void \*\*out\);",
        r"tvm_crt_error_t TVMPlatformMemoryFree\(void \*memory, DLDevice device\);",
    ),
    "stack_allocator.h": (
        r"void \*\*out\)",
        r"static inline tvm_crt_error_t StackMemoryManager_Free\(tvm_workspace_t \*workspace, void \*memory\)",
    ),
    "tvm_workspace.h": (r"const void \*thread;",),
    "port_tvm_zephyr.c": (r"const void \*const thread = k_current_get\(\);",),
    "conventions_internal.h": (
        r"int32_t conventions____tvm_ffi_\w+\(void \*, void \*, int32_t, void \*\);",
        r"int32_t conventions__tvmgen_\w+\(void \*, int32_t \*, int32_t, void \*,( int32_t \*,( void \*\);)?)?",
        r"(int32_t \*, )?void \*\);",
        r"(void|u?int\d+_t) conventions___mlir_ciface_\w+\(void \*(, \w+)*(, void \*)?\);",
    ),
    "conventions_bridges.c": (_FILL, _ARRAYS, _DESCRIPTORS),
    "halide_buffer.h": _HALIDE,
    "halide_backend.c": _HALIDE,
    "memref.h": _MEMREF,
    "model_bridges.c.jinja": (_ARRAYS,),
    # microTVM's C interface: the members of its structures.
    "tvmgen_default.h": (r"void \*\w+;",),
    "tvmgen_detection.h": (r"void \*\w+;",),
    "tvmgen.h.jinja": (r"(\{\{-.*\}\})?void \*(\{\{ \w+\.\w+ \}\}|reserved);",),
    "conventions_tvm_crt.c": (_HANDLE, _FIRST),
    "model_tvm_crt.c.jinja": (_HANDLE, _FIRST),
}
TYPED = """\
#include <stdint.h>

struct device;
struct alpha_npu;
struct beta_npu;
int32_t on_alpha(const int8_t *x, int8_t *y, struct alpha_npu *npu);
int32_t on_beta(const int8_t *x, int8_t *y, const struct beta_npu *npu);
int32_t on_device(const int8_t *x, int8_t *y, const struct device *dev);
int32_t on_alpha(const int8_t *x, int8_t *y, struct alpha_npu *npu) { y[0] = x[0]; return npu == 0; }
int32_t on_beta(const int8_t *x, int8_t *y, const struct beta_npu *npu) { y[0] = x[0]; return npu == 0; }
int32_t on_device(const int8_t *x, int8_t *y, const struct device *dev) { y[0] = x[0]; return dev == 0; }
"""


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)


def _typed(folder: Path, device_of_alpha: str = "a") -> Path:
    folder.mkdir()
    (folder / "typed.c").write_text(TYPED)
    tensor = {"dtype": "int8", "shape": [1]}
    args = [{"name": "x", **tensor}, {"name": "y", **tensor, "direction": "out"}]
    handles = {"a": "struct alpha_npu *", "b": "const struct beta_npu *"}
    devices = {n: {"handle": {"type": t, "header": "vendor.h", "expression": f"&{n}"}} for n, t in handles.items()}
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
            "steps": [
                {"call": "on_alpha", "device": device_of_alpha, "args": ["x", "t"]},
                {"call": "on_beta", "device": "b", "args": ["t", "u"]},
                {"call": "on_device", "device": "d", "args": ["u", "y"]},
            ],
        },
    }
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in manifest.items())
    (folder / "manifest.yaml").write_text(text + "\nobjects:\n  - {files: [typed.c]}\n")
    return folder / "manifest.yaml"


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    work = tmp_path_factory.mktemp("typed")
    return generate_quickly([_typed(work / "source")], work / "app")


@pytest.fixture(scope="module")
def emitted(typed, tmp_path_factory):
    """Return all C of the runtime, of the golden models, and of the models of these tests."""
    work = tmp_path_factory.mktemp("emitted")
    apps = [typed, generate_quickly([s.write(work / s.name) for s in SUBJECTS], work / "faults")]
    apps += [generate_quickly(copy_project(name, work / f"source_{name}"), work / name) for name in PROJECTS]
    found = [path for app in apps for path in app.rglob("*") if path.suffix in (".c", ".h")]
    operators = re.compile(r"/objects/")  # the user's own
    found = [path for path in found if not operators.search(str(path))]
    others = RUNTIME / "bundle" / "ext"
    found += [path for path in RUNTIME.rglob("*") if path.suffix in (".c", ".h") and not path.is_relative_to(others)]
    return [*found, *(ROOT / "project_template").rglob("*.[ch].jinja")]


def test_no_untyped_contexts(emitted):
    assert len(emitted) > 60
    used = set()
    for path in emitted:
        text = _without_comments(path.read_text())
        dictated = INTERFACE.get(path.name, ())
        text = "\n".join(
            line for line in text.splitlines() if not any(re.fullmatch(pattern, line.strip()) for pattern in dictated)
        )
        # Only compiler messages may show a context of the same name with another type.
        assert not re.search(r"\bvoid\s*\*\s*(dev|device|devices|context|ctx|handle|resource_handle|self)\b", text), (
            path
        )
        for line in text.splitlines():
            if re.search(r"\bvoid\s*\*", line):
                name = path.name.removesuffix(".jinja")
                allowed = [*DATA, *(p for end, lines in SYSTEM.items() if f"/{name}".endswith(end) for p in lines)]
                matching = [pattern for pattern in allowed if re.fullmatch(pattern, line.strip())]
                if path.suffix == ".jinja" and re.search(r"\(void \*\)\(\{\{ tensor\.(place|second) \}\}\)", line):
                    continue  # covered above in the emitted files
                assert matching, f"{path}: {line.strip()}"
                used.update(matching)
    for pattern in (*DATA, *(pattern for listed in SYSTEM.values() for pattern in listed)):
        assert pattern in used, f"no line matches {pattern}"


def test_operators_take_their_own_type(typed):
    header = (typed / "models" / "typed" / "src" / "typed_internal.h").read_text()
    assert "typed__on_alpha(const int8_t *, int8_t *, struct alpha_npu *);" in header
    assert "typed__on_beta(const int8_t *, int8_t *, const struct beta_npu *);" in header
    assert "typed__on_device(const int8_t *, int8_t *, const struct device *);" in header
    public = (typed / "models" / "typed" / "include" / "typed.h").read_text()
    assert "struct alpha_npu *a;" in public
    assert "const struct beta_npu *b;" in public
    assert "const struct device *d;" in public


FRAME = """\
#include <stddef.h>
#include <opwest/accelerator.h>
#include <typed.h>
#include "../src/typed_internal.h"

struct alpha_npu { int nothing; };
struct beta_npu { int nothing; };
extern struct alpha_npu alpha;
extern struct beta_npu beta;
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
    ("context", "&alpha, &beta", "&beta, &beta"),
    ("context", "&alpha, &beta", "&alpha, &alpha"),
    ("context", "&alpha, &beta", "&zephyr, &beta"),
    ("context", "&zephyr}", "&alpha}"),
    ("context", "&zephyr}", "&beta}"),
    ("call", "(x, y, &alpha)", "(x, y, &beta)"),
    ("call", "(x, y, &alpha)", "(x, y, &zephyr)"),
    ("call", "(x, y, &beta)", "(x, y, &alpha)"),
    ("call", "(x, y, &beta)", "(x, y, &zephyr)"),
    ("call", "(x, y, &zephyr)", "(x, y, &alpha)"),
    ("call", "(x, y, &zephyr)", "(x, y, &beta)"),
    ("hooks", "&zephyr", "&alpha"),
    ("hooks", "&zephyr", "&beta"),
]
COMPILERS = {
    "gcc": ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror"],
    "clang": ["clang", "-std=c11", "-Wall", "-Wextra", "-Werror"],
    "g++": ["g++", "-std=c++17"],
}


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
        assert re.search(r"incompatible pointer|cannot convert|no matching|invalid conversion", done.stderr), (
            done.stderr
        )


def test_mixed_handles_are_rejected(tmp_path):
    with pytest.raises(OpwestError) as caught:
        projects.check([_typed(tmp_path / "wrong", device_of_alpha="b")], Diagnostics())
    assert "is passed as `const struct beta_npu *`, operator 'on_alpha' takes `struct alpha_npu *`" in str(caught.value)
