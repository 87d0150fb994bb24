/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Whether the next message of a session has to wait: until hydnsd has answered others, or the user has rested. */
#ifndef HYDNSD_RESOLVERS_HOLD_H
#define HYDNSD_RESOLVERS_HOLD_H

#include <stdbool.h>

struct hydnsd_session;

/* True while its next message has to wait. */
bool hydnsd_hold_now(const struct hydnsd_session *s);
/* To be called after anything has changed that this depends on. */
void hydnsd_hold_update(struct hydnsd_session *s);

/* One more of its requests will be answered later. */
void hydnsd_hold_add_pending(struct hydnsd_session *s);
/* One of these has ended. answered: false when the plugin does not read its replies. */
void hydnsd_hold_end_pending(struct hydnsd_session *s, bool answered);

/* To be called before a message that costs much. True when the session's user has sent too many of these: it rests. */
bool hydnsd_hold_rests(struct hydnsd_session *s);
/* Ends a rest that is over. Returns how long one has still to last, in ms; -1: there is none. */
int hydnsd_hold_rest_left(struct hydnsd_session *s);

#endif
