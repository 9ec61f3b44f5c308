# SPDX-License-Identifier: Apache-2.0
"""Bundles on boards in QEMU: installation, refusals, resets, power cuts, threads, costs.

All scripts are run by one image for each board (tests/zephyr/programs/bundles). The flash is memory that survives a
warm reset; its driver, NVS and the manager are those of a board. The MPU is on, as in the boards' configurations.
"""

import re
import shutil
import struct
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
from zephyr_support import OTHER_VERSIONS

pytestmark = pytest.mark.zephyr
BOARDS = ("mps2/an385", "mps3/corstone300/an547")
OLD, NEW = held_out_cases(), held_out_cases(rolled=1)
START = "start\ninstall 3\ncases 1\n"
"""Part 1 contains the cases of the old model, part 2 those of the new one, part 3 the old model for slot 0."""
INSTALLED, ROLLED_BACK = (f"{command}: 0 good detail 0 found 0 expected 0" for command in ("install", "rollback"))
EQUAL = "cases: 360 of 360"
FIRST, SECOND = ["model: digits 1.0.0", EQUAL], ["model: digits 2.0.0", EQUAL]
STARTED = ["start: -2", "model: none", INSTALLED, *FIRST]


@dataclass
class Models:
    """Two models with one interface, and their bundles for a board."""

    board: Board
    folder: Path
    old: Path
    new: Path

    def bundle(self, manifest, slot, version, *options):
        """Return a bundle; options replace those before them."""
        name = f"{manifest.parent.name}-{slot}-{version}-{len(options)}.bundle"
        words = ["--slot", self.board.slot(slot), "--target", TARGETS[self.board.name], "--model-version", version]
        words += ["--vectors", "5", "--key", str(private_key(self.folder, "trusted")), "-o", str(self.folder / name)]
        return bundle(manifest, *words, *options).read_bytes()


on_boards = configured("models", BOARDS, indirect=True)


@pytest.fixture(scope="module")
def models(request, workspace, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles")
    board = Board(request.param, workspace.build(PROGRAM, request.param))
    assert "CONFIG_ARM_MPU=y" in board.built.options
    return Models(board, folder, digits_model(folder / "old"), digits_model(folder / "new", rolled=1))


@pytest.fixture(scope="module")
def old(models):
    return models.bundle(models.old, 0, "1.0.0")


@pytest.fixture(scope="module")
def new(models):
    return models.bundle(models.new, 1, "2.0.0")


def without_addresses(lines):
    """Return the lines without the addresses of descriptors, and without END."""
    return [re.sub(r" at 0x\w+$", "", line) for line in lines if line != "END"]


def refusal(reason, found=0, expected=0, detail=0):
    return f"install: -77 {reason} detail {detail} found {found:x} expected {expected:x}"


@on_boards
def test_install_replace_and_roll_back(models, old, new):
    script = f"{START}state\nlist\nreset\nstart\ninstall 4\ncases 2\nlist\nreset\nstart\ncases 2\nrollback\ncases 2\n"
    script += "options 0 1\nreset\noptions 0 1\nstart\nrollback\ncases 1\nreset\nstart\ncases 1\nstate\nstack\n"
    lines = models.board.run(script, [OLD, NEW, old, new])
    assert f"model: digits 2.0.0 at {FLASH[models.board.name] + SLOT_SIZE + 256:#x}" in lines
    stack = int(re.fullmatch(r"stack: (\d+) bytes", lines[-2])[1])
    assert stack <= 4096
    assert without_addresses(lines)[:-1] == [
        *STARTED,
        "state: active 0 trying 255 previous 255 crashes 0 good",
        "slot 0: 0 good active",
        "slot 1: 0 no bundle target",
        *["start: 0", "model: digits 1.0.0", INSTALLED, *SECOND],
        "slot 0: 0 downgrade previous target",
        "slot 1: 0 good active",
        *["start: 0", *SECOND],
        "rollback: -77 downgrade detail 44 found 1000000 expected 2000000",
        *SECOND,
        *["start: 0", "model: digits 2.0.0"],
        *[ROLLED_BACK, *FIRST],
        *["start: 0", *FIRST],
        "state: active 0 trying 255 previous 1 crashes 0 good",
    ]


@pytest.fixture(scope="module")
def wrong(models):
    """The new model with a wrong label in golden vector 2."""
    folder = models.folder / "wrong_vector"
    shutil.copytree(models.new.parent, folder)
    vectors = dict(np.load(folder / "vectors.npz"))
    vectors["label"][2] += 1
    np.savez(folder / "vectors.npz", **vectors)
    return models.bundle(folder / "manifest.yaml", 1, "2.0.0")


@on_boards
def test_refused_bundles(models, old, new, wrong):
    """Each refusal leaves the old model, also after a reset."""
    slot = FLASH[models.board.name]
    version, machine = struct.unpack_from("<H", new, 142)[0], 243  # EM_RISCV
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
    for part, (_, message) in enumerate(refused.values(), 4):
        script += f"install {part}\ncases 1\nreset\nstart\ncases 1\n"
        expected += [message, *FIRST, "start: 0", *FIRST]
    lines = models.board.run(script, [OLD, NEW, old, *(content for content, _ in refused.values())])
    assert without_addresses(lines) == expected


@on_boards
def test_imported_model_replaces_another_interface(models, old, tmp_path):
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
    model = ["model: kws_int8 1.0.0", f"cases: {len(inputs)} of {len(inputs)}"]
    assert lines == [*STARTED, INSTALLED, *model, "start: 0", *model, ROLLED_BACK, *FIRST]


@on_boards
def test_resets_before_a_model_is_confirmed(models, old, new):
    script = f"{START}options 1 0\ninstall 4\ncases 2\nstate\nreset\n"  # the trial ends
    script += "options 1 0\nstart\ncases 1\nstate\n"
    script += "upload 4 2000\nreset\noptions 1 0\nstart\ncases 1\n"  # an upload ends
    script += "install 4\nconfirm\nreset\nstart\ncases 2\nstate\nconfirm\n"
    script += "damage 1 600\nreset\nstart\ncases 1\n"  # the active model is damaged
    lines = without_addresses(models.board.run(script, [OLD, NEW, old, new]))
    assert lines == [
        *STARTED,
        *[INSTALLED, *SECOND, "state: active 0 trying 1 previous 255 crashes 0 good"],
        *["start: 0", *FIRST, "state: active 0 trying 255 previous 255 crashes 0 unconfirmed"],
        *["upload: 0", "start: 0", *FIRST],
        *[INSTALLED, "model: digits 2.0.0", "confirm: 0", "start: 0", *SECOND],
        *["state: active 1 trying 255 previous 0 crashes 0 good", "confirm: -1"],
        *["start: 0", *FIRST],
    ]


@on_boards
def test_every_key_of_the_firmware(models, old, new):
    """The second trusted key alone, and behind a signature that the firmware cannot verify."""
    second = signed_again(new, seed="next")
    unknown = models.folder / "unknown.bundle"
    unknown.write_bytes(signed_again(old, 44, "<I", 3 << 24, seed="other"))
    key = private_key(models.folder, "trusted")
    both = bundle(unknown, "--key", key, "-o", models.folder / "both.bundle").read_bytes()
    assert len(both) == len(old) + 80
    script = f"{START}install 4\ncases 2\ninstall 5\ncases 1\n"
    lines = without_addresses(models.board.run(script, [OLD, NEW, old, second, both]))
    assert lines == [*STARTED, INSTALLED, *SECOND, INSTALLED, "model: digits 3.0.0", EQUAL]


@on_boards
def test_threads_run_the_old_model_until_the_new_one(models, old, new):
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
def test_power_cuts(models, old, new, wrong, kind, full):
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
    operations = int(re.search(r"(\d+) operations", counted)[1])
    print(f"{models.board.name} {kind} {full}: {counted}; {lines[-2]}")
    assert int(summary[1]) >= sized(12, 3 * operations)
    assert {line.split()[-1] for line in lines if line.startswith("cut ")} <= {"o", "n"}


@configured("version", OTHER_VERSIONS, board="mps2/an385")
def test_other_versions(workspaces, tmp_path, version):
    """Other versions of Zephyr: installation, reset, roll back, and some power cuts."""
    other = workspaces(version)
    board = Board("mps2/an385", other.build(PROGRAM, other.board("mps2/an385")))
    models = Models(board, tmp_path, digits_model(tmp_path / "old"), digits_model(tmp_path / "new", rolled=1))
    parts = [OLD, NEW, models.bundle(models.old, 0, "1.0.0"), models.bundle(models.new, 1, "2.0.0")]
    script = f"{START}reset\noptions 0 1\nstart\ninstall 4\ncases 2\nrollback\ncases 1\n"
    lines = board.run(f"{script}fill 150\ncampaign install 4 1 2 331 5\n", parts)
    whole = [*STARTED, "start: 0", "model: digits 1.0.0", INSTALLED, *SECOND, ROLLED_BACK, *FIRST]
    assert without_addresses(lines)[: len(whole)] == whole
    assert re.fullmatch(r"campaign install: \d\d+ cuts, 0 bad", lines[-2]), lines[-2]


@configured("models", BOARDS[:1], indirect=True)
def test_costs_beside_the_linked_model(models, workspace, old, tmp_path):
    """The instructions of a run, and the flash operations of an installation."""
    program = PROGRAM.parent / "bundles_small"
    manifest = digits_model(tmp_path / "linked")
    # A linked run marks its workspace as running, in 31 instructions; the session of a bundle does that outside of run.
    manifest.write_text(manifest.read_text().replace("\nrun:\n", "\nrun:\n  checks: {busy: false}\n", 1))
    linked = workspace.build(program, models.board.name, f"-DMANIFEST={manifest}")
    (tmp_path / "input.bin").write_bytes(OLD[16 : 16 + 64])
    address = FLASH[models.board.name] + PACKAGE_OFFSET
    loader = f"loader,file={tmp_path / 'input.bin'},addr={address:#x},force-raw=on"
    lines = run_image(models.board.name, linked.elf, "^END$", "-device", loader, *ADDED_IN_QEMU)
    found = re.search(r"^ticks: 0 (\d+) label (\d)$", "\n".join(lines), re.MULTILINE)
    assert found and int(found[2]) == struct.unpack_from("<i", OLD, 16 + 360 * 64)[0]
    lines = models.board.run("start\ninstall 3\noperations\nticks 1\n", [OLD, NEW, old], *ADDED_IN_QEMU)
    ticks = int(re.fullmatch(r"ticks: 0 (\d+)", lines[-2])[1])
    # 40 ns for a tick, 64 ns for an instruction: the bundle's run unpacks two arrays of pointers.
    instructions = [number * 40 / 64 for number in (int(found[1]), ticks)]
    print(f"instructions of a run: linked {instructions[0]:.0f}, bundle {instructions[1]:.0f}")
    assert abs(instructions[1] - instructions[0]) <= 10
    operations = re.fullmatch(r"operations: \d+, 64 blocks erased, (\d+) bytes in (\d+) writes", lines[-3])
    assert operations and len(old) <= int(operations[1]) <= len(old) + 512, lines
