# SPDX-License-Identifier: Apache-2.0
"""Write .pt2 files with inputs and torch's results. Runs in the environment of PyTorch, without opwest.

    python tests/pytorch/writer FOLDER

FOLDER/jobs.json maps names to arrays of objects. {"operator": NAME, "numbers": [...], "decomposed": BOOL, "quantiser":
NAME or null} is a program of configurations of an operator, {"network": NAME, "quantiser": NAME or null, "decomposed":
BOOL, "whole": BOOL} a network. The name "*" stands for all, or with a quantiser for the operators that quantisers
annotate; "every": N for each N-th of them, and a network's quantiser "*" for another one for each network.
FOLDER/NAME/index.json lists the files. A program that torch itself does not export has a row with "refused" and why.
"""

import itertools
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
from quantisers import QUANTISERS  # noqa: E402


def write(folder, job):
    options = {name: job[name] for name in ("decomposed", "quantiser", "whole") if name in job}
    try:
        if "network" in job:
            return write_network(folder, job["network"], **options)
        return write_operator(folder, OPERATORS[job["operator"]], job["numbers"], **options)
    except Exception as error:
        text = "".join(traceback.format_exception_only(error)).strip().splitlines()
        return {**job, "refused": text[0][:300], "trace": traceback.format_exc()[-3000:]}


def expanded(job):
    """Return the jobs that a job with the name "*" stands for."""
    if job.get("operator") == "*":
        names = [name for name, row in OPERATORS.items() if row.quantised or not job.get("quantiser")]
        names = names[:: job.get("every", 1)]
        return [job | {"operator": name} for name in names]
    if job.get("network") == "*":
        jobs = [job | {"network": name} for name in list(NETWORKS)[:: job.get("every", 1)]]
        turns = itertools.cycle(QUANTISERS)
        return [one | {"quantiser": next(turns)} if one.get("quantiser") == "*" else one for one in jobs]
    return [job]


def main():
    folder = Path(sys.argv[1])
    for name, jobs in json.loads((folder / "jobs.json").read_text(encoding="utf-8")).items():
        (folder / name).mkdir()
        rows = [write(folder / name, one) for job in jobs for one in expanded(job)]
        (folder / name / "index.json").write_text(json.dumps(rows), encoding="utf-8")


main()
