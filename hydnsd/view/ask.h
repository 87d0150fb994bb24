/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Asks hydnsd for several replies over the control socket (doc/control-protocol.md), with a time limit. One thread. */
#ifndef HYDNSD_VIEW_ASK_H
#define HYDNSD_VIEW_ASK_H

#include <jansson.h>

#define VIEW_ASK_LIMIT_MS 2000         /* for all replies together */
#define VIEW_ASK_MOST     4            /* replies */
#define VIEW_WHY          256

struct view_source {
	const char *path;              /* of the control socket */
	int stop;                      /* a descriptor that becomes readable when the program shall wait no longer; -1: none */
	int overdue;                   /* a connection whose replies are late; -1: none */
};

/* requests: as many lines as replies. 0, and the replies, the caller's to free; or -1 and why. */
int view_ask(struct view_source *s, const char *requests, unsigned count, json_t *reply[], char why[VIEW_WHY]);
void view_source_close(struct view_source *s);

#endif
