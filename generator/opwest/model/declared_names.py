# SPDX-License-Identifier: Apache-2.0
"""Resolve everything that steps can name."""

from __future__ import annotations

from opwest.model import declarations, hardware
from opwest.model.constants import constants
from opwest.model.context import Context
from opwest.model.interface_views import interface_views
from opwest.model.model import Constant
from opwest.model.programs import Programs
from opwest.model.repeats import check_step_count, slices
from opwest.model.states import states
from opwest.model.step_names import Names, constant_types
from opwest.model.views import declared_types, views


def declared_names(context: Context) -> tuple[Names, list[Constant]]:
    """Return the names that a step may use, and the constants with the initial contents of states."""
    programs = Programs(context)
    devices = hardware.devices(context, programs)
    operators = declarations.operators(context, programs)
    inputs = declarations.interface(context, "inputs")
    outputs = declarations.interface(context, "outputs")
    known = constants(context, constant_types(context, operators))
    lasting, initials = states(context)
    types = {t.name: t.type for named in (inputs, outputs, known, lasting) for t in named.values()}
    types |= declared_types(context)
    parts = views(context, types, interface_views(context, types))
    check_step_count(context)
    names = Names(
        programs=programs,
        operators=operators,
        devices=devices,
        pools=hardware.pools(context, devices),
        inputs=inputs,
        outputs=outputs,
        constants=known,
        declared_constants=context.section("constants"),
        states=lasting,
        views=parts | slices(context, types, parts),
    )
    return names, initials
