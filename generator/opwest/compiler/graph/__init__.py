# SPDX-License-Identifier: Apache-2.0
"""The typed graph of a model.

Enters: what a front end reads. Leaves: a graph whose nodes agree with the specification of their operators, or a
message for each that does not. Never: formats of models, arithmetic.
"""
