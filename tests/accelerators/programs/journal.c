/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads cases from standard input, one a line:
 *
 *  model ending null cancel masks (depth switching hidden)... uses faults (position code repeats)...
 *
 * `ending` is the action after a failed run with an open workspace: c closes it with further
 * faults, r runs it again without them, s with them; for a stream it is the pace. `null` is a
 * member that is NULL at the first open, -1 for none. `cancel` is the position of a call that
 * cancels the run before it returns. Every mask has a bit per hook of a device; `depth` and
 * `switching` are those of info(), `hidden` is the number of jobs after which launches return
 * -EAGAIN, 0 for none. The next `repeats` calls of the same kind as a faulty one fail too. `uses`
 * are calls before the first run, or "-": o, l, w, r and c with a digit own, launch on, wait for,
 * release and call on a device of the context by name; O, R and X open, run and close. Writes the
 * result of every call and all calls that it made in turn.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/port.h>

#include "journal.h"

static struct {
	int position;
	int code;
	int repeats;
	/* The kind of the calls that fail after the first one. */
	char kind[24];
} faults[8];
static int fault_count, next_position, cancel_position;
static bool faults_on;
struct journal journal;
static int (*cancel)(void);
static char text[8192];
static size_t text_size;

void journal_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_size += (size_t)vsnprintf(text + text_size, sizeof(text) - text_size, format, args);
	va_end(args);
	if (text_size >= sizeof(text)) {
		abort();
	}
}

void journal_expect(bool holds, const char *what)
{
	if (!holds) {
		journal_note(" VIOLATION(%s)", what);
	}
}

/* The kind of the call that was just recorded: its text before a colon. */
static void kind_of_call(char *kind, size_t size)
{
	const char *const last = strrchr(text, ' ') + 1;

	(void)snprintf(kind, size, "%.*s", (int)strcspn(last, ":"), last);
}

static int injected(int position)
{
	char kind[sizeof(faults[0].kind)];

	kind_of_call(kind, sizeof(kind));
	for (int i = 0; i < fault_count && faults_on; i++) {
		if (faults[i].position == position) {
			memcpy(faults[i].kind, kind, sizeof(kind));
			return faults[i].code;
		}
	}
	/* A later fault ends the repeats of an earlier one. */
	for (int i = fault_count - 1; i >= 0 && faults_on; i--) {
		if (strcmp(faults[i].kind, kind) == 0) {
			const bool repeats = faults[i].repeats != 0;

			faults[i].repeats -= faults[i].repeats > 0;
			return repeats ? faults[i].code : 0;
		}
	}
	return 0;
}

/* The result of the call that was just recorded. Some calls of a stream always succeed. */
int journal_fault(void)
{
	if (journal.pace != 0 && strchr("RHPI", strrchr(text, ' ')[1]) != NULL) {
		return 0;
	}

	const int position = next_position++;
	const int code = injected(position);

	if (position == cancel_position) {
		journal.cancelled = true;
		if (journal.pace != 0) {
			journal_note(" cancel");
		}
		journal_expect(cancel() == 0, "not cancelled");
	}
	return code;
}

/* Notes the result of a call of a stream, and the unfinished jobs of the device. */
int journal_done(const struct device *dev, int rc)
{
	if (journal.pace != 0) {
		journal_note(" =%d:%u", rc, dev == NULL ? 0U : dev->data->job_count);
	}
	return rc;
}

void journal_print(void)
{
	fputs(text, stdout);
	text_size = 0;
	text[0] = '\0';
}

/* ---- cases ---- */

static void say(const struct subject *subject, const char *what, int rc)
{
	const struct opwest_status *const status = subject->status;

	printf("%s %d (%ld %u %u %u) %s%s:", what, rc, (long)status->code, status->step,
	       status->hook, status->device,
	       subject->state != NULL && *subject->opened ? subject->state() : "",
	       *subject->opened ? "opened" : "closed");
	journal_print();
	putchar('\n');
}

/* The step of calls by name: they have none. */
#define BY_NAME 65535

static int32_t named_x[ELEMENTS] = {4, -9, 100, 7, 0, -3, 12, 5};
static int32_t named_y[ELEMENTS];

static bool named_right(void)
{
	bool right = true;

	for (int i = 0; i < ELEMENTS; i++) {
		right &= named_y[i] == 3 * named_x[i] + 5 * named_x[(i + 1) % ELEMENTS] + BY_NAME;
	}
	return right;
}

static int use(const struct subject *subject, char what, uint32_t index)
{
	const struct opwest_entry *const entry = opwest_find(subject->registry, "launch");
	const struct opwest_value args[] = {
		opwest_integer(OPWEST_INT32, BY_NAME),
		opwest_in(OPWEST_INT32, named_x, sizeof(named_x)),
		opwest_in(OPWEST_INT32, named_x, sizeof(named_x)),
		opwest_out(OPWEST_INT32, named_y, sizeof(named_y)),
	};
	const struct opwest_call_device device = subject->device(index);
	int rc;

	switch (what) {
	case 'o':
		return opwest_own(&device);
	case 'l':
		return opwest_launch(entry, args, 4, &device);
	case 'w':
		return opwest_wait(&device);
	case 'r':
		return opwest_release(&device);
	case 'c':
		rc = opwest_call(entry, args, 4, &device);
		journal_expect(rc != 0 || named_right(), "a call by name is wrong");
		return rc;
	case 'O':
		return subject->open();
	case 'R':
		return subject->run();
	default:
		return subject->close();
	}
}

static void say_uses(const struct subject *subject, const char *uses)
{
	journal.cancelled = false;
	while (*uses != '\0' && *uses != '-') {
		char what[16] = {'n', 'a', 'm', 'e', 'd', ' ', *uses};
		const bool has_device = islower((unsigned char)*uses) != 0;

		if (has_device) {
			what[7] = uses[1];
		}
		say(subject, what, use(subject, *uses, has_device ? (uint32_t)(uses[1] - '0') : 0U));
		uses += has_device ? 2 : 1;
	}
}

static bool say_run(const struct subject *subject)
{
	journal.cancelled = false;

	const int rc = subject->run();

	journal.cancelled = false;
	say(subject, rc != 0 ? "run" : subject->right() ? "run, right" : "run, wrong", rc);
	return rc == 0;
}

static void say_close(const struct subject *subject)
{
	const int rc = subject->close();

	journal_leaks();
	say(subject, "close", rc);
}

static void play(const struct subject *subject, char ending, const char *uses)
{
	int rc;

	rc = subject->open();
	say(subject, "open", rc);
	if (rc == 0) {
		say_uses(subject, uses);
		if (!say_run(subject)) {
			if (!*subject->opened) {
				journal_leaks(); /* after a timeout everything is already released */
				(void)say_run(subject);
			} else if (ending != 'c') {
				faults_on = ending == 's';
				(void)say_run(subject);
			}
		}
		say_close(subject);
	} else {
		journal_leaks();
	}
	faults_on = false;
	subject->context(-1);
	say(subject, "open", subject->open());
	(void)say_run(subject);
	say_close(subject);
}

int main(void)
{
	char name[64];
	char uses[32];
	char ending;
	int null;
	unsigned int masks[HANDLES];

	while (scanf("%63s %c %d %d %x %x %x", name, &ending, &null, &cancel_position, &masks[0],
		     &masks[1], &masks[2]) == 7) {
		const struct subject *subject = NULL;

		for (int i = 0; subjects[i] != NULL; i++) {
			if (strcmp(subjects[i]->name, name) == 0) {
				subject = subjects[i];
			}
		}
		for (int i = 0; i < HANDLES; i++) {
			if (scanf("%u %u %u", &journal.properties[i].depth, &journal.properties[i].switching,
				  &journal.properties[i].hidden) != 3) {
				return 2;
			}
		}
		if (scanf("%31s %d", uses, &fault_count) != 2 || subject == NULL || fault_count > 8) {
			return 2;
		}
		memset(faults, 0, sizeof(faults));
		for (int i = 0; i < fault_count; i++) {
			if (scanf("%d %d %d", &faults[i].position, &faults[i].code,
				  &faults[i].repeats) != 3) {
				return 2;
			}
		}
		for (int i = 0; i < HANDLES; i++) {
			journal_reset((unsigned int)i, masks[i]);
		}
		cancel = subject->cancel;
		faults_on = true;
		next_position = 0;
		journal.now = 1000;
		if (subject->play != NULL) {
			journal.pace = (unsigned int)(ending - '0');
			subject->play();
		} else {
			subject->context(null);
			play(subject, ending, uses);
		}
		puts(".");
	}
	return 0;
}
