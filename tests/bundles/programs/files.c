/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments: public keys in hexadecimal. Reads names of files, prints for each: the fault of the
 * header, the size of the whole file, whether it is signed, the verdict of the ABI record, and the
 * header.
 */
#include <opwest/bundle_format.h>

#include "given.h"

static void print_file(const uint8_t *data, size_t size, const struct opwest_bundle_key *keys,
		       size_t count)
{
	struct opwest_bundle_header header;
	struct opwest_bundle_verdict verdict = {0};
	const enum opwest_bundle_fault fault = opwest_bundle_parse(data, size, &header);

	printf("%d", fault);
	if (fault == OPWEST_BUNDLE_GOOD) {
		const bool agrees = opwest_bundle_abi_agrees(&header, &verdict);

		printf(" %zu %d %d %u %ld %llx %llx", opwest_bundle_total(data, size, &header),
		       opwest_bundle_signed(data, size, &header, keys, count), agrees,
		       verdict.fault, (long)verdict.detail, (unsigned long long)verdict.found,
		       (unsigned long long)verdict.expected);
		printf(" %s %lx %llx %u %u %u", header.name, (unsigned long)header.version,
		       (unsigned long long)header.interface_hash, header.kind, header.length,
		       header.abi.outputs_size);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	static struct opwest_bundle_key keys[8];
	static char name[1024];

	for (int i = 1; i < argc; i++) {
		(void)bytes_of(argv[i], keys[i - 1].bytes);
	}
	while (scanf("%1023s", name) == 1) {
		const struct file file = read_file(name);

		print_file(file.data, file.size, keys, (size_t)argc - 1U);
		free(file.data);
	}
	return 0;
}
