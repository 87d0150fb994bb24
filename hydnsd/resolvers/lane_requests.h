/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Messages about packet rings: QUEUE, LANE, OPEN, CLOSE, and the PLAN that hydnsd sends unasked. */
#ifndef HYDNSD_RESOLVERS_LANE_REQUESTS_H
#define HYDNSD_RESOLVERS_LANE_REQUESTS_H

#include "hydnsd/resolvers/requests.h"

/* Each does what the message asks for. False: the plugin does not read its replies. */
bool hydnsd_lane_requests_queue(struct hydnsd_session *s, const struct hydnsd_request *m);
bool hydnsd_lane_requests_lane(struct hydnsd_session *s, const struct hydnsd_request *m);
bool hydnsd_lane_requests_open(struct hydnsd_session *s, const struct hydnsd_request *m);
bool hydnsd_lane_requests_close(struct hydnsd_session *s, const struct hydnsd_request *m);

/* Whether a plugin has asked for a plan. */
bool hydnsd_lane_requests_wanted(const struct hydnsd *d);
/* Sends a plan to every plugin that has asked for one; an empty one when hydnsd stops and leaves no program. */
void hydnsd_lane_requests_tell(struct hydnsd *d);

#endif
