/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What became of a captured packet, in words. */
#ifndef HYDNSD_CAPTURE_COMMENT_H
#define HYDNSD_CAPTURE_COMMENT_H

#include <stddef.h>
#include "hydns/capture.h"

/* "answered, rule www.example.com. A"; "passed: MISS, no rule for this question". query: its frame, whole or cut. */
void capture_comment(const struct hydns_captured *c, const uint8_t *query, char *text, size_t room);

#endif
