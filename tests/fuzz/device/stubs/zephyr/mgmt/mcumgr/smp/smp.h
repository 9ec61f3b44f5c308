/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header with the parts that the service needs; for the fuzzers. */
#ifndef STUB_SMP_H_
#define STUB_SMP_H_
#include <zcbor_common.h>

/* CONFIG_MCUMGR_SMP_CBOR_MAX_DECODING_LEVELS + 2, and as many for encoding */
struct cbor_nb_reader {
	zcbor_state_t zs[7];
};

struct cbor_nb_writer {
	zcbor_state_t zs[7];
};

struct smp_streamer {
	struct cbor_nb_reader *reader;
	struct cbor_nb_writer *writer;
};
#endif
