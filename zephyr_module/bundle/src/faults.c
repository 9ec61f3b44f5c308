/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "bundle_internal.h"

const char *opwest_bundle_fault_name(uint8_t fault)
{
	static const char names[][12] = {
		[OPWEST_BUNDLE_GOOD] = "good",
		[OPWEST_BUNDLE_NO_BUNDLE] = "no bundle",
		[OPWEST_BUNDLE_FORMAT] = "format",
		[OPWEST_BUNDLE_HEADER] = "header",
		[OPWEST_BUNDLE_SIZE] = "size",
		[OPWEST_BUNDLE_READ_BACK] = "read-back",
		[OPWEST_BUNDLE_SIGNATURE] = "signature",
		[OPWEST_BUNDLE_SLOT] = "slot",
		[OPWEST_BUNDLE_MACHINE] = "machine",
		[OPWEST_BUNDLE_FLOAT_ABI] = "float ABI",
		[OPWEST_BUNDLE_CPU] = "cpu",
		[OPWEST_BUNDLE_LAYOUT] = "layout",
		[OPWEST_BUNDLE_DESCRIPTOR] = "descriptor",
		[OPWEST_BUNDLE_MEMORY] = "memory",
		[OPWEST_BUNDLE_DEVICES] = "devices",
		[OPWEST_BUNDLE_DOWNGRADE] = "downgrade",
		[OPWEST_BUNDLE_RUN] = "run",
		[OPWEST_BUNDLE_VECTOR] = "vector",
		[OPWEST_BUNDLE_UNCONFIRMED] = "unconfirmed",
		[OPWEST_BUNDLE_KIND] = "kind",
		[OPWEST_BUNDLE_STORAGE] = "storage",
		[OPWEST_BUNDLE_NO_VECTOR] = "no vector",
		[OPWEST_BUNDLE_CRASHES] = "crashes",
	};

	return fault < OPWEST_ARRAY_SIZE(names) ? names[fault] : NULL;
}

bool opwest_bundle_refuse(struct opwest_bundle_verdict *verdict, enum opwest_bundle_fault fault,
			  int32_t detail, uint64_t found, uint64_t expected)
{
	*verdict = (struct opwest_bundle_verdict){
		.fault = (uint8_t)fault,
		.detail = detail,
		.found = found,
		.expected = expected,
	};
	return false;
}
