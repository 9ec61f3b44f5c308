# SPDX-License-Identifier: Apache-2.0
import fuzz_paths  # noqa: F401
