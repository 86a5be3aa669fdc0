/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Texts for events: nothing here allocates, locks or calls a function of a library. */
#include "recorder.h"

static char *end_of(struct thread *t)
{
	return (char *)t->frame + HEADER + t->text_bytes;
}

void text_begin(struct thread *t)
{
	t->text_bytes = 0;
}

void text_add(struct thread *t, const char *more)
{
	for (; *more && t->text_bytes < FRAME - HEADER; t->text_bytes++)
		*end_of(t) = *more++;
}

void text_number(struct thread *t, uint64_t number)
{
	char digits[21];
	int at = 20;

	digits[at] = 0;
	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	text_add(t, digits + at);
}

void text_quoted(struct thread *t, const char *more, size_t bytes)
{
	static const char hex[] = "0123456789abcdef";
	size_t end = t->text_bytes + 2000;

	for (; bytes > 0 && t->text_bytes < end; more++, bytes--) {
		unsigned char c = (unsigned char)*more;
		char plain[2] = {(char)c, 0}, marked[3] = {'\\', (char)c, 0};
		char escaped[7] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], 0};

		text_add(t, c < 0x20 ? escaped : c == '"' || c == '\\' ? marked : plain);
	}
}
