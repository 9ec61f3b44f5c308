# SPDX-License-Identifier: Apache-2.0
"""opwest_find with generated registries: finds every name at its index, and no other names."""

import random
import string

import pytest
from c_support import SANITIZED, build, execute
from campaign import sized
from golden_support import generate_quickly
from requirements_support import need_compiler
from runtime_support import PROGRAMS, build_with_runtime

SOURCE = "#include <stdint.h>\nint32_t op(const int8_t *x, int8_t *y);\n"
SOURCE += "int32_t op(const int8_t *x, int8_t *y)\n{\n\t*y = *x;\n\treturn 0;\n}\n"
ARGS = "[{name: x, dtype: int8, shape: [1]}, {name: y, dtype: int8, shape: [1], direction: out}]"


def names_of(count: int) -> list[str]:
    """Return names like those of networks: long common prefixes, numbers at the end, and short ones."""
    generator = random.Random(count)
    names = ["on", "no", "y", "f", "a" * 200][: max(1, count // 2)]
    while len(names) < count:
        number = len(names)
        tail = "".join(generator.choices(string.ascii_letters + "_", k=3))
        names.append(f"tvmgen_default_fused_nn_conv2d_add_{number}{'_' * (number % 2)}{tail}")
    return names


def strangers(names: list[str]) -> list[str]:
    """Return names similar to existing ones, and others."""
    known = set(names)
    near = ["", "x", "é", "\x7f", "a" * 199, "a" * 201, "op", "tvmgen_default_fused_nn_conv2d_add_"]
    for name in names:
        near += [name[:-1], name + "_", name.upper(), name[::-1], name.replace("_", "-"), " " + name, name + " "]
    generator = random.Random(7)
    near += ["".join(generator.choices(string.printable[:90], k=12)) for _ in range(1000)]
    return [name for name in near if name not in known]


def program_with(work, names: list[str], flags=SANITIZED):
    """Build the finder for a model with these operators."""
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


def found(program, names: list[str]) -> list[int]:
    """Return the operator's index for each name, -1 if not found."""
    done = execute(program, text="".join(f"{name}\n" for name in names))
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


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
    names = names_of(100)
    program = program_with(tmp_path / "project", names, flags)
    assert found(program, names) == list(range(100))


def test_find_in_an_empty_registry(tmp_path):
    main = tmp_path / "main.c"
    main.write_text(
        "#include <opwest/registry.h>\nint main(void)\n{\n"
        "\tconst struct opwest_registry empty = {NULL, NULL, 0, 0, 0};\n"
        '\treturn opwest_find(&empty, "x") == NULL ? 0 : 1;\n}\n'
    )
    assert execute(build_with_runtime(tmp_path, main, ["registry.c", "metadata.c"])).returncode == 0
