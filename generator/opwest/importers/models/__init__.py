# SPDX-License-Identifier: Apache-2.0
"""Import trained models (TFLite, ONNX) without their frameworks: exact integer operators as readable C."""
