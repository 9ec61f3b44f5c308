# SPDX-License-Identifier: Apache-2.0
"""Both back ends say and do the same: programs/walk.c over two models, for every target that can be linked here.

What it writes has no addresses in it, so that every target has to write the same as well.
"""

import re

import pytest
import yaml
import yamlcore
from backends_support import (
    BACK_ENDS,
    MODULE,
    PROGRAMS,
    RUNTIME,
    TARGETS,
    build_operators,
    compile_sources,
    execute,
    includes,
    link,
    machine_of,
    metadata_objects,
    read_record,
)
from golden_support import GOLDEN


def walk(target, apps, work):
    """Return what the program writes with each back end; all but the metadata is compiled once."""
    machine = machine_of(target)
    app = apps["c"]
    port = "port_bare.c" if machine.memory else "port_hosted.c"
    options = ["-Wno-address-of-packed-member", "-fno-strict-aliasing", f"-I{PROGRAMS}", *includes(app)]
    sources = [PROGRAMS / "walk.c", PROGRAMS / port]
    sources += [MODULE / "src" / name for name in RUNTIME]
    shared = compile_sources(machine, work / "shared", sources, options)
    shared += build_operators(machine, target, app, work / "operators")
    written = {}
    for metadata in BACK_ENDS:
        objects = metadata_objects(machine, target, apps[metadata], work / metadata)
        program = link(machine, [*shared, *objects], work / f"{metadata}.elf")
        written[metadata] = execute(machine, program)
    return written


@pytest.fixture(scope="session")
def reference(apps, tmp_path_factory):
    """What the C back end writes on this computer."""
    return walk("x86-64", apps, tmp_path_factory.mktemp("reference"))["c"]


@pytest.mark.parametrize("target", TARGETS)
def test_back_ends_write_the_same(target, apps, reference, tmp_path):
    written = walk(target, apps, tmp_path)
    assert written["llvm"] == written["c"]
    assert written["c"] == reference


def test_header_and_devices_do_not_depend_on_the_back_end(apps):
    for model in read_record(apps["c"])["models"]:
        name = f"models/{model['name']}/include/{model['name']}.h"
        assert (apps["c"] / name).read_bytes() == (apps["llvm"] / name).read_bytes()
    assert (apps["c"] / "src" / "main.c").read_bytes() == (apps["llvm"] / "src" / "main.c").read_bytes()


def test_llvm_leaves_only_the_devices_in_c(apps):
    for model in read_record(apps["llvm"])["models"]:
        sources = apps["llvm"] / "models" / model["name"] / "src"
        # Beside the devices only what the service of an image calls, and it is not a part of the metadata.
        expected = [f"{model['name']}_devices.c", f"{model['name']}_service.c"]
        assert sorted(path.name for path in sources.glob("*.c")) == expected


def test_the_walk_says_what_the_manifest_says(reference):
    """Not only the same, but right: names, types, shapes and directions against the manifest."""
    text = (GOLDEN / "many_kinds" / "manifest.yaml").read_text()
    manifest = yaml.load(text, Loader=yamlcore.CoreLoader)
    directions = {"in": 0, "out": 1, "inout": 2, "scratch": 3}
    for name, operator in manifest["operators"].items():
        args = operator["args"]
        found = re.search(rf"^operator {name} (\d+) {len(args)}$\n((?:  .*\n)+)", reference, re.MULTILINE)
        assert found, name
        flags = (operator.get("returns") != "void") | bool(operator.get("stateful")) << 2
        assert int(found[1]) == flags
        rows = [line for line in found[2].splitlines() if not line.startswith("   ")]
        for arg, row in zip(args, rows, strict=True):
            words = row.split()
            shape = arg.get("shape", [])
            assert words[0] == arg["name"] and words[2] == arg["dtype"]
            assert int(words[3]) == directions[arg.get("direction", "in")]
            scalar, align = int(words[4]) & 1, 1 << (int(words[4]) >> 4)
            assert scalar == bool(arg.get("scalar")) and (align == arg["align"] if "align" in arg else align <= 8)
            assert int(words[6]) == len(shape)
            if shape:
                assert f"[ {' '.join(map(str, shape))} ]" in row
    quantizations = re.findall(r"^    quantization (\d+) (\d+) (-?\d+)", reference, re.MULTILINE)
    assert ("8", "8", "0") in quantizations and ("3", "1", "1") in quantizations and ("1", "1", "-1") in quantizations


def test_what_the_program_may_not_say(reference):
    for fault in ("not found", "found what", "impossible", "fault"):
        assert fault not in reference
    # -EALREADY by the C library's own value: twice for close and once for open, per model.
    walked = reference[: reference.index("\ncall 1 fails\n")]
    assert len(re.findall(r"^close -100000 ", walked, re.MULTILINE)) == 8
    assert len(re.findall(r"^open -100000 ", walked, re.MULTILINE)) == 4
    assert "log accelerated 7 2147483647" in reference
    # Every hook, each of three ways to fail, until nothing is left to fail.
    rounds = [int(n) for n in re.findall(r"^call (\d+) fails$", reference, re.MULTILINE)]
    assert rounds == [*range(1, max(rounds) + 1)] * 3 and max(rounds) > 30
    assert not re.search(r"^ (flush|invalidate).* \d{4,}", reference, re.MULTILINE), "not at the start of a line"
    programs = re.findall(r"^device \S+ .* (wide|narrow|shared) (\d+) # (\d+)", reference, re.MULTILINE)
    assert [name for name, _, _ in programs] == ["shared", "wide", "wide", "narrow"]
    assert len({place for name, _, place in programs if name != "narrow"}) == 1, "the same bytes are there once"
    # Each operator, five times.
    assert len(re.findall(r"^call store ", reference, re.MULTILINE)) == 5
