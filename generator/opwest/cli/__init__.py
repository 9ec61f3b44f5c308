# SPDX-License-Identifier: Apache-2.0
"""The command line: options, commands, and the output that people read.

Enters: arguments. Leaves: text, JSON, an exit code; 2 for a wrong command line, 1 for an error. Never: a decision about
a model, or a traceback for a fault of an input."""
