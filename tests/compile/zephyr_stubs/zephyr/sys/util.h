/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header: only the parts that emitted files use. */
#ifndef STUB_SYS_UTIL_H_
#define STUB_SYS_UTIL_H_


#endif /* STUB_SYS_UTIL_H_ */
