/* SPDX-License-Identifier: GPL-2.0-only */
/* Captures: makes the loaded programs say what becomes of packets. Descriptors hold all of it, so it ends with the process. */
#ifndef HYDNS_KERN_CAPTURE_CAPTURE_H
#define HYDNS_KERN_CAPTURE_CAPTURE_H

#include "hydns/capture.h"
#include "hydns/rule.h"

#define HYDNS_CAPTURE_WHY 256          /* octets of the line that says why a call has failed */

struct hydns_capture;
/* octets: of both frames, one after the other. */
typedef void hydns_capture_fn(const struct hydns_captured *c, const __u8 *octets, void *arg);

/* Nothing is watched yet. open_map(name, map_arg): a descriptor of the map that hydnsd has pinned under this name, or negative. */
struct hydns_capture_options {
	struct hydns_capture_filter filter;
	hydns_capture_fn *fn;
	void *arg;
	int (*open_map)(const char *name, void *map_arg);
	void *map_arg;
};
int hydns_capture_open(const struct hydns_capture_options *o, struct hydns_capture **out, char why[HYDNS_CAPTURE_WHY]);
/* Watches every loaded hydns_xdp over these maps, those that hydnsd has loaded since the last call, too. Returns how many it
 * watches, or a negative errno; -EBUSY: somebody else captures. */
int hydns_capture_follow(struct hydns_capture *c, char why[HYDNS_CAPTURE_WHY]);
/* Waits up to so long for much to come, and calls fn for all that has come. */
int hydns_capture_read(struct hydns_capture *c, int timeout_ms);
/* Watches nothing from now on; what has come may still be read. */
void hydns_capture_stop(struct hydns_capture *c);
/* Packets that found no room, of those that came in by this interface; 0: of all. */
__u64 hydns_capture_lost(const struct hydns_capture *c, __u32 ifindex);
void hydns_capture_close(struct hydns_capture *c);

#endif
