# SPDX-License-Identifier: Apache-2.0
"""Read TFLite files as hostile input."""
