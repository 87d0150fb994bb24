/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The ends of rules: a timer wheel of seconds, since TTLs count whole seconds. */
#ifndef HYDNS_SIM_LIVES_H
#define HYDNS_SIM_LIVES_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns-sim/trace.h"

struct lives {
	uint32_t ids, count;
	uint32_t *expires_s;           /* by id; 0: no rule */
	uint32_t *next, *prev;         /* by id, in its second's list */
	uint32_t *first;               /* by second modulo the wheel's size */
	uint64_t now_s;
	void (*over)(void *arg, uint32_t id);
	void *arg;
};

/* over: called for each rule that expires. False without memory. */
bool lives_init(struct lives *l, uint32_t ids, void (*over)(void *arg, uint32_t id), void *arg);
void lives_free(struct lives *l);
void lives_begin(struct lives *l, uint32_t id, uint64_t expires_s);
void lives_end(struct lives *l, uint32_t id);
/* Ends the rules that expire at or before now. */
void lives_advance(struct lives *l, uint64_t now_us);

static inline bool lives_has(const struct lives *l, uint32_t id)
{
	return l->expires_s[id] != 0;
}

#endif
