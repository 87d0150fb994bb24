/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Asks hydnsd for its figures over the control socket (doc/control-protocol.md), with a time limit. One thread. */
#ifndef HYDNSD_METRICS_ASK_H
#define HYDNSD_METRICS_ASK_H

#include <jansson.h>
#include <stddef.h>

#define METRICS_ASK_LIMIT_MS 2000      /* for both figures together */
#define METRICS_WHY          256

struct metrics_source {
	const char *path;              /* of the control socket */
	int stop;                      /* a descriptor that becomes readable when the program shall end */
	int overdue;                   /* a connection whose replies are late; -1: none */
};

/* 0, and both replies, the caller's to free; or -1 and why. */
int metrics_ask(struct metrics_source *s, json_t **status, json_t **stats, char why[METRICS_WHY]);
void metrics_source_close(struct metrics_source *s);

#endif
