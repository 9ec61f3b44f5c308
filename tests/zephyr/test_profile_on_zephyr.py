# SPDX-License-Identifier: Apache-2.0
"""Profiles from images: `opwest run --profile`, the shell's `opwest profile`, events in a trace, and the stack."""

import json
import os
import re
import select
import struct
import subprocess
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
# The timer interrupts each run.
INTERRUPTED = "CONFIG_MINIMAL_LIBC=y\nCONFIG_TICKLESS_KERNEL=n\nCONFIG_SYS_CLOCK_TICKS_PER_SEC=2000\n"
# A trace of everything, which native_sim writes to a file; sound without a thread of its own.
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


def slow_convolution(example, compiled):
    """Replace the object of the convolution, with its symbol, by one that is compiled without optimization."""
    words = ["-mcpu=cortex-m3", "-mthumb", "-ffreestanding", "-O0", "-Dconv2d_relu=digits__conv2d_relu"]
    source = example / "operators" / "conv2d_relu.c"
    subprocess.run(["arm-none-eabi-gcc", *words, "-c", source, "-o", compiled], check=True)


def check_limits(app, profiles, opwest):
    """A limit on the time passes for the second profile, and fails for the last one, which is slower."""
    opwest("report", app, "--profile", profiles[0], "-o", profiles[0].with_suffix(".old.json"))
    for profile, code in zip(profiles[1:], (0, 1), strict=True):
        words = ["report", app, "--profile", profile, "-o", profile.with_suffix(".html"), "--json"]
        done = run_opwest(*words, "--compare", profiles[0].with_suffix(".old.json"), "--fail-on", "time=+5%")
        assert done.returncode == code, done.stdout
        exceeded = json.loads(done.stdout)["result"]["exceeded"]
        before, after = (json.loads(file.read_text())["points"][0]["mean"] for file in (profiles[0], profile))
        assert [(one["before"], one["after"]) for one in exceeded] == [(before, after)] * code


@configured("board, back_end", [("mps2/an385", "llvm"), ("native_sim/native/64", "c")])
def test_profile_of_digits(workspace, digits, opwest, on_board, board, back_end, tmp_path):
    """One back end each: tests without Zephyr compare both."""
    native = board.startswith("native_")
    if not native:
        need("arm-none-eabi-gcc", "llvmlite")
    app = tmp_path / "app"
    opwest("generate", digits.parent / "example" / "manifest.yaml", "-o", app, "--metadata", back_end)
    with (app / "prj.conf").open("a") as options:
        options.write("CONFIG_OPWEST_SHELL=y\n" + (TRACED if native else INTERRUPTED))
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
    if not native:
        files = [tmp_path / f"{number}.json" for number in range(3)]
        for file in files[:2]:
            on_board(app, board, "--no-build", "--output-profile", file, *given)
        # The stack contains the registers that an interrupt saves, if one comes at the deepest point.
        equal = [{**json.loads(file.read_text()), "stack": profile["stack"]} for file in files[:2]]
        assert equal == [profile] * 2, "three starts of one image"
        (compiled,) = app.glob("models/*/objects/cortex-m3/*conv2d_relu.o")
        slow_convolution(digits.parent / "example", compiled)
        on_board(app, board, "--output-profile", files[2], *given)
        check_limits(app, files, opwest)
    else:
        events = (build / "channel0_0").read_bytes()
        for point, name in enumerate(STEPS, start=1):
            for begins in (1, 0):
                assert events.count(name.encode().ljust(20, b"\0") + struct.pack("<II", point, begins)) >= 360, name
