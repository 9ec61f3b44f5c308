/* SPDX-License-Identifier: Apache-2.0 */
/* As much of Zephyr's header as the service needs; for the fuzzers. */
#include <assert.h>
#define BUILD_ASSERT(condition, ...) static_assert(condition, "" __VA_ARGS__)
