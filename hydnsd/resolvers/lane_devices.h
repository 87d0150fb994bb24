/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Interfaces whose receive queues may become lanes: those that the program is attached to, with what a plugin must know. */
#ifndef HYDNSD_RESOLVERS_LANE_DEVICES_H
#define HYDNSD_RESOLVERS_LANE_DEVICES_H

#include <net/if.h>

#include "hydns/queue.h"
#include "hydnsd/daemon/daemon.h"

struct hydnsd_lane_device {
	struct hydns_queue_device facts;
	char name[IF_NAMESIZE];
};

/* An interface with the program on it that has no lanes. */
struct hydnsd_lane_unfit {
	uint32_t ifindex;
	char why[HYDNS_WHY];
};

struct hydnsd_lane_devices {
	uint32_t count;
	struct hydnsd_lane_device device[HYDNS_QUEUE_DEVICES];
	uint32_t unfit_count;
	struct hydnsd_lane_unfit unfit[HYDNSD_LIST_MAX];
	uint32_t holder[HYDNS_QUEUE_DEVICES]; /* the interface that has or had this number in port words; 0: none yet */
};

/* Reads the interfaces anew, and logs why one has no lanes, once. True: a plan is another now. */
bool hydnsd_lane_devices_read(struct hydnsd *d, struct hydnsd_lane_devices *all);
/* NULL: the program is not attached to this interface, or it has no lanes. */
const struct hydnsd_lane_device *hydnsd_lane_devices_find(const struct hydnsd_lane_devices *all, uint32_t ifindex);
/* Why an interface with the program on it has no lanes; "": it has, or nobody has asked for any. */
const char *hydnsd_lane_devices_unfit(const struct hydnsd_lane_devices *all, uint32_t ifindex);
/* Whether a resolver with so many threads may have lanes of this device: those of several threads share a fill ring, which
 * the kernel reads without a lock when it runs the program itself (Linux 6.0). */
bool hydnsd_lane_devices_fits(const struct hydns_queue_device *facts, uint32_t threads);

#endif
