# SPDX-License-Identifier: Apache-2.0
"""State between runs: filters, a recurrent unit and a streaming convolution over 1,000 frames against numpy."""

from pathlib import Path

import pytest
import streams
from c_support import SANITIZED, build, execute, golden_app
from campaign import sized
from golden_support import Metadata
from requirements_support import need

PROGRAM = Path(__file__).parent / "programs" / "two_streams.c"
FRAMES = sized(1000, 10_000)


@pytest.fixture(scope="module")
def program_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the program and its frames."""
    folder = tmp_path_factory.mktemp("two_streams")
    (folder / PROGRAM.name).write_text(PROGRAM.read_text())
    (folder / "two_streams.h").write_text(streams.header(FRAMES))
    return folder


@pytest.mark.parametrize("metadata", ["c", "llvm"])
def test_two_streams_equal_numpy(metadata: Metadata, program_folder: Path, tmp_path: Path) -> None:
    if metadata == "llvm":
        need("llvmlite")
    app = golden_app("streams", tmp_path, metadata)
    program = build(app, tmp_path / "build", program_folder / PROGRAM.name, flags=[*SANITIZED, "-ffp-contract=off"])
    done = execute(program)
    assert (done.returncode, done.stdout) == (0, f"two streams of {FRAMES} frames: 0 wrong\n"), done.stderr


def test_every_event_occurs_in_both_streams() -> None:
    kinds = {*range(1, streams.STEPS + 1), streams.RESET, streams.OPEN_AGAIN, streams.RESTORE}
    for seed in (1, 2):
        assert set(streams.events(FRAMES, seed)) == {0, *kinds}
