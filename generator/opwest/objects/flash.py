# SPDX-License-Identifier: Apache-2.0
"""stub"""

from opwest.base.frozen_dataclass import dataclass


@dataclass(frozen=True)
class Flash:
    """stub"""

    wait_states: int
    line: int
    cache: int
    data_cache: int = 0
    prefetch: bool = True

    @property
    def loop_bytes(self) -> int | None:
        """stub"""
        return self.cache * 15 // 16


UNKNOWN = Flash(5, 16, 1024, 256, True)
