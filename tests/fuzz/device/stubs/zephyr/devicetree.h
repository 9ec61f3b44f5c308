/* SPDX-License-Identifier: Apache-2.0 */
/* As much of Zephyr's header as the service needs; for the fuzzers. */
#define DT_HAS_CHOSEN(node) 0
