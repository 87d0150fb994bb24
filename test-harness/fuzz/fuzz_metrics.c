/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Replies of a hostile hydnsd, or with hostile text of plugins in them, through hydns-metrics' converter: for each line of its table a
 * value of any kind where the path leads, with lists, and keys and texts of quotes, backslashes, line ends and other letters. The
 * result must be Prometheus' text format: each family in one piece with its help and type, no sample of anything else, and each label
 * value one of the texts that were put in. The same replies also become the object that its page and hydnsctl watch show, which is
 * JSON whatever they hold. With sanitizers.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/metrics/text.h"
#include "hydnsd/view/view.h"
#include "test-harness/fuzz/target.h"

#define COUNT_DEFAULT 2000
#define TEXT_MAX      40
#define ELEMENTS_MAX  3
#define FAMILIES_MAX  256

static const char *const pieces[] = { "\\", "\"", "\n", "\\n", "}", "{", " ", ",", "=", "#", "\r", "\t", "a", "unbound", "\xc3\xa9",
				      "\xf0\x9f\x90\x99", "# TYPE x counter\n", "\x01", "} 1\nevil 2\n", "ANSWERED", "MISS",
				      "silent", "detached", "forwarded in the kernel: ", "no zone", ": ", "[" };
#define PIECES (sizeof(pieces) / sizeof(pieces[0]))

/* All texts of this turn, which label values must be among. */
static json_t *given;

static const char *given_text(const char *text)
{
	json_object_set_new(given, text, json_true());
	return text;
}

static const char *some_text(void)
{
	static char text[512];
	unsigned n = fuzz_below(6);

	text[0] = 0;
	while (n--)
		strcat(text, pieces[fuzz_below(PIECES)]);
	return given_text(text);
}

static json_t *some_value(void);

/* Buckets with bounds that are numbers, or are not, and counts that are too large together. */
static json_t *some_histogram(void)
{
	static const char *const bounds[] = { "0.1", "1", "5", "inf", "1e9", "", "." };
	json_t *counts = json_object();

	given_text("counts");
	given_text("sum_s");
	for (unsigned n = fuzz_below(6); n--; )
		json_object_set_new(counts, fuzz_below(4) ? given_text(bounds[fuzz_below(sizeof(bounds) / sizeof(bounds[0]))]) : some_text(),
				    fuzz_below(8) ? json_integer((json_int_t)(fuzz_next() >> fuzz_below(64))) : some_value());
	return json_pack("{s:o, s:o}", "counts", counts, "sum_s", fuzz_below(8) ? json_real(1.5) : some_value());
}

static json_t *some_value(void)
{
	switch (fuzz_below(9)) {
	case 0: return json_null();
	case 1: return json_boolean(fuzz_below(2));
	case 2: return json_real((double)(int64_t)fuzz_next() / 1e3);
	case 3: return json_string(some_text());
	case 4: {
		json_t *list = json_array();

		for (unsigned n = fuzz_below(3); n--; )
			json_array_append_new(list, some_value());
		return list;
	}
	case 5: {
		json_t *counts = json_object();

		for (unsigned n = fuzz_below(4); n--; )
			json_object_set_new(counts, some_text(), fuzz_below(4) ? json_integer((json_int_t)fuzz_next()) : json_null());
		return counts;
	}
	case 6: return some_histogram();
	default: return json_integer((json_int_t)(fuzz_next() >> fuzz_below(64)));
	}
}

static const char *const label_fields[] = { "identity", "authority", "name", "family", "address", "interface", "queue", "number" };

static void put_path(json_t *at, const char *path);

/* An element's labels are there, or not, and of any kind. */
static json_t *some_element(void)
{
	json_t *e = json_object();

	for (size_t i = 0; i < sizeof(label_fields) / sizeof(label_fields[0]); i++)
		if (fuzz_below(8))
			json_object_set_new(e, label_fields[i], fuzz_below(4) ? json_string(some_text()) : some_value());
	return e;
}

static void put_list(json_t *at, const char *key, const char *rest)
{
	json_t *list = json_object_get(at, key), *e;
	size_t i;

	if (!json_is_array(list)) {
		list = json_array();
		for (unsigned n = fuzz_below(ELEMENTS_MAX + 1); n--; )
			json_array_append_new(list, fuzz_below(16) ? some_element() : some_value());
		json_object_set_new(at, key, list);
	}
	json_array_foreach(list, i, e)
		put_path(e, rest);
}

/* Puts a value where the path leads, with objects and lists on the way. */
static void put_path(json_t *at, const char *path)
{
	size_t len = strcspn(path, ".[");
	char key[TEXT_MAX];
	json_t *in;

	if (!json_is_object(at))
		return;
	snprintf(key, sizeof(key), "%.*s", (int)len, path);
	if (path[len] == '[') {
		put_list(at, key, path + len + 3);
		return;
	}
	if (!path[len]) {
		json_object_set_new(at, key, some_value());
		return;
	}
	in = json_object_get(at, key);
	if (!in) {
		in = fuzz_below(16) ? json_object() : some_value();
		json_object_set_new(at, key, in);
	}
	put_path(in, path + len + 1);
}

/* -- the result ---------------------------------------------------------------------------------------------- */
static bool is_name(const char *from, const char *to)
{
	return to > from && strspn(from, "abcdefghijklmnopqrstuvwxyz0123456789_") >= (size_t)(to - from);
}

/* Reads label="value"; returns what follows it, or NULL. */
static const char *read_label(const char *p)
{
	char value[4096];
	size_t len = 0;
	const char *equals = strchr(p, '=');

	if (!equals || !is_name(p, equals) || equals[1] != '"')
		return NULL;
	for (p = equals + 2; *p && *p != '"' && *p != '\n' && len < sizeof(value) - 1; p++) {
		bool escaped = *p == '\\';

		if (escaped && p[1] != '\\' && p[1] != '"' && p[1] != 'n')
			return NULL;
		p += escaped;
		value[len++] = (char)(escaped && *p == 'n' ? '\n' : *p);
	}
	value[len] = 0;
	/* numbers and the words of our own are no texts */
	if (*p != '"' || (!json_object_get(given, value) && strspn(value, "-.0123456789") != len && strcmp(value, "query") && strcmp(value, "+Inf")))
		return NULL;
	return p + 1;
}

/* What follows the name of a histogram's sample, or NULL. */
static const char *read_part(const char *p)
{
	static const char *const parts[] = { "_bucket", "_sum", "_count" };

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strncmp(p, parts[i], strlen(parts[i])))
			return p + strlen(parts[i]);
	return NULL;
}

/* Reads a sample of the family; returns what follows its line, or NULL. */
static const char *read_sample(const char *p, const char *family, bool histogram)
{
	char *end;

	if (strncmp(p, family, strlen(family)))
		return NULL;
	p += strlen(family);
	if (histogram)
		p = read_part(p);
	if (p && *p == '{') {
		do
			p = read_label(p + 1);
		while (p && *p == ',');
		if (!p || *p++ != '}')
			return NULL;
	}
	if (!p || *p != ' ')
		return NULL;
	strtod(p + 1, &end);
	return end > p + 1 && *end == '\n' ? end + 1 : NULL;
}

/* NULL, or where it is no text of Prometheus' format. */
static const char *wrong_at(const char *text)
{
	static char seen[FAMILIES_MAX][64];
	unsigned families = 0;
	bool histogram = false;

	for (const char *p = text, *q; *p; p = q) {
		char name[64], again[64], type[16];
		int len = -1;

		if (!strncmp(p, "# HELP ", 7)) {
			q = strchr(p, '\n');
			if (families == FAMILIES_MAX || sscanf(p, "# HELP %63s", name) != 1 || !q)
				return p;
			for (unsigned i = 0; i < families; i++)
				if (!strcmp(seen[i], name))
					return p;
			if (sscanf(q + 1, "# TYPE %63s %15[a-z]%n", again, type, &len) != 2 || strcmp(name, again) || q[1 + len] != '\n' ||
			    (strcmp(type, "counter") && strcmp(type, "gauge") && strcmp(type, "histogram")))
				return p;
			histogram = !strcmp(type, "histogram");
			strcpy(seen[families++], name);
			q += 2 + len;
		} else {
			q = families ? read_sample(p, seen[families - 1], histogram) : NULL;
			if (!q)
				return p;
		}
	}
	return NULL;
}

/* Whether the replies become a view, with hostile ones of top and pending beside them. */
static bool becomes_view(json_t *status, json_t *stats)
{
	static const char *const of_top[] = { "window_ms", "answered", "passed", "reasons", "names[].ttl", "names[].expires_in_ms" };
	json_t *top = json_object(), *reply[VIEW_REPLIES] = { json_deep_copy(status), json_deep_copy(stats), top, some_value() };
	json_t *view;
	char *text;

	for (size_t k = 0; k < sizeof(of_top) / sizeof(of_top[0]); k++)
		put_path(top, of_top[k]);
	view = view_of(reply, "");
	text = json_dumps(view, 0);
	json_decref(view);
	free(text);
	return text != NULL;
}

static uint64_t replies;

static const char *turn(void)
{
	json_t *status = json_object(), *stats = json_object();
	struct metrics_figures f = { .status = status, .stats = stats };
	const char *wrong, *path;
	size_t len;
	char *text;

	given = json_object();
	json_object_set_new(status, "version", json_string(some_text()));
	for (size_t k = 0; (path = metrics_path(k)); k++)
		put_path(!strncmp(path, "status.", 7) ? status : stats, strchr(path, '.') + 1);
	text = metrics_text(&f, &len);
	wrong = !text || strlen(text) != len ? "no text" : wrong_at(text);
	if (wrong) {
		fprintf(stderr, "%.300s\n", wrong);
		wrong = "not Prometheus' text format";
	}
	free(text);
	if (!wrong && !becomes_view(status, stats))
		wrong = "no JSON of it";
	json_decref(status);
	json_decref(stats);
	json_decref(given);
	replies++;
	return wrong;
}

static int end(void)
{
	printf("%" PRIu64 " replies\n", replies);
	return 0;
}

const struct fuzz_target fuzz_target = { .name = "metrics", .one = "reply", .count = COUNT_DEFAULT, .turn = turn, .end = end };
