/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header: only the parts that emitted files use. */
#pragma once

#define Z_STRINGIFY(x) #x
#define STRINGIFY(s) Z_STRINGIFY(s)
#define BUILD_ASSERT(condition, message) _Static_assert(condition, message)
#define Z_GENERIC_SECTION(segment) __attribute__((section(STRINGIFY(segment))))
