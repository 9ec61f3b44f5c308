# SPDX-License-Identifier: Apache-2.0
"""Instructions counted in QEMU: the results of the plugin, and what prevents counting. Images: tests/zephyr/."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from board_support import QUIET
from fake_west import FakeWest
from opwest.base.diagnostics import Diagnostics
from opwest.runs.counting import Counter, counter_of
from opwest.runs.plugin import PluginError, built_plugin
from opwest.runs.profile import Profile, make_measure, make_profile
from opwest.runs.west import Build
from requirements_support import need


def profile_of(model: str) -> Profile:
    """Return a profile in ticks of a run and a step."""
    rows = (("run", model, 65535, 9), ("step", "f", 0, 7))
    measures = [make_measure(kind, name, step, 65535, 1, *[ticks] * 4) for kind, name, step, ticks in rows]
    return make_profile(25_000_000, 0, 0, measures).labelled(model, "board", "emulated", ())


def counted(tmp_path: Path, lines: str) -> tuple[Profile, list[str]]:
    """Return the profile of model `b`, the second array, with the counts of a file; and the diagnostics."""
    file, faults = tmp_path / "counts.txt", Diagnostics()
    file.write_text(lines)
    profile = Counter(("a", "b"), (), (), file, "Cortex-M4").counted(profile_of("b"), faults)
    return profile, [str(fault) for fault in faults]


def numbers(profile: Profile) -> list[tuple[int, ...]]:
    return [(one.runs, one.last, one.min, one.max, one.total, one.cycles) for one in profile.measures]


def test_counts_replace_the_ticks_of_the_model(tmp_path):
    profile, faults = counted(tmp_path, "1 1 50 60 0\n1 0 100 130 0\n0 0 7 7 0\n1 1 52 62 0\n1 0 104 132 0\n")
    assert faults == [] and (profile.clock, profile.unit) == ("counted", "instructions")
    assert numbers(profile) == [(2, 104, 100, 104, 204, 131), (2, 52, 50, 52, 102, 61)]
    shown = profile.as_json()
    assert (shown["frequency_hz"], shown["modelled_processor"]) == (0, "Cortex-M4")
    assert [point["modelled_cycles"] for point in shown["points"]] == [131, 61]
    text = "\n".join(profile.as_text())
    assert text.startswith("profile: 2 runs, instructions (counted in QEMU)\n")
    assert text.endswith("cycles: modelled for a Cortex-M4 without caches and wait states")


def test_runs_in_which_the_thread_changed_are_left_out(tmp_path):
    profile, _ = counted(tmp_path, "1 1 50 60 0\n1 0 900 900 1\n1 1 50 60 0\n1 0 100 130 0\n")
    assert profile.clock == "counted" and numbers(profile)[0] == (1, 100, 100, 100, 100, 130)


def test_instructions_of_several_threads_are_no_exact_counts(tmp_path):
    profile, _ = counted(tmp_path, "1 1 50 60 1\n1 0 900 950 1\n1 1 50 60 1\n1 0 902 952 1\n")
    assert (profile.clock, profile.unit) == ("emulated", "instructions")
    assert profile.as_text()[0] == "profile: 2 runs, instructions (of several threads in QEMU: they vary)"


def test_profile_without_counts_keeps_its_ticks(tmp_path):
    profile, faults = counted(tmp_path, "0 0 7 7 0\n1 1 50 60 0\n")
    assert (profile.clock, profile.unit, profile.measures[0].last) == ("emulated", "ticks", 9)
    assert faults == [
        "opwest: warning: the instructions are not counted: no run of model 'b' ended in the image; the profile has "
        "ticks of QEMU's timer, which vary\n  hint: omit --no-build"
    ]
    assert profile.as_text()[0] == "profile: 1 run, ticks (timer of QEMU: it varies), 25000000 Hz"


@pytest.fixture
def build(tmp_path):
    west = FakeWest(tmp_path / "workspace")
    folder = tmp_path / "build" / "run_board"
    (folder / "zephyr").mkdir(parents=True)
    return Build(*(west.workspace, west.west, tmp_path / "app", "board", folder, QUIET), runtime=tmp_path / "runtime")


def test_image_that_cannot_be_counted_is_a_warning(build):
    faults = Diagnostics()
    assert counter_of(build, faults) is None
    (build.folder / "zephyr" / "zephyr.elf").write_bytes(b"\x7fELF")
    assert counter_of(build, faults) is None
    (build.folder / "zephyr" / "zephyr.elf").write_bytes(Path(sys.executable).resolve().read_bytes())
    assert counter_of(build, faults) is None
    missing, damaged, other = (str(fault).splitlines() for fault in faults)
    elf = build.folder / "zephyr" / "zephyr.elf"
    end = "; the profile has ticks of QEMU's timer, which vary"
    assert missing[0].endswith(f"not counted: cannot read '{elf}': No such file or directory{end}")
    assert "not counted: truncated: the file has 4 bytes, the ELF header at least 16" in damaged[0]
    assert other[0].endswith(f"not counted: board 'board' has another processor than a Cortex-M or RISC-V{end}")


def test_plugin_needs_a_compiler_and_an_emulator(monkeypatch, tmp_path):
    source = tmp_path / "p.c"
    source.write_text("int qemu_plugin_version = 1;\n")
    need("cc")
    with pytest.raises(PluginError, match="absent-qemu not found") as fault:
        built_plugin(source, tmp_path / "p.so", "absent-qemu", "")
    assert fault.value.hint == "install QEMU"
    source.write_text("#error of its own\n")
    with pytest.raises(PluginError, match=r"cc cannot compile a plugin of QEMU: .*of its own"):
        built_plugin(source, tmp_path / "p.so", "absent-qemu", "")
    monkeypatch.setenv("CC", "absent-cc")
    with pytest.raises(PluginError, match="C compiler 'absent-cc' not found") as fault:
        built_plugin(source, tmp_path / "p.so", "absent-qemu", "")
    assert fault.value.hint == "install gcc or clang, or set CC"


def test_qemu_that_loads_no_plugin(tmp_path):
    need("cc", "qemu-system-arm")
    source = tmp_path / "p.c"
    source.write_text("int unused;\n")
    with pytest.raises(PluginError, match=r"qemu-system-arm loads no plugin: .*p\.so"):
        built_plugin(source, tmp_path / "p.so", "qemu-system-arm", "a=1")


def test_a_compiled_plugin_is_loaded(tmp_path):
    need("cc", "qemu-system-arm")
    from opwest.runs.plugin import HERE

    made = built_plugin(HERE / "points.c", tmp_path / "a,b.so", "qemu-system-arm", "begin=1,end=1,size=1")
    assert made.read_bytes().startswith(b"\x7fELF")
    assert replace(profile_of("b"), clock="board").unit == "cycles"


def test_plugin_has_the_version_of_the_emulator(tmp_path):
    need("cc")
    source, emulator, calls = tmp_path / "p.c", tmp_path / "qemu", tmp_path / "calls"
    source.write_text('#define TEXT(x) "version " #x\n#define OF(x) TEXT(x)\nchar version[] = OF(PLUGIN_VERSION);\n')
    refuse = "echo plugin requires API version 5, but this QEMU supports only up to version 2 >&2; exit 1"
    emulator.write_text(f"#!/bin/sh\necho >>{calls}\n[ $(wc -l <{calls}) -gt 1 ] && exit 0\n{refuse}\n")
    emulator.chmod(0o755)
    made = built_plugin(source, tmp_path / "p.so", str(emulator), "a=1")
    assert b"version 2\0" in made.read_bytes()
    assert calls.read_text().count("\n") == 2
