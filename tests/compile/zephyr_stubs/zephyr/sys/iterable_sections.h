/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the header of this name of Zephyr: only what emitted files use. */
#ifndef STUB_SYS_ITERABLE_SECTIONS_H_
#define STUB_SYS_ITERABLE_SECTIONS_H_

#define STRUCT_SECTION_ITERABLE(type, name) struct type name __attribute__((section("." #type), used))

#endif /* STUB_SYS_ITERABLE_SECTIONS_H_ */
