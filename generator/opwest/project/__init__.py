# SPDX-License-Identifier: Apache-2.0
"""Projects on disk: regenerated, merged with the changes of the user, written completely or not at all.

Enters: rendered files and a record. Leaves: a directory and remarks about the user's files.
Never: the meaning of a manifest."""
