# SPDX-License-Identifier: Apache-2.0
"""Images of `opwest tune` that do not fit in the RAM of a board are not built."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from opwest.board.candidates import BoardRunner
from opwest.board.progress import Progress
from opwest.tuning import random_layers
from opwest.tuning.candidates_model import Piece, candidates_model
from opwest.tuning.on_board import TooLargeError


def test_data_larger_than_the_ram_of_an_earlier_configuration(tmp_path: Path) -> None:
    names = ("serial", "baud", "timeout", "zephyr_base", "given")
    options = Namespace(board="small/board", **dict.fromkeys(names))
    configuration = tmp_path / "build/tune_small_board/image/zephyr/.config"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("CONFIG_SRAM_SIZE=3\n")
    (layer,) = random_layers.elements(np.random.default_rng(1), (1, 2000), kind="add").operations
    model = candidates_model([Piece(layer, ())], {})
    # Two inputs of 2000 bytes; the result replaces one of them.
    message = r"the data of the layers need 4\d\d\d bytes, the board has 3072 bytes of RAM"
    with pytest.raises(TooLargeError, match=message):
        BoardRunner(tmp_path, options, Progress(None))(model)
