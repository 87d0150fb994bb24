/* SPDX-License-Identifier: GPL-2.0-only */
/* Internal to cost/: what the copies find in their maps. */
#ifndef HYDNS_KERN_COST_GROUND_H
#define HYDNS_KERN_COST_GROUND_H

#include "hydns-kern/cost/cost.h"
#include "hydns-kern/loader/kern.h"

struct hydns_ground {
	struct hydns_store *store;
	struct hydns_mapping slots, index, hits, claims, page, parking;
	int page_fd, socket_fd;
};

/* Fills the maps of a loaded object: a resolver at the service, a rule, a lane, questions under way, zones to forward; none of the
 * latter is the queries'. The object's geometry is g. To be closed even if it fails. */
int hydns_ground_open(struct hydns_ground *gr, struct hydns_bpf *b, const struct hydns_geometry *g, const struct hydns_cost_setup *s);
/* Before each run: the resolver lives, and its ring has room. */
void hydns_ground_refresh(struct hydns_ground *gr);
void hydns_ground_close(struct hydns_ground *gr);

#endif
