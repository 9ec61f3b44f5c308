# SPDX-License-Identifier: Apache-2.0
"""The colours of pages and pictures, light and dark: CSS variables by name."""

from __future__ import annotations

from typing import Final

LIGHT: Final = {
    "ground": "#f4f5f8",
    "card": "#ffffff",
    "ink": "#191d26",
    "soft": "#545d6d",
    "line": "#dde1e8",
    "grid": "#e9ecf1",
    "accent": "#1f56c4",
    "better": "#0f6b3d",
    "worse": "#b3261e",
    "warn": "#fff3d6",
    "warn-ink": "#5c3d00",
    "band": "#eef1f6",
}
DARK: Final = {
    "ground": "#0e1116",
    "card": "#161a21",
    "ink": "#e8ebf1",
    "soft": "#a3adbd",
    "line": "#2b323d",
    "grid": "#232932",
    "accent": "#86aeff",
    "better": "#62cf98",
    "worse": "#ff8f86",
    "warn": "#3b2d08",
    "warn-ink": "#ffe3a3",
    "band": "#1d222b",
}

KINDS: Final = {
    # kind: fill, edge and text; light, then dark
    "intermediate": (("#cfe0fb", "#3a70cc", "#12305e"), ("#1c3964", "#6b9dec", "#dce8ff")),
    "input": (("#c9edda", "#22855a", "#0c3c26"), ("#16442e", "#52bb88", "#d8f6e6")),
    "output": (("#fce4b6", "#a86f0c", "#492f00"), ("#523b0f", "#dba640", "#ffedcd")),
    "scratch": (("#e4dafb", "#7853c6", "#2e1962"), ("#392968", "#a98aee", "#ece4ff")),
    "constant": (("#f9d6df", "#bd3e67", "#571428"), ("#591e34", "#e97ca0", "#ffe2eb")),
    "state": (("#cdeaf0", "#1c7f92", "#083a44"), ("#12414b", "#4fb6c9", "#d5f3f8")),
    "code": (("#cdeaf0", "#1c7f92", "#083a44"), ("#12414b", "#4fb6c9", "#d5f3f8")),
    "program": (("#e4dafb", "#7853c6", "#2e1962"), ("#392968", "#a98aee", "#ece4ff")),
    "other": (("#e3e6ec", "#78818f", "#2a303a"), ("#2a303a", "#868f9e", "#e3e6ec")),
    # the schedule
    "run": (("#cfe0fb", "#3a70cc", "#12305e"), ("#1c3964", "#6b9dec", "#dce8ff")),
    "launched": (("#e4dafb", "#7853c6", "#2e1962"), ("#392968", "#a98aee", "#ece4ff")),
    "pending": (("#f3eefd", "#b49fe0", "#2e1962"), ("#241c3d", "#6d58a3", "#ece4ff")),
    "blocked": (("#eef0f4", "#b3bac6", "#2a303a"), ("#20252e", "#525b69", "#e3e6ec")),
}


def variables(dark: bool) -> str:
    """Return the declarations of one scheme."""
    plain = DARK if dark else LIGHT
    kinds = {
        f"{kind}-{part}": colour
        for kind, schemes in KINDS.items()
        for part, colour in zip(("fill", "edge", "ink"), schemes[dark], strict=True)
    }
    return "".join(f"--{name}:{colour};" for name, colour in {**plain, **kinds}.items())


def classes() -> str:
    """Return the rules with the colours of each kind of shape."""
    return "".join(
        f".k-{kind}{{--fill:var(--{kind}-fill);--edge:var(--{kind}-edge);--on:var(--{kind}-ink)}}" for kind in KINDS
    )
