/* SPDX-License-Identifier: Apache-2.0 */
	.section .rodata.bundle, "a"
	.balign 64
	.global bundle_begin
bundle_begin:
	.incbin BUNDLE
	.global bundle_end
bundle_end:
