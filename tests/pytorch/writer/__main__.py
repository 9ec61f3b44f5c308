# SPDX-License-Identifier: Apache-2.0
"""Write .pt2 files with inputs and torch's results. Runs in the environment of PyTorch, without opwest.

    python tests/pytorch/writer FOLDER JOBS

JOBS is a JSON array of objects: {"operator": NAME, "numbers": [...], "decomposed": BOOL, "quantiser": NAME or null}, or
{"network": NAME, "quantiser": NAME or null, "decomposed": BOOL}. FOLDER/index.json lists the files. A program that
torch itself does not export or quantise has a row with "refused" and torch's reason.
"""

import json
import logging
import sys
import traceback
import warnings
from pathlib import Path

import torch

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)

import elements  # noqa: E402, F401
import layers  # noqa: E402, F401
import movement  # noqa: E402, F401
from draws import OPERATORS  # noqa: E402
from networks import NETWORKS, write_network  # noqa: E402
from programs import write_operator  # noqa: E402


def write(folder, job):
    options = {name: job[name] for name in ("decomposed", "quantiser", "whole") if name in job}
    try:
        if "network" in job:
            return write_network(folder, job["network"], **options)
        return write_operator(folder, OPERATORS[job["operator"]], job["numbers"], **options)
    except Exception as error:
        text = "".join(traceback.format_exception_only(error)).strip().splitlines()
        return {**job, "refused": text[0][:300], "trace": traceback.format_exc()[-3000:]}


def main():
    folder = Path(sys.argv[1])
    if len(sys.argv) == 2:
        rows = {"operators": {name: row.quantised for name, row in OPERATORS.items()}, "networks": list(NETWORKS)}
        (folder / "table.json").write_text(json.dumps(rows), encoding="utf-8")
        return
    jobs = json.loads(sys.argv[2])
    (folder / "index.json").write_text(json.dumps([write(folder, job) for job in jobs]), encoding="utf-8")


main()
