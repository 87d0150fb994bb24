/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A session of a plugin: what hydnsd keeps of a connection, and how it sends to it. For the files of this folder. */
#ifndef HYDNSD_RESOLVERS_SESSION_INTERNAL_H
#define HYDNSD_RESOLVERS_SESSION_INTERNAL_H

#include "hydnsd/resolvers/catch_up.h"
#include "hydnsd/resolvers/other_abi.h"
#include "hydnsd/resolvers/preload.h"
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
	uint64_t asked_ms;             /* when the porter was asked for a message that is not there yet; 0: it was not */
	int doorbell;
	struct hydnsd_watch *bell_watch;
	uid_t uid;
	pid_t pid;
	uint64_t since_ms;             /* HELLO is awaited since then: connection or BYE, plus the rests */
	int resolver;                  /* index; -1 before HELLO */
	uint32_t other_abi;            /* of its plugin, whose HELLO was refused for it; else 0 */
	uint32_t queue_parts;          /* HYDNS_QUEUE_*: what its plans are about; 0: it has asked for none */
	bool dead;                     /* the next round frees it */
	uint32_t pending;              /* requests whose answers come later */
	uint64_t rest_until_ms;        /* its user has asked for too much; 0: no rest */
	bool on_hold;                  /* its messages are not read */
	bool asleep;                   /* need_wakeup is ALL in every ring */
	uint64_t busy_ms;              /* when there was a frame, or one is expected */
	uint64_t changed_ms;           /* when there was a change, or a frame is expected at once */
	uint64_t poll_fast_until_ms;
	struct hydnsd_begun begun;     /* withdrawals that frames have begun */
	struct hydnsd_catch_up catch_up;
	struct hydnsd_preload preload;
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
	bool exhausted;                /* accept() found no free descriptor; tried again at the next tick */
	bool hold;                     /* newcomers wait, for either reason */
	uint64_t last_id;
	struct hydnsd_user_rates user_rates;
	struct hydnsd_other_abi other_abi[HYDNSD_OTHER_ABI_MOST];
};

struct hydnsd_session *hydnsd_session_find(struct hydnsd *d, uint64_t id);

#define HYDNSD_FDS_OUT_MAX (2 * HYDNS_THREADS_MAX) /* below SCM_MAX_FD, which is 253 */
/* For this and all replies below, false: the plugin does not read them. */
bool hydnsd_session_send(struct hydnsd_session *s, uint32_t type, uint32_t seq, const void *payload, size_t len, const int *fd,
			 unsigned fds);
bool hydnsd_session_acknowledge(struct hydnsd_session *s, uint32_t seq);
/* Refuses with a line in the log. */
bool hydnsd_session_refuse(struct hydnsd_session *s, uint32_t seq, const char *why);
/* Refuses without one. */
bool hydnsd_session_send_refusal(struct hydnsd_session *s, uint32_t seq, const char *why);
/* Writes the line alone. */
void hydnsd_session_complain(const struct hydnsd_session *s, const char *what, const char *why);

/* Sends why to the plugin (NULL: the plugin has ended the connection itself). Its resolver becomes disconnected. */
void hydnsd_session_end(struct hydnsd_session *s, const char *why);
/* Ends the session with this number; ignores an unknown one. */
void hydnsd_session_drop(struct hydnsd *d, uint64_t id, const char *why);

#endif
