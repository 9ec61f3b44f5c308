# SPDX-License-Identifier: Apache-2.0
"""Areas for sizes: squarified treemaps (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000)."""

from __future__ import annotations

from collections.abc import Sequence

from opwest.report.memory_map import Rectangle


def squarify(sizes: Sequence[int], width: float, height: float) -> list[Rectangle]:
    """Return a rectangle per size (above 0, the largest first) in an area with a size in pixels, as fractions of 1."""
    total = sum(sizes)
    if not total or width <= 0 or height <= 0:
        return []
    areas = [size / total * width * height for size in sizes]
    found: list[Rectangle] = []
    x = y = 0.0
    left, free_width, free_height = 0, width, height
    while left < len(areas):
        side = min(free_width, free_height)
        count = _row(areas, left, side)
        row = areas[left : left + count]
        thickness = sum(row) / side
        along = 0.0
        for area in row:
            length = area / thickness
            if free_width >= free_height:
                found.append(Rectangle(x / width, (y + along) / height, thickness / width, length / height))
            else:
                found.append(Rectangle((x + along) / width, y / height, length / width, thickness / height))
            along += length
        if free_width >= free_height:
            x, free_width = x + thickness, free_width - thickness
        else:
            y, free_height = y + thickness, free_height - thickness
        left += count
    return found


def _row(areas: Sequence[float], start: int, side: float) -> int:
    """Return the number of areas in the row with the best worst ratio of sides."""
    count, best = 1, _worst(areas[start : start + 1], side)
    while start + count < len(areas):
        worst = _worst(areas[start : start + count + 1], side)
        if worst > best:
            break
        count, best = count + 1, worst
    return count


def _worst(row: Sequence[float], side: float) -> float:
    """Return the worst ratio of sides in a row along a side."""
    thickness = sum(row) / side
    return max(max(area / thickness**2, thickness**2 / area) for area in row)
