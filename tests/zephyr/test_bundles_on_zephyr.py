# SPDX-License-Identifier: Apache-2.0
"""Bundles on boards in QEMU: installation, refusals, resets, power cuts, threads, costs.

All scripts are run by one image for each board (tests/zephyr/programs/bundles). The flash is memory that survives a
warm reset; its driver, NVS and the manager are those of a board. The MPU is on, as in the boards' configurations.
"""

import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from bundle_support import (
    ADDED_IN_QEMU,
    FLASH,
    PACKAGE_OFFSET,
    PROGRAM,
    SLOT_SIZE,
    TARGETS,
    Board,
    bundle,
    digits_model,
    held_out_cases,
    private_key,
    run_image,
    signed_again,
)
from campaign import sized
from cover import configured
from in_process import succeed
from models.real import model_file
from requirements_support import need
from zephyr_support import OTHER_VERSIONS, Workspace

pytestmark = pytest.mark.zephyr
BOARDS = ("mps2/an385", "mps3/corstone300/an547")
OLD, NEW = held_out_cases(), held_out_cases(rolled=1)
START = "start\ninstall 3\ncases 1\n"
"""Part 1 contains the cases of the old model, part 2 those of the new one, part 3 the old model for slot 0."""
STARTED = [
    "start: -2",
    "model: none",
    "install: 0 good detail 0 found 0 expected 0",
    "model: digits 1.0.0",
    "cases: 360 of 360",
]


@dataclass
class Models:
    """Two models with one interface, and their bundles for a board."""

    board: Board
    folder: Path
    old: Path
    new: Path

    def bundle(self, manifest: Path, slot: int, version: str, *options: object) -> bytes:
        """Return a bundle; options replace those before them."""
        name = f"{manifest.parent.name}-{slot}-{version}-{len(options)}.bundle"
        words = ["--slot", self.board.slot(slot), "--target", TARGETS[self.board.name], "--model-version", version]
        words += ["--vectors", "5", "--key", str(private_key(self.folder, "trusted")), "-o", str(self.folder / name)]
        return bundle(manifest, *words, *options).read_bytes()


on_boards = configured("models", BOARDS, indirect=True)


@pytest.fixture(scope="module")
def models(request: pytest.FixtureRequest, workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Models:
    folder = tmp_path_factory.mktemp("bundles")
    board = Board(request.param, workspace.build(PROGRAM, request.param))
    assert "\nCONFIG_ARM_MPU=y\n" in (board.built.folder / "zephyr" / ".config").read_text()
    return Models(board, folder, digits_model(folder / "old"), digits_model(folder / "new", rolled=1))


@pytest.fixture(scope="module")
def old(models: Models) -> bytes:
    return models.bundle(models.old, 0, "1.0.0")


@pytest.fixture(scope="module")
def new(models: Models) -> bytes:
    return models.bundle(models.new, 1, "2.0.0")


def without_addresses(lines: list[str]) -> list[str]:
    """Return the lines without the addresses of descriptors, and without END."""
    return [re.sub(r" at 0x\w+$", "", line) for line in lines if line != "END"]


def refusal(reason: str, found: int = 0, expected: int = 0, detail: int = 0) -> str:
    return f"install: -77 {reason} detail {detail} found {found:x} expected {expected:x}"


@on_boards
def test_install_replace_and_roll_back(models: Models, old: bytes, new: bytes) -> None:
    script = f"{START}state\nlist\nreset\nstart\ninstall 4\ncases 2\nlist\nreset\nstart\ncases 2\nrollback\ncases 2\n"
    script += "options 0 1 0\nreset\noptions 0 1 0\nstart\nrollback\ncases 1\nreset\nstart\ncases 1\nstate\nstack\n"
    lines = models.board.run(script, [OLD, NEW, old, new])
    assert f"model: digits 2.0.0 at {FLASH[models.board.name] + SLOT_SIZE + 256:#x}" in lines
    stack = int(re.fullmatch(r"stack: (\d+) bytes", lines[-2])[1])  # type: ignore[index]
    assert stack <= 4096
    installed = ["install: 0 good detail 0 found 0 expected 0", "model: digits 2.0.0", "cases: 360 of 360"]
    assert without_addresses(lines)[:-1] == [
        *STARTED,
        "state: active 0 trying 255 previous 255 crashes 0 good",
        "slot 0: 0 good active",
        "slot 1: 0 no bundle target",
        *["start: 0", "model: digits 1.0.0", *installed],
        "slot 0: 0 downgrade previous target",
        "slot 1: 0 good active",
        *["start: 0", "model: digits 2.0.0", "cases: 360 of 360"],
        "rollback: -77 downgrade detail 44 found 1000000 expected 2000000",
        *["model: digits 2.0.0", "cases: 360 of 360"],
        *["start: 0", "model: digits 2.0.0"],
        *["rollback: 0 good detail 0 found 0 expected 0", "model: digits 1.0.0", "cases: 360 of 360"],
        *["start: 0", "model: digits 1.0.0", "cases: 360 of 360"],
        "state: active 0 trying 255 previous 1 crashes 0 good",
    ]


@pytest.fixture(scope="module")
def wrong(models: Models) -> bytes:
    """The new model with a wrong label in golden vector 2."""
    folder = models.folder / "wrong_vector"
    shutil.copytree(models.new.parent, folder)
    vectors = dict(np.load(folder / "vectors.npz"))
    vectors["label"][2] += 1
    np.savez(folder / "vectors.npz", **vectors)
    return models.bundle(folder / "manifest.yaml", 1, "2.0.0")


@on_boards
def test_refused_bundles(models: Models, old: bytes, new: bytes, wrong: bytes) -> None:
    """Each refusal leaves the old model, also after a reset."""
    slot = FLASH[models.board.name]
    version = struct.unpack_from("<H", new, 142)[0]
    machine = 243  # EM_RISCV
    changed = bytearray(new)
    changed[2000] ^= 1
    if models.board.name == BOARDS[0]:
        hard = models.bundle(models.new, 1, "2.0.0", "--target", "cortex-m4f")
    else:
        hard = signed_again(new, 139, "<B", 2)
    words = ["--llext", "--target", TARGETS[models.board.name], "--model-version", "2.0.0", "--vectors", 5]
    key = private_key(models.folder, "trusted")
    for_llext = bundle(models.new, *words, "--key", key, "-o", models.folder / "llext.bundle").read_bytes()
    refused = {
        "changed byte": (bytes(changed), refusal("signature", expected=2)),
        "wrong signature": (signed_again(new, seed="other"), refusal("signature", expected=2)),
        "wrong slot": (signed_again(old, 44, "<I", 2 << 24), refusal("slot", slot, slot + SLOT_SIZE, 16)),
        "other metadata": (signed_again(new, 142, "<H", version + 1), refusal("layout", version + 1, version, 142)),
        "for LLEXT": (for_llext, refusal("kind", 1, 0, 12)),
        "other machine": (signed_again(new, 136, "<H", machine), refusal("machine", machine, 40, 136)),
        "other float ABI": (hard, refusal("float ABI", 2, 1, 139)),
        "wrong vector": (wrong, refusal("vector", detail=2)),
        "downgrade": (signed_again(new, 44, "<I", 9 << 16), refusal("downgrade", 9 << 16, 1 << 24, 44)),
        "too large": (new + bytes(SLOT_SIZE + 1 - len(new)), "install: -27 good detail 0 found 0 expected 0"),
    }
    script = START
    expected = list(STARTED)
    for index, (_, message) in enumerate(refused.values()):
        script += f"install {index + 4}\ncases 1\nreset\nstart\ncases 1\n"
        expected += [message, "model: digits 1.0.0", "cases: 360 of 360"]
        expected += ["start: 0", "model: digits 1.0.0", "cases: 360 of 360"]
    lines = models.board.run(script, [OLD, NEW, old, *(content for content, _ in refused.values())])
    assert without_addresses(lines) == expected


@on_boards
def test_sessions_with_too_little_memory(models: Models, old: bytes) -> None:
    lines = models.board.run("memory 512\nstart\ninstall 3\nmemory 2048\nreset\nstart\ninstall 3\n", [OLD, NEW, old])
    refused = re.fullmatch(r"install: -77 memory detail -1 found (\w+) expected 200", lines[2])
    assert refused and 640 < int(refused[1], 16) < 2048, lines
    assert without_addresses(lines)[-2:] == ["install: 0 good detail 0 found 0 expected 0", "model: digits 1.0.0"]


@on_boards
def test_imported_model_replaces_another_interface(models: Models, old: bytes, tmp_path: Path) -> None:
    """The keyword model of MLPerf Tiny, int8: its golden vectors on the board, then its outputs in sessions."""
    need("tflite")
    folder = tmp_path / "kws"
    succeed("import", "tflite", model_file("kws_int8.tflite"), "-o", folder, "--kernels", "portable")
    vectors = dict(np.load(folder / "vectors.npz"))
    inputs, outputs = vectors["input_1"], vectors["output"]
    head = struct.pack("<4I", len(inputs), inputs[0].nbytes, outputs[0].nbytes, 0)
    cases = head + inputs.tobytes() + outputs.tobytes()
    imported = models.bundle(folder / "manifest.yaml", 1, "1.0.0")
    script = f"{START}install 4\ncases 2\nreset\nstart\ncases 2\nrollback\ncases 1\n"
    lines = without_addresses(models.board.run(script, [OLD, cases, old, imported]))
    model, done = (
        ["model: kws_int8 1.0.0", f"cases: {len(inputs)} of {len(inputs)}"],
        "0 good detail 0 found 0 expected 0",
    )
    back = [f"rollback: {done}", "model: digits 1.0.0", "cases: 360 of 360"]
    assert lines == [*STARTED, f"install: {done}", *model, "start: 0", *model, *back]


@on_boards
def test_resets_before_a_model_is_confirmed(models: Models, old: bytes, new: bytes) -> None:
    script = f"{START}options 1 0 0\ninstall 4\ncases 2\nstate\nreset\n"  # the trial ends
    script += "options 1 0 0\nstart\ncases 1\nstate\n"
    script += "upload 4 2000\nreset\noptions 1 0 0\nstart\ncases 1\n"  # an upload ends
    script += "install 4\nconfirm\nreset\nstart\ncases 2\nstate\nconfirm\n"
    script += "damage 1 600\nreset\nstart\ncases 1\n"  # the active model is damaged
    lines = without_addresses(models.board.run(script, [OLD, NEW, old, new]))
    old_model, new_model = ["model: digits 1.0.0", "cases: 360 of 360"], ["model: digits 2.0.0", "cases: 360 of 360"]
    installed = "install: 0 good detail 0 found 0 expected 0"
    assert lines == [
        *STARTED,
        *[installed, *new_model, "state: active 0 trying 1 previous 255 crashes 0 good"],
        *["start: 0", *old_model, "state: active 0 trying 255 previous 255 crashes 0 unconfirmed"],
        *["upload: 0", "start: 0", *old_model],
        *[installed, "model: digits 2.0.0", "confirm: 0", "start: 0", *new_model],
        *["state: active 1 trying 255 previous 0 crashes 0 good", "confirm: -1"],
        *["start: 0", *old_model],
    ]


@on_boards
def test_crashes_bring_the_previous_model_back(models: Models, old: bytes, new: bytes) -> None:
    restart = "reset\noptions 0 0 2\nstart\n"
    script = f"{START}install 4\nhealthy\n{restart}healthy\n{3 * restart}cases 1\n"
    lines = without_addresses(models.board.run(script, [OLD, NEW, old, new]))
    starts = [line for line in lines if line.startswith("model:")][2:]
    assert starts[:-1] == (len(starts) - 1) * ["model: digits 2.0.0"], lines
    assert lines[-2:] == ["model: digits 1.0.0", "cases: 360 of 360"]


@on_boards
def test_every_key_of_the_firmware(models: Models, old: bytes, new: bytes) -> None:
    """The second trusted key alone, and behind a signature that the firmware cannot verify."""
    second = signed_again(new, seed="next")
    unknown = models.folder / "unknown.bundle"
    unknown.write_bytes(signed_again(old, 44, "<I", 3 << 24, seed="other"))
    key = private_key(models.folder, "trusted")
    both = bundle(unknown, "--key", key, "-o", models.folder / "both.bundle").read_bytes()
    assert len(both) == len(old) + 80
    script = f"{START}install 4\ncases 2\ninstall 5\ncases 1\n"
    lines = without_addresses(models.board.run(script, [OLD, NEW, old, second, both]))
    good = "install: 0 good detail 0 found 0 expected 0"
    rest = [good, "model: digits 2.0.0", "cases: 360 of 360", good, "model: digits 3.0.0", "cases: 360 of 360"]
    assert lines == [*STARTED, *rest]


@on_boards
def test_threads_run_the_old_model_until_the_new_one(models: Models, old: bytes, new: bytes) -> None:
    lines = models.board.run(f"{START}threads 4 1 2\ncases 2\n", [OLD, NEW, old, new], *ADDED_IN_QEMU)
    seen = [re.fullmatch(r"thread \d: (\d+) old, (\d+) new, (\d+) bad, error 0", line) for line in lines]
    counts = [tuple(map(int, one.groups())) for one in seen if one]
    assert len(counts) == 2 and all(before and after and not bad for before, after, bad in counts), lines
    whole = re.fullmatch(r"threads: 0 fault 0, (\d+) runs before, (\d+) in the installation", lines[-3])
    assert whole and int(whole[2]) >= 20, lines


CUTS = {
    "install": ("", "4 1 2"),
    "confirm": ("", "4 1 2"),
    "rollback": ("install 4\ncases 2\n", "4 2 1"),
    "refused": ("", "5 1 2"),
}


@on_boards
@pytest.mark.parametrize(
    ("kind", "full"), sized([("install", 162), ("rollback", 0)], [(kind, full) for kind in CUTS for full in (0, 162)])
)
def test_power_cuts(models: Models, old: bytes, new: bytes, wrong: bytes, kind: str, full: int) -> None:
    """After a cut of every operation (here: of a sample), a start finds the old or the new model.

    A block of the records is almost full with 162 of them: NVS then collects garbage in the transaction.
    """
    before, parts = CUTS[kind]
    stride, tail = sized((331, 5), (1, 1))
    script = f"{START}{before}fill {full}\ncampaign {kind} {parts} {stride} {tail}\n"
    lines = models.board.run(script, [OLD, NEW, old, new, wrong], seconds=sized(240, 4 * 3600))
    (models.folder / f"{kind}-{full}.log").write_text("\n".join(lines))
    counted = next(line for line in lines if line.startswith(f"campaign {kind}: "))
    summary = re.fullmatch(rf"campaign {kind}: (\d+) cuts, 0 bad", lines[-2])
    assert summary, lines[-40:]
    operations = int(re.search(r"(\d+) operations", counted)[1])  # type: ignore[index]
    print(f"{models.board.name} {kind} {full}: {counted}; {lines[-2]}")
    assert int(summary[1]) >= sized(12, 3 * operations)
    assert {line.split()[-1] for line in lines if line.startswith("cut ")} <= {"o", "n"}


@configured("version", OTHER_VERSIONS, board="mps2/an385")
def test_other_versions(workspaces: Callable[[str], Workspace], tmp_path: Path, version: str) -> None:
    """Other versions of Zephyr: installation, reset, roll back, and some power cuts."""
    other = workspaces(version)
    name = other.board("mps2/an385")
    board = Board(name, other.build(PROGRAM, name))
    models = Models(board, tmp_path, digits_model(tmp_path / "old"), digits_model(tmp_path / "new", rolled=1))
    parts = [OLD, NEW, models.bundle(models.old, 0, "1.0.0"), models.bundle(models.new, 1, "2.0.0")]
    script = f"{START}reset\noptions 0 1 0\nstart\ninstall 4\ncases 2\nrollback\ncases 1\n"
    lines = board.run(f"{script}fill 150\ncampaign install 4 1 2 331 5\n", parts)
    installed = ["install: 0 good detail 0 found 0 expected 0", "model: digits 2.0.0", "cases: 360 of 360"]
    back = ["rollback: 0 good detail 0 found 0 expected 0", "model: digits 1.0.0", "cases: 360 of 360"]
    whole = [*STARTED, "start: 0", "model: digits 1.0.0", *installed, *back]
    assert without_addresses(lines)[: len(whole)] == whole
    assert re.fullmatch(r"campaign install: \d\d+ cuts, 0 bad", lines[-2]), lines[-2]


@configured("models", BOARDS[:1], indirect=True)
def test_costs_beside_the_linked_model(models: Models, workspace: Workspace, old: bytes, tmp_path: Path) -> None:
    """The instructions of a run, and the flash operations of an installation."""
    program = PROGRAM.parent / "bundles_small"
    manifest = digits_model(tmp_path / "linked")
    # A linked run marks its workspace as running, in 31 instructions; the session of a bundle does that outside of run.
    manifest.write_text(manifest.read_text().replace("\nrun:\n", "\nrun:\n  checks: {busy: false}\n", 1))
    linked = workspace.build(program, models.board.name, f"-DMANIFEST={manifest}")
    (tmp_path / "input.bin").write_bytes(OLD[16 : 16 + 64])
    address = FLASH[models.board.name] + PACKAGE_OFFSET
    loader = f"loader,file={tmp_path / 'input.bin'},addr={address:#x},force-raw=on"
    elf = linked.folder / "zephyr" / "zephyr.elf"
    lines = run_image(models.board.name, elf, "^END$", "-device", loader, *ADDED_IN_QEMU)
    found = re.search(r"^ticks: 0 (\d+) label (\d)$", "\n".join(lines), re.MULTILINE)
    assert found and int(found[2]) == struct.unpack_from("<i", OLD, 16 + 360 * 64)[0]
    lines = models.board.run("start\ninstall 3\noperations\nticks 1\n", [OLD, NEW, old], *ADDED_IN_QEMU)
    ticks = int(re.fullmatch(r"ticks: 0 (\d+)", lines[-2])[1])  # type: ignore[index]
    # 40 ns for a tick, 64 ns for an instruction: the bundle's run unpacks two arrays of pointers.
    instructions = [number * 40 / 64 for number in (int(found[1]), ticks)]
    print(f"instructions of a run: linked {instructions[0]:.0f}, bundle {instructions[1]:.0f}")
    assert abs(instructions[1] - instructions[0]) <= 10
    operations = re.fullmatch(r"operations: \d+, 64 blocks erased, (\d+) bytes in (\d+) writes", lines[-3])
    assert operations and len(old) <= int(operations[1]) <= len(old) + 512, lines
