# SPDX-License-Identifier: Apache-2.0
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from opwest.model.inputs import files
from opwest.project import templates
from reached_errors import Reached
from workshop import Workshop


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The directory in which all cases run, with the files they name."""
    return Workshop(tmp_path_factory.mktemp("invalid") / "project")


@pytest.fixture(scope="module")
def reached() -> Iterator[Reached]:
    """The calls that created errors while cases ran."""
    reached = Reached()
    with reached.recording():
        yield reached


@pytest.fixture(scope="module")
def read_once() -> Iterator[None]:
    """Read each valid object, and opwest's templates, in the first of all runs: the cases differ in manifests."""
    inspect = files.inspect_object

    @functools.cache
    def facts(path: Path, folders: Sequence[Path], directory: Path, time: int):
        return inspect(path, folders)

    def inspect_once(path: Path, folders: Sequence[Path] = ()):
        return facts(path, folders, Path.cwd(), path.stat().st_mtime_ns) if path.is_file() else inspect(path, folders)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "inspect_object", inspect_once)
        patch.setattr(templates, "_own_texts", functools.cache(templates._own_texts))
        yield
