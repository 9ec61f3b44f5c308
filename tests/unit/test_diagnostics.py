# SPDX-License-Identifier: Apache-2.0
"""Diagnostics as text."""

from __future__ import annotations

from opwest.diagnostics import Diagnostic, Location


def test_place_message_expectation_hint() -> None:
    text = str(Diagnostic("error", "this is wrong", Location("a.yaml", 3, 4), "right", "correct it"))
    assert text == "a.yaml:3:4: error: this is wrong\n  expected: right\n  hint: correct it"
    assert str(Diagnostic("note", "look")) == "opwest: note: look"


def test_overlong_words_are_shortened_in_the_middle() -> None:
    """Long words of damaged input are shortened; those of up to 1,000 characters, such as a long path, are not."""
    path, noise = "p" * 1000, "x" * 400 + "y" * 3000 + "z" * 200
    text = str(Diagnostic("error", f"type {noise} of {path}", None, noise, noise))
    cut = "x" * 400 + "…" + "z" * 200
    assert text == f"opwest: error: type {cut} of {path}\n  expected: {cut}\n  hint: {cut}"
