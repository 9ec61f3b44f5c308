/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the MCUmgr group: CBOR of any kind, several in a row, into buffers of exactly the announced size. */
#include <string.h>

#include <zcbor_common.h>
#include <zcbor_decode.h>
#include <zcbor_encode.h>

#include <zephyr/mgmt/mcumgr/mgmt/mgmt.h>
#include <zephyr/mgmt/mcumgr/smp/smp.h>

#include "source.h"

#define STATES 7
#define HEADER 8

static const struct mgmt_group *group;

void mgmt_register_group(struct mgmt_group *registered)
{
	group = registered;
}

static void request(uint8_t kind, const uint8_t *data, size_t size)
{
	const size_t room = CONFIG_MCUMGR_TRANSPORT_NETBUF_SIZE - HEADER;
	uint8_t *payload = malloc(size + (size == 0U));
	uint8_t *answer = malloc(room);
	struct cbor_nb_reader reader = {0};
	struct cbor_nb_writer writer = {0};
	struct smp_streamer streamer = {.reader = &reader, .writer = &writer};
	const struct mgmt_handler *handler = &group->mg_handlers[(kind >> 1) % group->mg_handlers_count];
	mgmt_handler_fn work = (kind & 1U) != 0U ? handler->mh_write : handler->mh_read;

	memcpy(payload, data, size);
	/* As smp.c does it. */
	zcbor_new_decode_state(reader.zs, STATES, payload, size, 1, NULL, 0);
	zcbor_new_encode_state(writer.zs, STATES, answer, room, 0);
	if (work != NULL && zcbor_map_start_encode(writer.zs, 20)) {
		const int rc = work(&streamer);

		CHECK(rc >= 0 && rc <= 255); /* a MGMT_ERR_ */
		CHECK(rc != 0 || zcbor_map_end_encode(writer.zs, 20) || writer.zs[0].payload <= answer + room);
	}
	free(answer);
	free(payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (group == NULL) {
		stub_register_opwest_service();
	}
	subject_reset();
	while (size >= 2U) { /* the command's number, its length, its content */
		const size_t length = data[1] < size - 2U ? data[1] : size - 2U;

		request(data[0], data + 2, length);
		data += 2U + length;
		size -= 2U + length;
	}
	return 0;
}
