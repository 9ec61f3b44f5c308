/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header: only the parts that emitted files use. */
#pragma once

#define STRUCT_SECTION_ITERABLE(type, name) struct type name __attribute__((section("." #type), used))
#define STRUCT_SECTION_COUNT(type, count) (*(count) = 0U)
#define STRUCT_SECTION_GET(type, index, place) (*(place) = NULL)
