/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header with the parts that the service needs; for the fuzzers. */
#ifndef STUB_HANDLERS_H_
#define STUB_HANDLERS_H_
void stub_register_opwest_service(void);

#define MCUMGR_HANDLER_DEFINE(name, function)                                                                          \
	void stub_register_##name(void)                                                                                \
	{                                                                                                              \
		function();                                                                                            \
	}                                                                                                              \
	struct shell
#endif
