# SPDX-License-Identifier: Apache-2.0
"""The functions that translate operators of ONNX."""

from __future__ import annotations

from collections.abc import Callable

from opwest.importers.models.onnx.translation import Translation
from opwest.importers.models.onnx.values import Op

Translate = Callable[[Op, Translation], None]
TRANSLATIONS: dict[str, Translate] = {}
"""By operator. `translate.py` imports all modules that fill it."""


def translates(*kinds: str) -> Callable[[Translate], Translate]:
    """Register a function. It can raise Unsupported."""

    def register(function: Translate) -> Translate:
        for kind in kinds:
            assert kind not in TRANSLATIONS, kind
            TRANSLATIONS[kind] = function
        return function

    return register
