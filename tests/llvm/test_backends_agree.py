# SPDX-License-Identifier: Apache-2.0
"""Both back ends are equivalent: programs/walk.c with five models, for every target that can be linked here.

Its output contains no addresses, so it must be the same for every target.
"""

import re
from hashlib import sha256

import numpy as np
import pytest
import streams
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
from campaign import sized
from opwest.render.tables import layout
from show_support import ROOTS, reachable, read_records, show_header

WALKED = ("x86-64", "i386", "cortex-m0", "cortex-m4f-softfp", "rv32imac", "rv64gc")
"""A target of each width and alignment of pointers and 64-bit numbers; the others run in campaigns."""


def write_show(work):
    """Write show.h and return the option for its directory."""
    (work / "show").mkdir()
    (work / "show" / "show.h").write_text(show_header())
    return f"-I{work / 'show'}"


def walk(target, apps, work):
    """Return the output of programs/walk.c with each back end; only the metadata is compiled twice."""
    machine = machine_of(target)
    app = apps["c"]
    port = "port_bare.c" if machine.memory else "port_hosted.c"
    options = [
        "-Wno-address-of-packed-member",
        "-fno-strict-aliasing",
        f'-DTARGET="{target}"',
        f"-I{PROGRAMS}",
        write_show(work),
        *includes(app),
    ]
    sources = [PROGRAMS / "walk.c", PROGRAMS / port]
    sources += [MODULE / "src" / name for name in RUNTIME]
    shared = compile_sources(machine, work / "shared", sources, options)
    shared += build_operators(machine, target, app, work / "operators")
    written = {}
    for metadata in BACK_ENDS:
        objects = metadata_objects(machine, target, apps[metadata], work / metadata)
        image = link(machine, [*shared, *objects], work / f"{metadata}.elf")
        written[metadata] = execute(machine, image)
    return written


@pytest.fixture(scope="session")
def reference(apps, tmp_path_factory):
    """The output with the C back end on this machine."""
    return walk("x86-64", apps, tmp_path_factory.mktemp("reference"))["c"]


@pytest.mark.parametrize("target", sized(WALKED, TARGETS))
def test_back_ends_write_equal_tables(target, apps, reference, tmp_path):
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
        # Besides the devices only calls of the service of an image, which is not a part of the metadata.
        expected = [f"{model['name']}_devices.c", f"{model['name']}_service.c"]
        assert sorted(path.name for path in sources.glob("*.c")) == expected


@pytest.mark.parametrize("target", sized(["x86-64", "cortex-m3"], ["x86-64", "i386", "cortex-m3", "rv32imac"]))
def test_points_are_the_same(target, apps, tmp_path):
    machine = machine_of(target)
    profiled = "-DCONFIG_OPWEST_PROFILE"
    options = [f"-I{PROGRAMS}", write_show(tmp_path), *includes(apps["c"]), profiled]
    port = "port_bare.c" if machine.memory else "port_hosted.c"
    shared = compile_sources(machine, tmp_path / "shared", [PROGRAMS / "points.c", PROGRAMS / port], options)
    written = {}
    for metadata in BACK_ENDS:
        objects = metadata_objects(machine, target, apps[metadata], tmp_path / metadata, [profiled])
        written[metadata] = execute(machine, link(machine, [*shared, *objects], tmp_path / f"{metadata}.elf"))
    assert written["llvm"] == written["c"]
    records = read_records(written["c"])
    first = {"name": ["accelerated"], "step": [0xFFFF], "device": [0xFFFF], "kind": [0]}
    assert records[0] == first and len(records) > 40
    copy = {"name": ["h"], "step": [0xFFFF], "device": [0xFFFF], "kind": [layout.POINT_KIND.code("copy")]}
    assert records[-1] == copy


def test_walk_writes_every_structure_of_the_metadata():
    shown = {struct.name for root in ROOTS for struct in reachable(root)}
    # Private to the code of open, run and close.
    assert {struct.name for struct in layout.METADATA} - shown == {"opwest_device_set", "opwest_device_use"}


def test_walked_states_and_views_equal_the_manifest(reference):
    records = read_records(reference)
    at = next(i for i, record in enumerate(records) if record.get("name") == ["streams"])
    details = next(record for record in records[at:] if "view_count" in record)
    binding, role = layout.BINDING_KIND.code, layout.BUFFER_ROLE.code
    views = [(v["tensor"][0]["name"][0], v["base"][0], v["offset"]) for v in details["views"][0]]
    y = {"kind": [binding("output")], "index": [0]}
    assert views == [("hidden", y, [0]), ("response", y, [12])]
    (state,) = details["state"]
    assert (state["count"], state["size"]) == ([4], [8 + 16 + 12 + 40 + 4])
    identity = state["layout_low"][0] | state["layout_high"][0] << 32
    listed = "z: float32 [2, 2]", "h: float32 [3]", "ring: float32 [5, 2]", "place: int32 [1]"
    assert identity == int.from_bytes(sha256("\n".join(listed).encode()).digest()[:8], "little")
    tensors = state["tensors"][0]
    assert [t["size"] for t in tensors] == [[16], [12], [40], [4]]
    assert [t["initial"] for t in tensors] == [["NULL"], ["set"], ["set"], ["NULL"]]
    assert [t["initial_size"] for t in tensors] == [[0], [12], [4], [0]]
    assert len({t["pool"][0] for t in tensors[:2] + tensors[3:]}) == 1 and tensors[2]["pool"] != tensors[0]["pool"]
    none = {"kind": [binding("input")], "index": [layout.NO_NEXT.value]}
    assert [t["next"][0] for t in tensors] == [none, {"kind": [binding("view")], "index": [0]}, none, none]
    buffers = [record for record in records[at:] if "role" in record]
    assert [buffers[t["buffer"][0]]["role"] for t in tensors] == [[role("state")]] * 4
    steps = [[b["kind"][0] for b in step["bindings"][0]] for step in details["step_bindings"][0]]
    assert [kinds[-1] == binding("view") for kinds in steps] == [False, False, True, False, True]


def test_walked_frames_equal_numpy(reference):
    """The same frames in numpy: outputs after each, states after a failure, reset, restore and open."""
    stream = streams.Stream()
    frames = re.findall(r"^frame (-?\d+) (\w+) (\w+) (\w+)$", reference, re.MULTILINE)
    kept = (stream.z, stream.h, stream.ring, stream.place)
    for number, (event, *texts) in enumerate(frames):
        x, y, saved = (bytes.fromhex(text) for text in texts)
        if event in ("-1", "-2"):
            stream.reset()
        elif event == "-3":
            stream.z, stream.h, stream.ring, stream.place = (np.copy(part) for part in kept)
        expected = stream.run(np.frombuffer(x, np.float32))
        if int(event) > 0:
            stream.reset()
        else:
            assert y == expected.tobytes(), number
        now = (stream.z, stream.h, stream.ring, np.array([stream.place], np.int32))
        assert saved[8:] == b"".join(np.asarray(part).tobytes() for part in now), number
        if number == 1:
            kept = tuple(np.copy(part) for part in (*now[:3], stream.place))
    assert {int(event) for event, *_ in frames} == {*range(-3, 6)}


def test_output_of_the_program_has_no_faults(reference):
    for fault in ("not found", "found what", "impossible", "fault"):
        assert fault not in reference
    # -EALREADY by the C library's own value: twice for close and once for open, per model.
    walked = reference[: reference.index("\ncall 1 fails\n")]
    assert len(re.findall(r"^close -100000 ", walked, re.MULTILINE)) == 10
    assert len(re.findall(r"^open -100000 ", walked, re.MULTILINE)) == 5
    assert "log accelerated 7 2147483647" in reference
    # Every hook, in each of three ways to fail, until no hook is left.
    rounds = [int(n) for n in re.findall(r"^call (\d+) fails$", reference, re.MULTILINE)]
    assert rounds == [*range(1, max(rounds) + 1)] * 3 and max(rounds) > 30
    # The run is cancelled during every call in turn: it returns -ECANCELED until all calls were made.
    cancelled = reference.split("\n  cancelled\n")[1:]
    ends = [re.search(r"^run (-?\d+) (-?\d+) (\d+) (\d+) (\d+) ", text, re.MULTILINE) for text in cancelled]
    assert len(cancelled) > 20
    assert sum(end is not None and end[4] == "14" and end[1] == end[2] for end in ends) > 20
    assert not re.search(r"^ (flush|invalidate).* \d{4,}", reference, re.MULTILINE), "not at the start of a line"
    programs = re.findall(r"^program (\w+) # (\d+) (\d+)$", reference, re.MULTILINE)
    assert [name for name, _, _ in programs] == ["shared", "wide", "wide", "narrow"]
    assert len({place for name, place, _ in programs if name != "narrow"}) == 1, "equal bytes are stored once"
    assert {rest for _, _, rest in programs} == {"0"}, "programs are aligned to 16 bytes"
    # Each operator, five times.
    assert len(re.findall(r"^call store ", reference, re.MULTILINE)) == 5
