# SPDX-License-Identifier: Apache-2.0
"""The report: what was planned, measured and checked, as one page that is looked at."""
