# SPDX-License-Identifier: Apache-2.0
"""The paths of a project on all hosts: names that differ only in case, and names that Windows reserves."""

from __future__ import annotations

import os
from collections.abc import Sequence

from opwest.diagnostics import Diagnostics
from opwest.files import ProjectFile
from opwest.system.paths import collisions, refused_by_windows


def check_portable(files: Sequence[ProjectFile], faults: Diagnostics) -> None:
    """Report paths that some file systems do not distinguish, and names that Windows does not permit.

    The latter are errors on Windows, and warnings elsewhere.
    """
    paths = [str(file.path) for file in files]
    for other, name in collisions(paths):
        faults.error(
            f"the files '{other}' and '{name}' of the project differ only in case",
            expected="names that differ in more than case: Windows and macOS ignore it",
            hint="rename the file, or the constant, in the manifest",
        )
    report = faults.error if os.name == "nt" else faults.warning
    for name, reason in refused_by_windows(paths):
        report(f"Windows does not permit the file name '{name}': {reason}", hint="rename the file or the model")
