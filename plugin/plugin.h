/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The resolver's side of hyDNS, shared by the Unbound module and the BIND plugin: counts popularity,
 * offers hot answers to hydnsd over one ring per thread, keeps the resolver page, withdraws rules.
 * Knows nothing of any resolver's internals. Everything goes on working, as if nothing were offloaded,
 * while hydnsd is absent; a link thread (re)connects by itself.
 *
 * Threads: functions that take a struct hydns_thread are for that resolver thread alone and neither
 * lock, allocate nor (but for the doorbell of a sleeping hydnsd) enter the kernel; all others may be
 * called from any thread.
 */
#ifndef PLUGIN_PLUGIN_H
#define PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "hydns/not_offered.h"
#include "hydns/ring.h"
#include "hydns/session.h"

/* The least UDP size that the kernel path takes from a configuration: RFC 1035 section 4.2.1. */
#define HYDNS_PLAIN_UDP_SIZE 512
/* Reasons that a resolver's code may give at most why it offers nothing at all. */
#define HYDNS_OBSTACLES_MAX  20
/* Access lists hold IPv4 addresses as ::ffff:0:0/96 (RFC 4291 section 2.5.5.2). */
#define HYDNS_V4_BITS        96
#define HYDNS_V4_MAPPED      { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff }

struct hydns_plugin;   /* one per resolver process and configuration */
struct hydns_thread;    /* one per resolver thread */

enum hydns_log_level { HYDNS_LOG_ERROR, HYDNS_LOG_WARNING, HYDNS_LOG_INFO, HYDNS_LOG_DEBUG };

struct hydns_plugin_options {
	const char *socket;          /* path of hydnsd's plugin socket, as seen after any chroot */
	const char *identity;        /* "unbound" */
	const char *version;
	uint32_t threads;            /* 1..HYDNS_THREADS_MAX */
	uint32_t capacity;           /* most rules; 0: hydnsd's limit */
	uint32_t admission;          /* offer a question seen at least this often lately */
	uint32_t window_ms;          /* what "lately" means: the sketch's half-life at most */
	uint32_t min_ttl, max_ttl;   /* seconds */
	uint32_t refresh_percent;    /* last part of the TTL used for renewal; 0: never */
	uint32_t flush_timeout_ms;   /* how long a withdrawal waits for hydnsd before it advances the epoch */
	uint16_t flags;              /* HYDNS_RESOLVER_* */
	uint16_t edns_size, max_udp;
	bool zones;                  /* the resolver serves zones and tells their changes: see _zone_changing() */
	void (*log)(enum hydns_log_level level, const char *text);
};

/* Copies the options. NULL on lack of memory or bad options (logged). Nothing is started yet. */
struct hydns_plugin *hydns_plugin_new(const struct hydns_plugin_options *o);

/* Before hydns_plugin_start(): what is offered for whom. fd: a bound UDP socket (duplicated). */
int hydns_plugin_add_service(struct hydns_plugin *p, int fd);
int hydns_plugin_add_acl(struct hydns_plugin *p, const struct hydns_acl_entry *e, size_t n);
/*
 * The n secrets (0..HYDNS_COOKIE_SECRETS) that the resolver makes and verifies DNS cookies with, the active
 * one first; before the start, and whenever they have changed. When it returns, no kernel answer is judged
 * by or given a cookie of the former ones. Waits as a withdrawal does; without hydnsd, queries with a
 * cookie are the resolver's until hydnsd is told. Not from two threads at once.
 */
void hydns_plugin_cookie_secrets(struct hydns_plugin *p, const uint8_t (*secret)[HYDNS_COOKIE_SECRET_LEN],
				  size_t n);
/* A line for the operator: what the configuration keeps from the kernel, and why. For hydnsctl; before the start. */
int hydns_plugin_add_note(struct hydns_plugin *p, enum hydns_note_kind kind, const char *text);
/*
 * The notes of this kind are these from now on: at any time, by one thread at a time. Waits as a withdrawal does until
 * hydnsd shows them; without it, it is told when it is there.
 */
void hydns_plugin_set_notes(struct hydns_plugin *p, enum hydns_note_kind kind, const char *const *text, size_t n);

/* Starts the link thread (heartbeat, connecting). Call after the last fork. Until then it is as if hydnsd were away. */
int hydns_plugin_start(struct hydns_plugin *p);
/* Withdraws everything with one store, waits a grace period, says goodbye, ends the link thread, frees. */
void hydns_plugin_stop(struct hydns_plugin *p);

/*
 * The same in steps, for a resolver that goes on with another configuration and should not wait meanwhile. Each of them
 * may be left out, and _stop() does what is left.
 */
/* No offer is taken from here on. When it returns, no kernel answer is sent any more; hydnsd can still be asked for
 * counts, and _stop() waits for no second grace period. */
void hydns_plugin_close(struct hydns_plugin *p);
/* No offer is taken from here on, all rules are dead, and no copy of a listening socket is held when it returns. That no
 * kernel answer is sent any more gone(arg) tells (NULL: nobody), on another thread or this one, a grace period later. */
void hydns_plugin_leave(struct hydns_plugin *p, void (*gone)(void *arg), void *arg);
/* After _leave(): returns when no kernel answer is sent any more. */
void hydns_plugin_gone(struct hydns_plugin *p);
/*
 * As _new(), in the place of a former one (NULL: there is none), which has been left and which no thread of the resolver
 * uses any more. It goes on with the former's tables, so that no time is spent on new ones, and its link thread stops the
 * former before it connects. When NULL is returned the former is still the caller's.
 */
struct hydns_plugin *hydns_plugin_take_over(const struct hydns_plugin_options *o, struct hydns_plugin *former);
/* Both have left, and _gone() has returned for them: whoever stops p, as its successor's link thread does, stops other as
 * well. */
void hydns_plugin_take_along(struct hydns_plugin *p, struct hydns_plugin *other);
/* Before _start(): returns when no kernel answer of the former one is sent any more. */
void hydns_plugin_wait_former(struct hydns_plugin *p);

struct hydns_thread *hydns_plugin_thread(struct hydns_plugin *p, uint32_t i);

/* To be read while the cache entry that the answer comes from is locked, before it is encoded. For a
 * fresh resolution: when the resolution began. */
struct hydns_stamp {         /* opaque to resolvers */
	uint64_t generation;
	uint32_t epoch;
	uint64_t changes;    /* that were noted so far, see names.c */
};
struct hydns_stamp hydns_plugin_stamp(const struct hydns_plugin *p);

/* A question, as the resolver was asked it. */
struct hydns_question {
	const uint8_t *name;         /* wire format, any case, name_len octets */
	uint16_t name_len;
	uint16_t qtype;              /* host order */
	uint8_t  variant;            /* HYDNS_VARIANT_* */
	bool     fixed;              /* its answer is authoritative: the TTLs are not counted down */
};

/*
 * To be called with every query that might be counted, when it comes (now: wall-clock seconds, of a clock that need not
 * be fresh). True when it should be: all queries of a thread that has few, else one in so many, which counts for as
 * many. Of the others the thread need not call the functions below; nothing else may be left out.
 */
bool hydns_plugin_sample(struct hydns_thread *t, time_t now);
/* The key of a question that was picked. What counting it will look at is fetched meanwhile: to be called before the
 * resolver looks for the answer, or has it ready. */
uint64_t hydns_plugin_prefetch(struct hydns_thread *t, const struct hydns_question *q);
/* Counts a sighting that was picked, once. Returns how many there were, or 0 while its question is not hot: then its
 * answer need not be looked at. */
uint32_t hydns_plugin_sighted(struct hydns_thread *t, uint64_t key, uint64_t now_ms);
/* Whether the answer to a hot question should be offered now: hydnsd is connected, and the same answer was not offered a
 * moment ago (expires tells answers apart). sightings: as hydns_plugin_sighted() told. */
bool hydns_plugin_due(struct hydns_thread *t, const struct hydns_question *q, uint32_t sightings, time_t expires,
		       uint64_t now_ms);
/* Both, by the question's key and whether it is fixed: for an answer that was there at once. */
bool hydns_plugin_hot(struct hydns_thread *t, uint64_t key, bool fixed, time_t expires, uint64_t now_ms);

/*
 * The answer to a question that was picked is not offered, and why: hydnsd shows it to an operator who asks. key: as
 * _expect() or _key() said. value: the number in the reason's text (not_offered.def). hydns_plugin_offer() notes reasons of
 * its own.
 */
void hydns_plugin_not_offered(struct hydns_thread *t, uint64_t key, enum hydns_not_offered_why why, uint32_t value);
uint64_t hydns_plugin_key(const struct hydns_thread *t, const struct hydns_question *q);

/*
 * The thread's next offer rests on this name too: the owner of an RRset that the resolver's cached answer
 * has, whether its reply shows it or not. What the reply shows is known without this and costs nothing.
 */
void hydns_plugin_depends_on(struct hydns_thread *t, const uint8_t *name, size_t name_len);
/*
 * Offers an answer: wire is the whole reply as it goes to the client (OPT included if there is one);
 * sent_at: the wall-clock second its TTLs refer to; secure: validated; expires: wall-clock second at
 * which the resolver's own entry ends, or for a fixed answer, that until which it may be given. Returns 0 or the reason it was not offered (negative errno:
 * -EINVAL not offloadable, -ENOBUFS ring full, -ENOTCONN, -ESTALE the cache has changed since the stamp).
 */
int hydns_plugin_offer(struct hydns_thread *t, const struct hydns_question *q, const uint8_t *wire,
			size_t wire_len, time_t sent_at, time_t expires, bool secure,
			struct hydns_stamp stamp);

/*
 * After a resolution: whether the answer that it has put into the resolver's cache, which ends at expires,
 * should be offered though nobody asks for it. True when hydnsd was told an answer to this question that
 * has not ended (now: wall clock) and is not the same, and nothing was withdrawn since that one was made
 * nor since the resolution began; then plain clients are still answered from the cache. The offer's own
 * stamp is to be taken before this call, and the cache read after it.
 */
bool hydns_plugin_offered(struct hydns_thread *t, const struct hydns_question *q, time_t expires,
			   time_t now, struct hydns_stamp begun);

/* True when this question was offered before and its entry (begun..expires, wall clock) is in its last
 * part: the resolver should renew it now, though it still answers from its cache. True once per
 * re-arm time. */
bool hydns_plugin_refresh_due(struct hydns_thread *t, const struct hydns_question *q, time_t expires,
			 time_t lifetime, time_t now);

/* False as long as nothing was ever offered: then hydns_plugin_changed(), which finds out by itself, has nothing to do. To spare
 * the resolver what it would do to find out whether something changes. */
bool hydns_plugin_watches(const struct hydns_plugin *p);

/*
 * After a removal from the resolver's cache: when it returns, no kernel answer built from name (any
 * owner name in the answer, or that its offer rested on; below it too for SUBTREE; everything for ALL) is sent any more. Waits at
 * most flush_timeout_ms for hydnsd, then advances the epoch and waits for a grace period itself.
 */
void hydns_plugin_withdraw(struct hydns_plugin *p, enum hydns_scope scope, const uint8_t *name,
			    size_t name_len);
/*
 * Before the data of a zone (origin: wire format, any case) change: when it returns, no kernel answer is sent that
 * was built from a name at or below the origin. Waits as a withdrawal does if there may be one, and not otherwise.
 * The resolver offers nothing from here on until the change has been made and _zone_changed() has returned, which
 * makes answers too old whose stamp was taken before.
 */
void hydns_plugin_zone_changing(struct hydns_plugin *p, const uint8_t *origin, size_t len);
void hydns_plugin_zone_changed(struct hydns_plugin *p);
/* Withdraws everything with one store plus a grace period, without hydnsd. */
void hydns_plugin_withdraw_all(struct hydns_plugin *p);
/* Data of this owner name changed in the cache (not by a flush): withdraw without waiting. */
void hydns_plugin_changed(struct hydns_thread *t, const uint8_t *name, size_t name_len);
/* The RRset of this owner name and type (host order) was stored anew in the cache: the same data, whose end, in
 * wall-clock seconds, moved. Answers whose TTLs are thereby more than a second lower than the cache's, over all
 * moves since they were offered, are withdrawn unless they are offered anew within moments; those that would
 * outlive the data, at once. shown: in which sections answers show this copy of it. */
void hydns_plugin_ttl_update(struct hydns_thread *t, const uint8_t *name, size_t name_len, uint16_t rrtype,
			   enum hydns_section section, time_t was, time_t is);

/* Kernel answers since hydns_plugin_new(), whatever became of hydnsd meanwhile: no count ever falls. Waits at most
 * timeout_ms; false: they are as they were last known. */
bool hydns_plugin_counts(struct hydns_plugin *p, struct hydns_counts *out, uint32_t timeout_ms);

#endif
