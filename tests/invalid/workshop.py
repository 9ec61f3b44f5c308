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
_FUNCTION = "int32_t relu(const int8_t *a, int8_t *b) { b[0] = a[0]; return 0; }\n"
RELU = _HEAD + _FUNCTION
_OTHER = RELU.replace("relu", "relu6")
_STATIC = RELU.replace("int32_t relu", "static int32_t relu")
_FLOAT = _HEAD + "int32_t relu(const float *a, float *b) { b[0] = a[0] * a[1]; return 0; }\n"


def _operator(name: str, body: str, declaration: str) -> str:
    """Return C with a function, and a declaration before it."""
    return f"{_HEAD}{declaration};\nint32_t {name}(const int8_t *a, int8_t *b) {{ {body} }}\n"


# Like the output of Halide: a pipeline and its companions.
_HALIDE = """#include <stdint.h>
int relu(void *a, void *b) { return a == b; }
int relu_argv(void **args) { return relu(args[0], args[1]); }
const void *relu_metadata(void) { return 0; }
"""


def _halide(name: str, declaration: str, result: str) -> str:
    text = _HALIDE.replace("int relu(", f"{declaration};\nint relu(", 1).replace("a == b", result)
    return text.replace("relu", name)


# Like the output of MLIR: a function with expanded memrefs, and its C interface.
_MLIR = _HEAD + "void relu(void *a, void *b, long n) { }\nvoid _mlir_ciface_relu(void *a, void *b) { relu(a, b, 4); }\n"

# Objects of gcc: their C text.
_OBJECTS = {
    "good.o": RELU + """
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
""",
    "ms_abi.o": RELU.replace("int32_t relu", "__attribute__((ms_abi)) int32_t foreign"),
    "twice.o": RELU,
    "local.o": _STATIC.replace("static", "static __attribute__((used, noinline))").replace("relu", "hidden"),
    "data.o": _HEAD + "const int32_t number = 1;\n",
    "other.o": _OTHER,
    "state.o": _HEAD + "int calls = 1;\nint count(void) { return ++calls; }\n",
    "bss.o": _HEAD + "static int8_t buffer[64];\nint8_t *get(void) { return buffer; }\n",
    "needs_helper.o": _operator("calls", "return helper(a, b) + 1;", "int32_t helper(const int8_t *, int8_t *)"),
    "near_helper.o": _HEAD + "int32_t helpers(void) { return 0; }\n",
    "constructor.o": _HEAD + '__attribute__((constructor)) void start(void) { __asm__ volatile(""); }\n',
    "ifunc.o": _HEAD + """
static int32_t one(void) { return 1; }
static void *choose(void) { return (void *)one; }
int32_t fast(void) __attribute__((ifunc("choose")));
""",
    "thread.o": _HEAD + "__thread int mine;\n",
    "threads.o": _operator(
        "parallel",
        "b[0] = a[0]; return TVMBackendParallelLaunch(work, b, 2);",
        "int TVMBackendParallelLaunch(int (*)(int, void *, void *), void *, int);\n"
        "static int work(int task, void *env, void *data) { return task; }",
    ),
    "weak_threads.o": _operator(
        "weak",
        "return __TVMBackendParallelLaunch((void *)a, b, 2);",
        "__attribute__((weak)) int (*__TVMBackendParallelLaunch)(void *, void *, int)",
    ),
    "allocates.o": _operator(
        "allocates",
        "b[0] = a[0]; return TVMBackendAllocWorkspace(1, 0, 4, 0, 8) == 0;",
        "void *TVMBackendAllocWorkspace(int, int, uint64_t, int, int)",
    ),
    "halide.o": _HALIDE.replace("relu", "blur"),
    "halide_allocates.o": _halide("allocate", "void *halide_malloc(void *, unsigned long)", "halide_malloc(0, 8) == b"),
    "halide_threads.o": _halide(
        "launch", "int halide_do_par_for(void *, void *, int, int, uint8_t *)", "halide_do_par_for(0, a, 0, 4, b)"
    ),
    "halide_runtime.o": _HALIDE.replace("relu", "runtime") + """
void *malloc(unsigned long);
void *halide_malloc(void *c, unsigned long n) { return malloc(n); }
void halide_error(void *c, const char *text) { }
""",
    "mlir.o": _MLIR.replace("relu", "turn"),
    "mlir_heap.o": _MLIR.replace("{ }", "{ *(void **)b = malloc(n); }").replace(
        "void relu", "void *malloc(long);\nvoid relu"
    ).replace("relu", "grown"),
}  # fmt: skip

# Flags that prevent additions by the compiler.
_PLAIN = ("-O1", "-ffreestanding", "-fno-pic", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-c")
_ARM = "arm-none-eabi-gcc -mthumb -mcpu="
_RISCV = "riscv64-unknown-elf-gcc -march="

# Objects of other compilers, or with additional flags: the C text, the compiler and the flags.
_SPECIAL_OBJECTS = {
    "lto.o": (RELU, "gcc -flto"),
    "lto_clang.o": (RELU, "clang -flto"),
    "x32.o": (_OTHER, "gcc -mx32"),
    "debugged.o": (RELU.replace("relu", "debugged").replace("int8_t *b", "int16_t *b"), "gcc -g"),
    "cortex_m3.o": (RELU, f"{_ARM}cortex-m3"),
    "cortex_m4.o": (RELU, f"{_ARM}cortex-m4"),
    "cortex_m4f.o": (RELU, f"{_ARM}cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"),
    "cortex_m4_softfp.o": (_OTHER, f"{_ARM}cortex-m4 -mfloat-abi=softfp -mfpu=fpv4-sp-d16"),
    "cortex_m33.o": (RELU, f"{_ARM}cortex-m33"),
    "cortex_m55.o": (RELU, f"{_ARM}cortex-m55 -mfloat-abi=hard"),
    "cortex_m7_double.o": (_OTHER, f"{_ARM}cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"),
    "big_endian_arm.o": (_OTHER, f"{_ARM}cortex-m3 -mbig-endian"),
    "arm_math.o": (_operator("relu", "b[0] = (int8_t)expf(a[0]); return 0;", "float expf(float)"), f"{_ARM}cortex-m3"),
    "arm_float.o": (_FLOAT, f"{_ARM}cortex-m3"),
    "rv32.o": (RELU, f"{_RISCV}rv32imac -mabi=ilp32"),
    "rv32f.o": (_OTHER, f"{_RISCV}rv32imafc -mabi=ilp32f"),
    "rv32f_soft.o": (RELU, f"{_RISCV}rv32imafc -mabi=ilp32"),
    "rv64.o": (RELU.replace("relu", "relu64"), f"{_RISCV}rv64imac -mabi=lp64"),
}

_TEXTS = {
    "text.o": "This is no object.\n",
    "git_lfs.o": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "good.su": "source.c:2:9:relu\t16\tstatic\n",
    "deep.su": "source.c:2:9:relu\t160\tstatic\n",
    "no_line.su": "source.c:2:9:relu\t16\tstatic\nrelu 16\n",
    "relu.c": RELU,
    "nul.h": "int32_t relu\0;\n",
    "relu.h": "#ifndef RELU_H\n#define RELU_H\n#include \"relu_types.h\"\n#define RELU_API\n#ifdef RELU_STATUS\n"
    "RELU_API int32_t relu(const int8_t *a, int8_t *b, uint32_t n);\n#endif\n"
    "RELU_API __attribute__((ms_abi)) void add(const int8_t *a, const int16_t *b, int8_t *c);\n"
    "RELU_API int32_t debugged(const int8_t *a, const int8_t *b);\n"
    "int32_t old();\nint32_t RELU_CALL(shift)(int8_t *);\n#endif\n",
    "include/relu_types.h": _HEAD,
    "relu.cpp": RELU.replace("relu", "mangled"),
    "relu_state.h": _STATIC.replace("relu", "kept") + "static int calls;\n",
    "relu_state.c": _HEAD + "int calls_of_source;\nint32_t more(void) { return ++calls_of_source; }\n",
    "effects.c": """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int32_t noisy(const int8_t *a, int8_t *b)
{
	int8_t *copy = malloc(4);

	printf("%d\\n", rand());
	b[0] = copy[0] = a[0];
	__asm__ volatile("cpsid i");
	free(copy);
	return 0;
}
""",
    "npu.c": _HEAD + "struct device;\n"
    "int32_t npu(const int8_t *a, int8_t *b, const struct device *device) { b[0] = a[0]; return !device; }\n",
    "functions.c": RELU + "".join(_FUNCTION.replace("relu", name) for name in ("one", "two", "three")) + """
void nothing(const int8_t *a, int8_t *b) { b[0] = a[0]; }
float real(const int8_t *a, int8_t *b) { return b[0] = a[0]; }
int32_t floats(const float *a, int8_t *b) { b[0] = (int8_t)a[0]; return 0; }
int32_t more(const int8_t *a, int8_t *b, int n) { b[0] = a[n]; return 0; }
int32_t packed(void *args, int32_t *codes, int32_t n, void *ret, int32_t *code, void *resource) { return args == 0; }
int32_t six(float a, int *b, int c, void *d, int *e, void *f) { return 0; }
static int32_t hidden(const int8_t *a, int8_t *b) { b[0] = a[0]; return 0; }
__attribute__((ms_abi)) int32_t foreign(const int8_t *a, int8_t *b) { b[0] = a[0]; return 0; }
""",
    "nul.c": "int relu\0;\n",
    "packed.c": _HEAD + "int32_t relu("
    "void *args, int32_t *codes, int32_t n, void *ret, int32_t *ret_code, void *resource) { return args == 0; }\n",
    "calls_by_name.c": _HEAD + """int TVMFFIFunctionCall(void *, void *, int, void *);
int32_t by_name(void *self, void *args, int32_t n, void *result) { return TVMFFIFunctionCall(self, args, n, result); }
""",
    "notes.txt": "notes\n",
    "plan.csv": "id,lower,upper,size,alignment,offset\na,0,2,8,8,0\nb,1,3,8,8,8\nc,2,4,8,8,20\n",
    "unsolved.csv": "id,lower,upper,size,alignment\na,0,2,8,8\n",
    "conv.bin": "conv",
    "conv.npu": "another conv",
    "dense.bin": "dense",
    "main.c": "int main(void) { return 0; }\n",
    "more/main.c": "int main(void) { return 1; }\n",
}  # fmt: skip

_BYTES = {
    "empty.o": b"",
    "bitcode.o": b"BC\xc0\xde" + bytes(32),
    "empty.a": b"!<arch>\n",
    "thin.a": b"!<thin>\n",
    "cut.a": b"!<arch>\n" + b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"relu.o/", 0, 0, 0, 0o644, 1000) + bytes(92),
    "four.bin": bytes(4),
    "five.bin": bytes(5),
    "binary.csv": b"id,lower\xff",
    "nothing.bin": b"",
    "truncated.cop": VALID[:-4],
    "valid.cop": VALID,
    "unknown.cop": payload([0x3FF, STOP]),
    "broken.npz": b"PK\x03\x04 not a zip file",
    "broken.npy": b"no array",
    "cut.npy": b"\x93NUMPY\x01\x00",
}


def _numpy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def _zipped(**arrays: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def _zip_with(name: str, content: bytes) -> bytes:
    whole = io.BytesIO(_WEIGHTS)
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr(name, content)
    return whole.getvalue()


_WEIGHTS = _zipped(weight=np.zeros(4, "int8"), bias=np.zeros(4, "int32"))
_CASES = np.zeros((3, 4), "int8")
_BYTES |= {
    "int8.npy": _numpy(np.zeros(4, "int8")),
    "int16.npy": _numpy(np.zeros(4, "int16")),
    "complex.npy": _numpy(np.zeros(4, "complex64")),
    "records.npy": _numpy(np.zeros(4, [("a", "int8"), ("b", "int8")])),
    "text.npy": _numpy(np.array(["a", "b"])),
    "none.npy": _numpy(np.zeros((0, 4), "int8")),
    "excess.npy": _numpy(np.zeros(4, "int8")) + b"\0",
    "weights.npz": _WEIGHTS,
    "weights_twice.npz": _zipped(weight=_CASES[0], weighs=_CASES[0]).replace(b"weighs", b"weight"),
    "weights_and_notes.npz": _zip_with("notes.txt", b"notes"),
    "weights_excess.npz": _zip_with("more.npy", _numpy(_CASES) + b"\0"),
    "weights_joined.npz": _WEIGHTS * 2,
    "weights_tail.npz": _WEIGHTS + b"\0",
    "vectors.npz": _zipped(image=_CASES, scores=_CASES),
    "vectors_without_scores.npz": _zipped(image=_CASES),
    "vectors_misspelt.npz": _zipped(image=_CASES, score=_CASES),
    "vectors_and_more.npz": _zipped(image=_CASES, scores=_CASES, labels=_CASES),
    "vectors_of_floats.npz": _zipped(image=_CASES, scores=_CASES.astype("float32")),
    "vectors_of_five.npz": _zipped(image=_CASES, scores=np.zeros((3, 5), "int8")),
    "vectors_of_one.npz": _zipped(image=_CASES[0], scores=_CASES[:1]),
    "vectors_of_two_counts.npz": _zipped(image=_CASES, scores=_CASES[:2]),
    "vectors_of_none.npz": _zipped(image=_CASES[:0], scores=_CASES[:0]),
    "vectors_of_texts.npz": _zipped(image=_CASES, scores=np.array(["a"], object)),
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
            _compile(path, _OBJECTS[name], ["gcc"])
        elif name in _SPECIAL_OBJECTS:
            text, command = _SPECIAL_OBJECTS[name]
            _compile(path, text, command.split())
        elif name in _TEXTS:
            path.write_text(_TEXTS[name], encoding="utf-8")
        elif name in _BYTES:
            path.write_bytes(_BYTES[name])
        elif name in _DERIVED:
            _DERIVED[name](self, path)
        return path

    def bytes(self, name: str) -> bytearray:
        """Return the content of another file."""
        return bytearray(self.make(name).read_bytes())


def _run(command: Sequence[str | Path]) -> None:
    need(str(command[0]))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stderr}")


def _compile(path: Path, text: str, command: Sequence[str]) -> None:
    need(command[0])
    if command[0] == "gcc":
        made_for = subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True, check=True).stdout.strip()
        if not made_for.startswith("x86_64"):
            skip_here(f"gcc compiles for {made_for}, the case needs x86-64")
    source = path.with_name(path.name + ".c")
    source.write_text(text, encoding="utf-8")
    _run([*command, *_PLAIN, source, "-o", path])


def _patched(position: int, value: bytes) -> Callable[[Workshop, Path], object]:
    def make(workshop: Workshop, path: Path) -> None:
        content = workshop.bytes("good.o")
        content[position : position + len(value)] = value
        path.write_bytes(content)

    return make


def _cut(name: str, length: int) -> Callable[[Workshop, Path], object]:
    return lambda workshop, path: path.write_bytes(workshop.bytes(name)[:length])


def _archive(*members: str) -> Callable[[Workshop, Path], object]:
    return lambda workshop, path: _run(["ar", "rcsD", path, *(workshop.make(member) for member in members)])


def _from_twice(*command: str) -> Callable[[Workshop, Path], object]:
    return lambda workshop, path: _run([*command, "-o", path, workshop.make("twice.o")])


def _link(target: str) -> Callable[[Workshop, Path], object]:
    return lambda workshop, path: path.symlink_to(target)


def _outside(workshop: Workshop, path: Path) -> None:
    (workshop.folder.parent / "outside.o").write_bytes(workshop.bytes("good.o"))
    path.symlink_to("../../outside.o")


# Made from other files of the tables. ELF: byte 5 is the byte order, 16 the type, 18 the machine.
_DERIVED: dict[str, Callable[[Workshop, Path], object]] = {
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
    "library.so": _from_twice("gcc", "-shared", "-nostdlib"),
    "program.o": _from_twice("gcc", "-static", "-nostdlib", "-Wl,-e,relu"),
    "stripped.o": _from_twice("strip", "--strip-all"),
    "outside.o": _outside,
    "directory": lambda _workshop, path: path.mkdir(),
    "loop.o": _link("loop.o"),
    "dangling.o": _link("nowhere.o"),
}
FILE_NAMES = (*_OBJECTS, *_SPECIAL_OBJECTS, *_TEXTS, *_BYTES, *_DERIVED)
"""All files that `Workshop.make` creates."""
