/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What session.c (messages) and intake.c (rings) share. */
#ifndef HYDNSD_RESOLVERS_SESSION_INTERNAL_H
#define HYDNSD_RESOLVERS_SESSION_INTERNAL_H

#include "hydnsd/resolvers/progress.h"
#include "hydnsd/resolvers/renewals.h"
#include "hydnsd/resolvers/session.h"

struct hydnsd_ring {
	struct hydns_ring *shared;     /* mapped; written by the plugin at any moment */
	uint32_t tail;                 /* ours: what the plugin writes there is not read again */
	uint32_t head;                 /* as last read */
	struct hydnsd_progress progress;
};

/* A SETTLE under way (settle.c). */
struct hydnsd_settle {
	enum { HYDNSD_SETTLED, HYDNSD_SETTLE_RINGS, HYDNSD_SETTLE_RULES } waits;
	uint32_t seq;                  /* of the message */
	uint32_t head[HYDNS_THREADS_MAX]; /* the rings', when it came */
};

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

/* settle.c */
/* False: one is under way already. */
bool hydnsd_settle_begin(struct hydnsd_session *s, uint32_t seq);
void hydnsd_settle_turn(struct hydnsd_session *s);

/* intake.c */
/* Checks and maps a ring memfd (the descriptor stays the caller's) of a session that has begun these. */
int hydnsd_ring_open(struct hydnsd_ring *r, int fd, const struct hydnsd_begun *changes, char *why, size_t room);
void hydnsd_ring_close(struct hydnsd_ring *r);
/* As hydnsd_sessions_turn(), for one session. */
int hydnsd_intake_turn(struct hydnsd_session *s);
/* The doorbell rang. */
void hydnsd_intake_wake(struct hydnsd_session *s);
/* Rings are looked at until they have been empty for a while. */
void hydnsd_intake_stir(struct hydnsd_session *s);

#endif
