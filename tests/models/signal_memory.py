# SPDX-License-Identifier: Apache-2.0
"""Run the emitted C of signal operators under AddressSanitizer: every array is memory of its own.

The process is started with the sanitizer's library before all others; its argument is a directory.
"""

import os
import sys
from pathlib import Path

# Of this process only: the compiler runs without the library.
os.environ.pop("LD_PRELOAD", None)

from models.campaigns import graph_of
from models.executor import Library, program_of
from models.signal_models import FAMILIES, configuration, digest, inputs_of

CONFIGURATIONS = 3


def main(folder):
    """Print the family, the number and the digest of the results of each configuration."""
    keys = [(name, number) for name in FAMILIES for number in range(CONFIGURATIONS)]
    graphs, cases = [], []
    for name, number in keys:
        model, draws = configuration(name, number)
        graphs.append(graph_of(model.build()))
        cases.append(inputs_of(graphs[-1], draws))
    library = Library([program_of(graph) for graph in graphs], folder, ("-fsanitize=address",))
    for place, ((name, number), given) in enumerate(zip(keys, cases, strict=True)):
        state = {}
        print(name, number, digest([library.run(place, case, state) for case in given]), sep=",")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
