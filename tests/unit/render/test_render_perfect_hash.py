# SPDX-License-Identifier: Apache-2.0
"""The perfect hash: minimal, and equal in Python and in zephyr_module/src/registry.c."""

import random
import string

import pytest
from c_support import ROOT, execute, run
from hypothesis import given, settings
from hypothesis import strategies as st
from opwest.render.literals import c_string
from opwest.render.perfect_hash import find, perfect_hash
from requirements_support import need_compiler

NAMES = st.lists(st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=30), unique=True, min_size=1)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(NAMES)
def test_every_name_has_its_own_slot(names):
    table = perfect_hash(names)
    assert sorted(table.order) == list(range(len(names)))
    assert [names[table.order[find(table, name)]] for name in names] == names
    assert len(table.displacements) == -(-len(names) // 4)
    assert all(0 <= displacement <= 0xFFFF for displacement in table.displacements)
    assert 0 <= table.seed <= 0xFFFFFFFF


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 10, 100, 1000, 10_000])
def test_sizes(count):
    names = [f"tvmgen_default_fused_nn_conv2d_{i}" for i in range(count)]
    table = perfect_hash(names)
    assert [table.order[find(table, name)] for name in names] == list(range(count))


def test_table_is_the_same_every_time():
    names = [f"operator_{i}" for i in range(100)]
    assert perfect_hash(names) == perfect_hash(list(names))


def test_unknown_names_get_an_index_within_the_table():
    table = perfect_hash(["a", "b", "c"])
    assert all(0 <= find(table, name) < 3 for name in ("", "d", "ü", "a" * 1000))


def test_equal_hashes_change_the_seed(monkeypatch):
    """Two names that collide with the first seeds: the search continues."""
    import opwest.render.perfect_hash as module

    real = module._hash
    monkeypatch.setattr(module, "_hash", lambda name, seed: 7 if seed < 3 else real(name, seed))
    assert perfect_hash(["a", "b"]).seed == 3


def test_python_and_c_agree(tmp_path):
    """Random names in both implementations, in the table and not in it."""
    need_compiler("gcc")
    generator = random.Random(11)
    letters = string.ascii_letters + string.digits + "_"
    names = sorted({"".join(generator.choices(letters, k=generator.randint(1, 40))) for _ in range(700)})
    table = perfect_hash(names)
    places = [names[index] for index in table.order]
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\n#include <string.h>\n#include <opwest/registry.h>\n"
        "static const struct opwest_operator operators[] = {\n"
        + "".join(f"\t{{.name = {c_string(name)}}},\n" for name in places)
        + "};\nstatic struct opwest_entry entries[sizeof(operators) / sizeof(operators[0])];\n"
        f"static const uint16_t displacements[] = {{{', '.join(map(str, table.displacements))}}};\n"
        f"static const struct opwest_registry registry = {{entries, displacements, {table.seed}U, "
        f"{len(table.displacements)}, {len(names)}}};\n"
        "int main(void)\n{\n\tchar line[256];\n\n"
        f"\tfor (size_t i = 0; i < {len(names)}; i++) {{\n\t\tentries[i].info = &operators[i];\n\t}}\n"
        "\twhile (fgets(line, sizeof(line), stdin) != NULL) {\n\t\tline[strcspn(line, \"\\n\")] = '\\0';\n\n"
        "\t\tconst struct opwest_entry *const found = opwest_find(&registry, line);\n\n"
        '\t\tprintf("%ld\\n", found == NULL ? -1L : (long)(found - entries));\n\t}\n\treturn 0;\n}\n'
    )
    runtime = ROOT / "zephyr_module"
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{runtime / 'include'}"]
    sources = [runtime / "src" / name for name in ("registry.c", "metadata.c")]
    run(["gcc", *options, "main.c", *sources, "-o", "program"], tmp_path)
    others = [name[:-1] for name in names] + ["", "ü", "漢字", "\x7f"]
    others = [name for name in others if name not in set(names)]
    done = execute(tmp_path / "program", text="".join(f"{name}\n" for name in [*names, *others]))
    expected = [find(table, name) for name in names] + [-1] * len(others)
    assert [int(line) for line in done.stdout.split()] == expected
