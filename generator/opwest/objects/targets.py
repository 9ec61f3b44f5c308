# SPDX-License-Identifier: Apache-2.0
"""The table of named targets, read from targets.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
import yamlcore


@cache
def named_targets() -> dict[str, dict[str, Any]]:
    """Return the entries of targets.yaml, in the form of `targets` in a manifest."""
    text = Path(__file__).with_name("targets.yaml").read_text(encoding="utf-8")
    # libyaml's parser, if PyYAML was built with it, takes a tenth of the time.
    table: dict[str, dict[str, Any]] = yaml.load(text, Loader=getattr(yamlcore, "CCoreLoader", yamlcore.CoreLoader))
    return table
