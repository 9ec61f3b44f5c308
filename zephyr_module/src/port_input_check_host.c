/* SPDX-License-Identifier: Apache-2.0 */
/* The report of an input that an operator wrote, for `opwest run --host`. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* sigaction() */
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <opwest/profile.h>

/* Write the change to the file that `opwest run` names, or else to the terminal; end the program.
 */
void opwest_input_changed(const struct opwest_input_change *change)
{
	const char *const path = getenv("OPWEST_INPUT_CHANGE");
	FILE *const file = path != NULL ? fopen(path, "w") : NULL;
	char text[512];

	opwest_input_change_print(text, sizeof(text), change);
	(void)fprintf(file != NULL ? file : stderr, "%s\n", text);
	(void)fflush(NULL);
	_Exit(EXIT_FAILURE);
}

#ifndef _WIN32
static struct sigaction earlier_segment, earlier_bus;

/* Constants are in read-only memory: a write to one ends in a signal with its address. */
static void faulted(int number, siginfo_t *info, void *registers)
{
	struct opwest_input_change change;

	(void)registers;
	if (opwest_input_check_find(info->si_addr, &change)) {
		opwest_input_changed(&change);
	}
	(void)sigaction(number, number == SIGBUS ? &earlier_bus : &earlier_segment,
			NULL); /* the instruction is repeated */
}

static void __attribute__((constructor)) catch_faults(void)
{
	const struct sigaction action = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO};

	(void)sigaction(SIGSEGV, &action, &earlier_segment);
	(void)sigaction(SIGBUS, &action, &earlier_bus);
}
#endif
