# SPDX-License-Identifier: Apache-2.0
"""The runner's protocol of examples/mlperf_tiny on this machine, with sanitizers: commands, results, errors."""

import subprocess
from pathlib import Path

import pytest
from requirements_support import need

need("gcc")

APPLICATION = Path(__file__).resolve().parents[2] / "examples" / "mlperf_tiny" / "application"
FLAGS = "-std=c11 -Wall -Wextra -Wconversion -Werror -fsanitize=address,undefined -fno-sanitize-recover=all".split()
MAIN = r"""
#include <errno.h>
#include <stdio.h>
#include "runner_protocol.h"

static struct runner runner;
static uint8_t buffer[4];
static uint64_t now;
static unsigned int runs;
static void put(char character) { putchar(character); }
static uint64_t microseconds(void) { return now; }
static int load(const uint8_t *bytes, size_t size)
{
	(void)bytes;
	return size == 3 ? 0 : -EINVAL;
}
static int infer(void)
{
	now += 5000000000u;
	runs++;
	return buffer[0] == 0xee ? -EIO : 0;
}
static void results(void)
{
	runner_decimal(&runner, (float)runs);
	runner_text(&runner, ",");
	runner_decimal(&runner, -0.0625f);
}
int main(void)
{
	static const struct runner_config config = {"kws01", "test", buffer, sizeof(buffer), put, microseconds, load,
						    infer, results};
	int character;

	runner.config = &config;
	runner_start(&runner);
	while ((character = getchar()) != EOF) {
		runner_receive(&runner, (char)character);
	}
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("protocol")
    (folder / "main.c").write_text(MAIN)
    sources = [folder / "main.c", APPLICATION / "runner_protocol.c"]
    subprocess.run(["gcc", *FLAGS, f"-I{APPLICATION}", *sources, "-o", folder / "program"], check=True)
    return folder / "program"


def answers(program, commands):
    """Return the lines of the answer to each command, without those of the start."""
    done = subprocess.run([program], input=commands.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode().replace("\r\n", "\n")
    start = "m-timestamp-mode-performance\nm-lap-us-0\nm-init-done\nm-ready\n"
    assert text.startswith(start)
    return [part.splitlines() for part in text[len(start) :].split("m-ready\n")[:-1]]


def test_device_is_identified(program):
    name, profile, stamp = answers(program, "name%profile%\r\ntimestamp%")
    assert name == ["m-name-dut-[test]"]
    assert profile == ["m-profile-[ULPMark for tinyML Firmware V0.0.1]", "m-model-[kws01]"]
    assert stamp == ["m-lap-us-0"]


def test_input_is_loaded_and_model_runs(program):
    """Times are larger than 32 bits; numbers are rounded to three decimals."""
    begin, part, end, shown, infer, again = answers(program, "db load 3%db 00Ff%db 8011%db print%infer 2 1%results%")
    assert (begin, part, end) == (["m-[Expecting 3 bytes]"], [], ["m-load-done"])
    assert shown == ["m-buffer-00-ff-80"]
    laps = ["m-infer-start-2", "m-lap-us-5000000000", "m-lap-us-15000000000", "m-infer-done"]
    assert infer == ["m-warmup-start-1", "m-warmup-done", *laps, "m-results-[3.000,-0.063]"]
    assert again == ["m-results-[3.000,-0.063]"]


@pytest.mark.parametrize(
    ("commands", "error"),
    [
        ("nothing 1", "Unknown command: nothing"),
        ("x" * 81, "The command is too long"),
        ("db", "Command 'db' requires a subcommand"),
        ("db load", "Command 'db load' requires the number of bytes"),
        ("db load 0", "Invalid number of bytes: 0"),
        ("db load 99999999999999999999", "Invalid number of bytes: 99999999999999999999"),
        ("db load 5", "The buffer has 4 bytes"),
        ("db load 5%db 00", "Bytes without 'db load'"),
        ("db load 3%db 000", "Odd number of hexadecimal digits"),
        ("db load 3%db 0g", "Invalid hexadecimal digits: 0g"),
        ("db load 2%db 0000%infer 1 0", "The input does not fit the model: 2 bytes"),
        ("infer 0", "Inference iterations must be >0"),
        ("infer 1 -1", "Inference warmup must be >=0"),
        ("db load 3%db ee0000%infer 1 0", "Inference failed: errno 5"),
    ],
)
def test_error_is_reported_and_next_command_runs(program, commands, error):
    found = answers(program, f"{commands}%name%")
    assert found[-2][-1] == f"e-[{error}]"
    assert found[-1] == ["m-name-dut-[test]"]
