/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Prints numbers, tables and errors for people, JSON for programs. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/abi.h"
#include "hydnsd/ctl/common.h"

void ctl_error(const char *fmt, ...)
{
	va_list ap;

	fputs("hydnsctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

const char *ctl_process(const json_t *other_version, char out[CTL_TEXT])
{
	const char *said = ctl_str(other_version, FIELD(other_version, process));
	char path[64];
	FILE *f = NULL;

	snprintf(out, CTL_TEXT, "%s", said[0] ? said : "?");
	snprintf(path, sizeof(path), "/proc/%" JSON_INTEGER_FORMAT "/comm", ctl_int(other_version, FIELD(other_version, pid)));
	if (!said[0])
		f = fopen(path, "re");
	if (f) {
		if (fgets(out, CTL_TEXT, f))
			out[strcspn(out, "\n")] = 0;
		fclose(f);
	}
	return out;
}

enum ctl_outdated ctl_outdated(json_int_t hydnsd, json_int_t plugin)
{
	if (hydnsd == hydns_abi_version())
		return CTL_OUTDATED_RESOLVER;
	return plugin == hydns_abi_version() ? CTL_OUTDATED_HYDNSD : CTL_OUTDATED_BOTH;
}

const char *ctl_count(json_int_t n, char buf[CTL_TEXT])
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, n), at = 0;

	for (int i = 0; i < len; i++) {
		if (i && digits[i - 1] != '-' && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = 0;
	return buf;
}

const char *ctl_bytes(double n, char buf[CTL_TEXT])
{
	static const char *const unit[] = {"octets", "KiB", "MiB", "GiB", "TiB"};
	unsigned u = 0;

	while (n >= 1024 && u < 4) {
		n /= 1024;
		u++;
	}
	snprintf(buf, CTL_TEXT, u ? "%.1f %s" : "%.0f %s", n, unit[u]);
	return buf;
}

const char *ctl_duration(json_int_t ms, char buf[CTL_TEXT])
{
	long long s = ms / 1000;

	if (ms < 1000)
		snprintf(buf, CTL_TEXT, "%lld ms", (long long)ms);
	else if (s < 60)
		snprintf(buf, CTL_TEXT, "%.1f s", (double)ms / 1000);
	else if (s < 3600)
		snprintf(buf, CTL_TEXT, "%lld min %lld s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, CTL_TEXT, "%lld h %lld min", s / 3600, s / 60 % 60);
	else
		snprintf(buf, CTL_TEXT, "%lld d %lld h", s / 86400, s / 3600 % 24);
	return buf;
}

const char *ctl_share(double part, double whole, char buf[CTL_TEXT])
{
	if (whole > 0)
		snprintf(buf, CTL_TEXT, "%.1f %%", 100 * part / whole);
	else
		strcpy(buf, "-");
	return buf;
}

const char *ctl_rate(double per_second, char buf[CTL_TEXT])
{
	if (per_second < 10)
		snprintf(buf, CTL_TEXT, "%.2f/s", per_second);
	else if (per_second < 1000)
		snprintf(buf, CTL_TEXT, "%.1f/s", per_second);
	else
		strcat((char *)ctl_count((json_int_t)(per_second + 0.5), buf), "/s");
	return buf;
}

void ctl_json(json_t *object)
{
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

json_int_t ctl_int(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_real(v) ? (json_int_t)json_real_value(v) : json_integer_value(v);
}

double ctl_real(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

const char *ctl_str(const json_t *object, const char *key)
{
	return ctl_text(json_object_get(object, key));
}

const char *ctl_text(const json_t *text)
{
	const char *s = json_string_value(text);

	return s ? s : "";
}

#define COLUMNS_MAX 12

struct ctl_table {
	unsigned columns;
	char align[COLUMNS_MAX];
	size_t width[COLUMNS_MAX];
	json_t *cells;                 /* strings, row by row */
};

struct ctl_table *ctl_table_new(const char *format)
{
	struct ctl_table *t = calloc(1, sizeof(*t));

	if (t)
		t->cells = json_array();
	if (!t || !t->cells || strlen(format) > COLUMNS_MAX) {
		ctl_error("out of memory");
		exit(CTL_ERROR);
	}
	t->columns = (unsigned)strlen(format);
	memcpy(t->align, format, t->columns);
	return t;
}

void ctl_cell(struct ctl_table *t, const char *text)
{
	unsigned column = (unsigned)(json_array_size(t->cells) % t->columns);
	size_t width = strlen(text);

	/* names, types and notes are UTF-8; show that something else was there */
	if (json_array_append_new(t->cells, json_string(text)))
		json_array_append_new(t->cells, json_string("?"));
	if (width > t->width[column])
		t->width[column] = width;
}

void ctl_titles(struct ctl_table *t, const char *const title[])
{
	for (unsigned i = 0; i < t->columns; i++)
		ctl_cell(t, title[i]);
}

void ctl_table_print(struct ctl_table *t, unsigned indent)
{
	ctl_table_write(t, stdout, indent);
}

void ctl_table_write(struct ctl_table *t, FILE *out, unsigned indent)
{
	size_t i, gap = 0;             /* blanks before the next text, so that no line ends with blanks */
	json_t *cell;

	json_array_foreach(t->cells, i, cell) {
		unsigned column = (unsigned)(i % t->columns);
		const char *text = json_string_value(cell);
		size_t fill = t->width[column] - json_string_length(cell);

		if (column == 0)
			gap = indent;
		if (t->align[column] == 'r')
			gap += fill;
		if (*text)
			fprintf(out, "%*s%s", (int)gap, "", text);
		gap = (*text ? 0 : gap) + (t->align[column] == 'l' ? fill : 0) + 2;
		if (column + 1 == t->columns)
			putc('\n', out);
	}
	json_decref(t->cells);
	free(t);
}

/* Adds the numbers of an object, one in a row. */
static void add_numbers(struct ctl_table *t, const json_t *o)
{
	const char *key;
	const json_t *v;
	char a[CTL_TEXT];

	json_object_foreach((json_t *)o, key, v) {
		if (!json_is_number(v))
			continue;
		ctl_cell(t, key);
		ctl_cell(t, ctl_count(ctl_int(o, key), a));
	}
}

void ctl_print_numbers(const char *title, const json_t *o)
{
	struct ctl_table *t;

	if (!json_is_object(o))
		return;
	t = ctl_table_new("lr");
	add_numbers(t, o);
	puts(title);
	ctl_table_print(t, 2);
}
