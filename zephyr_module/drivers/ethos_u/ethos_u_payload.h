/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The check of a program of an Ethos-U: portable C, also for hosts.
 */
#ifndef OPWEST_ETHOS_U_PAYLOAD_H_
#define OPWEST_ETHOS_U_PAYLOAD_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The products, as in the register CONFIG. */
enum ethos_u_product {
	ETHOS_U55 = 0,
	ETHOS_U65 = 1,
	ETHOS_U85 = 2,
};

/** What the registers CONFIG and ID of an NPU contain. */
struct ethos_u_npu {
	/** enum ethos_u_product */
	uint8_t product;
	/** The binary logarithm of the MACs per cycle. */
	uint8_t macs;
	/** The version of the command stream. */
	uint8_t stream_version;
	/** The revision of the architecture. */
	uint8_t arch_major;
	uint8_t arch_minor;
	bool custom_dma;
};

/**
 * @brief Find the fault in a payload, the program that Vela writes ("COP1").
 *
 * Checks the actions and their lengths, the configuration against the NPU, the alignment of the
 * command stream, and that its commands end with NPU_OP_STOP and not before. Reads only the given
 * bytes. What the commands do to the regions is not checked: `opwest check` does that.
 *
 * @param data The payload, aligned to 16.
 * @param size Its size in bytes.
 * @param npu  The NPU.
 *
 * @return The fault, for a message "... : it is truncated"; NULL for none
 */
const char *ethos_u_payload_fault(const uint8_t *data, uint32_t size,
				  const struct ethos_u_npu *npu);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ETHOS_U_PAYLOAD_H_ */
