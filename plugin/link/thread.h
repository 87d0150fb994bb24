/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The link thread's own state, and its parts, each of which calls only those above it. The thread sends one request at a
 * time; while it waits for anything, it goes on beating, with hydnsd or without.
 */
#ifndef HYDNS_PLUGIN_LINK_THREAD_H
#define HYDNS_PLUGIN_LINK_THREAD_H

#include "plugin/internal.h"

#define HYDNS_LOGGED_LEN       256
#define HYDNS_REPLY_TIMEOUT_MS 5000U   /* hydnsd fills whole ACL maps before it answers */
#define HYDNS_BYE_TIMEOUT_MS   200U
/* hydnsd has sent REFUSED. connect(2) can return the same number, but no call does. */
#define HYDNS_EREFUSED         ECONNREFUSED

struct hydns_link {
	struct hydns_plugin *p;
	bool ready;                      /* READY was acknowledged on this connection; p->ready ends earlier on leaving */
	bool lost;                       /* the connection, and that has been logged */
	bool leaving;                    /* only BYE is sent from here on, and p->leave no longer cuts waits short */
	char logged[HYDNS_LOGGED_LEN];   /* the last state logged */

	/* unread.c: by resolver thread, its CHANGED frames */
	struct hydns_unread {
		uint32_t done;           /* ring position: hydnsd has consumed all CHANGED frames before it */
		uint32_t waiting;        /* position after the last CHANGED frame when the wait began ... */
		uint64_t since_ms;       /* ... and when that was; 0: none waits */
	} unread[HYDNS_THREADS_MAX];

	/* beat.c */
	uint64_t beat_ns;                /* time of the last */
	uint64_t levels_ns;              /* when hydnsd was last shown what is in the packet rings */
	uint64_t busy_ns;                /* when a ring last had a new frame */
	bool resting;                    /* beats less often */
	int64_t clock_offset;            /* wall clock less monotonic, at the last step */
	bool clock_known;

	/* call.c */
	int sock;                        /* -1: none */
	uint32_t seq;
	struct hydns_channel_message in; /* received last */

	/* services.c */
	bool *refused;                   /* by service: hydnsd has refused it; NULL: out of memory, none is retried */
	size_t refusals;                 /* how many of them are set */
	size_t next_service;             /* the first to be retried */
	uint32_t retry_ms;               /* pause after the next attempt */
	uint64_t retry_ns;               /* time of the next attempt */

	/* lanes.c */
	struct hydns_link_lanes {
		bool asked;              /* for a plan, on this connection */
		bool look;               /* the plan is news, or a lane was not opened: look again at retry_ns */
		struct hydns_queue_plan plan;    /* zero: there is none */
		uint32_t open;           /* lanes that the program redirects to */
		unsigned unlocked;       /* lanes for which the process may lock too little memory, as last noted */
		bool unlocked_logged;
		uint64_t known;          /* places of lanes that hydnsd knows on this connection: a bit each */
		uint32_t retry_ms;
		uint64_t retry_ns;
	} lanes;

	/* configure.c */
	uint32_t configuration;          /* number of that which hydnsd has */
	uint32_t cookies_sent;           /* number of the cookie secrets that hydnsd has; 0: none */
	uint32_t notes_sent;             /* the same of the notes */

	/* forwards.c */
	uint32_t forwards_sent;          /* which list of zones hydnsd has: its count of changes */
	char forwards_refused[HYDNS_LOGGED_LEN]; /* why it refuses the list; "": it does not */
};

/* -- log_state.c ---------------------------------------------------------------------------------------- */
/* Logs a state of the connection once, and not at each attempt. */
void hydns_link_log_state(struct hydns_link *l, enum hydns_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* -- unread.c: CHANGED frames that hydnsd has not consumed ------------------------------------------------ */
/* hydnsd is lost, or hangs: suspends the rules that these frames concern. */
void hydns_link_mark_unread(struct hydns_link *l);
/* Marks them if one has waited for so long that hydnsd must hang. To be called at least once a beat. True: one waits. */
bool hydns_link_check_unread(struct hydns_link *l);

/* -- beat.c: heartbeat and clocks --------------------------------------------------------------------------- */
/* Beats if it is time to. Returns when it will be. rest: nothing is waited for that has to be noticed at once. */
uint64_t hydns_link_beat(struct hydns_link *l, bool rest);
/* Writes to the page by how much the clocks differ now. */
void hydns_link_show_clocks(struct hydns_link *l);

/* -- call.c: one request, one reply -------------------------------------------------------------------------- */
/*
 * Waits for events on the socket (if there is one) or a wake-up (if wake), until the deadline, beating. True: something
 * has come. False: it is too late, or the thread is to end.
 */
bool hydns_link_await(struct hydns_link *l, short events, bool wake, uint64_t deadline_ns);
/*
 * Sends a request and waits for the reply of this type, which is then in l->in. fd: borrowed. 0 or negative errno, of
 * which -HYDNS_EREFUSED: hydnsd has refused, with a text in l->in; -ECANCELED: nothing was sent, and fd not read,
 * because the thread is leaving.
 */
int hydns_link_call(struct hydns_link *l, uint32_t type, const void *payload, size_t len, const int *fd, unsigned fds,
		    uint32_t reply, uint32_t timeout_ms);
/* The same for a request that is acknowledged and carries no descriptor. */
int hydns_link_ask(struct hydns_link *l, uint32_t type, const void *payload, size_t len);
/* The same for a request whose reply is one descriptor, *fd, which the caller then has. */
int hydns_link_fetch(struct hydns_link *l, uint32_t type, const void *payload, size_t len, uint32_t reply, int *fd);
/* After -HYDNS_EREFUSED: hydnsd's text, as far as it is printable. Valid until the next message. */
const char *hydns_link_refusal(struct hydns_link *l);
/* Reads what hydnsd has sent unasked. 0: nothing, or counts, which have been taken; negative errno: the end. */
int hydns_link_read_unasked(struct hydns_link *l);
/* The thread is to end: does what others wait for. May be called again. */
void hydns_link_leave(struct hydns_link *l);
/* Leaves, and says BYE to hydnsd. */
void hydns_link_say_bye(struct hydns_link *l);

/* -- services.c: the addresses that the resolver answers at ------------------------------------------------- */
/* 0, also when hydnsd has refused some, or negative errno. */
int hydns_link_send_services(struct hydns_link *l);
/* Tries again what hydnsd has refused, if it is time to. */
int hydns_link_retry_services(struct hydns_link *l);

/* -- guard.c: zones below which resolutions fail, or wait ------------------------------------------------------- */
/* hydnsd's thresholds for reports; 0: it wants none. */
void hydns_link_guard(struct hydns_link *l, uint32_t failures, uint32_t waiting);
/* When the next reports are to be sent; and sends them, if it is time to. */
uint64_t hydns_link_guard_due(const struct hydns_link *l);
int hydns_link_report_zones(struct hydns_link *l);

/* -- configure.c: what hydnsd must know before READY, and what may change after it ------------------------------ */
/* What HELLO and RESET say of the present configuration, which from here on is the one that hydnsd has. */
void hydns_link_describe(struct hydns_link *l, struct hydns_hello *h);
int hydns_link_configure(struct hydns_link *l);
/* If it was replaced since, hydnsd gets it anew. */
int hydns_link_reconfigure(struct hydns_link *l);
/* hydnsd has acknowledged READY: offers are taken, unless the configuration was replaced meanwhile. */
void hydns_link_set_ready(struct hydns_link *l);
/* The current cookie secrets, and the current notes, if hydnsd does not have them. */
int hydns_link_send_cookies(struct hydns_link *l);
int hydns_link_send_notes(struct hydns_link *l);

/* -- log_ring.c: logged answers ----------------------------------------------------------------------------- */
/* Starts the thread that writes them, if any are wanted. */
void hydns_link_start_log(struct hydns_link *l);
/* Gets a log ring from hydnsd; before READY. A refusal is logged: then the resolver answers all queries. */
int hydns_link_get_log_ring(struct hydns_link *l);

/* -- budgets.c: clients that are limited ------------------------------------------------------------------------ */
/* Gets a map of budgets from hydnsd, if the resolver limits its clients; before READY. A refusal is logged: then the resolver answers
 * all queries. */
int hydns_link_get_budgets(struct hydns_link *l);

/* -- forwards.c: zones that the program may forward ------------------------------------------------------------ */
/* The current list, if hydnsd does not have it; after READY. */
int hydns_link_send_forwards(struct hydns_link *l);

/* -- connect.c: the socket, HELLO and WELCOME ------------------------------------------------------------------ */
/* Logs why it could not connect. */
int hydns_link_connect(struct hydns_link *l);
int hydns_link_hello(struct hydns_link *l);

/* -- lanes.c: packet rings -------------------------------------------------------------------------------------------- */
/* A connection is READY: hydnsd is asked again. */
void hydns_link_begin_lanes(struct hydns_link *l);
/* hydnsd's plan has come unasked. */
void hydns_link_take_plan(struct hydns_link *l, const struct hydns_queue_plan *plan);
/* Whether the host's routes are to be followed: for queries to upstream, or for replies. */
bool hydns_link_uses_ways(const struct hydns_link *l);
/* Opens and closes lanes as the plan says, if it is time to. 0 or negative errno. */
int hydns_link_work_lanes(struct hydns_link *l);
/* When it will be time to; UINT64_MAX: not before the plan changes. */
uint64_t hydns_link_lanes_due(const struct hydns_link *l);
/* hydnsd does not take this resolver, and its program brings nothing to the lanes: they are closed, and queries to upstream take
 * sockets. */
void hydns_link_give_lanes_up(struct hydns_link *l);

/* -- refused.c: hydnsd has refused this resolver ---------------------------------------------------------------- */
/* Logs it, and gives the lanes up. Returns when hydnsd may be asked again: one of another version when it has ended. */
void hydns_link_take_refusal(struct hydns_link *l);

/* -- serve.c: a READY connection --------------------------------------------------------------------------------- */
/* Returns when the thread is to end (0), or when the connection is lost (negative errno). */
int hydns_link_serve(struct hydns_link *l);

#endif
