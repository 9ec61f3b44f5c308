/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <opwest/port.h>

#include "llext_internal.h"

#define CLASS_AT  4U
#define DATA_AT   5U
#define CLASS     (sizeof(void *) == 8U ? 2U : 1U)
#define DATA      (OPWEST_ABI_BIG_ENDIAN ? 2U : 1U)
/* Sections with a larger alignment would waste memory of the loader. */
#define MAX_ALIGN 65536U
/* The bytes that a relocation changes: instructions and words. */
#define RELOCATED 4U

/* The file with its tables, which are in it after the check of each. */
struct file {
	const uint8_t *image;
	size_t size;
	const elf_shdr_t *sections;
	uint32_t count;
	/* The section names, the symbols and their names; NULL until they are found. */
	const elf_shdr_t *names;
	const elf_shdr_t *symbols;
	const elf_shdr_t *strings;
	const elf_shdr_t *constants;
	const char **reason;
	int rc;
};

static bool refuse(struct file *file, int rc, const char *reason)
{
	file->rc = rc;
	*file->reason = reason;
	return false;
}

static bool damaged(struct file *file, const char *reason)
{
	return refuse(file, -ENOEXEC, reason);
}

static bool is_within(const struct file *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset;
}

static bool has_header(struct file *file)
{
	const elf_ehdr_t *const header = (const elf_ehdr_t *)(const void *)file->image;

	if ((uintptr_t)file->image % sizeof(uintptr_t) != 0U || file->size < sizeof(*header) ||
	    memcmp(header->e_ident, "\177ELF", 4U) != 0 || header->e_type != ET_REL) {
		return damaged(file, "no relocatable ELF file");
	}
	if (header->e_machine != OPWEST_ABI_MACHINE || header->e_ident[CLASS_AT] != CLASS ||
	    header->e_ident[DATA_AT] != DATA) {
		return damaged(file, "an ELF file for another machine");
	}
	if (header->e_shentsize != sizeof(elf_shdr_t) || header->e_shnum == 0U ||
	    header->e_shnum >= SHN_LORESERVE || header->e_shoff % sizeof(uintptr_t) != 0U ||
	    !is_within(file, header->e_shoff, (uint64_t)header->e_shnum * sizeof(elf_shdr_t)) ||
	    header->e_shstrndx >= header->e_shnum) {
		return damaged(file, "damaged section headers");
	}
	file->sections = (const elf_shdr_t *)(const void *)&file->image[header->e_shoff];
	file->count = header->e_shnum;
	file->names = &file->sections[header->e_shstrndx];
	return true;
}

static bool is_loaded(const elf_shdr_t *section)
{
	return (section->sh_flags & SHF_ALLOC) != 0U && section->sh_size != 0U;
}

static bool is_section(struct file *file, const elf_shdr_t *section)
{
	switch (section->sh_type) {
	case SHT_NULL:
		return section->sh_size == 0U || damaged(file, "damaged section headers");
	case SHT_NOBITS:
		return !is_loaded(section) || refuse(file, -ENOTSUP, "zeroed memory (.bss)");
	case SHT_PREINIT_ARRAY:
	case SHT_INIT_ARRAY:
	case SHT_FINI_ARRAY:
		return !is_loaded(section) || refuse(file, -ENOTSUP, "constructors");
	default:
		break;
	}
	if (!is_within(file, section->sh_offset, section->sh_size)) {
		return damaged(file, "a section outside of the image");
	}
	if (is_loaded(section) &&
	    (section->sh_addralign == 0U || section->sh_addralign > MAX_ALIGN ||
	     (section->sh_addralign & (section->sh_addralign - 1U)) != 0U ||
	     section->sh_offset % section->sh_addralign != 0U)) {
		return damaged(file, "a misaligned section");
	}
	return true;
}

static bool are_strings(struct file *file, const elf_shdr_t *section)
{
	if (section->sh_type != SHT_STRTAB || section->sh_size == 0U ||
	    file->image[section->sh_offset + section->sh_size - 1U] != '\0') {
		return damaged(file, "a damaged string table");
	}
	return true;
}

/* The first one is the one that LLEXT uses, and it must be the only one. */
static bool has_symbols(struct file *file)
{
	for (uint32_t i = 0U; i < file->count; i++) {
		const elf_shdr_t *const section = &file->sections[i];

		if (section->sh_type != SHT_SYMTAB) {
			continue;
		}
		if (file->symbols != NULL || section->sh_entsize != sizeof(elf_sym_t) ||
		    section->sh_size % sizeof(elf_sym_t) != 0U ||
		    section->sh_offset % sizeof(uintptr_t) != 0U ||
		    section->sh_link >= file->count) {
			return damaged(file, "a damaged symbol table");
		}
		file->symbols = section;
		file->strings = &file->sections[section->sh_link];
	}
	return file->symbols != NULL ? are_strings(file, file->strings)
				     : damaged(file, "no symbol table");
}

static uint32_t symbol_count(const struct file *file)
{
	return (uint32_t)(file->symbols->sh_size / sizeof(elf_sym_t));
}

static const elf_sym_t *symbol_at(const struct file *file, uint32_t index)
{
	return (const elf_sym_t *)(const void *)&file
		->image[file->symbols->sh_offset + index * sizeof(elf_sym_t)];
}

static bool are_symbols(struct file *file)
{
	for (uint32_t i = 1U; i < symbol_count(file); i++) {
		const elf_sym_t *const symbol = symbol_at(file, i);

		if (symbol->st_name >= file->strings->sh_size ||
		    (symbol->st_shndx >= file->count && symbol->st_shndx != SHN_ABS)) {
			return damaged(file, "a damaged symbol");
		}
		/* LLEXT reads the sections of these without further checks. */
		if (symbol->st_shndx == SHN_ABS && (ELF_ST_BIND(symbol->st_info) == STB_GLOBAL ||
						    ELF_ST_TYPE(symbol->st_info) == STT_SECTION)) {
			return damaged(file, "a damaged symbol");
		}
		if (file->constants != NULL &&
		    symbol->st_shndx == (size_t)(file->constants - file->sections) &&
		    ELF_ST_BIND(symbol->st_info) != STB_LOCAL) {
			return damaged(file, "a global constant");
		}
	}
	return true;
}

static bool are_relocations(struct file *file, const elf_shdr_t *section)
{
	const size_t entry = section->sh_type == SHT_REL ? sizeof(elf_rel_t) : sizeof(elf_rela_t);

	if (section->sh_entsize != entry || section->sh_size % entry != 0U ||
	    section->sh_offset % sizeof(uintptr_t) != 0U || section->sh_info >= file->count) {
		return damaged(file, "a damaged relocation table");
	}

	const elf_shdr_t *const target = &file->sections[section->sh_info];

	if (!is_loaded(target)) {
		return true; /* not used */
	}
	if (target->sh_type != SHT_PROGBITS || target == file->constants) {
		return damaged(file, "a damaged relocation table");
	}
	for (size_t i = 0U; i < section->sh_size / entry; i++) {
		/* The first members of both kinds are equal. */
		const elf_rel_t *const relocation = (const elf_rel_t *)(const void *)&file
							    ->image[section->sh_offset + i * entry];

		if (target->sh_size < RELOCATED ||
		    relocation->r_offset > target->sh_size - RELOCATED ||
		    ELF_R_SYM(relocation->r_info) >= symbol_count(file)) {
			return damaged(file, "a damaged relocation");
		}
	}
	return true;
}

static bool are_sections(struct file *file)
{
	for (uint32_t i = 0U; i < file->count; i++) {
		if (!is_section(file, &file->sections[i])) {
			return false;
		}
	}
	if (!are_strings(file, file->names)) {
		return false;
	}
	for (uint32_t i = 0U; i < file->count; i++) {
		const elf_shdr_t *const section = &file->sections[i];

		if (section->sh_name >= file->names->sh_size) {
			return damaged(file, "a damaged section name");
		}
		if (strcmp((const char *)&file->image[file->names->sh_offset + section->sh_name],
			   OPWEST_LLEXT_CONSTANTS) != 0 ||
		    !is_loaded(section)) {
			continue;
		}
		if (file->constants != NULL || section->sh_type != SHT_PROGBITS ||
		    (section->sh_flags & (SHF_WRITE | SHF_EXECINSTR)) != 0U) {
			return damaged(file, "damaged section headers");
		}
		file->constants = section;
	}
	return true;
}

int opwest_llext_check(const uint8_t *image, size_t size, struct opwest_llext_tables *tables,
		       const char **reason)
{
	struct file file = {.image = image, .size = size, .reason = reason, .rc = 0};

	if (!has_header(&file) || !are_sections(&file) || !has_symbols(&file) ||
	    !are_symbols(&file)) {
		return file.rc;
	}
	for (uint32_t i = 0U; i < file.count; i++) {
		const uint32_t type = file.sections[i].sh_type;

		if ((type == SHT_REL || type == SHT_RELA) &&
		    !are_relocations(&file, &file.sections[i])) {
			return file.rc;
		}
	}
	*tables = (struct opwest_llext_tables){
		.sections = file.sections, .symbols = file.symbols, .constants = file.constants};
	return 0;
}
