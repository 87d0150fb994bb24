/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What `hydnsctl watch' shows of a view (view/view.h). */
#ifndef HYDNSD_CTL_WATCH_SCREEN_H
#define HYDNSD_CTL_WATCH_SCREEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "hydnsd/ctl/screen.h"

#define WATCH_HISTORY 240

/* Queries a second, the last ones. */
struct watch_history {
	double rate[WATCH_HISTORY];
	size_t count;
};

void watch_remember(struct watch_history *h, const json_t *view);
/* The screen, the caller's to free. h: for one that stays, with columns of history, or NULL. blocks: letters may be other than ASCII. */
struct screen *watch_screen(const json_t *view, const struct watch_history *h, size_t columns, bool blocks);
/* All in one line. */
void watch_line(const json_t *view, FILE *out);

#endif
