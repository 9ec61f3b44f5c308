/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the header of this name of Zephyr: only what emitted files use. */
#ifndef STUB_SYS_UTIL_H_
#define STUB_SYS_UTIL_H_


#endif /* STUB_SYS_UTIL_H_ */
