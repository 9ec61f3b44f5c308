# SPDX-License-Identifier: Apache-2.0
"""The report: plans, measurements and checks of models as one page."""
