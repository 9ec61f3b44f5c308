# SPDX-License-Identifier: Apache-2.0
"""Networks that PyTorch exported and quantised, in one image, against torch's own results.

With --exact quantised results are torch's bits, on each instruction set; float32 ones are within the bound of networks.
"""

import numpy as np
import pytest
from campaign import sized
from cover import configured
from models.bounds import ONNX, compare
from pytorch.pytorch_support import cases_of, programs
from sequence_support import Subject, application

pytestmark = pytest.mark.zephyr

BOARDS = ["mps2/an385", "mps2/an386", "mps3/corstone300/an547"]
LIBRARY = ["-DCONFIG_NEWLIB_LIBC=y", "-DCONFIG_MULTITHREADING=n"]
"""For functions of real numbers; Debian's newlib has no locks for threads."""
NETWORKS = ("mobilenet_v2", "ds_cnn", "spotter", "gru_keywords")
"""Each with another quantiser; the third has state."""


@pytest.fixture(scope="module")
def subjects():
    """Return the networks with inputs and torch's results, and the rows of the index."""
    folder, rows = programs(sized("networks-any", "boards"))
    found = []
    for row in rows:
        if row["network"] not in NETWORKS:
            continue
        inputs, outputs, _ = zip(*cases_of(folder, row), strict=True)
        options = ("--exact",) if row["form"] != "float" else ()
        found.append((Subject(row["network"], folder / f"{row['name']}.pt2", inputs, outputs, options), row, folder))
    return found


@pytest.fixture(scope="module")
def app(subjects, opwest, tmp_path_factory):
    return application(opwest, tmp_path_factory.mktemp("torch"), [subject for subject, _, _ in subjects])


@configured("board", BOARDS, cost=9)
def test_networks_equal_torch(workspace, subjects, app, board):
    console = workspace.build(app, board, *LIBRARY).run("^finished: ")
    for subject, row, folder in subjects:
        for number, (found, case) in enumerate(zip(subject.parsed(console), cases_of(folder, row), strict=True)):
            for one, expected, rounded, is_quantised in zip(found, *case[1:], row["quantised"], strict=True):
                where = f"{board}, {subject.name}, run {number}"
                if is_quantised:
                    assert np.all((one == expected) | (one == rounded)), where
                else:
                    compare((f"ATen {subject.name}", row["form"], board), expected, one, ONNX["network"], where)
