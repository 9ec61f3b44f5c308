/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MCUmgr command group with which a host sends and installs bundles: CBOR maps over any SMP
 * transport. docs/contributing/protocols.md lists the commands.
 */
#include <errno.h>
#include <string.h>

#include <zephyr/devicetree.h>
#include <zephyr/mgmt/mcumgr/mgmt/handlers.h>
#include <zephyr/mgmt/mcumgr/mgmt/mgmt.h>
#include <zephyr/mgmt/mcumgr/smp/smp.h>
#include <zephyr/sys/util.h>

#include <mgmt/mcumgr/util/zcbor_bulk.h>
#include <zcbor_common.h>
#include <zcbor_decode.h>
#include <zcbor_encode.h>

#include "service_internal.h"

#ifdef CONFIG_MCUMGR_TRANSPORT_UART
BUILD_ASSERT(DT_HAS_CHOSEN(zephyr_uart_mcumgr),
	     "the devicetree has no chosen zephyr,uart-mcumgr; it can be the UART of the console");
#endif

/* Commands of the group. */
enum {
	COMMAND_INFO = 0,
	COMMAND_JOB = 1,
	COMMAND_PART = 2,
};

struct opwest_bundle_writer {
	zcbor_state_t *zse;
	bool ok;
};

static void put_key(struct opwest_bundle_writer *writer, const char *key)
{
	writer->ok = writer->ok && zcbor_tstr_encode_ptr(writer->zse, key, strlen(key));
}

static void put_unsigned(struct opwest_bundle_writer *writer, const char *key, uint64_t value)
{
	put_key(writer, key);
	writer->ok = writer->ok && zcbor_uint64_put(writer->zse, value);
}

static void put_signed(struct opwest_bundle_writer *writer, const char *key, int32_t value)
{
	put_key(writer, key);
	writer->ok = writer->ok && zcbor_int32_put(writer->zse, value);
}

static void put_text(struct opwest_bundle_writer *writer, const char *key, const char *text)
{
	put_key(writer, key);
	writer->ok = writer->ok && zcbor_tstr_encode_ptr(writer->zse, text, strlen(text));
}

static void put_bytes(struct opwest_bundle_writer *writer, const char *key, const uint8_t *data,
		      uint32_t size)
{
	put_key(writer, key);
	writer->ok = writer->ok && zcbor_bstr_encode_ptr(writer->zse, (const char *)data, size);
}

static struct opwest_bundle_sink sink_of(struct opwest_bundle_writer *writer)
{
	return (struct opwest_bundle_sink){
		.put_unsigned = put_unsigned,
		.put_signed = put_signed,
		.put_text = put_text,
		.put_bytes = put_bytes,
		.writer = writer,
	};
}

static int answered(int rc, const struct opwest_bundle_writer *writer)
{
	if (rc != 0) {
		return MGMT_ERR_EACCESSDENIED;
	}
	return writer->ok ? MGMT_ERR_EOK : MGMT_ERR_EMSGSIZE;
}

static int read_info(struct smp_streamer *ctxt)
{
	struct opwest_bundle_writer writer = {.zse = ctxt->writer->zs, .ok = true};
	const struct opwest_bundle_sink sink = sink_of(&writer);

	return answered(opwest_bundle_put_info(&sink), &writer);
}

static int write_job(struct smp_streamer *ctxt)
{
	struct opwest_bundle_writer writer = {.zse = ctxt->writer->zs, .ok = true};
	const struct opwest_bundle_sink sink = sink_of(&writer);
	struct opwest_bundle_request request = {
		.job = OPWEST_BUNDLE_JOBS,
		.slot = OPWEST_BUNDLE_NO_SLOT,
	};
	struct zcbor_string digest = {0};
	struct zcbor_string data = {0};
	struct zcbor_map_decode_key_val keys[] = {
		ZCBOR_MAP_DECODE_KEY_DECODER("do", zcbor_uint32_decode, &request.job),
		ZCBOR_MAP_DECODE_KEY_DECODER("session", zcbor_uint32_decode, &request.session),
		ZCBOR_MAP_DECODE_KEY_DECODER("number", zcbor_uint32_decode, &request.number),
		ZCBOR_MAP_DECODE_KEY_DECODER("poll", zcbor_uint32_decode, &request.polls),
		ZCBOR_MAP_DECODE_KEY_DECODER("slot", zcbor_uint32_decode, &request.slot),
		ZCBOR_MAP_DECODE_KEY_DECODER("size", zcbor_uint32_decode, &request.size),
		ZCBOR_MAP_DECODE_KEY_DECODER("sha", zcbor_bstr_decode, &digest),
		ZCBOR_MAP_DECODE_KEY_DECODER("point", zcbor_uint32_decode, &request.point),
		ZCBOR_MAP_DECODE_KEY_DECODER("buffer", zcbor_uint32_decode, &request.buffer),
		ZCBOR_MAP_DECODE_KEY_DECODER("off", zcbor_uint32_decode, &request.offset),
		ZCBOR_MAP_DECODE_KEY_DECODER("data", zcbor_bstr_decode, &data),
	};
	size_t decoded;

	if (zcbor_map_decode_bulk(ctxt->reader->zs, keys, ARRAY_SIZE(keys), &decoded) != 0) {
		return MGMT_ERR_EINVAL;
	}
	if (digest.len == sizeof(request.digest)) {
		memcpy(request.digest, digest.value, sizeof(request.digest));
	} else if (request.job == OPWEST_BUNDLE_JOB_BEGIN || digest.len != 0U) {
		return MGMT_ERR_EINVAL;
	}
	request.data = data.value;
	request.data_size = (uint32_t)data.len;
	return answered(opwest_bundle_put_job(&request, OPWEST_BUNDLE_WAIT_MS, &sink), &writer);
}

static int write_part(struct smp_streamer *ctxt)
{
	struct opwest_bundle_writer writer = {.zse = ctxt->writer->zs, .ok = true};
	const struct opwest_bundle_sink sink = sink_of(&writer);
	struct zcbor_string data = {0};
	uint32_t offset = 0;
	uint32_t check = 0;
	struct zcbor_map_decode_key_val keys[] = {
		ZCBOR_MAP_DECODE_KEY_DECODER("off", zcbor_uint32_decode, &offset),
		ZCBOR_MAP_DECODE_KEY_DECODER("data", zcbor_bstr_decode, &data),
		ZCBOR_MAP_DECODE_KEY_DECODER("check", zcbor_uint32_decode, &check),
	};
	size_t decoded;

	if (zcbor_map_decode_bulk(ctxt->reader->zs, keys, ARRAY_SIZE(keys), &decoded) != 0 ||
	    decoded != ARRAY_SIZE(keys)) {
		return MGMT_ERR_EINVAL;
	}
	return answered(
		opwest_bundle_put_part(offset, data.value, (uint32_t)data.len, check, &sink),
		&writer);
}

static const struct mgmt_handler handlers[] = {
	[COMMAND_INFO] = {.mh_read = read_info},
	[COMMAND_JOB] = {.mh_write = write_job},
	[COMMAND_PART] = {.mh_write = write_part},
};

static struct mgmt_group group = {
	.mg_handlers = handlers,
	.mg_handlers_count = ARRAY_SIZE(handlers),
	.mg_group_id = CONFIG_OPWEST_BUNDLE_SMP_GROUP,
};

static void register_group(void)
{
	mgmt_register_group(&group);
}

MCUMGR_HANDLER_DEFINE(opwest_bundle, register_group);
