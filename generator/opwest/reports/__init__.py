# SPDX-License-Identifier: Apache-2.0
"""The report: plans, measurements and checks of models as one page, a picture or JSON.

Enters: planned models, profiles, results of runs, linked images. Leaves: text in HTML, SVG or JSON. Never: a
run, or the network; equal inputs give equal reports."""
