# SPDX-License-Identifier: Apache-2.0
"""The objects of --metadata=llvm: valid for their target, constant, only known symbols, dropped if unused."""

import io
import re
import shutil

import pytest
from backends_support import (
    BACK_ENDS,
    MODELS,
    MODULE,
    PROGRAMS,
    RUNTIME,
    TARGETS,
    TARGETS_OF,
    applications,
    build_operators,
    compile_sources,
    includes,
    link,
    machine_of,
    metadata_objects,
    run_tool,
    target_abi,
)
from campaign import sized
from elftools.elf.elffile import ELFFile
from opwest import __version__
from opwest.objects.compat import abi_faults
from opwest.objects.inspect import inspect_object

RUNTIME_SYMBOLS = {
    *(f"opwest_status_{name}" for name in ("failed", "hook_failed", "already", "invalid", "unreached", "cancelled")),
    *(f"opwest_devices_{name}" for name in ("activate", "deactivate", "begin", "acquire", "release", "cancel")),
    *(f"opwest_devices_{name}" for name in ("prepare", "again", "launched", "sync", "abandon")),
    *(f"opwest_port_cache_{name}" for name in ("flush", "flush_and_invalidate", "invalidate")),
    *(f"opwest_tvm_{name}" for name in ("enter", "leave", "code")),
    *(f"opwest_state_{name}" for name in ("reset", "save", "restore")),
    *("opwest_halide_code", "opwest_call_on_device", "memcpy", "opwest_port_take", "opwest_port_give"),
    "opwest_buffers_overlap",
}
# Operators of `conventions` that are not of TVM's conventions; the last three are of MLIR's.
OTHERS = ("total", "negate", "label", "mean", "blur", "limited", "cross", "turn", "shift", "sum")
STATEFUL = ("many_kinds",)
FLAG = re.compile(r"\.s?bss\.in_use")
REACHED = {"accelerated": ("control", "y"), "asynchronous": ("control", "raw", "report")}
PARTS = ("build", "constants", "buffers", "pool_places", "step_bindings")
PUBLIC = ("open", "run", "run_profiled", "close", "model", "registry", "operators", "points", "details", *PARTS)
# Conversions of floats and 64 bits in libgcc, and symbols of position-independent code.
SUPPORT = re.compile(r"__aeabi_[a-z0-9]+|__truncdfsf2|__extendsfdf2|_GLOBAL_OFFSET_TABLE_")


@pytest.fixture(scope="session")
def app(apps):
    return apps


@pytest.mark.parametrize(("model", "target"), [(model, target) for model in MODELS for target in TARGETS_OF[model]])
def test_object_fits_the_target(app, model, target):
    path = app["llvm"] / "models" / model / "objects" / target / f"{model}_metadata.o"
    (member,) = inspect_object(path).members
    assert (member.faults, abi_faults(member.abi, target_abi(target))) == ((), [])
    # One mutable global in a model with state: whether a workspace is open.
    flag = ("in_use",) if model in STATEFUL else ()
    word = 8 if target_abi(target).bits == 64 else 4
    assert (member.sizes.data, member.sizes.bss, member.stateful_symbols) == (0, word * len(flag), flag)
    operators = {f"{model}__{name}" for name in _operators(model)}
    known = operators | RUNTIME_SYMBOLS | {f"{model}_reaches_{name}" for name in REACHED.get(model, ())}
    unknown = {n for n in member.undefined if n not in known and not SUPPORT.fullmatch(n)}
    # Weak: without CONFIG_OPWEST_PROFILE the runtime does not define them, and the run that calls them is dropped.
    assert unknown == {"opwest_profile_begin", "opwest_profile_end"}
    assert not unknown & set(member.undefined_strong)
    assert operators <= set(member.undefined)
    expected = {f"{model}_{name}" for name in PUBLIC}
    if model == "conventions":
        expected.add("TVMSystemLibEntryPoint")
        expected |= {f"conventions_packed_{name}" for name in ("add", "mix", "launch", *OTHERS)}
    if model not in ("many_kinds", "streams"):
        expected |= {f"{model}_{name}" for name in ("device_table", "device_set", "cancel")}
    if model in ("accelerated", "asynchronous"):
        expected.add(f"{model}_programs")
    if model == "streams":
        expected |= {f"{model}_{name}" for name in ("state", "reset", "save", "restore", "views")}
    if not {name for name in member.defined if f"{model}_constant_" in name}:
        expected.remove(f"{model}_constants")
    assert {name for name in member.defined if not re.search("constant_|opwest_program", name)} == expected


def _operators(model):
    if model == "streams":
        return ["filters", "energies", "recurrent", "push", "convolve"]
    if model == "accelerated":
        return ["mix", "reverse", "stamp"]
    if model == "asynchronous":
        return ["scale", "fold", "move", "dsp_filter", "start", "add"]
    if model == "conventions":
        packed = [f"tvmgen_conventions_{n}" for n in ("scale", "smooth", "gather", "move", "kinds", "launch")]
        mlir = [f"_mlir_ciface_{n}" for n in ("turn", "shift", "sum")]
        return [*packed, *(f"__tvm_ffi_{n}" for n in ("add", "mix", "launch")), *mlir, *OTHERS[:-3]]
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    copies = [f"copy_{dtype}" for dtype in (*integers, "float16", "float32", "float64", "bool")]
    return [*copies, "store", "store_ir", "start", "add", "finish", "tick"]


@pytest.mark.parametrize("target", TARGETS)
def test_sections(app, target):
    for model in [name for name in MODELS if target in TARGETS_OF[name]]:
        path = app["llvm"] / "models" / model / "objects" / target / f"{model}_metadata.o"
        elf = ELFFile(io.BytesIO(path.read_bytes()))
        sections = [s for s in elf.iter_sections() if s["sh_flags"] & 2 and s["sh_size"]]
        names = [s.name for s in sections]
        flags = [n for n in names if FLAG.fullmatch(n)]
        assert len(flags) == (model in STATEFUL)
        found = re.compile(r"\.(init_array|fini_array|ctors|dtors|eh_frame|ARM\.ex|bss|data$)")
        assert not [n for n in names if found.match(n) and n not in flags]
        # .data.rel.ro: constants with addresses in position-independent code.
        writable = [s.name for s in sections if s["sh_flags"] & 1 and not s.name.startswith(".data.rel.ro")]
        assert writable == flags
        # A section for each function and each table that the linker may drop.
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if symbol["st_info"]["type"] in ("STT_FUNC", "STT_OBJECT") and symbol["st_shndx"] != "SHN_UNDEF":
                section = elf.get_section(symbol["st_shndx"])
                kinds = {"STT_FUNC": ".text.", "STT_OBJECT": (".rodata.", ".data.rel.ro.", ".srodata.", *flags)}
                assert section.name.startswith(kinds[symbol["st_info"]["type"]]), (symbol.name, section.name)


MAIN = """
#include <accelerated.h>
#include <many_kinds.h>
#include "port.h"
void walk(void)
{
	static struct many_kinds_workspace workspace;
	static const struct many_kinds_devices devices;
	static const struct many_kinds_inputs inputs;
	static const struct many_kinds_outputs outputs;
	(void)many_kinds_open(&workspace, &devices);
	(void)many_kinds_run(&inputs, &outputs, &workspace, &devices);
}
"""


@pytest.mark.parametrize(
    "target",
    [
        *("x86-64", "cortex-m3", "cortex-a53", "rv32imac"),
        *sized([], ["i386", "cortex-m55f-mve", "rv64gc"]),
    ],
)
def test_unused_parts_are_dropped(app, target, tmp_path):
    machine = machine_of(target)
    main = tmp_path / "main.c"
    main.write_text(MAIN)
    port = "port_bare.c" if machine.memory else "port_hosted.c"
    sources = [main, PROGRAMS / port, *(MODULE / "src" / name for name in RUNTIME)]
    shared = compile_sources(machine, tmp_path / "shared", sources, [f"-I{PROGRAMS}", *includes(app["c"])])
    shared += build_operators(machine, target, app["c"], tmp_path / "operators")
    nm = machine.compiler.replace("gcc", "nm") if "-gcc" in machine.compiler else "nm"
    assert shutil.which(nm)
    for metadata in BACK_ENDS:
        objects = metadata_objects(machine, target, app[metadata], tmp_path / metadata)
        program = link(machine, [*shared, *objects], tmp_path / f"{metadata}.elf")
        symbols = set(re.findall(r" (\S+)$", run_tool([nm, program], tmp_path), re.MULTILINE))
        assert "many_kinds_run" in symbols
        left = [f"{model}_{part}" for model in MODELS for part in ("model", "registry", "operators", "details", *PARTS)]
        assert not symbols.intersection(left), metadata
        # No uncalled parts of the model, no adapters and no functions that only they call.
        assert not [n for n in symbols if n.startswith(("accelerated", "opwest_adapter_of_", "many_kinds_close"))], (
            metadata
        )
        assert "many_kinds__store_ir" not in symbols and "many_kinds__store" in symbols
        assert not [n for n in symbols if "unused" in n]
        # Private tables and strings have no symbols: search for names that only metadata contains.
        names = (b"\0copy_uint64\0", b"\0offsets\0", b"\0in_uint16\0")
        elf = ELFFile(io.BytesIO(program.read_bytes()))
        loaded = b"\0".join(s.data() for s in elf.iter_sections() if s["sh_flags"] & 2 and s["sh_type"] != "SHT_NOBITS")
        assert not [name for name in names if name in loaded], metadata


PART = """
#include <many_kinds.h>
#include "port.h"
void walk(void)
{{
	port_write((const char *)&many_kinds_{part});
}}
"""


@pytest.mark.parametrize("part", [*PARTS, "model"])
def test_each_part_is_kept_alone(app, part, tmp_path):
    machine = machine_of("cortex-m3")
    main = tmp_path / "main.c"
    main.write_text(PART.format(part=part))
    shared = compile_sources(
        machine, tmp_path / "shared", [main, PROGRAMS / "port_bare.c"], [f"-I{PROGRAMS}", *includes(app["c"])]
    )
    for metadata in BACK_ENDS:
        objects = metadata_objects(machine, "cortex-m3", app[metadata], tmp_path / metadata)
        program = link(machine, [*shared, *objects], tmp_path / f"{metadata}.elf")
        symbols = set(re.findall(r" (\S+)$", run_tool(["arm-none-eabi-nm", program], tmp_path), re.MULTILINE))
        kept = {name for name in (*PARTS, "model", "details") if f"many_kinds_{name}" in symbols}
        assert kept == {part}, metadata
        # The strings of other parts have no symbols in objects of LLVM.
        elf = ELFFile(io.BytesIO(program.read_bytes()))
        loaded = b"\0".join(s.data() for s in elf.iter_sections() if s["sh_flags"] & 2 and s["sh_type"] != "SHT_NOBITS")
        found = {name for name, text in TEXTS.items() if b"\0" + text + b"\0" in b"\0" + loaded}
        assert found == {name for name in TEXTS if name == part}, metadata


# Strings that the other parts do not contain.
TEXTS = {"build": __version__.encode(), "model": b"copy_uint64"}


def test_equal_strings_shapes_and_quantizations_are_stored_once(app):
    path = app["llvm"] / "models" / "many_kinds" / "objects" / "cortex-m3" / "many_kinds_metadata.o"
    elf = ELFFile(io.BytesIO(path.read_bytes()))
    # Those of run have separate sections, so that run does not keep all others.
    tables = [
        s
        for s in elf.iter_sections()
        if s.name.startswith(".rodata") and not re.search("_(run|details|buffers)_string_", s.name)
    ]
    rodata = b"\0".join(s.data() for s in tables)
    for text in (b"copy_int8", b"copy_uint16", b"total", b"many_kinds", b"scratch"):
        assert rodata.count(b"\0" + text + b"\0") + rodata.startswith(text + b"\0") <= 1


def test_objects_are_reproducible(app, tmp_path):
    count = sized(1, 5)
    again = applications(tmp_path, ["llvm"], count)["llvm"]
    names = sorted(p.relative_to(again).as_posix() for p in again.rglob("*.o"))
    assert len(names) >= sum(map(len, list(TARGETS_OF.values())[:count])) - 4
    assert [n for n in names if (again / n).read_bytes() != (app["llvm"] / n).read_bytes()] == []
    paths = str(tmp_path).encode()
    assert not [n for n in names if paths in (again / n).read_bytes()]
