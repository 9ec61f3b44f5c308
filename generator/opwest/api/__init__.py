# SPDX-License-Identifier: Apache-2.0
"""The functions and the results of `import opwest`. The command line converts options and prints these results.

Enters: paths, values and arrays. Leaves: frozen results; `OpwestError` with all diagnostics.
"""
