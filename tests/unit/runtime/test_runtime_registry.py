# SPDX-License-Identifier: Apache-2.0
"""opwest_find and opwest_call with generated registries."""

import errno
import itertools
import random
import string
import struct

import pytest
from c_support import SANITIZED, build, execute
from campaign import sized
from golden_support import generate_quickly
from requirements_support import need_compiler
from runtime_support import PROGRAMS, build_with_runtime

# --- opwest_find with generated registries: finds every name at its index, and no other names

SOURCE = "#include <stdint.h>\nint32_t op(const int8_t *x, int8_t *y);\n"
SOURCE += "int32_t op(const int8_t *x, int8_t *y)\n{\n\t*y = *x;\n\treturn 0;\n}\n"
ARGS = "[{name: x, dtype: int8, shape: [1]}, {name: y, dtype: int8, shape: [1], direction: out}]"


def names_of(count):
    """Return names like those of networks: long common prefixes, numbers at the end, and short ones."""
    generator = random.Random(count)
    names = ["on", "no", "y", "f", "a" * 200][: max(1, count // 2)]
    while len(names) < count:
        number = len(names)
        tail = "".join(generator.choices(string.ascii_letters + "_", k=3))
        names.append(f"tvmgen_default_fused_nn_conv2d_add_{number}{'_' * (number % 2)}{tail}")
    return names


def strangers(names):
    """Return names similar to existing ones, and others."""
    known = set(names)
    near = ["", "x", "é", "\x7f", "a" * 199, "a" * 201, "op", "tvmgen_default_fused_nn_conv2d_add_"]
    for name in names:
        near += [name[:-1], name + "_", name.upper(), name[::-1], name.replace("_", "-"), " " + name, name + " "]
    generator = random.Random(7)
    near += ["".join(generator.choices(string.printable[:90], k=12)) for _ in range(1000)]
    return [name for name in near if name not in known]


def program_with(work, names, flags=SANITIZED):
    work.mkdir(exist_ok=True)
    (work / "op.c").write_text(SOURCE)
    operators = "".join(f"  {name}: {{symbol: op, args: {ARGS}}}\n" for name in names)
    (work / "manifest.yaml").write_text(
        f"version: 1\nmodel: found\nobjects: [{{files: [op.c]}}]\noperators:\n{operators}"
        "run:\n  inputs: {x: {dtype: int8, shape: [1]}}\n  outputs: {y: {dtype: int8, shape: [1]}}\n"
        f"  steps: [{{call: {names[0]}, args: [x, y]}}]\n"
    )
    generate_quickly([work / "manifest.yaml"], work / "app")
    main = work / "find.c"
    text = (PROGRAMS / "find.c").read_text()
    text = text.replace("MODEL_HEADER", "found.h").replace("REGISTRY", "found_registry")
    main.write_text(text.replace("MODEL", "found_model"))
    return build(work / "app", work / "build", main, "gcc", flags)


def found(program, names):
    """Return the operator's index for each name, -1 if not found."""
    done = execute(program, text="".join(f"{name}\n" for name in names))
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 10, sized(200, 1000)])
def test_find(count, tmp_path):
    need_compiler("gcc", SANITIZED, link=True)
    names = names_of(count)
    assert len(set(names)) == count
    program = program_with(tmp_path / "project", names)
    assert found(program, names) == list(range(count))
    others = strangers(names)
    assert found(program, others) == [-1] * len(others)


def test_find_with_32_bits(tmp_path):
    flags = ["-m32", *SANITIZED]
    need_compiler("gcc", flags, link=True)
    names = names_of(30)
    program = program_with(tmp_path / "project", names, flags)
    assert found(program, names) == list(range(30))


def test_find_in_an_empty_registry(tmp_path):
    main = tmp_path / "main.c"
    main.write_text(
        "#include <opwest/registry.h>\nint main(void)\n{\n"
        "\tconst struct opwest_registry empty = {NULL, NULL, 0, 0, 0};\n"
        '\treturn opwest_find(&empty, "x") == NULL ? 0 : 1;\n}\n'
    )
    assert execute(build_with_runtime(tmp_path, main, ["registry.c", "metadata.c"])).returncode == 0


# --- opwest_call: every return value that registry.h documents, scalars at their limits, every kind of argument

# name: (code in enum opwest_dtype, C type, struct format, least, most)
TYPES = {
    "int8": (0, "int8_t", "b", -(2**7), 2**7 - 1),
    "uint8": (1, "uint8_t", "B", 0, 2**8 - 1),
    "int16": (2, "int16_t", "h", -(2**15), 2**15 - 1),
    "uint16": (3, "uint16_t", "H", 0, 2**16 - 1),
    "int32": (4, "int32_t", "i", -(2**31), 2**31 - 1),
    "uint32": (5, "uint32_t", "I", 0, 2**32 - 1),
    "int64": (6, "int64_t", "q", -(2**63), 2**63 - 1),
    "uint64": (7, "uint64_t", "Q", 0, 2**64 - 1),
    "float16": (8, "uint16_t", "H", 0, 2**16 - 1),
    "float32": (9, "float", "f", None, None),
    "float64": (10, "double", "d", None, None),
    "bool": (11, "uint8_t", "B", 0, 1),
    "bfloat16": (12, "uint16_t", "H", 0, 2**16 - 1),
}
UINT8, INT32 = 1, 4
OK, INVALID, NO_DEVICE, NO_ENTRY, IO = 0, -errno.EINVAL, -errno.ENODEV, -errno.ENOENT, -errno.EIO


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    need_compiler("gcc", SANITIZED, link=True)
    work = tmp_path_factory.mktemp("calls")
    source = ["#include <stdint.h>", "#include <string.h>", "struct device;"]
    operators = []
    for name, (_, c_type, _, _, _) in TYPES.items():
        head = f"int32_t s_{name}({c_type} value, uint8_t *bytes)"
        source.append(f"{head};\n{head}\n{{\n\tmemcpy(bytes, &value, sizeof(value));\n\treturn 0;\n}}")
        operators.append(
            f"  s_{name}: {{args: [{{name: value, dtype: {name}, scalar: true}}, "
            "{name: bytes, dtype: uint8, shape: [8], direction: out}]}"
        )
        head = f"void t_{name}(const {c_type} *x, {c_type} *y)"
        source.append(f"{head};\n{head}\n{{\n\tmemmove(y, x, 2 * sizeof(*x));\n}}")
        operators.append(
            f"  t_{name}: {{returns: void, args: [{{name: x, dtype: {name}, shape: [2]}}, "
            f"{{name: y, dtype: {name}, shape: [2], direction: out}}]}}"
        )
    source.append(
        "int32_t result(int32_t code, uint8_t *y);\n"
        "int32_t result(int32_t code, uint8_t *y)\n{\n\ty[0] = 1;\n\treturn code;\n}\n"
        "void kinds(const int32_t *a, int32_t *b, int32_t *c, int32_t *d);\n"
        "void kinds(const int32_t *a, int32_t *b, int32_t *c, int32_t *d)\n"
        "{\n\tfor (int i = 0; i < 3; i++) {\n\t\td[i] = a[i];\n\t\tc[i] += d[i];\n\t\tb[i] = c[i];\n\t}\n}\n"
        "int32_t owned(uint8_t *y, const struct device *dev);\n"
        "int32_t owned(uint8_t *y, const struct device *dev)\n"
        "{\n\tmemcpy(y, *(const char *const *)(const void *)dev, 6);\n\treturn 0;\n}\n"
        "void over(const int32_t *a, const int32_t *b, int32_t *y);\n"
        "void over(const int32_t *a, const int32_t *b, int32_t *y)\n"
        "{\n\tfor (int i = 0; i < 3; i++) {\n\t\ty[i] = a[i] + b[i];\n\t}\n}\n"
        "void pairs(const int32_t *a, const int32_t *b, int32_t *y, int32_t *z);\n"
        "void pairs(const int32_t *a, const int32_t *b, int32_t *y, int32_t *z)\n"
        "{\n\tfor (int i = 0; i < 3; i++) {\n\t\ty[i] = a[i];\n\t\tz[i] = b[i];\n\t}\n}\n"
        "void aligned(const uint8_t *x, uint8_t *y);\n"
        "void aligned(const uint8_t *x, uint8_t *y)\n{\n\ty[0] = x[0];\n}"
    )
    operators += [
        "  result: {args: [{name: code, dtype: int32, scalar: true}, "
        "{name: y, dtype: uint8, shape: [1], direction: out}]}",
        "  kinds:\n    returns: void\n    args:\n      - {name: a, dtype: int32, shape: [3]}\n"
        "      - {name: b, dtype: int32, shape: [3], direction: out}\n"
        "      - {name: c, dtype: int32, shape: [3], direction: inout}\n"
        "      - {name: d, dtype: int32, shape: [3], direction: scratch}",
        "  over:\n    returns: void\n    args:\n      - {name: a, dtype: int32, shape: [3]}\n"
        "      - {name: b, dtype: int32, shape: [3]}\n"
        "      - {name: y, dtype: int32, shape: [3], direction: out, in_place: [a]}",
        "  pairs:\n    returns: void\n    args:\n      - {name: a, dtype: int32, shape: [3]}\n"
        "      - {name: b, dtype: int32, shape: [3]}\n"
        "      - {name: y, dtype: int32, shape: [3], direction: out, in_place: [a]}\n"
        "      - {name: z, dtype: int32, shape: [3], direction: out, in_place: [b]}",
        "  owned: {device: {}, args: [{name: y, dtype: uint8, shape: [6], direction: out}]}",
        "  aligned: {returns: void, args: [{name: x, dtype: uint8, shape: [4], align: 16}, "
        "{name: y, dtype: uint8, shape: [4], direction: out}]}",
    ]
    (work / "operators.c").write_text("\n".join(source) + "\n")
    (work / "manifest.yaml").write_text(
        "version: 1\nmodel: calls\nobjects: [{files: [operators.c]}]\noperators:\n"
        + "\n".join(operators)
        + "\nrun:\n  inputs: {x: {dtype: uint8, shape: [2]}}\n  outputs: {y: {dtype: uint8, shape: [2]}}\n"
        "  steps: [{call: t_uint8, args: [x, y]}]\n"
    )
    generate_quickly([work / "manifest.yaml"], work / "app")
    return build(work / "app", work / "build", PROGRAMS / "call.c")


def calls(program, *lines):
    """Make the calls; return the result of each and the first bytes of its last output."""
    done = execute(program, text="".join(f"{line}\n" for line in lines))
    assert done.returncode == 0, done.stderr
    answers = [line.split() for line in done.stdout.splitlines()]
    assert len(answers) == len(lines)
    return [(int(rc), bytes.fromhex(content)) for rc, content in answers]


def codes(program, *lines):
    return [rc for rc, _ in calls(program, *lines)]


INTEGERS = [name for name, (_, _, _, least, _) in TYPES.items() if least is not None]


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_scalars_arrive(program, name):
    code, _, form, least, most = TYPES[name]
    values = sorted({least, least + 1, 0, 1, most - 1, most})
    kind = "u" if name == "uint64" else "i"
    lines = [f"s_{name} 0 {kind}:{code}:{value} out:{UINT8}:8:0" for value in values]
    for value, (rc, content) in zip(values, calls(program, *lines), strict=True):
        assert rc == OK
        assert struct.unpack_from("<" + form, content)[0] == value


@pytest.mark.parametrize("name", [n for n in INTEGERS if not n.endswith("64")])
def test_integer_scalars_out_of_range_are_rejected(program, name):
    code, _, _, least, most = TYPES[name]
    values = [least - 1, most + 1, -(2**63), 2**63 - 1, least - 2**32, most + 2**32]
    answers = calls(program, *[f"s_{name} 0 i:{code}:{value} out:{UINT8}:8:0" for value in values])
    untouched = bytes(range(1, 17))
    assert answers == [(INVALID, untouched)] * len(values)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_real_scalars_arrive(program, name):
    code, _, form, _, _ = TYPES[name]
    values = [0.0, -0.0, 0.1, -1.5, 3.4028234663852886e38, 1.401298464324817e-45, float("inf"), float("-inf")]
    lines = [f"s_{name} 0 r:{code}:{value!r} out:{UINT8}:8:0" for value in values]
    for value, (rc, content) in zip(values, calls(program, *lines), strict=True):
        assert rc == OK
        assert content[: struct.calcsize(form)] == struct.pack("<" + form, value)


@pytest.mark.parametrize("name", TYPES)
def test_scalars_of_another_kind_or_type_are_rejected(program, name):
    code, *_ = TYPES[name]
    right = "r" if name in ("float32", "float64") else "i"
    wrong = "i" if right == "r" else "r"
    others = [other for other, *_ in TYPES.values() if other != code] + [len(TYPES), 255]
    lines = [f"s_{name} 0 {right}:{other}:1 out:{UINT8}:8:0" for other in others]
    lines += [
        f"s_{name} 0 {kind} out:{UINT8}:8:0" for kind in (f"{wrong}:{code}:1", f"in:{code}:8:0", f"out:{code}:8:0")
    ]
    assert set(codes(program, *lines)) == {INVALID}


@pytest.mark.parametrize("name", TYPES)
def test_tensors_of_every_type(program, name):
    code, _, form, *_ = TYPES[name]
    width = struct.calcsize(form)
    size = 2 * width
    good, larger = calls(
        program,
        f"t_{name} 0 in:{code}:{size}:0 out:{code}:{size}:64",
        f"t_{name} 0 in:{code}:{size + 100}:{width} out:{code}:{size + 1}:{width}",
    )
    assert good[0] == OK and good[1][:size] == bytes(range(1, size + 1))
    assert larger[0] == OK and larger[1][:size] == bytes(range(width + 1, width + size + 1))
    rejected = [
        f"in:{code}:{size - 1}:0 out:{code}:{size}:0",
        f"in:{code}:{size}:0 out:{code}:{size - 1}:0",
        f"in:{code}:0:0 out:{code}:{size}:0",
        f"in0:{code}:{size} out:{code}:{size}:0",
        f"in:{code}:{size}:0 out0:{code}:{size}",
        f"out:{code}:{size}:0 out:{code}:{size}:0",
        f"in:{code}:{size}:0 in:{code}:{size}:0",
        f"in:{(code + 1) % 12}:{size}:0 out:{code}:{size}:0",
        f"in:{code}:{size}:0 out:{(code + 1) % 12}:{size}:0",
        f"i:{code}:1 out:{code}:{size}:0",
        f"in:{code}:{size}:0 i:{code}:1",
    ]
    for off in range(1, width):
        rejected += [f"in:{code}:{size}:{off} out:{code}:{size}:0", f"in:{code}:{size}:0 out:{code}:{size}:{off}"]
    lines = [f"t_{name} 0 {arguments}" for arguments in rejected]
    for line, rc in zip(lines, codes(program, *lines), strict=True):
        assert rc == INVALID, line


def test_counts(program):
    a, b = f"in:{UINT8}:2:0", f"out:{UINT8}:2:0"
    lines = ["t_uint8 0", f"t_uint8 0 {a}", f"t_uint8 0 {a} {b} {b}", "t_uint8 0 nothing 2", "t_uint8 0 nothing 0"]
    assert codes(program, *lines) == [INVALID] * 5
    assert codes(program, f"t_uint8 0 {a} {b}") == [OK]


def test_unknown_operator(program):
    assert codes(program, "absent 0 i:0:1", "absent 0", "absent 1 nothing 0") == [NO_ENTRY] * 3


def test_status_of_the_operator(program):
    values = {0: 0, 1: IO, 2**31 - 1: IO, -1: -1, -errno.ETIMEDOUT: -errno.ETIMEDOUT, -(2**31) + 1: -(2**31) + 1}
    lines = [f"result 0 i:{INT32}:{value} out:{UINT8}:1:0" for value in values]
    answers = calls(program, *lines)
    assert [rc for rc, _ in answers] == list(values.values())
    assert all(content[0] == 1 for _, content in answers)


def test_out_inout_and_scratch_are_passed_alike(program):
    x, y = f"in:{INT32}:12:0", f"out:{INT32}:12:0"
    ((rc, content),) = calls(program, f"kinds 0 {x} {y} {y} {y}")  # shows the scratch memory: the last
    assert rc == OK and content[:12] == bytes(range(1, 13))
    for wrong in range(4):
        arguments = [x, y, y, y]
        arguments[wrong] = y if wrong == 0 else x
        assert codes(program, f"kinds 0 {' '.join(arguments)}") == [INVALID]


def test_devices(program):
    y = f"out:{UINT8}:6:0"
    ((rc, content),) = calls(program, f"owned 1 {y}")
    assert rc == OK and content[:6] == b"device"
    assert codes(program, f"owned 0 {y}") == [NO_DEVICE]
    assert codes(program, f"t_uint8 1 in:{UINT8}:2:0 out:{UINT8}:2:0") == [NO_DEVICE]
    assert codes(program, f"owned 0 in:{UINT8}:6:0") == [INVALID]


def test_declared_alignment_is_checked(program):
    good, bad = (f"aligned 0 in:{UINT8}:4:{off} out:{UINT8}:4:0" for off in (16, 8))
    assert codes(program, good) == [OK]
    assert codes(program, bad) == [INVALID]


ROW = 256
"""The memory of an argument follows that of the one before it, in bytes."""


def placed(kinds, moved, other, distance):
    """Return int32 arguments of 12 bytes, one of which is `distance` bytes behind a later one."""
    offsets = [0] * len(kinds)
    offsets[moved] += (other - moved) * ROW + distance
    words = {"i": "in", "o": "out"}
    return " ".join(f"{words[kind]}:{INT32}:12:{offset}" for kind, offset in zip(kinds, offsets, strict=True))


@pytest.mark.parametrize(("name", "kinds"), [("kinds", "iooo"), ("over", "iio"), ("pairs", "iioo")])
def test_results_do_not_overlap_other_arguments(program, name, kinds):
    """Every pair of arguments, before and behind each other; `in_place` permits exactly the same memory."""
    lines, wanted = [], []
    for moved, other in itertools.combinations(range(len(kinds)), 2):
        for distance in range(-16, 17, 4):
            both_read = kinds[moved] == kinds[other] == "i"
            in_place = (name, moved, other, distance) == ("over", 0, 2, 0)
            refused = abs(distance) < 12 and not both_read and not in_place
            lines.append(f"{name} 0 {placed(kinds, moved, other, distance)}")
            wanted.append(INVALID if refused else OK)
    assert codes(program, *lines) == wanted


def test_a_result_in_place_of_two_arguments_needs_both_permissions(program):
    """y in the memory of a, which is also that of b."""
    offsets = (2 * ROW, ROW)
    line = f"over 0 in:{INT32}:12:{offsets[0]} in:{INT32}:12:{offsets[1]} out:{INT32}:12:0"
    assert codes(program, line) == [INVALID]
