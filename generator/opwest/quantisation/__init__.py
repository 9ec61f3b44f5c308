# SPDX-License-Identifier: Apache-2.0
"""Quantisation after training: an integer model from a float model and samples of its inputs.

Enters: a model file and samples. Leaves: a model file of the same format, and what each layer lost. Never: training.
"""
