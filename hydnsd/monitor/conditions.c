/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A measure is compared with a number, or with its own past: an exponentially weighted moving average (S. W. Roberts, "Control
 * chart tests based on geometric moving averages", Technometrics 1(3), 1959), with weights 1/8 for the last window, and 1/64 while
 * the condition holds. So an attack does not become the ordinary within minutes, and a lasting change does at last, which ends the
 * condition. begin and end differ, so that a measure near one of them does not make it come and go.
 */
#include "hydnsd/monitor/conditions.h"

#include <stdio.h>
#include <string.h>

#define WEIGHT      (1.0 / 8)
#define WEIGHT_HELD (1.0 / 64)

enum kind { VALUE, PAST };

static const struct {
	const char *name;
	enum hydnsd_measure measure;
	enum kind kind;
	double begin, end;
	const char *text;
} list[HYDNSD_CONDITIONS] = {
#define MONITOR_CONDITION(name, measure, kind, begin, end, text) { #name, HYDNSD_MEASURE_##measure, kind, begin, end, text },
#include "hydnsd/monitor/conditions.def"
#undef MONITOR_CONDITION
};

const char *hydnsd_condition_name(enum hydnsd_condition_id id)
{
	return list[id].name;
}

const char *hydnsd_condition_text(enum hydnsd_condition_id id)
{
	return list[id].text;
}

/* -- the operator's ------------------------------------------------------------------------------------------ */
static int refuse(const char *line, const char *why, char error[HYDNSD_OPTION_ERROR])
{
	snprintf(error, HYDNSD_OPTION_ERROR, "monitor-condition: '%.120s': %s", line, why);
	return -1;
}

static int read_line(const char *line, struct hydnsd_condition c[HYDNSD_CONDITIONS], char error[HYDNSD_OPTION_ERROR])
{
	double begin, end, least = HYDNSD_CONDITION_LEAST;
	char name[32], rest[8], over;
	unsigned id = 0;
	int n;

	if (sscanf(line, "%31s", name) != 1)
		return refuse(line, "name a condition", error);
	while (id < HYDNSD_CONDITIONS && strcmp(list[id].name, name))
		id++;
	if (id == HYDNSD_CONDITIONS)
		return refuse(line, "there is no such condition: see hydnsd.conf(5)", error);
	if (sscanf(line, "%*s %7s %c", rest, &over) == 1 && !strcmp(rest, "off")) {
		c[id].off = true;
		return 0;
	}
	n = sscanf(line, "%*s %lf %lf %lf %c", &begin, &end, &least, &over);
	if (n != 2 && n != 3)
		return refuse(line, "write `NAME off', or `NAME BEGIN END' and perhaps the least queries a second", error);
	if (!(end > 0 && end <= begin && begin < 1e15 && least >= 0 && least < 1e15))
		return refuse(line, "END must be above 0 and at most BEGIN, and nothing negative", error);
	c[id].off = false;
	c[id].begin = begin;
	c[id].end = end;
	c[id].least = least;
	return 0;
}

int hydnsd_conditions_read(const struct hydnsd_list *lines, struct hydnsd_condition c[HYDNSD_CONDITIONS],
			   char error[HYDNSD_OPTION_ERROR])
{
	for (unsigned id = 0; id < HYDNSD_CONDITIONS; id++)
		c[id] = (struct hydnsd_condition){ .begin = list[id].begin, .end = list[id].end, .least = HYDNSD_CONDITION_LEAST };
	for (uint32_t i = 0; i < lines->count; i++)
		if (read_line(lines->item[i], c, error))
			return -1;
	return 0;
}

/* -- windows ---------------------------------------------------------------------------------------------------- */
double hydnsd_condition_threshold(enum hydnsd_condition_id id, const struct hydnsd_condition *c)
{
	double at = c->holds ? c->end : c->begin;

	return list[id].kind == PAST ? c->past * at / 100 : at;
}

static bool begins(enum hydnsd_condition_id id, const struct hydnsd_condition *c, double rate)
{
	if (c->off || rate < c->least || (list[id].kind == PAST && c->windows < HYDNSD_CONDITION_WINDOWS))
		return false;
	return c->value >= hydnsd_condition_threshold(id, c);
}

/* The first windows count alike, so that the very first one does not weigh more than the others. */
static void remember(struct hydnsd_condition *c)
{
	double weight = c->holds ? WEIGHT_HELD : WEIGHT;

	if (c->windows < HYDNSD_CONDITION_WINDOWS)
		weight = 1.0 / ++c->windows;
	c->past += (c->value - c->past) * weight;
}

enum hydnsd_condition_event hydnsd_condition_step(enum hydnsd_condition_id id, struct hydnsd_condition *c,
						  const double value[HYDNSD_MEASURES])
{
	enum hydnsd_condition_event event = HYDNSD_CONDITION_STAYS;
	double rate = value[HYDNSD_MEASURE_RATE];

	c->value = value[list[id].measure];
	if (!c->holds && begins(id, c, rate)) {
		event = HYDNSD_CONDITION_BEGINS;
		c->holds = true;
		c->worst = 0;
	} else if (c->holds && (c->value < hydnsd_condition_threshold(id, c) || rate < c->least * c->end / c->begin)) {
		event = HYDNSD_CONDITION_ENDS;
		c->holds = false;
	}
	if (c->holds && c->value > c->worst)
		c->worst = c->value;
	if (event != HYDNSD_CONDITION_BEGINS)
		remember(c);
	return event;
}
