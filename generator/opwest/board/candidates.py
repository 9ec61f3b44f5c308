# SPDX-License-Identifier: Apache-2.0
"""Run candidates of `opwest tune` on a board: build the image, flash it, and read the measurements of the steps."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from opwest import pipeline
from opwest.board.connection import connected, need_smpclient, prepare, served_model
from opwest.board.link import LinkError
from opwest.board.progress import Progress
from opwest.board.session import run_model
from opwest.board.west import Build, SpaceError, configuration_of
from opwest.diagnostics import Diagnostic, Diagnostics, OpwestError
from opwest.host.arrays import Runs
from opwest.host.profile import Profile
from opwest.host.project_data import choose_model, project_record
from opwest.importers.folder import write_folder
from opwest.objects.code_size import code_size
from opwest.render.boards import board_file
from opwest.request import Request
from opwest.tuning.candidates_model import DIFFERENCES, MODEL, CandidatesModel
from opwest.tuning.on_board import BoardRun, TooLargeError
from opwest.tuning.tools import named

RUNS = 5
"""The runs of an image: the least cycles of each step count."""
_COUNTERS = {
    "CONFIG_OPWEST_PROFILE_CLOCK_KERNEL": "the kernel's cycle counter",
    "CONFIG_OPWEST_PROFILE_CLOCK_TIMING": "cycle counter",
}


class BoardRunner:
    """Runs one image after the other; only the first build compiles Zephyr."""

    def __init__(self, folder: Path, options: argparse.Namespace, progress: Progress) -> None:
        """`folder`: the import; `options`: the board and the connection to it."""
        self._folder = folder / "build" / f"tune_{board_file(options.board)}"
        self._progress = progress
        names = ("board", "serial", "baud", "timeout", "zephyr_base", "given")
        self._options = argparse.Namespace(
            **{name: getattr(options, name) for name in names},
            directory=self._folder / "app",
            build_dir=self._folder / "image",
            operator=None,
            check_steps=False,
            profile=True,
            output_profile=None,
            no_build=False,
            no_flash=False,
        )

    def __call__(self, model: CandidatesModel) -> BoardRun:
        """Run a model of candidates. Raises TooLargeError or OpwestError."""
        self._check_ram(self._generate(model.files))
        try:
            need_smpclient()
            return self._run(model)
        except SpaceError as error:
            raise TooLargeError(error.message) from error
        except LinkError as error:
            raise OpwestError([Diagnostic("error", error.message, hint=error.hint)]) from error
        finally:
            self._progress.end()

    def _generate(self, files: Mapping[str, bytes]) -> int:
        """Write the sources of the application; return the bytes of its planned memory. Raises OpwestError."""
        source = self._folder / MODEL
        for folder in (source, self._options.directory):
            if folder.exists():
                shutil.rmtree(folder)
        write_folder(source, files)
        project = pipeline.run(Request((source / "manifest.yaml",), self._options.directory), Diagnostics())
        return sum(pool.size for pool in project.found[0].plan.pools.values())

    def _check_ram(self, needed: int) -> None:
        """Raise TooLargeError, without a build, for more memory than an earlier configuration has."""
        size = configuration_of(self._options.build_dir).get("CONFIG_SRAM_SIZE", "0")
        limit = int(size) << 10 if size.isdecimal() else 0
        if limit and needed > limit:
            raise TooLargeError(f"the data of the layers need {needed} bytes, the board has {limit} bytes of RAM")

    def _run(self, model: CandidatesModel) -> BoardRun:
        record = project_record(self._options.directory)
        assert record is not None
        build = prepare(self._options, record, self._progress, Diagnostics())
        with connected(self._options, build, self._progress) as link:
            self._progress.show(f"waiting for the image on {link.device}")
            served = served_model(link, choose_model(MODEL, self._options.directory, record), None)
            done = run_model(link, served, Runs({}, RUNS), progress=self._progress, profile=True)
        assert done.profile is not None
        cycles = {one.step: one.min for one in done.profile.measures if one.kind == "step" and one.step is not None}
        if len(cycles) != model.steps:
            message = f"the image on '{link.device}' measured {len(cycles)} steps, expected {model.steps}"
            raise LinkError(message, "check the connection for lost characters")
        differences = [int(one) for one in done.outputs[DIFFERENCES]]
        return BoardRun(cycles, differences, dict(self._code(build, model)), self._source(build, done.profile))

    def _code(self, build: Build, model: CandidatesModel) -> Iterator[tuple[str, int]]:
        """Yield the C files of candidates with the bytes of their objects."""
        names = {one.source for one in model.runs}
        for path in build.folder.rglob("candidate_*.c.obj"):
            name = path.name.removesuffix(".obj")
            if name in names:  # others are from an earlier image
                yield name, code_size(path.read_bytes())

    def _source(self, build: Build, profile: Profile) -> str:
        """Return the board with its counter, and the compiler."""
        configuration = build.configuration()
        counter = next((text for name, text in _COUNTERS.items() if configuration.get(name) == "y"), "clock")
        speed = f" at {profile.frequency} Hz" if profile.frequency else ""
        # Such a board can be real, but its counter may then be that of the emulator.
        speed += ", configured for QEMU" if configuration.get("CONFIG_QEMU_TARGET") == "y" else ""
        compiler = build.compiler()
        words = [build.board, f"{counter}{speed}", *([] if compiler is None else [named(compiler)])]
        return ", ".join(words)
