/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hydns module as Unbound's common code sees it: the module's function block, and the hooks that the
 * patches put where an answer leaves and where the caches change. A worker that offers answers has a
 * context (env->hydns); without one every hook returns at once. The hooks reach the plugin library
 * (hydns_daemon.h) through a table, so that tools that link Unbound's common code do not need it.
 */
#ifndef HYDNS_MODULE_H
#define HYDNS_MODULE_H

#include <stdint.h>
#include <time.h>
#include "util/module.h"
#include "util/storage/lruhash.h"
#include "plugin/plugin.h"

struct hydns_context;
struct hydns_daemon;
struct mesh_reply;
struct packed_rrset_data;
struct reply_info;
struct query_info;
struct sldns_buffer;

/* What a context can do. All are called by the context's own worker. */
struct hydns_hooks {
	uint32_t (*sighted)(struct hydns_context* h);
	/* rep: NULL when nothing was found */
	void (*fresh)(struct hydns_context* h, struct module_qstate* qstate, struct mesh_reply* r,
		struct reply_info* rep);
	void (*renewed)(struct hydns_context* h, struct module_qstate* qstate, time_t ttl);
	int (*watches)(const struct hydns_context* h);
	void (*changed)(struct hydns_context* h, const uint8_t* name, size_t len);
	void (*moved)(struct hydns_context* h, const uint8_t* name, size_t len, uint16_t rrtype,
		enum hydns_section section, time_t was, time_t is);
	void (*zone_changed)(struct hydns_context* h);
	void (*kept)(struct hydns_context* h, enum hydns_not_offered_why why);
};

/* One per worker, for that worker alone. */
struct hydns_context {
	const struct hydns_hooks* hooks;
	struct hydns_daemon* daemon;
	struct hydns_thread* thread;
	int module;               /* number of the module in the stack */
	struct hydns_stamp stamp; /* taken when the request under way began */
	int plain;                /* its answer would be the same for every plain client, and need not be logged */
	int unlogged;             /* hydns-allow-unlogged: what Unbound logs may be answered in the kernel */
	int picked;               /* it is one of those that are counted, ... */
	uint64_t key;             /* ... under this key */
	int renew;                /* the cache entry it was answered from should be renewed */
};

/* --- hooks ----------------------------------------------------------------------------------------- */
/* The request under way must be resolved: counts it, if it comes from a plain client (hydns_request_begin) and is one of
 * those that are counted. Returns how often its question was asked, when that is so often that the fresh answer should
 * be shown, else 0. h may be NULL. */
uint32_t hydns_request_waits(struct hydns_context* h);

/* The request under way was answered otherwise than from a cached message as it stands, so it is not shown; why is for
 * whoever asks. h may be NULL. */
void hydns_request_not_offered(struct hydns_context* h, enum hydns_not_offered_why why);

/* The request under way was logged as one for a local zone; so must be all others for the name. */
void hydns_request_logged(struct module_env* env);

/* A reply to a plain client has been sent after a resolution, whose message is in the cache. rep: that of the
 * resolution, with relative TTLs, or NULL: it was an error. */
void hydns_fresh_answer(struct module_qstate* qstate, struct mesh_reply* r, struct reply_info* rep);

/* A resolution has ended, all its clients have their replies, and what it found is in the cache. rep: with
 * relative TTLs, NULL if it found nothing. */
void hydns_resolution_done(struct module_qstate* qstate, struct reply_info* rep);

/*
 * The caches' data of a name are about to be replaced by others (begin, copies the name), and have been
 * (end). Between the two nothing else of this pair is called. hydns_rrset_begin and hydns_message_begin
 * compare new and old first: hydns_change_end does nothing when they say the same, to the same second. (Messages are not
 * looked up while no rule can rest on them.)
 */
void hydns_change_begin(const uint8_t* name, size_t len);
void hydns_rrset_begin(const struct ub_packed_rrset_key* key, const struct packed_rrset_data* new_data,
	const struct packed_rrset_data* old_data);
void hydns_message_begin(struct module_env* env, hashvalue_type hash, struct query_info* qinfo,
	struct reply_info* rep);
void hydns_change_end(void);

/* An authority zone has new content: what is answered from the caches may now be answered from it. */
void hydns_zone_changed(struct module_env* env);

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
