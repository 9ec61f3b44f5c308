/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief How much stack a function takes, measured. Zephyr only, with CONFIG_THREAD_STACK_INFO.
 */
#ifndef OPWEST_STACK_H_
#define OPWEST_STACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that an exception may push during the measurement, and that the measuring itself takes. */
#define OPWEST_STACK_UNSURE 256U

/**
 * @brief Call a function and return how deep it went.
 *
 * Fills what the current thread does not use of its stack, calls, and looks how far that was written. Threads of
 * simulators that are programs of the host have stacks of the host's: there it cannot be measured.
 *
 * @param call The function.
 *
 * @return Bytes from here down to the lowest that was written, up to OPWEST_STACK_UNSURE more than the function needs
 */
uint32_t opwest_stack_measure(void (*call)(void));

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_STACK_H_ */
