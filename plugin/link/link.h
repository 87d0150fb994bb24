/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The connection to hydnsd, as the rest of the library sees it. Nothing here is for resolvers. */
#ifndef HYDNS_PLUGIN_LINK_LINK_H
#define HYDNS_PLUGIN_LINK_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include "hydns/guard.h"
#include "hydns/heavy.h"
#include "plugin/plugin.h"

/* -- channel.c: messages to hydnsd --------------------------------------------------------------------- */
#define HYDNS_CHANNEL_FDS (2 * HYDNS_THREADS_MAX)      /* STRAY_SOCKETS */
struct hydns_channel_message {
	struct hydns_msg head __attribute__((aligned(8)));   /* the payload holds 64-bit counts */
	uint8_t payload[HYDNS_MSG_MAX - sizeof(struct hydns_msg)];
	int fd[HYDNS_CHANNEL_FDS];       /* received descriptors, -1: none; owned by the receiver */
	unsigned fds;
};
int hydns_channel_connect(const char *path);             /* non-blocking descriptor or negative errno */
/* 0, -EAGAIN or another negative errno. fds: borrowed. */
int hydns_channel_send(int sock, const struct hydns_msg *head, const void *payload, const int *fd,
		       unsigned fds);
/* 0, -EAGAIN, -ECONNRESET at the end of the connection, -EPROTO, or another negative errno. */
int hydns_channel_receive(int sock, struct hydns_channel_message *m);
/* Closes the descriptors that have not been taken (made -1). */
void hydns_channel_close_fds(struct hydns_channel_message *m);

/* -- requests.c: requests of other threads to hydnsd ------------------------------------------------------ */
enum hydns_request_state { HYDNS_REQUEST_WAITING, HYDNS_REQUEST_SENT, HYDNS_REQUEST_DONE,
			   HYDNS_REQUEST_FAILED };
struct hydns_request {                   /* on the caller's stack, in the list while the caller waits */
	struct hydns_request *next;
	uint64_t id;
	enum hydns_request_state state;
	uint32_t type;                   /* HYDNS_MSG_WITHDRAW, WITHDRAW_NAMES, STATS, COOKIES, NOTE, FORWARDS or RESET */
	uint32_t len;                    /* of the payload; when it is done, of the reply's, which takes its place */
	int fd;                          /* when it is done: of a NAMES, the caller's to close */
	union {
		struct hydns_withdraw withdraw;
		struct hydns_withdraw_names names;
		uint8_t octets[HYDNS_MSG_MAX - sizeof(struct hydns_msg)];
	};
};
struct hydns_requests {
	pthread_mutex_t lock;
	pthread_cond_t done;             /* on CLOCK_MONOTONIC */
	struct hydns_request *first, *last;
	uint64_t next_id;
	bool accepting;                  /* a READY connection */
	int wake;                        /* eventfd: there is work for the link thread */
	struct hydns_counts counts;      /* last known, of the page that hydnsd reads now */
	struct hydns_counts before;      /* of the pages before it */
};
int hydns_requests_init(struct hydns_requests *r);
void hydns_requests_destroy(struct hydns_requests *r);
void hydns_requests_wake(struct hydns_requests *r);
/* Queues the request and waits at most timeout_ms. True: hydnsd has done it. False: it is FAILED, or late; in any case it
 * is no longer in the list. */
bool hydns_requests_ask(struct hydns_requests *r, struct hydns_request *q, uint32_t timeout_ms);
/* Link thread. Takes a copy of the oldest waiting request and marks it sent; false: none. */
bool hydns_requests_take(struct hydns_requests *r, struct hydns_request *copy);
/* Before _finish(), of a request whose caller wants the reply's payload. */
void hydns_requests_reply(struct hydns_requests *r, uint64_t id, const void *payload, size_t len);
/* The same of the reply's descriptor; closes it if nobody waits any more. */
void hydns_requests_give(struct hydns_requests *r, uint64_t id, int fd);
void hydns_requests_finish(struct hydns_requests *r, uint64_t id, bool done,
			   const struct hydns_counts *counts);
/* Counts that came without a request; and: hydnsd reads a new page from now on, whose counts begin at 0. */
void hydns_requests_take_counts(struct hydns_requests *r, const struct hydns_counts *counts);
void hydns_requests_new_page(struct hydns_requests *r);
/* The sum of what is known of all pages. */
void hydns_requests_counts(struct hydns_requests *r, struct hydns_counts *out);
/* Opens the list, or closes it: then all requests in it have failed. */
void hydns_requests_accept(struct hydns_requests *r, bool accepting);

/* -- guard.c: zones below which resolutions fail, or wait ---------------------------------------------------- */
/* Fixed memory: zones take each other's places (hydns/heavy.h), and all begin anew each second. */
#define HYDNS_GUARD_SETS 32             /* power of two */
struct hydns_guard_zone {
	uint8_t name[HYDNS_GUARD_SUFFIX_MOST];   /* lower case */
	uint32_t len;
	uint32_t failed;                 /* resolutions since the zone took this place */
	uint64_t took_ms;                /* sum of those that failed or were slow */
};
struct hydns_guard_zones {
	_Atomic uint32_t failures, waiting;      /* hydnsd's thresholds; both 0: it wants no reports */
	pthread_mutex_t lock;
	struct hydns_heavy_set set[HYDNS_GUARD_SETS];
	struct hydns_guard_zone zone[HYDNS_GUARD_SETS][HYDNS_HEAVY_ENTRIES];
	uint64_t since_ns;               /* of what is counted */
};
/* What there was to report since the last time, at most room; now_ns: monotonic. Begins anew. */
unsigned hydns_guard_zones_take(struct hydns_guard_zones *z, uint64_t now_ns, struct hydns_guard_report *out, unsigned room);

/* -- leave.c: the end, step by step ------------------------------------------------------------------------ */
enum hydns_leave_step {
	HYDNS_LEAVE_NOT,
	HYDNS_LEAVE_BEGUN,                /* all rules are dead, and nothing is offered any more */
	HYDNS_LEAVE_SOCKETS,              /* no copy of a listening socket is held */
	HYDNS_LEAVE_DONE,                 /* no kernel answer is sent any more */
};
struct hydns_leave {
	pthread_mutex_t lock;
	pthread_cond_t further;
	enum hydns_leave_step step;
	int wake;                        /* eventfd: readable once the link thread is to end */
	void (*gone)(void *arg);         /* called at the last step, unless NULL */
	void *arg;
};
int hydns_leave_init(struct hydns_leave *l);             /* negative errno */
void hydns_leave_destroy(struct hydns_leave *l);
/* Link thread, once p->stopping is set: goes through the steps, the first time that it is called. */
void hydns_leave_go(struct hydns_plugin *p);

/* -- suspend.c: rules that wait while the resolver reloads ---------------------------------------------------- */
struct hydns_reload_suspension {         /* of the caller alone, but for what its thread reads */
	pthread_t thread;
	bool has_thread;
	void (*gone)(void *arg);         /* as in struct hydns_leave */
	void *arg;
};
/* The object leaves. True: all rules are suspended, and a grace period has passed since. */
bool hydns_suspension_end(struct hydns_plugin *p);

#endif
