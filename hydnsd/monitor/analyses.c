/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Analysers begin and end at the ends of windows, with empty maps: findings are of one window each. What was found last stays to be
 * shown when the analyser has ended.
 */
#include "hydnsd/monitor/analyses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/daemon/log.h"

static const struct {
	const char *name;
	enum hydns_analysis_map map;
	const char *conditions, *text;
} list[HYDNS_ANALYSERS] = {
#define HYDNS_ANALYSER(name, by, conditions, text) { #name, HYDNS_ANALYSIS_##by, conditions, text },
#include "hydns/analysers.def"
#undef HYDNS_ANALYSER
};

const char *hydnsd_analyser_name(enum hydns_analyser a)
{
	return list[a].name;
}

const char *hydnsd_analyser_text(enum hydns_analyser a)
{
	return list[a].text;
}

/* -- when ---------------------------------------------------------------------------------------------------------- */
/* The bit of a condition, or of always; 0 for off; -1: there is no such word. */
static int64_t bit_of(const char *word)
{
	if (!strcmp(word, "off"))
		return 0;
	if (!strcmp(word, "always"))
		return HYDNSD_ANALYSIS_ALWAYS;
	for (unsigned id = 0; id < HYDNSD_CONDITIONS; id++)
		if (!strcmp(word, hydnsd_condition_name(id)))
			return 1 << id;
	return -1;
}

/* False: a word is no condition, or there is none. */
static bool read_words(char *words, uint32_t *bits)
{
	char *save, *word = strtok_r(words, " \t", &save);
	bool any = word != NULL;

	for (*bits = 0; word; word = strtok_r(NULL, " \t", &save)) {
		int64_t bit = bit_of(word);

		if (bit < 0)
			return false;
		*bits |= (uint32_t)bit;
	}
	return any;
}

static int read_line(const char *line, struct hydnsd_analyses *out, char error[HYDNSD_OPTION_ERROR])
{
	char copy[256], *words = copy;
	unsigned a = 0;
	size_t len;

	snprintf(copy, sizeof(copy), "%s", line);
	len = strcspn(copy, " \t");
	words += len + (copy[len] != '\0');
	copy[len] = '\0';
	while (a < HYDNS_ANALYSERS && strcmp(list[a].name, copy))
		a++;
	if (strlen(line) < sizeof(copy) && a < HYDNS_ANALYSERS && read_words(words, &out->of[a].conditions))
		return 0;
	snprintf(error, HYDNSD_OPTION_ERROR, "monitor-analyser: '%.120s': %s", line, a == HYDNS_ANALYSERS ?
		 "there is no such analyser: see hydnsd.conf(5)" : "write `NAME off', `NAME always' or `NAME CONDITION...'");
	return -1;
}

int hydnsd_analyses_read(const struct hydnsd_list *lines, struct hydnsd_analyses *out, char error[HYDNSD_OPTION_ERROR])
{
	char words[128];

	memset(out, 0, sizeof(*out));
	for (unsigned a = 0; a < HYDNS_ANALYSERS; a++) {
		snprintf(words, sizeof(words), "%s", list[a].conditions);
		read_words(words, &out->of[a].conditions);
	}
	for (uint32_t i = 0; i < lines->count; i++)
		if (read_line(lines->item[i], out, error))
			return -1;
	return 0;
}

/* -- windows -------------------------------------------------------------------------------------------------------- */
static bool uses(const struct hydnsd_analyses *a, enum hydns_analysis_map map)
{
	for (unsigned i = 0; i < HYDNS_ANALYSERS; i++)
		if (a->of[i].running && list[i].map == map)
			return true;
	return false;
}

/* Takes what the map's analysers have found, and empties it. */
static int take(struct hydnsd_analyses *a, struct hydns_kern *kern, enum hydns_analysis_map map, uint64_t now_ms)
{
	void *content = malloc(hydns_kern_analysis_octets(kern, map));
	int rc = content ? hydns_kern_analysis_take(kern, map, content) : -ENOMEM;

	for (unsigned i = 0; i < HYDNS_ANALYSERS && !rc; i++) {
		if (!a->of[i].running || list[i].map != map)
			continue;
		hydnsd_findings_make(i, content, hydns_kern_geometry(kern)->cpus, &a->of[i].findings);
		a->of[i].ended_ms = now_ms;
	}
	free(content);
	return rc;
}

/* The analysers that are to run while these conditions hold. */
static uint32_t wanted(const struct hydnsd_analyses *a, uint32_t holding)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < HYDNS_ANALYSERS; i++)
		if (a->of[i].conditions & (holding | HYDNSD_ANALYSIS_ALWAYS))
			bits |= 1U << i;
	return bits;
}

void hydnsd_analyses_window(struct hydnsd_analyses *a, struct hydns_kern *kern, uint32_t holding, uint64_t now_ms)
{
	uint32_t next = wanted(a, holding);
	int rc = 0;

	for (enum hydns_analysis_map map = 0; map < HYDNS_ANALYSIS_MAPS && !rc; map++)
		if (uses(a, map))
			rc = take(a, kern, map, now_ms);
		else if (next)
			rc = hydns_kern_analysis_take(kern, map, NULL);
	if (rc && !a->failing)
		hydnsd_log(HYDNSD_LOG_WARNING, "monitor: cannot read what analysers have found: %s; none runs", strerror(-rc));
	a->failing = rc != 0;
	next = rc ? 0 : next;
	for (unsigned i = 0; i < HYDNS_ANALYSERS; i++) {
		bool runs = next >> i & 1;

		if (runs != a->of[i].running)
			hydnsd_log(HYDNSD_LOG_INFO, "monitor: analyser %s %s", list[i].name, runs ? "begins" : "has ended");
		a->of[i].running = runs;
	}
	hydns_kern_analyse(kern, next);
}
