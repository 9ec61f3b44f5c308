# SPDX-License-Identifier: Apache-2.0
"""`python -m opwest`."""

import sys

from opwest.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
