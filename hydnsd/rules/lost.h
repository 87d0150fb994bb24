/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Questions of preloaded rules that were withdrawn, until their plugin takes them, to ask them anew. Fixed memory a resolver: of
 * more than fit only that is known.
 */
#ifndef HYDNSD_RULES_LOST_H
#define HYDNSD_RULES_LOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/common.h"

#define HYDNSD_LOST_OCTETS (1U << 20)  /* about 30,000 questions */

struct hydnsd_lost {                   /* of one resolver; zero: nothing was lost */
	uint8_t *entries;              /* struct hydns_lost; NULL: none yet */
	uint32_t first, end;           /* octets: where the oldest begins, and behind the newest */
	bool all;                      /* which went is not known: any may have */
};

void hydnsd_lost_free(struct hydnsd_lost *l);
/* name: name_len octets in wire format; qtype: network order. */
void hydnsd_lost_add(struct hydnsd_lost *l, const uint8_t *name, uint8_t name_len, uint16_t qtype, uint8_t variant);
/* From now on any may have gone. */
void hydnsd_lost_all(struct hydnsd_lost *l);
/* Moves the oldest to out, as many as fit into room octets. Returns the octets. *all: any may have gone; that is said once. */
size_t hydnsd_lost_take(struct hydnsd_lost *l, uint8_t *out, size_t room, bool *all);

#endif
