/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header: only the parts that emitted files use. */
#pragma once

#define LINKER_DT_NODE_REGION_NAME(node) STRINGIFY(node)
