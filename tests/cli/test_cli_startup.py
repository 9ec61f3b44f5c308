# SPDX-License-Identifier: Apache-2.0
"""Small commands execute few instructions more than the imports of their packages."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import start_up
from common import SkippedError
from requirements_support import absent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> start_up.StartUp:
    try:
        return start_up.measure_start_up(tmp_path_factory.mktemp("start_up"))
    except SkippedError as reason:
        absent(str(reason), "valgrind")


def test_instructions_to_generate_ten_operators(measured):
    assert measured.generate <= start_up.MAX_GENERATE_RATIO, measured


def test_instructions_to_generate_digits(measured):
    assert measured.digits <= start_up.MAX_DIGITS_RATIO, measured


def test_instructions_of_version(measured):
    assert measured.version <= start_up.MAX_VERSION_RATIO, measured
