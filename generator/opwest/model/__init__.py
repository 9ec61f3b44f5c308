# SPDX-License-Identifier: Apache-2.0
"""What a manifest means: a frozen `Model`, made and checked from located data and the facts of objects."""
