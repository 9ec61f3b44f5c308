/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header with the parts that the service needs; for the fuzzers. */
#define DT_HAS_CHOSEN(node) 0
