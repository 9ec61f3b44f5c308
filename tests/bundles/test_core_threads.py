# SPDX-License-Identifier: Apache-2.0
"""Two threads run models while others are installed, refused and rolled back, under ThreadSanitizer."""

import re
from pathlib import Path

import pytest
from bundle_files import Signer, Variant, signed_part
from c_support import run
from campaign import sized
from core_support import FLAGS, built

pytestmark = [pytest.mark.needs("gcc", "cryptography"), pytest.mark.x86_64]
THREADED = tuple("-fsanitize=thread" if flag.startswith("-fsanitize=") else flag for flag in FLAGS)


@pytest.mark.slow
@pytest.mark.parametrize("trial", [0, 1])
def test_no_run_fails_or_mixes_models(trial: int, tmp_path: Path) -> None:
    """The outputs identify the model; a model that finds the workspace of another one traps."""
    signer = Signer()
    paths = []
    for mark, slot, wrong in ((1000, 0, 0), (2000, 1, 0), (3000, 1, 1)):
        paths.append(tmp_path / f"{mark}.bundle")
        paths[-1].write_bytes(signer.bundle(signed_part(Variant(mark=mark, slot=slot, wrong=wrong))))
    rounds = sized(60, 1000)
    program = built("threads", ["threads", "simulated"], THREADED)
    text = run([program, *paths, signer.public.hex(), str(rounds), str(trial)], tmp_path)
    print(text)
    [(runs, switches)] = re.findall(r"(\d+) runs, (\d+) switches", text)
    # each of the two threads sees both models in each round
    assert int(switches) == 4 * rounds and int(runs) > 8 * rounds
