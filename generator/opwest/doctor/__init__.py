# SPDX-License-Identifier: Apache-2.0
"""What this machine has, what each feature of opwest needs, and how to install what is missing."""
