# SPDX-License-Identifier: Apache-2.0
"""Build the sdist and the wheel of opwest into a directory, check their contents, and write their checksums.

The files are those that git tracks, copied to a new directory with the modes of the index, so that neither local files
nor the umask reach a package. Times are SOURCE_DATE_EPOCH, or the date of the commit. hatchling and build are those of
the running Python: `make dist` installs the versions of requirements/release.txt. The wheel is built from the sdist.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from dist_contents import faults_of_sdist, faults_of_wheel

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"


def main() -> int:
    """Build both packages; exit with 1 if the checkout has changes or a package has wrong contents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", metavar="DIR", help="default: dist")
    parser.add_argument("--changed", action="store_true", help="build from a checkout with uncommitted changes")
    options = parser.parse_args()
    if not (ROOT / ".git").exists():
        print("error: not a git checkout\n  hint: in an unpacked sdist, run 'python -m build'", file=sys.stderr)
        return 1
    if not options.changed and (changes := _git("status", "--porcelain", "--untracked-files=no")):
        hint = "commit them, or build packages for a test with --changed"
        print(f"error: uncommitted changes\n{changes}\n  hint: {hint}", file=sys.stderr)
        return 1
    packages = build(options.output)
    faults = faults_of_sdist(packages[0], tracked_files()) + faults_of_wheel(packages[1], tracked_files())
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages)
    (options.output / SUMS).write_text(sums, encoding="ascii")
    print(sums, end="")
    return int(bool(faults))


def build(output: Path) -> tuple[Path, Path]:
    """Return the sdist and the wheel in `output`, which then contains nothing else."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    date = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct")
    with tempfile.TemporaryDirectory() as work:
        source = Path(work, "opwest")
        copy_tracked(source)
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(output.absolute()), str(source)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "SOURCE_DATE_EPOCH": date}
        )
        if done.returncode:
            raise SystemExit(f"error: the build failed\n{done.stdout}{done.stderr}")
    (sdist,), (wheel,) = output.glob("*.tar.gz"), output.glob("*.whl")
    return sdist, wheel


def copy_tracked(target: Path) -> None:
    """Copy the files that git tracks, with the modes 644 and 755."""
    executable = {row.split("\t")[1] for row in _git("ls-files", "-s", "-z").split("\0") if row.startswith("100755")}
    for name in tracked_files():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, place)
        place.chmod(0o755 if name in executable else 0o644)


def tracked_files() -> Collection[str]:
    """Return the files that git tracks, without those that were deleted in the checkout."""
    return sorted(name for name in _git("ls-files", "-z").split("\0") if name and (ROOT / name).is_file())


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
