/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/ctl/screen.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/ctl/common.h"

struct line {
	enum screen_style style;
	char *text;
};

struct screen {
	struct line *line;
	size_t count, room;
};

static void *no_null(void *p)
{
	if (!p) {
		ctl_error("out of memory");
		exit(CTL_ERROR);
	}
	return p;
}

struct screen *screen_new(void)
{
	return no_null(calloc(1, sizeof(struct screen)));
}

void screen_free(struct screen *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->line[i].text);
	free(s->line);
	free(s);
}

/* Takes the text. */
static void add(struct screen *s, enum screen_style style, char *text)
{
	if (s->count == s->room)
		s->line = no_null(realloc(s->line, (s->room = s->room ? 2 * s->room : 64) * sizeof(*s->line)));
	s->line[s->count++] = (struct line){ style, no_null(text) };
}

void screen_add(struct screen *s, enum screen_style style, const char *format, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	add(s, style, text);
}

void screen_add_lines(struct screen *s, enum screen_style style, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		add(s, style, strndup(text, len));
		text += len + (text[len] == '\n');
	}
}

/* -- letters -------------------------------------------------------------------------------------------------- */
/* Reads a letter of UTF-8 and goes on to the next; what is none is an octet. */
static uint32_t read_letter(const unsigned char **at)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = *at;
	unsigned len = *p < 0x80 ? 1 : (*p & 0xe0) == 0xc0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : (*p & 0xf8) == 0xf0 ? 4 : 1;
	uint32_t c = len == 1 ? *p : *p & (0x7fU >> len);

	for (unsigned i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			len = 1;
			c = *p;
			break;
		}
		c = c << 6 | (p[i] & 0x3f);
	}
	if (len > 1 && c < least[len]) {
		len = 1;
		c = *p;
	}
	*at = p + len;
	return c;
}

/* Control characters, and those that turn the direction of what follows, or are unseen. */
static bool acts(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		(c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Prints as many columns of it as there are; 0: all. */
static void print_text(const char *text, FILE *out, size_t columns)
{
	size_t used = 0;

	for (const unsigned char *p = (const unsigned char *)text, *next = p; *p; p = next) {
		uint32_t c = read_letter(&next);
		bool odd = acts(c) || (next == p + 1 && *p >= 0x80);
		char written[16];
		size_t width = 1;

		if (odd)
			width = (size_t)snprintf(written, sizeof(written), c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
		if (columns && used + width > columns)
			return;
		if (odd)
			fputs(written, out);
		else
			fwrite(p, 1, (size_t)(next - p), out);
		used += width;
	}
}

void screen_print(const struct screen *s, FILE *out, size_t rows, size_t columns, bool colours)
{
	static const char *const begin[] = { [SCREEN_PLAIN] = "", [SCREEN_STRONG] = "\033[1m", [SCREEN_QUIET] = "\033[2m",
		[SCREEN_GOOD] = "\033[32m", [SCREEN_WARN] = "\033[33m", [SCREEN_FAIL] = "\033[1;31m" };

	for (size_t i = 0; i < s->count && (!rows || i < rows); i++) {
		const struct line *l = &s->line[i];
		bool styled = colours && begin[l->style][0];

		/* what is erased first cannot be the last letter of a line that is full */
		fputs(!rows ? "" : i ? "\r\n\033[K" : "\033[K", out);
		fputs(styled ? begin[l->style] : "", out);
		print_text(l->text, out, columns);
		fputs(styled ? "\033[0m" : "", out);
		fputs(rows ? "" : "\n", out);
	}
	if (s->count < rows)
		fputs("\r\n\033[J", out);
}
