/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The names of errors, whose numbers depend on the C library.
 */
#ifndef OPWEST_ERRORS_H_
#define OPWEST_ERRORS_H_

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Return the name of an error.
 *
 * @param error A negative errno.
 *
 * @return Its name ("EBUSY"), or "" if it is not an error of the runtime
 */
const char *opwest_error_name(int error);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ERRORS_H_ */
