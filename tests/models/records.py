# SPDX-License-Identifier: Apache-2.0
"""The comparisons of a campaign by operator, for the summary at its end."""

import numpy as np

NUMBERS = ("files", "runs", "values", "wrong")
GREATEST = ("distance", "bound")
_found = {}


def distances(expected, found):
    """Return |found - expected|, of floats divided by max(1, |expected|); 0 for equal infinities and two NaN."""
    if expected.dtype.kind != "f":
        exact = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        return np.where(found == expected, 0, np.maximum(exact, 1))
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.abs(found.astype(np.float64) - expected) / np.maximum(1, np.abs(expected.astype(np.float64)))
        equal = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return np.where(equal, 0, np.where(np.isnan(far), np.inf, far))


def record(operator, dtype, oracle, **numbers):
    """Add numbers: files, runs, values, wrong; the greatest distance and bound of float results."""
    row = _found.setdefault((operator, dtype, oracle), dict.fromkeys(NUMBERS, 0) | dict.fromkeys(GREATEST, 0.0))
    for name, number in numbers.items():
        row[name] = max(row[name], float(number)) if name in GREATEST else row[name] + int(number)


def compare(key, expected, found, bound, where, steps=0.0):
    """Compare two arrays and record the result by `key`: operator, dtype, oracle; raise AssertionError if they differ.

    Integers differ by at most `steps`; floats by bound * max(1, |expected|) + steps.
    """
    far = distances(expected, found)
    is_float = expected.dtype.kind == "f"
    with np.errstate(invalid="ignore"):
        limit = bound + steps / np.maximum(1, np.abs(expected.astype(np.float64))) if is_float else steps
        wrong = ~((far <= limit) | (far == 0))
    floats = {"distance": far.max(initial=0), "bound": bound} if is_float else {}
    record(*key, values=far.size, wrong=wrong.sum(), **floats)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        values = f"{found[first]}, expected {expected[first]}"
        raise AssertionError(f"{where}: {wrong.sum()} of {wrong.size} wrong, first at {first}: {values}")


def take():
    """Return the rows since the last call: [operator, dtype, oracle, numbers]."""
    rows = [[*key, row] for key, row in _found.items()]
    _found.clear()
    return rows


def summary(rows):
    """Return the lines of a table with one row for each operator and oracle."""
    merged = {}
    for operator, dtype, oracle, numbers in rows:
        dtypes, whole = merged.setdefault((operator, oracle), ([], dict.fromkeys(numbers, 0)))
        if dtype not in dtypes:
            dtypes.append(dtype)
        for name, number in numbers.items():
            whole[name] = max(whole[name], number) if name in GREATEST else whole[name] + number
    lines = [("operator", "dtypes", "oracle", *NUMBERS, "float error", "bound")]
    for (operator, oracle), (dtypes, row) in sorted(merged.items()):
        floats = [f"{row[name]:.1e}" if row["bound"] else "-" for name in GREATEST]
        lines.append((operator, " ".join(dtypes), oracle, *(f"{row[name]:,}" for name in NUMBERS), *floats))
    total = [f"{sum(row[name] for _, row in merged.values()):,}" for name in NUMBERS]
    lines.append((f"{len({operator for operator, _ in merged})} operators", "", "", *total, "", ""))
    return aligned(lines)


def aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
