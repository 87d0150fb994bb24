/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What `status' and `stats' say of a resolver's forwarded queries (protocol.def). */
#ifndef HYDNSD_CONTROL_FORWARDS_H
#define HYDNSD_CONTROL_FORWARDS_H

#include <jansson.h>
#include "hydnsd/daemon/daemon.h"

json_t *hydnsd_forwards_state(struct hydnsd *d, uint32_t i);
json_t *hydnsd_forwards_counts(struct hydnsd *d, uint32_t i);
/* What becomes of a query without a rule that is in a forwarded zone; "": it is in none, or of a kind that is not forwarded. */
const char *hydnsd_forwards_words(struct hydnsd *d, uint32_t i, const uint8_t *name, uint8_t len, uint8_t variant);
/* The upstream server that an open question was sent to, as text; "": it is not open. */
const char *hydnsd_forwards_upstream(struct hydnsd *d, uint32_t i, uint64_t key);

#endif
