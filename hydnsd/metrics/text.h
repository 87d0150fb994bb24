/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsd's figures in the text format of Prometheus, version 0.0.4, by the table metrics.def. No I/O. */
#ifndef HYDNSD_METRICS_TEXT_H
#define HYDNSD_METRICS_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct metrics_figures {
	const json_t *status, *stats;  /* hydnsd's replies; both NULL: it does not answer */
	uint64_t took_ns;              /* how long they took */
};

/* The text, to be freed, and its length; NULL: out of memory. A field that a reply lacks, or that has another type, has no
 * sample; the text is well-formed whatever the replies hold. */
char *metrics_text(const struct metrics_figures *f, size_t *len);

/* Path of the table's i-th line; NULL: it has fewer. For tests. */
const char *metrics_path(size_t i);

#endif
