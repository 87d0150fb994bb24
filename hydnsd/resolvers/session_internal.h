/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A session of a plugin: what hydnsd keeps of a connection, and how it speaks to it. For the files of this folder. */
#ifndef HYDNSD_RESOLVERS_SESSION_INTERNAL_H
#define HYDNSD_RESOLVERS_SESSION_INTERNAL_H

#include "hydnsd/resolvers/catch_up.h"
#include "hydnsd/resolvers/rings.h"
#include "hydnsd/resolvers/session.h"
#include "hydnsd/resolvers/ttl_updates.h"
#include "hydnsd/resolvers/user_rates.h"

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
	int resolver;                 /* -1 before HELLO */
	bool dead;                     /* freed at the next turn */
	uint32_t pending;              /* requests that are answered later */
	uint64_t rest_until_ms;        /* its user asks too much; 0: no rest */
	bool on_hold;                  /* its messages wait */
	bool asleep;                   /* need_wakeup is set in every ring */
	uint64_t busy_ms;              /* last time a frame was there */
	uint64_t poll_fast_until_ms;        /* polls are closer until then */
	struct hydnsd_begun begun;     /* withdrawals that frames have begun */
	struct hydnsd_catch_up catch_up;
	struct hydnsd_ttl_updates ttl_updates;
	uint32_t rings;
	struct hydnsd_ring ring[HYDNS_THREADS_MAX];
	struct hydnsd_session *next;
};

struct hydnsd_listener {
	struct hydnsd *daemon;
	int fd;
	char *path;
	struct hydnsd_watch *watch;
};

struct hydnsd_sessions {
	struct hydnsd_listener listener[HYDNSD_LIST_MAX];
	uint32_t listeners;
	struct hydnsd_session *first;
	uint32_t count;
	bool full;
	bool exhausted;                /* no descriptor is left for the next one; until the next tick */
	bool hold;                     /* others wait, for either reason */
	uint64_t last_id;
	struct hydnsd_user_rates user_rates;
};

struct hydnsd_session *hydnsd_session_find(struct hydnsd *d, uint64_t id);

#define HYDNSD_FDS_OUT_MAX 2
/* False, as of all replies: it does not read them. */
bool hydnsd_session_send(struct hydnsd_session *s, uint32_t type, uint32_t seq, const void *payload, size_t len, const int *fd,
			 unsigned fds);
bool hydnsd_session_acknowledge(struct hydnsd_session *s, uint32_t seq);
/* With a line in the log ... */
bool hydnsd_session_refuse(struct hydnsd_session *s, uint32_t seq, const char *why);
/* ... and without one. */
bool hydnsd_session_send_refusal(struct hydnsd_session *s, uint32_t seq, const char *why);
/* The line alone. */
void hydnsd_session_complain(const struct hydnsd_session *s, const char *what, const char *why);

/* The plugin is told why, if it did not end itself (NULL); its authority becomes an orphan. */
void hydnsd_session_end(struct hydnsd_session *s, const char *why);
/* The same, of the session with this number; unknown ones are ignored. */
void hydnsd_session_drop(struct hydnsd *d, uint64_t id, const char *why);

#endif
