/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header with the parts that the service needs; for the fuzzers. */
#include <assert.h>
#define BUILD_ASSERT(condition, ...) static_assert(condition, "" __VA_ARGS__)
