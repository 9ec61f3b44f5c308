# SPDX-License-Identifier: Apache-2.0
"""The registers that commands set."""

from npu_model.faults import Invalid


class Registers(dict[str, int]):
    """Values by name. Reading one that no command has set raises Invalid: what it has after a reset is not used."""

    def __missing__(self, name: str) -> int:
        raise Invalid(f"no command has set {name}")


def signed(value: int, bits: int) -> int:
    """Return the two's complement of a field."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
