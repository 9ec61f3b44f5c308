/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The system's counter and trace for profiling (CONFIG_OPWEST_PROFILE).
 */
#ifndef OPWEST_PORT_PROFILE_H_
#define OPWEST_PORT_PROFILE_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Read the counter.
 *
 * @return A value for opwest_port_profile_cycles()
 */
uint64_t opwest_port_profile_counter(void);

/**
 * @brief Return the difference of two values of the counter, which may have wrapped.
 *
 * @param begin The earlier.
 * @param end   The later.
 *
 * @return Cycles
 */
uint64_t opwest_port_profile_cycles(uint64_t begin, uint64_t end);

/**
 * @brief Return the frequency of the counter.
 *
 * @return Cycles per second; 0 if it is not known
 */
uint64_t opwest_port_profile_frequency(void);

/**
 * @brief Write a named event to the system's trace, if there is one.
 *
 * @param name   The name of the event.
 * @param index  The point.
 * @param begins Whether it begins.
 */
void opwest_port_profile_trace(const char *name, uint32_t index, bool begins);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PORT_PROFILE_H_ */
