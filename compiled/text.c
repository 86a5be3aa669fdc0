/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Texts for events: nothing here allocates, locks or calls a function of a library. */
#include "recorder.h"

void text_add(struct text *text, const char *more)
{
	while (*more && text->used < sizeof text->bytes)
		text->bytes[text->used++] = *more++;
}

void text_number(struct text *text, uint64_t number)
{
	char digits[21];
	int at = 20;

	digits[at] = 0;
	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	text_add(text, digits + at);
}

void text_quoted(struct text *text, const char *more, size_t bytes)
{
	static const char hex[] = "0123456789abcdef";
	size_t end = text->used + 2000;

	for (; bytes > 0 && text->used < end; more++, bytes--) {
		unsigned char c = (unsigned char)*more;
		char escaped[7] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], 0};

		if (c == '"' || c == '\\') {
			char plain[3] = {'\\', (char)c, 0};
			text_add(text, plain);
		} else if (c < 0x20) {
			text_add(text, escaped);
		} else {
			text->bytes[text->used++] = (char)c;
		}
	}
}
