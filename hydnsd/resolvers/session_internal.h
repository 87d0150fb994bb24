/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What session.c (messages) and intake.c (rings) share. */
#ifndef HYDNSD_RESOLVERS_SESSION_INTERNAL_H
#define HYDNSD_RESOLVERS_SESSION_INTERNAL_H

#include "hydnsd/resolvers/renewals.h"
#include "hydnsd/resolvers/rings.h"
#include "hydnsd/resolvers/session.h"
#include "hydnsd/resolvers/settle.h"

struct hydnsd_session {
	struct hydnsd *daemon;
	uint64_t id;
	int fd;
	struct hydnsd_watch *watch;
	struct hydnsd_porter *porter;  /* NULL: no descriptors have come so far */
	struct hydnsd_watch *porter_watch;
	uint64_t asked_ms;             /* the porter was asked for a message then; 0: it was not */
	int doorbell;
	struct hydnsd_watch *bell_watch;
	uid_t uid;
	pid_t pid;
	uint64_t since_ms;             /* connected, or said BYE, or as much later as it had to rest */
	int authority;                 /* -1 before HELLO */
	bool dead;                     /* freed at the next turn */
	uint32_t pending;              /* requests that are answered later */
	uint64_t rest_until_ms;        /* its user asks too much; 0: no rest */
	bool on_hold;                  /* its messages wait */
	bool asleep;                   /* need_wakeup is set in every ring */
	uint64_t busy_ms;              /* last time a frame was there */
	uint64_t rush_until_ms;        /* polls are closer until then */
	struct hydnsd_begun changes;   /* withdrawals that frames have begun */
	struct hydnsd_settle settle;
	struct hydnsd_renewals renewals;
	uint32_t rings;
	struct hydnsd_ring ring[HYDNS_THREADS_MAX];
	struct hydnsd_session *next;
};

/* session.c */
struct hydnsd_session *hydnsd_session_find(struct hydnsd *d, uint64_t id);
void hydnsd_session_end(struct hydnsd_session *s, const char *why);
/* False: it does not read its replies. */
bool hydnsd_session_acknowledge(struct hydnsd_session *s, uint32_t seq);

#endif
