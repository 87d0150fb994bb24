/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/metrics/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/reasons.h"

#define LABELS_MAX 8                   /* of a sample: two lists within each other, and one more */
#define KEY_MAX    64                  /* longer than any field's name */
#define MOST       ((json_int_t)INT64_MAX)

enum type { COUNTER, GAUGE, HISTOGRAM };
enum value { NUMBER, MILLISECONDS, MICROSECONDS, TRUTH, LENGTH, COUNTS, WORD, BUCKETS };

struct row {
	const char *path, *name;
	enum type type;
	enum value value;
	const char *label, *help;
};

#define METRIC_LABEL(...)
static const struct row rows[] = {
#define METRIC(path, name, type, value, label, help) { path, name, type, value, label, help },
#include "hydnsd/metrics/metrics.def"
#undef METRIC
};
#undef METRIC_LABEL
#define ROWS (sizeof(rows) / sizeof(rows[0]))

#define METRIC(...)
static const struct { const char *list, *label, *field; } labels[] = {
#define METRIC_LABEL(list, label, field) { list, label, field },
#include "hydnsd/metrics/metrics.def"
#undef METRIC_LABEL
};
#undef METRIC
#define LABELS (sizeof(labels) / sizeof(labels[0]))

/* A row under way: where its samples go, and the labels of the elements of lists on the way to them. */
struct walk {
	FILE *out;
	const struct row *row;
	bool begun;                    /* its HELP and TYPE are written */
	const char *part;              /* of a histogram: what its sample's name ends with; else empty */
	struct { const char *name; const json_t *value; } label[LABELS_MAX];
	size_t labels;
};

const char *metrics_path(size_t i)
{
	return i < ROWS ? rows[i].path : NULL;
}

/* -- samples ------------------------------------------------------------------------------------------------ */
static void put_head(FILE *out, const char *name, enum type type, const char *help)
{
	static const char *const words[] = { [COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram" };

	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, words[type]);
}

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			putc(*text, out);
}

static void put_label(FILE *out, char *before, const char *name, const json_t *value)
{
	fprintf(out, "%c%s=\"", *before, name);
	if (json_is_string(value))
		put_escaped(out, json_string_value(value));
	else if (json_is_integer(value))
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	putc('"', out);
	*before = ',';
}

/* "query", "other" or "unread"; NULL: no such reason. */
static const char *reason_of(const char *name)
{
	static const char *const words[] = { [HYDNS_OF_QUERY] = "query", [HYDNS_OF_OTHER] = "other", [HYDNS_OF_UNREAD] = "unread" };

	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		if (!strcmp(name, hydns_reason_name((enum hydns_reason)i)))
			return words[hydns_reason_of((enum hydns_reason)i)];
	return NULL;
}

/* The name and the labels of a sample; word: the value of the row's own label, or NULL. */
static void put_name(struct walk *w, const char *word)
{
	const char *of = w->row->value == COUNTS && !strcmp(w->row->label, "reason") ? reason_of(word) : NULL;
	char before = '{';

	if (!w->begun)
		put_head(w->out, w->row->name, w->row->type, w->row->help);
	w->begun = true;
	fprintf(w->out, "%s%s", w->row->name, w->part);
	for (size_t i = 0; i < w->labels; i++)
		put_label(w->out, &before, w->label[i].name, w->label[i].value);
	if (word) {
		fprintf(w->out, "%c%s=\"", before, w->row->label);
		put_escaped(w->out, word);
		fprintf(w->out, of ? "\",of=\"%s\"" : "\"", of);
		before = ',';
	}
	fputs(before == ',' ? "} " : " ", w->out);
}

static void put_number(struct walk *w, const char *word, const json_t *value, double unit)
{
	put_name(w, word);
	if (json_is_integer(value) && unit == 1)
		fprintf(w->out, "%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
	else
		fprintf(w->out, "%.12g\n", json_number_value(value) / unit);
}

static void put_counts(struct walk *w, const json_t *counts)
{
	const char *name;
	const json_t *n;

	json_object_foreach((json_t *)counts, name, n)
		if (json_is_integer(n))
			put_number(w, name, n, 1);
}

static void put_count(struct walk *w, const char *bound, json_int_t n)
{
	put_name(w, bound);
	fprintf(w->out, "%" JSON_INTEGER_FORMAT "\n", n);
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789.")];
}

/* Each bucket of the reply has what is above the one before; Prometheus' buckets have all up to their bound. */
static void put_buckets(struct walk *w, const json_t *histogram)
{
	const json_t *counts = json_object_get(histogram, "counts"), *n;
	json_int_t all = 0;
	const char *bound;

	w->part = "_bucket";
	json_object_foreach((json_t *)counts, bound, n)
		if (json_is_integer(n) && json_integer_value(n) >= 0 && json_integer_value(n) <= MOST - all) {
			all += json_integer_value(n);
			if (is_number(bound))
				put_count(w, bound, all);
		}
	put_count(w, "+Inf", all);
	w->part = "_sum";
	put_number(w, NULL, json_object_get(histogram, "sum_s"), 1);
	w->part = "_count";
	put_count(w, NULL, all);
	w->part = "";
}

/* The samples of the value that the row's path leads to. */
static void put(struct walk *w, const json_t *value)
{
	static const double unit[] = { [NUMBER] = 1, [MILLISECONDS] = 1e3, [MICROSECONDS] = 1e6 };

	switch (w->row->value) {
	case NUMBER:
	case MILLISECONDS:
	case MICROSECONDS:
		if (json_is_number(value))
			put_number(w, NULL, value, unit[w->row->value]);
		break;
	case TRUTH:
		if (json_is_boolean(value)) {
			put_name(w, NULL);
			fprintf(w->out, "%d\n", json_is_true(value));
		}
		break;
	case LENGTH:
		if (json_is_array(value)) {
			put_name(w, NULL);
			fprintf(w->out, "%zu\n", json_array_size(value));
		}
		break;
	case COUNTS:
		put_counts(w, value);
		break;
	case BUCKETS:
		if (json_is_number(json_object_get(value, "sum_s")))
			put_buckets(w, value);
		break;
	case WORD:
		if (json_is_string(value)) {
			put_name(w, json_string_value(value));
			fputs("1\n", w->out);
		}
		break;
	}
}

/* -- paths -------------------------------------------------------------------------------------------------- */
static void follow(struct walk *w, const json_t *at, const char *path);

static void follow_each(struct walk *w, const char *list, const json_t *elements, const char *path)
{
	size_t before = w->labels, i;
	const json_t *element;

	json_array_foreach(elements, i, element) {
		for (size_t k = 0; k < LABELS; k++)
			if (!strcmp(labels[k].list, list) && w->labels < LABELS_MAX) {
				w->label[w->labels].name = labels[k].label;
				w->label[w->labels++].value = json_object_get(element, labels[k].field);
			}
		follow(w, element, path);
		w->labels = before;
	}
}

static void follow(struct walk *w, const json_t *at, const char *path)
{
	size_t len = strcspn(path, ".[");
	const char *rest = path + len;
	char key[KEY_MAX];

	if (!*path) {
		put(w, at);
		return;
	}
	snprintf(key, sizeof(key), "%.*s", (int)len, path);
	at = json_object_get(at, key);
	if (rest[0] == '[')
		follow_each(w, key, at, rest[2] == '.' ? rest + 3 : rest + 2);
	else
		follow(w, at, *rest ? rest + 1 : rest);
}

/* -- all ---------------------------------------------------------------------------------------------------- */
static void put_build(FILE *out, const json_t *status)
{
	char before = '{';

	put_head(out, "hydns_build_info", GAUGE, "1, with version and ABI of hydnsd");
	fputs("hydns_build_info", out);
	put_label(out, &before, "version", json_object_get(status, "version"));
	put_label(out, &before, "abi", json_object_get(status, "abi"));
	fputs("} 1\n", out);
}

static void put_all(FILE *out, const struct metrics_figures *f)
{
	put_head(out, "hydns_up", GAUGE, "hydnsd answers");
	fprintf(out, "hydns_up %d\n", f->status && f->stats);
	put_head(out, "hydns_metrics_answer_seconds", GAUGE, "How long hydns-metrics waited for hydnsd's figures");
	fprintf(out, "hydns_metrics_answer_seconds %.9f\n", (double)f->took_ns / 1e9);
	if (!f->status || !f->stats)
		return;
	put_build(out, f->status);
	for (size_t i = 0; i < ROWS; i++) {
		bool in_status = !strncmp(rows[i].path, "status.", 7);
		struct walk w = { .out = out, .row = &rows[i], .part = "" };

		follow(&w, in_status ? f->status : f->stats, strchr(rows[i].path, '.') + 1);
	}
}

char *metrics_text(const struct metrics_figures *f, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	bool bad;

	if (!out)
		return NULL;
	put_all(out, f);
	bad = ferror(out);
	if (fclose(out) || bad) {
		free(text);
		return NULL;
	}
	return text;
}
