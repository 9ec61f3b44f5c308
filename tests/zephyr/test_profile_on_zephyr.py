# SPDX-License-Identifier: Apache-2.0
"""Profiles from images: `opwest run --profile`, the shell's `opwest profile`, events in a trace, and the stack."""

import json
import os
import re
import select
import struct
import time
import tty
from contextlib import contextmanager

import numpy as np
import pytest
from cover import configured
from in_process import opwest as run_opwest
from opwest.runs.connection import RunningImage
from requirements_support import need

pytestmark = pytest.mark.zephyr
STEPS = ["conv2d_relu", "max_pool", "dense", "arg_max"]
# A trace of everything, which native_sim writes to a file; sound without a thread of its own.
WORK = """\
#include <stdint.h>

void work(const int32_t x[16], int32_t y[16])
{
	for (int i = 0; i < 16; i++) {
		y[i] = x[i];
	}
	for (volatile int round = 0; round < ROUNDS; round++) {
		y[0] += round;
	}
}
"""
MANIFEST = """\
version: 1
model: rounds
objects: [{files: [work.c]}]
operators:
  work:
    returns: void
    args:
      - {name: x, dtype: int32, shape: [16]}
      - {name: y, dtype: int32, shape: [16], direction: out}
run:
  inputs:
    x: {dtype: int32, shape: [16]}
  outputs:
    y: {dtype: int32, shape: [16]}
  steps:
    - {call: work, args: [x, y]}
"""
TRACED = "CONFIG_TRACING=y\nCONFIG_TRACING_CTF=y\nCONFIG_TRACING_SYNC=y\nCONFIG_TRACING_BACKEND_POSIX=y\n"


@contextmanager
def console(device):
    """Yield a function that sends a command when the shell is ready and returns the output up to a matching line."""
    file = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    tty.setraw(file)

    def heard(until, seconds):
        raw, text, end = b"", "", time.monotonic() + seconds
        while time.monotonic() < end and not re.search(until, text, re.MULTILINE):
            if select.select([file], [], [], 0.2)[0]:
                raw += os.read(file, 4096)  # colour sequences can be split
                text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", raw.decode(errors="replace")).replace("\r", "")
        return text, bool(re.search(until, text, re.MULTILINE))

    def ask(command, until):
        os.write(file, f"{command}\n".encode())
        text, found = heard(until, 60)
        assert found, f"{command}: no {until!r}:\n{text}"
        return text

    def prompt():
        os.write(file, b"\n")
        return heard(r"\$ $", 5)[1]

    assert any(prompt() for _ in range(12)), "the shell shows no prompt"
    heard("nothing", 2)  # prompts for input before the shell was ready
    try:
        yield ask
    finally:
        os.close(file)


def tables(text, unit):
    """Return the rows of `opwest profile` for each workspace, by name; under "" the runs and the frequency."""
    found = []
    for line in text.splitlines():
        head = re.fullmatch(rf"digits, (\w+): (\d+) runs, {unit} at (\d+) Hz", line)
        if head:
            found.append({"": [head[2], head[3]]})
        elif found and re.match(r"  +\d* +(run|step) .* \d+$", line):
            words = line.split()
            kind = words.index("run") if "run" in words else words.index("step")
            found[-1][words[kind + 1]] = words[kind + 2 :]
    return found


@configured("board, back_end", [("mps2/an385", "llvm"), ("native_sim/native/64", "c")])
def test_profile_of_digits(workspace, digits, opwest, on_board, board, back_end, tmp_path):
    """One back end each: tests without Zephyr compare both."""
    native = board.startswith("native_")
    if not native:
        need("arm-none-eabi-gcc", "llvmlite")
    app = tmp_path / "app"
    opwest("generate", digits.parent / "example" / "manifest.yaml", "-o", app, "--metadata", back_end)
    with (app / "prj.conf").open("a") as options:
        options.write("CONFIG_OPWEST_SHELL=y\n" + (TRACED if native else "CONFIG_MINIMAL_LIBC=y\n"))
    np.save(tmp_path / "image.npy", np.full((1, 8, 8, 1), 5, np.int8))
    build = tmp_path / "build"
    given = ["--input", f"image={tmp_path / 'image.npy'}", "--build-dir", build, "--repeat", 3]
    result = json.loads(on_board(app, board, "--profile", "--json", *given).stdout)["result"]

    profile = result["profile"]
    assert profile["where"] == board and [p["operator"] for p in profile["points"]] == [None, *STEPS]
    whole, *steps = profile["points"]
    assert all(p["runs"] == 3 and p["min"] <= p["mean"] <= p["max"] for p in profile["points"])
    assert sum(p["total"] for p in steps) < whole["total"]
    assert max(steps, key=lambda p: p["total"])["operator"] == "conv2d_relu"
    if native:
        assert (profile["clock"], profile["unit"], profile["stack"]) == ("host", "ns", None)
    else:
        assert (profile["clock"], profile["unit"], profile["frequency_hz"]) == ("counted", "instructions", 0)
        assert profile["modelled_processor"] == "Cortex-M3"
        for point in profile["points"]:
            assert point["min"] == point["max"] < point["modelled_cycles"] < 3 * point["min"]
        # Few instructions are outside of the steps.
        assert whole["last"] - sum(p["last"] for p in steps) < 200
        check = json.loads(opwest("check", digits.parent / "example" / "manifest.yaml", "--json").stdout)["result"]
        (estimate,) = [n["bytes"] for n in check[0]["stack"] if n["target"] == "cortex-m3" and n["known"]]
        # Of the whole thread, including its entry and the functions of the queue.
        assert 96 < profile["stack"]["used"] <= estimate + 64 < profile["stack"]["size"] == 4096

    unit = "host time in ns" if native else r"ticks of QEMU's timer \(not cycles\)"
    image_env = workspace.environment(board)
    command = [workspace.west, "build", "-d", str(build), "-t", "run"]
    with RunningImage(command, workspace.base.parent, image_env) as image, console(image.device(60)) as ask:
        end = r"arg_max .*\n(.*\n)+.*arg_max .*\n"
        found = tables(ask("opwest profile digits", end), unit)
        assert len(found) == 2, found
        (mine,) = [rows for rows in found if rows[""][0] == "360"]  # the application's own
        (other,) = [rows for rows in found if rows[""][0] == "0"]  # the service's
        assert mine[""][1] == str(profile["frequency_hz"] or 25_000_000)
        assert [name for name in mine if name] == ["digits", *STEPS]
        last, least, most, mean = map(int, mine["conv2d_relu"])
        assert 0 < least <= last <= most and least <= mean <= most
        assert other["digits"] == ["0"] * 4
        ask("opwest profile_reset digits", r"\$ \s*$")
        assert all(rows[""][0] == "0" for rows in tables(ask("opwest profile", end), unit))
        ask("opwest profile nothing", r"unknown model 'nothing'")
    if native:
        events = (build / "channel0_0").read_bytes()
        for point, name in enumerate(STEPS, start=1):
            for begins in (1, 0):
                assert events.count(name.encode().ljust(20, b"\0") + struct.pack("<II", point, begins)) >= 360, name


@configured(board="mps2/an386", back_end="c")
def test_profiles_of_one_image_are_equal(workspace, opwest, on_board, tmp_path):
    """Three starts of QEMU; a limit on the time passes, and fails for an image with a slower step."""
    need("cc", "qemu-system-arm", "arm-none-eabi-gcc")
    (tmp_path / "work.c").write_text(WORK.replace("ROUNDS", "500"))
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    app = tmp_path / "app"
    opwest("generate", tmp_path / "manifest.yaml", "-o", app)
    with (app / "prj.conf").open("a") as options:
        options.write("CONFIG_MINIMAL_LIBC=y\n")
    np.save(tmp_path / "x.npy", np.arange(16, dtype=np.int32))

    def profile(name, *more):
        given = ["--input", f"x={tmp_path / 'x.npy'}", "--repeat", 2]
        on_board(app, "mps2/an386", *given, "--output-profile", tmp_path / name, *more)
        return json.loads((tmp_path / name).read_text())

    def exceeded(name, code):
        words = ["report", app, "--profile", tmp_path / name, "-o", tmp_path / "new.html", "--json"]
        done = run_opwest(*words, "--compare", tmp_path / "old.json", "--fail-on", "time=+5%")
        assert done.returncode == code, done.stdout
        return json.loads(done.stdout)["result"]["exceeded"]

    first, *others = [profile("1.json"), profile("2.json", "--no-build"), profile("3.json", "--no-build")]
    assert others == [first, first] and (first["clock"], first["unit"]) == ("counted", "instructions")
    opwest("report", app, "--profile", tmp_path / "1.json", "-o", tmp_path / "old.json")
    assert exceeded("3.json", 0) == []

    (source,) = app.rglob("work.c")
    source.write_text(WORK.replace("ROUNDS", "600"))
    slower = profile("4.json")
    more = slower["points"][1]["last"] - first["points"][1]["last"]
    assert more > 0 and more % 100 == 0, "each round has the same instructions"
    (found,) = exceeded("4.json", 1)
    assert (found["before"], found["after"]) == (first["points"][0]["mean"], slower["points"][0]["mean"])
