# SPDX-License-Identifier: Apache-2.0
"""The files that the cases in this directory name, generated on first use beside the manifests.

A case names a file as `files/<name>`. Names that are not in the tables do not exist, which
some cases test. No binary files are checked in.
"""

import io
import subprocess
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from ethos_u_payloads import STOP, VALID, payload
from requirements_support import need, skip_here

_HEAD = "#include <stdint.h>\n"
RELU = _HEAD + "int32_t relu(const int8_t *a, int8_t *b)\n{\n\tb[0] = a[0];\n\treturn 0;\n}\n"
GOOD = (
    RELU
    + """
int32_t add(const int8_t *a, const int8_t *b, int8_t *c) { c[0] = (int8_t)(a[0] + b[0]); return 0; }
int32_t scale(const int8_t *a, float factor, int8_t *b) { b[0] = (int8_t)(factor * a[0]); return 0; }
int32_t shift(const int8_t *a, int8_t by, int8_t *b) { b[0] = (int8_t)(a[0] + by); return 0; }
int32_t half(const int8_t *a, uint16_t factor, int8_t *b) { b[0] = (int8_t)(a[0] + factor); return 0; }
int32_t sort(const int8_t *a, int8_t *scratch, int8_t *b) { scratch[0] = a[0]; b[0] = scratch[0]; return 0; }
int32_t fold(const int8_t *a, int8_t *b) { b[0] = (int8_t)(a[0] + a[1]); return 0; }
int32_t cpu(const int8_t *a, int8_t *b) { b[0] = (int8_t)(a[0] - a[1]); return 0; }
int32_t bump(int8_t *a) { a[0]++; return 0; }
struct device;
int32_t npu(const int8_t *a, int8_t *b, const struct device *dev) { b[0] = a[0]; return dev == 0; }
"""
)
_STATE = RELU + "int calls = 1;\nint count(void) { return ++calls; }\n"
_BSS = RELU + "static int8_t buffer[64];\nint8_t *get(void) { return buffer; }\n"
_EXTERNAL = (
    _HEAD
    + "int32_t helper(const int8_t *, int8_t *);\n"
    + ("int32_t relu(const int8_t *a, int8_t *b) { return helper(a, b) + 1; }\n")
)
_MATH = (
    _HEAD
    + "float expf(float);\n"
    + ("int32_t relu(const int8_t *a, int8_t *b) { b[0] = (int8_t)expf(a[0]); return 0; }\n")
)
_LOCAL = (
    _HEAD
    + "static __attribute__((used, noinline)) int32_t relu(const int8_t *a, int8_t *b)\n"
    + ("{ b[0] = a[0]; return 0; }\nint32_t other(const int8_t *a, int8_t *b) { return relu(a, b); }\n")
)
_FLOAT = _HEAD + "int32_t relu(const float *a, float *b) { b[0] = a[0] * a[1]; return 0; }\n"
_CONSTRUCTOR = RELU + '__attribute__((constructor)) void start(void) { __asm__ volatile(""); }\n'
_IFUNC = RELU + (
    "static int32_t one(void) { return 1; }\n"
    "static void *choose(void) { return (void *)one; }\n"
    'int32_t fast(void) __attribute__((ifunc("choose")));\n'
)
_THREAD = RELU + "__thread int mine;\n"

_PACKED = "int32_t relu(void *args, int32_t *codes, int32_t n, void *ret, int32_t *ret_code, void *resource)\n"
_THREADS = _HEAD + (
    "int TVMBackendParallelLaunch(int (*)(int, void *, void *), void *, int);\n"
    "static int work(int task, void *env, void *data) { return task; }\n"
    "int32_t relu(const int8_t *a, int8_t *b) { b[0] = a[0]; return TVMBackendParallelLaunch(work, b, 2); }\n"
)
_WEAK_THREADS = _HEAD + (
    "__attribute__((weak)) int (*__TVMBackendParallelLaunch)(void *, void *, int);\n"
    "int32_t relu(const int8_t *a, int8_t *b) { return __TVMBackendParallelLaunch((void *)a, b, 2); }\n"
)
_ALLOCATES = _HEAD + (
    "void *TVMBackendAllocWorkspace(int, int, uint64_t, int, int);\n"
    "int32_t relu(const int8_t *a, int8_t *b) { b[0] = a[0]; return TVMBackendAllocWorkspace(1, 0, 4, 0, 8) == 0; }\n"
)

# Like the output of Halide: a pipeline and its companions.
_HALIDE = _HEAD + (
    "int relu(void *a, void *b) { return a == b; }\n"
    "int relu_argv(void **args) { return relu(args[0], args[1]); }\n"
    "const void *relu_metadata(void) { return 0; }\n"
)
_HALIDE_ALLOCATES = _HALIDE.replace("int relu(", "void *halide_malloc(void *, unsigned long);\nint relu(", 1).replace(
    "a == b", "halide_malloc(0, 8) == b"
)
_HALIDE_THREADS = _HALIDE.replace(
    "int relu(", "int halide_do_par_for(void *, void *, int, int, uint8_t *);\nint relu(", 1
).replace("a == b", "halide_do_par_for(0, a, 0, 4, b)")
_HALIDE_RUNTIME = _HALIDE + (
    "void *malloc(unsigned long);\nvoid *halide_malloc(void *c, unsigned long n) { return malloc(n); }\n"
    "void halide_error(void *c, const char *text) { }\n"
)
# Like the output of MLIR: a function with expanded memrefs, and its C interface.
_MLIR = _HEAD + "void relu(void *a, void *b, long n) { }\nvoid _mlir_ciface_relu(void *a, void *b) { relu(a, b, 4); }\n"
_MLIR_HEAP = _MLIR.replace("{ }", "{ *(void **)b = malloc(n); }").replace("void relu", "void *malloc(long);\nvoid relu")

# Flags that prevent additions by the compiler.
_PLAIN = ("-O1", "-ffreestanding", "-fno-pic", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-c")
_ARM = "arm-none-eabi-gcc"
_RISCV = "riscv64-unknown-elf-gcc"
_SOURCE = "source.c"

# Compiled objects: the C text, the compiler, and additional flags.
_OBJECTS: dict[str, tuple[str, str, Sequence[str]]] = {
    "good.o": (GOOD, "gcc", ()),
    "ms_abi.o": (RELU.replace("int32_t relu", "__attribute__((ms_abi)) int32_t relu"), "gcc", ()),
    "twice.o": (RELU, "gcc", ()),
    "local.o": (_LOCAL, "gcc", ()),
    "data.o": (_HEAD + "const int32_t relu = 1;\n", "gcc", ()),
    "other.o": (_HEAD + "int32_t relu6(const int8_t *a, int8_t *b) { b[0] = a[0]; return 0; }\n", "gcc", ()),
    "state.o": (_STATE, "gcc", ()),
    "bss.o": (_BSS, "gcc", ()),
    "needs_helper.o": (_EXTERNAL, "gcc", ()),
    "near_helper.o": (_HEAD + "int32_t helpers(void) { return 0; }\n", "gcc", ()),
    "lto.o": (RELU, "gcc", ("-flto",)),
    "lto_clang.o": (RELU, "clang", ("-flto",)),
    "constructor.o": (_CONSTRUCTOR, "gcc", ()),
    "ifunc.o": (_IFUNC, "gcc", ()),
    "thread.o": (_THREAD, "gcc", ()),
    "threads.o": (_THREADS, "gcc", ()),
    "weak_threads.o": (_WEAK_THREADS, "gcc", ()),
    "allocates.o": (_ALLOCATES, "gcc", ()),
    "halide.o": (_HALIDE, "gcc", ()),
    "halide_allocates.o": (_HALIDE_ALLOCATES, "gcc", ()),
    "halide_threads.o": (_HALIDE_THREADS, "gcc", ()),
    "halide_runtime.o": (_HALIDE_RUNTIME, "gcc", ()),
    "mlir.o": (_MLIR, "gcc", ()),
    "mlir_heap.o": (_MLIR_HEAP, "gcc", ()),
    "x32.o": (RELU, "gcc", ("-mx32",)),
    "cortex_m3.o": (RELU, _ARM, ("-mcpu=cortex-m3", "-mthumb")),
    "cortex_m4.o": (RELU, _ARM, ("-mcpu=cortex-m4", "-mthumb")),
    "cortex_m4f.o": (RELU, _ARM, ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")),
    "cortex_m4_softfp.o": (RELU, _ARM, ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=softfp", "-mfpu=fpv4-sp-d16")),
    "cortex_m33.o": (RELU, _ARM, ("-mcpu=cortex-m33", "-mthumb")),
    "cortex_m55.o": (RELU, _ARM, ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard")),
    "cortex_m7_double.o": (RELU, _ARM, ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16")),
    "big_endian_arm.o": (RELU, _ARM, ("-mcpu=cortex-m3", "-mthumb", "-mbig-endian")),
    "arm_math.o": (_MATH, _ARM, ("-mcpu=cortex-m3", "-mthumb")),
    "arm_float.o": (_FLOAT, _ARM, ("-mcpu=cortex-m3", "-mthumb")),
    "rv32.o": (RELU, _RISCV, ("-march=rv32imac", "-mabi=ilp32")),
    "rv32f.o": (RELU, _RISCV, ("-march=rv32imafc", "-mabi=ilp32f")),
    "rv32f_soft.o": (RELU, _RISCV, ("-march=rv32imafc", "-mabi=ilp32")),
    "rv64.o": (RELU, _RISCV, ("-march=rv64imac", "-mabi=lp64")),
}  # fmt: skip

_TEXT = {
    "empty.o": b"",
    "text.o": b"This is no object.\n",
    "git_lfs.o": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "bitcode.o": b"BC\xc0\xde" + bytes(32),
    "empty.a": b"!<arch>\n",
    "good.su": b"source.c:2:9:relu\t16\tstatic\n",
    "deep.su": b"source.c:2:9:relu\t160\tstatic\n",
    "no_line.su": b"source.c:2:9:relu\t16\tstatic\nrelu 16\n",
    "thin.a": b"!<thin>\n",
    "cut.a": b"!<arch>\n" + b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"relu.o/", 0, 0, 0, 0o644, 1000) + bytes(92),
    "relu.c": RELU.encode(),
    "relu.cpp": RELU.encode(),
    "relu_ms_abi.c": RELU.replace("int32_t relu", "__attribute__((ms_abi)) int32_t relu").encode(),
    "relu_static.c": RELU.replace("int32_t relu", "static int32_t relu").encode(),
    "relu_state.h": (RELU.replace("int32_t relu", "static int32_t relu") + "static int calls;\n").encode(),
    "relu_state.c": (RELU + "int calls;\n").encode(),
    "effects.c": (
        "#include <stdio.h>\n#include <stdlib.h>\n" + _HEAD + "int32_t noisy(const int8_t *a, int8_t *b)\n{\n"
        '\tint8_t *copy = malloc(4);\n\n\tprintf("%d\\n", rand());\n\tb[0] = copy[0] = a[0];\n'
        '\t__asm__ volatile("cpsid i");\n\tfree(copy);\n\treturn 0;\n}\n'
    ).encode(),
    "relu_float.c": (_HEAD + "float relu(const int8_t *a, int8_t *b)\n{\n\treturn b[0] = a[0];\n}\n").encode(),
    "npu.c": (
        _HEAD + "struct device;\nint32_t npu(const int8_t *a, int8_t *b, const struct device *device)\n"
        "{\n\tb[0] = a[0];\n\treturn !device;\n}\n"
    ).encode(),
    "relu_void.c": (_HEAD + "void relu(const int8_t *a, int8_t *b)\n{\n\tb[0] = a[0];\n}\n").encode(),
    "relu_floats.c": (
        _HEAD + "int32_t relu(const float *a, int8_t *b)\n{\n\tb[0] = (int8_t)a[0];\n\treturn 0;\n}\n"
    ).encode(),
    "relu_three.c": (
        _HEAD + "int32_t relu(const int8_t *a, int8_t *b, int n)\n{\n\tb[0] = a[n];\n\treturn 0;\n}\n"
    ).encode(),
    "nul.c": b"int relu\0;\n",
    "packed.c": (_HEAD + _PACKED + "{\n\treturn args == 0;\n}\n").encode(),
    "ffi.c": (_HEAD + "int32_t relu(void *self, void *args, int32_t n, void *ret)\n{\n\treturn !args;\n}\n").encode(),
    "six.c": (_HEAD + "int32_t relu(float a, int *b, int c, void *d, int *e, void *f) { return 0; }\n").encode(),
    "calls_by_name.c": (
        _HEAD
        + "int TVMFFIFunctionCall(void *, void *, int, void *);\n"
        + "int32_t relu(void *self, void *args, int32_t n, void *result)\n"
        + "{\n\treturn TVMFFIFunctionCall(self, args, n, result);\n}\n"
    ).encode(),
    "four.bin": bytes(4),
    "five.bin": bytes(5),
    "notes.txt": b"notes\n",
    "plan.csv": b"id,lower,upper,size,alignment,offset\na,0,2,8,8,0\nb,1,3,8,8,8\nc,2,4,8,8,20\n",
    "unsolved.csv": b"id,lower,upper,size,alignment\na,0,2,8,8\n",
    "binary.csv": b"id,lower\xff",
    "conv.bin": b"conv",
    "conv.npu": b"another conv",
    "dense.bin": b"dense",
    "nothing.bin": b"",
    "truncated.cop": VALID[:-4],
    "valid.cop": VALID,
    "unknown.cop": payload([0x3FF, STOP]),
    "main.c": b"int main(void) { return 0; }\n",
    "more/main.c": b"int main(void) { return 1; }\n",
    "broken.npz": b"PK\x03\x04 not a zip file",
    "broken.npy": b"no array",
    "cut.npy": b"\x93NUMPY\x01\x00",
}  # fmt: skip


def _numpy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def _zipped() -> bytes:
    content = io.BytesIO()
    np.savez(content, weight=np.zeros(4, "int8"), bias=np.zeros(4, "int32"))
    return content.getvalue()


def _vectors(**arrays: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def _renamed(content: bytes, old: bytes, new: bytes) -> bytes:
    """Return a ZIP archive with another name of the same length for a member."""
    assert len(old) == len(new) and content.count(old) == 2
    return content.replace(old, new)


def _zip_with(name: str, content: bytes) -> bytes:
    whole = io.BytesIO(_zipped())
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr(name, content)
    return whole.getvalue()


_CASES = np.zeros((3, 4), "int8")
_ARRAYS: dict[str, Callable[[], bytes]] = {
    "int8.npy": lambda: _numpy(np.zeros(4, "int8")),
    "int16.npy": lambda: _numpy(np.zeros(4, "int16")),
    "complex.npy": lambda: _numpy(np.zeros(4, "complex64")),
    "records.npy": lambda: _numpy(np.zeros(4, [("a", "int8"), ("b", "int8")])),
    "text.npy": lambda: _numpy(np.array(["a", "b"])),
    "none.npy": lambda: _numpy(np.zeros((0, 4), "int8")),
    "excess.npy": lambda: _numpy(np.zeros(4, "int8")) + b"\0",
    "weights.npz": _zipped,
    "weights_twice.npz": lambda: _renamed(_vectors(weight=_CASES[0], weighs=_CASES[0]), b"weighs", b"weight"),
    "weights_and_notes.npz": lambda: _zip_with("notes.txt", b"notes"),
    "weights_excess.npz": lambda: _zip_with("more.npy", _numpy(_CASES) + b"\0"),
    "weights_joined.npz": lambda: _zipped() + _zipped(),
    "weights_tail.npz": lambda: _zipped() + b"\0",
    "vectors.npz": lambda: _vectors(image=_CASES, scores=_CASES),
    "vectors_without_scores.npz": lambda: _vectors(image=_CASES),
    "vectors_misspelt.npz": lambda: _vectors(image=_CASES, score=_CASES),
    "vectors_and_more.npz": lambda: _vectors(image=_CASES, scores=_CASES, labels=_CASES),
    "vectors_of_floats.npz": lambda: _vectors(image=_CASES, scores=_CASES.astype("float32")),
    "vectors_of_five.npz": lambda: _vectors(image=_CASES, scores=np.zeros((3, 5), "int8")),
    "vectors_of_one.npz": lambda: _vectors(image=_CASES[0], scores=_CASES[:1]),
    "vectors_of_two_counts.npz": lambda: _vectors(image=_CASES, scores=_CASES[:2]),
    "vectors_of_none.npz": lambda: _vectors(image=_CASES[:0], scores=_CASES[:0]),
    "vectors_of_texts.npz": lambda: _vectors(image=_CASES, scores=np.array(["a"], object)),
}


class Workshop:
    """Creates the files below `folder`, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "files").mkdir(parents=True)

    def make(self, name: str) -> Path:
        """Create a file and return its path; no file for a name that is not in a table. Skips without its compiler."""
        path = self.folder / "files" / name
        if path.exists() or path.is_symlink():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in _OBJECTS:
            text, compiler, flags = _OBJECTS[name]
            _compile(path, text, compiler, (*_PLAIN, *flags))
        elif name in _TEXT:
            path.write_bytes(_TEXT[name])
        elif name in _ARRAYS:
            path.write_bytes(_ARRAYS[name]())
        elif name in _DERIVED:
            _DERIVED[name](self, path)
        return path

    def bytes(self, name: str) -> bytearray:
        """Return the content of another file."""
        return bytearray(self.make(name).read_bytes())


def _run(command: Sequence[str | Path]) -> None:
    program = str(command[0])
    need(program)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stderr}")


def _compile(path: Path, text: str, compiler: str, flags: Sequence[str]) -> None:
    need(compiler)
    if compiler == "gcc":
        made_for = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=True).stdout.strip()
        if not made_for.startswith("x86_64"):
            skip_here(f"gcc compiles for {made_for}, the case needs x86-64")
    source = path.with_name(path.name + ".c")
    source.write_text(text, encoding="utf-8")
    _run([compiler, *flags, source, "-o", path])


def _patched(position: int, value: bytes) -> Callable[[Workshop, Path], None]:
    def make(workshop: Workshop, path: Path) -> None:
        content = workshop.bytes("good.o")
        content[position : position + len(value)] = value
        path.write_bytes(content)

    return make


def _cut(name: str, length: int) -> Callable[[Workshop, Path], None]:
    return lambda workshop, path: path.write_bytes(workshop.bytes(name)[:length]) and None


def _archive(*members: str) -> Callable[[Workshop, Path], None]:
    return lambda workshop, path: _run(["ar", "rcsD", path, *(workshop.make(member) for member in members)])


def _shared(workshop: Workshop, path: Path) -> None:
    _run(["gcc", "-shared", "-nostdlib", "-o", path, workshop.make("twice.o")])


def _executable(workshop: Workshop, path: Path) -> None:
    _run(["gcc", "-static", "-nostdlib", "-Wl,-e,relu", "-o", path, workshop.make("twice.o")])


def _stripped(workshop: Workshop, path: Path) -> None:
    _run(["strip", "--strip-all", "-o", path, workshop.make("twice.o")])


def _link(target: str) -> Callable[[Workshop, Path], None]:
    return lambda workshop, path: path.symlink_to(target)


def _directory(workshop: Workshop, path: Path) -> None:
    path.mkdir()


def _outside(workshop: Workshop, path: Path) -> None:
    (workshop.folder.parent / "outside.o").write_bytes(workshop.bytes("good.o"))
    path.symlink_to("../../outside.o")


# Made from other files of the tables. ELF: byte 5 is the byte order, 16 the type, 18 the machine.
_DERIVED: dict[str, Callable[[Workshop, Path], None]] = {
    "aarch64.o": _patched(18, b"\xb7\x00"),
    "core.o": _patched(16, b"\x04\x00"),
    "unknown_type.o": _patched(16, b"\x00\xff"),
    "marked_big_endian.o": _patched(5, b"\x02"),
    "unknown_class.o": _patched(4, b"\x07"),
    "cut_header.o": _cut("good.o", 40),
    "cut_magic.o": _cut("good.o", 3),
    "good.a": _archive("good.o"),
    "nested.a": _archive("good.a"),
    "text.a": _archive("text.o"),
    "lto_clang.a": _archive("lto_clang.o"),
    "library.so": _shared,
    "program.o": _executable,
    "stripped.o": _stripped,
    "outside.o": _outside,
    "directory": _directory,
    "loop.o": _link("loop.o"),
    "dangling.o": _link("nowhere.o"),
}
FILE_NAMES = (*_OBJECTS, *_TEXT, *_ARRAYS, *_DERIVED)
"""All files that `Workshop.make` creates."""
