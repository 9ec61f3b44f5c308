/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The check of ELF files before LLEXT parses them.
 */
#ifndef OPWEST_LLEXT_INTERNAL_H_
#define OPWEST_LLEXT_INTERNAL_H_

#include <stddef.h>
#include <stdint.h>

#include <zephyr/llext/elf.h>

/** The section with all constants without relocations: LLEXT of Zephyr 4.3 has a region for it. */
#define OPWEST_LLEXT_CONSTANTS ".llext.rodata.noreloc"

/** The tables of a file. */
struct opwest_llext_tables {
	const elf_shdr_t *sections;
	const elf_shdr_t *symbols;
	/** OPWEST_LLEXT_CONSTANTS, which only local symbols refer to; NULL without it. */
	const elf_shdr_t *constants;
};

/**
 * @brief Check everything of a relocatable ELF file that LLEXT uses as an offset, size or index.
 *
 * LLEXT of Zephyr 4.2 does not: sizes of entries, offsets of relocations and indices of symbols
 * are used unchecked. It does not compare the machine with the processor either.
 *
 * @param image  The file, aligned for its headers.
 * @param size   Bytes.
 * @param tables Set to its tables.
 * @param reason Set to the fault.
 *
 * @retval 0        LLEXT can parse it.
 * @retval -ENOEXEC Damaged, or for another processor.
 * @retval -ENOTSUP Zeroed memory, or constructors.
 */
int opwest_llext_check(const uint8_t *image, size_t size, struct opwest_llext_tables *tables,
		       const char **reason);

#endif /* OPWEST_LLEXT_INTERNAL_H_ */
