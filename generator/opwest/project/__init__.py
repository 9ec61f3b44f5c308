# SPDX-License-Identifier: Apache-2.0
"""Projects on disk: regenerated, merged with the changes of the user, written completely or not at all."""
