# SPDX-License-Identifier: Apache-2.0
"""State between runs: filters, a recurrent unit and a streaming convolution over 1,000 frames against numpy."""

import shutil
from pathlib import Path

import streams
from c_support import SANITIZED, build, execute, golden_app
from campaign import sized
from golden_support import Metadata

PROGRAM = Path(__file__).parent / "programs" / "two_streams.c"
FRAMES = sized(1000, 10_000)


def test_two_streams_equal_numpy(metadata: Metadata, tmp_path: Path) -> None:
    kinds = {*range(1, streams.STEPS + 1), streams.RESET, streams.OPEN_AGAIN, streams.RESTORE}
    assert all(set(streams.events(FRAMES, seed)) == {0, *kinds} for seed in (1, 2))
    app = golden_app("streams", tmp_path, metadata)
    source = Path(shutil.copy(PROGRAM, tmp_path))
    source.with_suffix(".h").write_text(streams.header(FRAMES))
    program = build(app, tmp_path / "build", source, flags=[*SANITIZED, "-ffp-contract=off"])
    done = execute(program)
    assert (done.returncode, done.stdout) == (0, f"two streams of {FRAMES} frames: 0 wrong\n"), done.stderr
