/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hydns module as Unbound's common code sees it: the module's function block, and the hooks that the patches put
 * where an answer is sent and where the caches change. A worker that offers answers has a context (env->hydns);
 * without one every hook returns at once. The hooks call the plugin library (hydns_daemon.h) through a table, so that
 * tools which link Unbound's common code need not link the library.
 */
#ifndef HYDNS_MODULE_H
#define HYDNS_MODULE_H

#include <stdint.h>
#include <sys/time.h>
#include <time.h>
#include "util/module.h"
#include "util/storage/lruhash.h"
#include "plugin/plugin.h"

struct comm_point;
struct comm_reply;
struct edns_data;
struct hydns_context;
struct hydns_daemon;
struct hydns_queue;
struct mesh_reply;
struct outside_network;
struct packed_rrset_data;
struct pending;
struct port_comm;
struct ub_packed_rrset_key;
struct reply_info;
struct query_info;
struct sldns_buffer;
struct sockaddr_storage;
struct timeval;

/* A number of sightings: not counted, but the answer is looked at, for there may be a reason why it can't be offered, or others
 * may wait for it. */
#define HYDNS_FIRST_SIGHT UINT32_MAX

/* What the module keeps of a resolution (qstate->minfo). */
#define HYDNS_QUESTIONS 2      /* of plain clients: without DO and with it */
struct hydns_resolution {
	struct hydns_stamp begun;
	uint64_t key[HYDNS_QUESTIONS]; /* once finishing() was called */
	/* Questions that several clients wait for, so that queries for them may be parked: their keys; 0: none. */
	uint64_t awaited[HYDNS_QUESTIONS];
	int counted[HYDNS_QUESTIONS];  /* the parked queries are */
	struct timeval since;          /* when it began */
};

/* What a context can do. The context's own worker makes all calls. */
struct hydns_hooks {
	uint32_t (*sighted)(struct hydns_context* h);
	/* A client begins to wait for what another one waits for already. Returns whether queries may be parked. */
	int (*awaited)(struct hydns_context* h, struct module_qstate* qstate, const struct edns_data* edns);
	/* The resolution ends, or is given up; the servers of this zone are those that it asks. */
	void (*ended)(struct hydns_context* h, const uint8_t* zone, size_t len, int failed, uint64_t took_ms);
	/* The resolution ends; what it found was offered. */
	void (*over)(struct hydns_context* h, const struct hydns_resolution* res);
	/* rep: NULL when nothing was found */
	void (*fresh)(struct hydns_context* h, struct module_qstate* qstate, struct mesh_reply* r,
		struct reply_info* rep);
	/* A resolution is about to end: prefetches what resolved() will read. */
	void (*finishing)(struct hydns_context* h, const struct query_info* qinfo, struct hydns_resolution* res);
	/* A resolution is over; ttl: of its message, relative. */
	void (*resolved)(struct hydns_context* h, struct module_qstate* qstate, time_t ttl);
	void (*changed)(struct hydns_context* h, const uint8_t* name, size_t len);
	/* was, is: the wall-clock second at which the RRset ended before, and ends now */
	void (*ttl_update)(struct hydns_context* h, const uint8_t* name, size_t len, uint16_t rrtype,
		enum hydns_section section, time_t was, time_t is);
	void (*zone_answer)(struct hydns_context* h, const struct query_info* qinfo, const struct reply_info* rep,
		struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns, time_t now);
	void (*zone_changing)(struct hydns_context* h, const uint8_t* name, size_t len);
	void (*zone_changed)(struct hydns_context* h, const uint8_t* name, size_t len);
	void (*not_offered)(struct hydns_context* h, enum hydns_not_offered_why why);
	/* The answer to a query of the preloading thread is none to keep. */
	void (*unfit)(struct hydns_context* h);
	/* Packets wait in the worker's rings. */
	void (*queue_ready)(struct hydns_context* h);
	int (*queue_reply)(struct hydns_context* h, struct comm_reply* repinfo, struct sldns_buffer* pkt);
	int (*queue_query)(struct hydns_context* h, struct pending* pend, struct sldns_buffer* pkt);
	void (*queue_port_end)(struct hydns_context* h, int port);
	int (*logs_message)(struct hydns_context* h, int reply, struct sockaddr_storage* client, struct sockaddr_storage* service,
		struct sldns_buffer* msg, const struct timeval* at);
	void (*charge)(struct hydns_context* h, const struct sockaddr_storage* addr, socklen_t addrlen, time_t now,
		int* second, int* before, int* after);
	int (*spent)(struct hydns_context* h, const struct sockaddr_storage* addr, socklen_t addrlen, time_t now, int own);
};

/* One per worker, for that worker alone. */
struct hydns_context {
	const struct hydns_hooks* hooks;
	struct hydns_daemon* daemon;
	struct hydns_thread* thread;
	struct hydns_queue* queue; /* its packet rings; NULL: none */
	int module;               /* number of the module in the stack */
	int unlogged;             /* hydns-allow-unlogged: the kernel may answer queries that Unbound would log */
	/* the request under way */
	struct hydns_stamp stamp; /* taken when it began */
	int plain;                /* every plain client gets the same answer, and it need not be logged */
	int plain_no_rd;          /* the same, but the query is without RD: only an auth-zone answers it so */
	int kept;                 /* it is the preloading thread's, which is not yet told that the answer is none to keep */
	int sampled;              /* it is one of those that are counted, ... */
	uint64_t key;             /* ... under this key */
	int refresh;              /* the cache entry that answered it is due for refresh */
};

/* --- hooks ----------------------------------------------------------------------------------------- */
/* The request under way needs this resolution, and others may wait for it already. Counts it if it comes from a plain client
 * (hydns_request_begin) and is sampled. Returns how often its question was asked if that is often enough to show the module
 * the fresh answer, else 0. */
uint32_t hydns_request_sighted(struct module_qstate* qstate, const struct edns_data* edns, int others);

/* The request under way was not answered from a cached message as it stands, so its answer is not offered. why is for
 * hydnsctl explain. h may be NULL. */
void hydns_request_not_offered(struct hydns_context* h, enum hydns_not_offered_why why);

/* Unbound has logged the request under way as one for a local zone. It must log all others for the name as well. */
void hydns_request_logged(struct module_env* env);

/* A resolution has ended, a plain client has its reply, and the message is in the cache. rep: that of the resolution,
 * with relative TTLs, or NULL: it was an error. */
void hydns_fresh_answer(struct module_qstate* qstate, struct mesh_reply* r, struct reply_info* rep);

/* A resolution has ended, all its clients have their replies, and its result is in the cache. rep: with relative TTLs,
 * NULL if it found nothing. */
void hydns_resolution_done(struct module_qstate* qstate, struct reply_info* rep);

/*
 * What the caches hold changes between a begin and hydns_change_end(), which notifies the module. No other pair begins
 * between the two.
 *
 * hydns_change_begin: all data of a name change (the name is copied).
 * hydns_rrset_begin, hydns_message_begin: the data are about to be stored. hydns_entry_replaced compares them with what
 *   they replace; the module is notified of nothing when both say the same and end in the same second.
 * hydns_rrset_end_begin: a cached RRset, which the caller has locked, ends at another second of the wall clock.
 */
void hydns_change_begin(const uint8_t* name, size_t len);
void hydns_rrset_begin(const struct packed_rrset_data* data);
void hydns_message_begin(const struct reply_info* rep);
void hydns_rrset_end_begin(const struct ub_packed_rrset_key* key, time_t was, time_t is);
void hydns_change_end(void);

/* A table is about to replace the data of an entry, which it has locked, by new data. A look-up before the storing
 * would not do: another thread may store in between. */
void hydns_entry_replaced(const struct lruhash_entry* old, const void* data);

/*
 * An auth-zone answers the request under way: rep was encoded into pkt for a client with room for udp_size octets. RA is still to
 * be set, where the query has RD.
 */
void hydns_zone_answer(struct module_env* env, const struct query_info* qinfo, const struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns);

/* The auth-zone with this name gets other content, or begins or ceases to answer, between the two: it may then answer what the caches
 * have answered so far, and the other way round. Another pair may lie within the two. */
void hydns_zone_changing(struct module_env* env, const uint8_t* name, size_t len);
void hydns_zone_changed(struct module_env* env, const uint8_t* name, size_t len);

/* The callback of the comm_point that watches a worker's packet rings; arg: its context. */
int hydns_queue_ready(struct comm_point* c, void* arg, int error, struct comm_reply* repinfo);

/* Sends a reply to a query that came by a packet ring. 0: the socket has to. */
int hydns_queue_reply(struct comm_reply* repinfo, struct sldns_buffer* pkt);

/*
 * Sends a query to upstream by a packet ring, from a random port; its id is set. pend then has a port_comm out of the unused
 * ones, whose comm_point is never opened and whose index is HYDNS_PORT_INDEX. 0: a socket has to send it.
 */
#define HYDNS_PORT_INDEX (-1)
int hydns_queue_query(struct pending* pend, struct sldns_buffer* pkt);
/* Nobody waits at such a port any more; puts it back to the unused ones. */
void hydns_queue_port_end(struct outside_network* outnet, struct port_comm* pc);

/* Logs a query of a client by UDP, or the reply to it, as dt_msg_send_client_query() and dt_msg_send_client_response() do; at: wall
 * clock. 0: they have to. */
int hydns_logs_message(int reply, struct sockaddr_storage* client, struct sockaddr_storage* service, struct sldns_buffer* msg,
	const struct timeval* at);

/*
 * A query has come from this client, and Unbound has counted it for ip-ratelimit: in *second, of its table, the queries of this second;
 * in *before and *after the number that it compares with the limit, without this query and with it. Makes them what they would be if all
 * the client's queries came to Unbound.
 */
void hydns_rate_counted(const struct sockaddr_storage* addr, socklen_t addrlen, time_t now, int* second, int* before, int* after);
/* The same of a number that is only read. */
int hydns_rate_now(const struct sockaddr_storage* addr, socklen_t addrlen, time_t now, int own);

/* As calloc(1, size); NULL: no memory. It uses glibc's cache of the thread, which calloc() does only since glibc 2.41. */
void* hydns_zeroed(size_t size);

/* Makes h the context of the calling thread (NULL: it has none). */
void hydns_thread_context(struct hydns_context* h);

/* --- module ---------------------------------------------------------------------------------------- */
struct module_func_block* hydns_get_funcblock(void);
int hydns_init(struct module_env* env, int id);
void hydns_deinit(struct module_env* env, int id);
void hydns_operate(struct module_qstate* qstate, enum module_ev event, int id,
	struct outbound_entry* outbound);
void hydns_inform_super(struct module_qstate* qstate, int id, struct module_qstate* super);
void hydns_clear(struct module_qstate* qstate, int id);
size_t hydns_get_mem(struct module_env* env, int id);

#endif
