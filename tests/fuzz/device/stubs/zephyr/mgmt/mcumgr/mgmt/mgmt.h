/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header with the parts that the service needs; for the fuzzers. */
#ifndef STUB_MGMT_H_
#define STUB_MGMT_H_
#include <stddef.h>
#include <stdint.h>
#include <zephyr/mgmt/mcumgr/mgmt/handlers.h>

struct smp_streamer;
typedef int (*mgmt_handler_fn)(struct smp_streamer *ctxt);

struct mgmt_handler {
	mgmt_handler_fn mh_read;
	mgmt_handler_fn mh_write;
};

struct mgmt_group {
	const struct mgmt_handler *mg_handlers;
	uint16_t mg_handlers_count;
	uint16_t mg_group_id;
};

/* enum mcumgr_err_t */
enum {
	MGMT_ERR_EOK = 0,
	MGMT_ERR_EINVAL = 3,
	MGMT_ERR_ENOENT = 5,
	MGMT_ERR_EBADSTATE = 6,
	MGMT_ERR_EMSGSIZE = 7,
	MGMT_ERR_EACCESSDENIED = 11,
};

void mgmt_register_group(struct mgmt_group *group);
#endif
