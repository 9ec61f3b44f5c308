# SPDX-License-Identifier: Apache-2.0
"""Names of models from names of files: those that no model can have get a prefix."""

import pytest
from opwest.compiler.names import model_name
from opwest.model.types.c_names import fault_of_name, reserved_model_name


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("signal", "model_signal"),
        ("opwest_net", "model_opwest_net"),
        ("k_work_queue", "model_k_work_queue"),
        ("int", "model_int"),
        ("1-my model", "model_1_my_model"),
        ("kws.int8", "kws_int8"),
    ],
)
def test_names(file, name):
    assert model_name(file) == name
    assert fault_of_name(name) is None and reserved_model_name(name) is None
