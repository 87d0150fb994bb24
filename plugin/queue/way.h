/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* By which lane (lanes.h) a datagram came, for the reply. A resolver keeps it with the query. */
#ifndef PLUGIN_QUEUE_WAY_H
#define PLUGIN_QUEUE_WAY_H

#include "plugin/queue/frame.h"

struct hydns_way {
	uint16_t lane;               /* from 1 on; 0: by none, but by a socket */
	uint8_t device;              /* number of its interface in port words */
	uint32_t made;               /* tells the lane from a later one of the same number */
	uint32_t ifindex;            /* of its interface */
	uint32_t came_us;            /* when, in monotonic microseconds modulo 2^32 */
	struct hydns_path path;
};

#endif
