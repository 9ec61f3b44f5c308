/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header: only the parts that emitted files use. */
#ifndef STUB_TOOLCHAIN_H_
#define STUB_TOOLCHAIN_H_

#define Z_STRINGIFY(x) #x
#define STRINGIFY(s) Z_STRINGIFY(s)
#define BUILD_ASSERT(condition, message) _Static_assert(condition, message)
#define Z_GENERIC_SECTION(segment) __attribute__((section(STRINGIFY(segment))))

#endif /* STUB_TOOLCHAIN_H_ */
