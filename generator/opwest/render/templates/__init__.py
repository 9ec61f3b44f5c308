# SPDX-License-Identifier: Apache-2.0
"""Jinja templates: the environment of opwest and the sandbox for templates of the user."""
