/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* When the next message of a session has to wait: until others have been answered, or its user has rested. */
#ifndef HYDNSD_RESOLVERS_HOLD_H
#define HYDNSD_RESOLVERS_HOLD_H

#include <stdbool.h>

struct hydnsd_session;

/* True while its next message has to wait. */
bool hydnsd_hold_now(const struct hydnsd_session *s);
/* After anything that this depends on has changed. */
void hydnsd_hold_update(struct hydnsd_session *s);

/* One more of its requests is answered later. */
void hydnsd_hold_add_pending(struct hydnsd_session *s);
/* One of its requests has come to its end. answered: it reads its replies. */
void hydnsd_hold_end_pending(struct hydnsd_session *s, bool answered);

/* Before a message that costs much. True when the session's user has had too many of these of late: it rests. */
bool hydnsd_hold_rests(struct hydnsd_session *s);
/* Ends a rest that is over; how long one has still to last, in ms, or -1. */
int hydnsd_hold_rest_left(struct hydnsd_session *s);

#endif
