# SPDX-License-Identifier: Apache-2.0
"""Jinja templates: the environment of opwest, and the sandbox for templates of the user.

Enters: the text of templates, prepared rows. Leaves: bytes of one file. Never: a file; project/ reads the templates."""
