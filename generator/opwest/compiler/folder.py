# SPDX-License-Identifier: Apache-2.0
"""Write an imported model to a new directory, completely or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from opwest.base.files import retried
from opwest.base.paths import collisions, refused_by_windows
from opwest.compiler.faults import fault
from opwest.project.disk import system_faults

_HINT = "choose a new directory, or remove this one, which can contain changes by hand"


def refuse_occupied(folder: Path) -> None:
    """Raise OpwestError if the path is a non-empty directory or not a directory."""
    if folder.is_symlink() or folder.exists():
        if not folder.is_dir():
            raise fault("not a directory", str(folder), "a new or empty directory", _HINT)
        with system_faults(folder, "cannot read the directory"):
            if any(folder.iterdir()):
                raise fault("the directory is not empty", str(folder), "a new or empty directory", _HINT)


def write_folder(folder: Path, files: Mapping[str, bytes], examine: Callable[[Path], object] | None = None) -> None:
    """Create a directory with files atomically; remove all files after an error.

    `examine` gets the complete directory, which has another name until then. It can raise OpwestError.
    """
    refuse_occupied(folder)
    _check_names(folder, files)
    with system_faults(folder, "cannot write the directory", "nothing was written"):
        target = folder.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".opwest-draft", dir=target.parent))
        try:
            for name, content in files.items():
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if examine is not None:
                examine(draft)
            draft.chmod(0o777 & ~_umask())
            if target.exists():
                target.rmdir()
            retried(lambda: draft.replace(target))
        except BaseException:
            with contextlib.suppress(OSError):
                shutil.rmtree(draft)
            raise


def _check_names(folder: Path, files: Iterable[str]) -> None:
    """Raise OpwestError for names, which can be those of the model, that a host cannot write.

    `opwest generate` warns of names that only Windows does not permit.
    """
    for one, other in collisions(files):
        raise fault(
            f"the files '{one}' and '{other}' differ only in case",
            str(folder),
            "names that differ in more than case: Windows and macOS ignore it",
            "rename the operator or the file in the model",
        )
    for name, reason in refused_by_windows(files) if os.name == "nt" else ():
        hint = "rename the operator or the file in the model"
        raise fault(f"Windows does not permit the file name '{name}': {reason}", str(folder), hint=hint)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def npz(arrays: Mapping[str, Any]) -> bytes:
    """Return an .npz file whose bytes depend only on the arrays."""
    import numpy as np

    whole = io.BytesIO()
    with ZipFile(whole, "w", ZIP_STORED) as archive:
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)
            archive.writestr(ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), stream.getvalue())
    return whole.getvalue()
