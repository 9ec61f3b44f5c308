/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests of a suite on a host and prints each result; the exit code is 1 if one failed. */
#include <zephyr/ztest.h>

struct stub_test *stub_tests;
void (*stub_after)(void *fixture);
jmp_buf stub_end;

static enum stub_outcome stub_run(void (*run)(void))
{
	switch (setjmp(stub_end)) {
	case STUB_PASS:
		run();
		return STUB_PASS;
	case STUB_SKIP:
		return STUB_SKIP;
	default:
		return STUB_FAIL;
	}
}

int main(void)
{
	static const char *const words[] = {"PASS", "SKIP", "FAIL"};
	int failed = 0;

	for (const struct stub_test *test = stub_tests; test != NULL; test = test->next) {
		const enum stub_outcome outcome = stub_run(test->run);

		if (stub_after != NULL) {
			stub_after(NULL);
		}
		(void)printf("%s %s\n", words[outcome], test->name);
		failed |= outcome == STUB_FAIL;
	}
	return failed;
}
