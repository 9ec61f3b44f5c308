# SPDX-License-Identifier: Apache-2.0
"""The JSON output of commands that run in the process of a test, compared with the schema of its command.

`use_output_schemas()` wraps the function of opwest that makes the output, so every `--json` of every test is checked.
"""

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
from opwest.base.resources import resource
from opwest.cli import main

SCHEMAS = resource("schemas") / "output"
COMMON = "common"
_json_text = main.json_text


def use_output_schemas() -> None:
    """Compare each output with its schema from now on."""
    main.json_text = _compared


def _compared(*words: Any) -> str:
    text = _json_text(*words)
    compare(json.loads(text))
    return text


def compare(output: dict[str, Any]) -> None:
    """Raise AssertionError with the first violations of an output."""
    found = list(validator(output["command"]).iter_errors(output))
    texts = [f"{'/'.join(map(str, error.instance_path))}: {error.message[:1000]}" for error in found[:5]]
    assert not found, f"not in the form of schemas/output/{output['command']}.schema.json:\n" + "\n".join(texts)


def path_of(name: str) -> Path:
    return SCHEMAS / f"{name}.schema.json"


def schema_of(name: str) -> dict[str, Any]:
    return json.loads(path_of(name).read_bytes())


@functools.cache
def validator(command: str | None) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a command; of None, that of all commands."""
    schema = {"$ref": f"{COMMON}.schema.json#/$defs/outcome"} if command is None else schema_of(command)
    return jsonschema_rs.Draft202012Validator(
        schema, base_uri=path_of(str(command)).as_uri(), retriever=lambda address: schema_of(COMMON)
    )
