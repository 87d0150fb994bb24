/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The resolver's side of hyDNS, shared by the Unbound module and the BIND plugin: counts popularity,
 * offers hot answers to hydnsd over one ring per thread, keeps the resolver page, withdraws rules.
 * Knows nothing of any resolver's internals. Everything goes on working, as if nothing were offloaded,
 * while hydnsd is away; a link thread connects again by itself.
 *
 * Threads: functions that take a struct hydns_thread are for that resolver thread alone and neither
 * lock, allocate nor (but for the doorbell of a sleeping hydnsd) enter the kernel. Any thread may call
 * the others.
 */
#ifndef PLUGIN_PLUGIN_H
#define PLUGIN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "hydns/not_offered.h"
#include "hydns/ring.h"
#include "hydns/soa.h"
#include "plugin/dnstap/dnstap.h"
#include "hydns/session.h"

/* The least UDP size that the kernel path takes from a configuration: RFC 1035 section 4.2.1. */
#define HYDNS_PLAIN_UDP_SIZE 512
/* Reasons that a resolver's code may give at most why it offers nothing at all. */
#define HYDNS_OBSTACLES_MAX  20
/* Seconds for which the kernel gives an answer from a zone before it asks the resolver again, though nothing has changed. */
#define HYDNS_FIXED_LIFE     300
/* Access lists hold IPv4 addresses as ::ffff:0:0/96 (RFC 4291 section 2.5.5.2). */
#define HYDNS_V4_BITS        96
#define HYDNS_V4_MAPPED      { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff }

struct hydns_plugin;   /* one per resolver process and configuration */
struct hydns_thread;    /* one per resolver thread */
struct hydns_lane_thread;   /* its packet rings: plugin/queue/lanes.h */

enum hydns_log_level { HYDNS_LOG_ERROR, HYDNS_LOG_WARNING, HYDNS_LOG_INFO, HYDNS_LOG_DEBUG };

/* What becomes of the resolver's rules if it crashes (doc/coherence.md). */
struct hydns_stale {
	uint32_t ttl;                /* of each record, once the rule's own TTL is over; seconds */
	uint32_t longest;            /* seconds from then that the rule lives; 0: rules do not outlive the resolver */
	const char *error;           /* text of the extended error that such an answer has, shorter than HYDNS_STALE_TEXT_LEN; NULL: it
				      * has none. Not copied */
};
/* RFC 8767 section 5 suggests 1 to 3 days: for resolvers that know no limit. */
#define HYDNS_STALE_LONGEST  86400

struct hydns_plugin_options {
	const char *socket;          /* path of hydnsd's plugin socket, as seen after any chroot */
	const char *identity;        /* "unbound" */
	const char *version;
	uint32_t threads;            /* 1..HYDNS_THREADS_MAX */
	uint32_t capacity;           /* most rules; 0: hydnsd's limit */
	uint32_t admission;          /* offer a question seen at least this often lately */
	uint32_t window_ms;          /* what "lately" means: the sketch's half-life at most */
	uint32_t min_ttl, max_ttl;   /* seconds */
	uint32_t refresh_percent;    /* last part of the TTL, in which answers are refreshed; 0: never */
	uint32_t flush_timeout_ms;   /* how long a withdrawal waits for hydnsd before it advances the epoch */
	uint16_t flags;              /* HYDNS_RESOLVER_* */
	uint16_t edns_size, max_udp;
	uint32_t queue;              /* HYDNS_QUEUE_*: what packet rings are wanted for; 0: none */
	uint32_t queue_frames;       /* that wait for a thread on one lane: see hydns_lanes_new(); 0: the default, 1024 */
	uint16_t first_port, ports;  /* that the resolver's own sockets leave free for queries to upstream by packet rings */
	/* Called on any thread before packet rings are freed, when the program redirects to them no longer: reads what lies in
	 * them, and when it returns, no thread uses them; first: thread 0's. NULL: then no thread does anyway. */
	void (*rings_end)(const struct hydns_lane_thread *first);
	uint32_t park_ms;            /* how long a query may wait for a resolution in the kernel path; 0: none does */
	uint32_t pending_max, pending_per_question; /* how many may wait at once, of all and of one question; 0: none */
	/* The resolver logs its clients' messages, and so are kernel answers; NULL: it does not, or they need not be. Copied. */
	const struct hydns_dnstap_options *dnstap;
	bool log_all;                /* what can't be logged now is left to the resolver; else it is lost */
	uint32_t log_one_in;         /* without log_all: one in so many answers is logged; 0 and 1: all */
	uint32_t log_octets;         /* of the log ring, a power of 2; 0: the default */
	struct hydns_stale stale;
	bool zones;                  /* the resolver serves zones and reports their changes: see _zone_changing() */
	void (*log)(enum hydns_log_level level, const char *text);
	/* Each thread of the plugin's own calls these at its beginning and at its end: log() may need it. NULL: nothing. */
	void (*thread_begins)(void), (*thread_ends)(void);
};

/* Copies the options. NULL on lack of memory or bad options (logged). Nothing is started yet. */
struct hydns_plugin *hydns_plugin_new(const struct hydns_plugin_options *o);

/* Before an answer from a zone is offered: its name, for dnstap messages of zones. And when the resolver may have one zone less. */
void hydns_plugin_answers_from(struct hydns_plugin *p, const uint8_t *zone, size_t len);
void hydns_plugin_zone_gone(struct hydns_plugin *p);

/* A client's message of what the resolver answers by itself: hydns_tap_own(). */
bool hydns_plugin_logs_own(struct hydns_plugin *p, const struct hydns_tap_message *m);

/* Before hydns_plugin_start(): what is offered for whom. fd: a bound UDP socket (duplicated). -E2BIG: there is no room for more; of
 * sockets the resolver notes that (hydns_services_note) and goes on, of prefixes there are none then. */
int hydns_plugin_add_service(struct hydns_plugin *p, int fd);
extern const char hydns_services_note[];
int hydns_plugin_add_acl(struct hydns_plugin *p, const struct hydns_acl_entry *e, size_t n);
/*
 * After the start: the resolver's threads have gone on, and answer by another configuration. Of the options flags, edns_size, max_udp,
 * park_ms and stale take effect, and answers are logged as before; the entries replace those of _add_acl(). When it returns, no kernel
 * answer is sent that was offered before, and none is offered until hydnsd has both. To be called when no thread works by the former configuration any more, while no zone
 * may be forwarded (hydns_plugin_forward()); waits as a withdrawal does. Not from two threads at once. 0 or negative errno: too many
 * entries, or no memory; then no client is answered.
 */
int hydns_plugin_reconfigure(struct hydns_plugin *p, const struct hydns_plugin_options *o, const struct hydns_acl_entry *e,
			      size_t n);
/*
 * The n secrets (0..HYDNS_COOKIE_SECRETS) that the resolver makes and verifies DNS cookies with, the active
 * one first; before the start, and whenever they have changed. When it returns, no kernel answer depends on or
 * carries a cookie made with the former ones. Waits as a withdrawal does; without hydnsd, queries with a
 * cookie pass until hydnsd has the secrets. Not from two threads at once.
 */
void hydns_plugin_cookie_secrets(struct hydns_plugin *p, const uint8_t (*secret)[HYDNS_COOKIE_SECRET_LEN],
				  size_t n);
/*
 * Of a resolver with HYDNS_RESOLVER_LIMITS among its flags: what it limits its clients to; before the start, and whenever that has
 * changed. Without a limit (queries: 0) none is counted. Not from two threads at once.
 */
void hydns_plugin_limit(struct hydns_plugin *p, const struct hydns_limits *l);
enum hydns_charge {
	HYDNS_CHARGE_NONE,           /* the program does not count this client: the resolver does so alone */
	HYDNS_CHARGE_COUNTED,        /* the query is counted with those that the program counts: struct hydns_spent */
	HYDNS_CHARGE_ALLOWED,        /* the program has counted it, and let it through */
	HYDNS_CHARGE_CROSSED,        /* the program has counted it: with it the client crosses the limit */
};
struct hydns_rate_own {              /* of one balance */
	uint64_t state;
	uint32_t logged;             /* as in struct hydns_rate */
};
struct hydns_spent {                 /* queries that count against the limit */
	uint32_t before, after;      /* without this query, and with it */
	uint32_t in_second;          /* with it, those of its second */
};
/* Counts a query that has reached the resolver by any way. addr: of the client, 16 octets, IPv4-mapped; second: of the wall clock.
 * *spent is written with HYDNS_CHARGE_COUNTED. Any thread. */
enum hydns_charge hydns_plugin_charge(struct hydns_plugin *p, const uint8_t addr[16], uint32_t second, struct hydns_spent *spent);
/* What counts against a client's limit in this second. False: the program does not count it. */
bool hydns_plugin_spent(struct hydns_plugin *p, const uint8_t addr[16], uint32_t second, uint32_t *spent);

/*
 * Of a resolver with HYDNS_RESOLVER_RATES among its flags: how many responses it allows; before the start. Then the functions below debit
 * and show the balances that the program debits, too (rates.h). Any thread; second: of the wall clock. False: there is no balance for
 * this key, and the resolver counts alone.
 */
void hydns_plugin_rates(struct hydns_plugin *p, const struct hydns_rates *r);
/* *own: what the resolver knows itself of the client, HYDNS_RATE_STATE() or 0; becomes what is known with this response. */
bool hydns_plugin_rate_debit(struct hydns_plugin *p, const struct hydns_rate_key *k, uint32_t second, struct hydns_rate_own *own,
			     enum hydns_rate_verdict *verdict);
/* *own: becomes what is known. */
bool hydns_plugin_rate_look(struct hydns_plugin *p, const struct hydns_rate_key *k, struct hydns_rate_own *own);
/* The client was found above its limit, which was logged in this second; 0: it is not any more. any: the log has such clients. */
void hydns_plugin_rate_logged(struct hydns_plugin *p, const struct hydns_rate_key *k, uint32_t second, bool any);

/* Before the start: a note, which hydnsctl shows. */
int hydns_plugin_add_note(struct hydns_plugin *p, enum hydns_note_kind kind, const char *text);
/*
 * Replaces the notes of this kind: at any time, by one thread at a time. Waits as a withdrawal does until hydnsd shows
 * them; without hydnsd, they are sent when it is back.
 */
void hydns_plugin_set_notes(struct hydns_plugin *p, enum hydns_note_kind kind, const char *const *text, size_t n);

/*
 * The zones that the program may forward, with those within them that it must not, and their upstream servers. Only zones for whose
 * names the resolver would send each question to one of these servers and relay its answer unchanged. At the start and whenever they
 * may have changed, before what has changed is withdrawn: when it returns, a query is forwarded by this list or not at all, and no answer
 * that comes from now on to one that was forwarded by another list is given. False: too many, or no memory; then none is. Not from
 * two threads at once.
 */
struct hydns_plugin_forwards {
	uint32_t max_ttl, max_negative_ttl;  /* answers with a TTL above these are the resolver's, who would lower it */
	uint16_t flags;                      /* HYDNS_FORWARDS_ADDS, HYDNS_FORWARDS_SOA_TTL */
	uint32_t servers, zones;
	struct hydns_forward_server server[HYDNS_FORWARD_UPSTREAMS];
	struct hydns_forward_name *zone;
};
bool hydns_plugin_forward(struct hydns_plugin *p, const struct hydns_plugin_forwards *f);

/* Starts the link thread (heartbeat, connecting). Call it after the last fork. Until then hydnsd is away. */
int hydns_plugin_start(struct hydns_plugin *p);
/* Withdraws everything with one store, waits for a grace period, says BYE, ends the link thread, frees. */
void hydns_plugin_stop(struct hydns_plugin *p);

/*
 * The same in steps, for a resolver that goes on with another configuration and should not wait meanwhile. Each of them
 * may be left out, and _stop() does what is left.
 */
/* No offer is taken from here on. When it returns, no kernel answer is sent any more; hydnsd can still be asked for
 * counts, and _stop() waits for no second grace period. */
void hydns_plugin_close(struct hydns_plugin *p);
/* No offer is taken from here on. When it returns, all rules are dead, and no copy of a listening socket is held. A grace
 * period later, when no kernel answer is sent any more, gone(arg) is called (if not NULL), on another thread or this one. */
void hydns_plugin_leave(struct hydns_plugin *p, void (*gone)(void *arg), void *arg);
/* After _leave(): returns when no kernel answer is sent any more. */
void hydns_plugin_gone(struct hydns_plugin *p);
/*
 * As _new(), in the place of a former object (NULL: there is none), after _leave() of that one, and when no thread of the
 * resolver uses it any more. The new object goes on with the former's tables, because new ones cost time, and its link
 * thread stops the former before it connects. If NULL is returned the caller keeps the former.
 */
struct hydns_plugin *hydns_plugin_take_over(const struct hydns_plugin_options *o, struct hydns_plugin *former);
/* After _leave() and _gone() of both: stopping p then stops other as well. */
void hydns_plugin_take_along(struct hydns_plugin *p, struct hydns_plugin *other);
/* Before _start(): returns when no kernel answer of the former one is sent any more. */
void hydns_plugin_wait_former(struct hydns_plugin *p);

/*
 * For a resolver that reloads, and may find that it goes on with the same configuration and the same cache, so that all answers
 * stay what they are. Not from two threads at once.
 */
/* When it returns, no rule counts, and none does before _resume(); nothing is forwarded. A grace period later, when no kernel answer is
 * sent any more, gone(arg) is called (if not NULL), on another thread or this one. The resolver's threads may go on, and report changes.
 * False: nothing was done, for there is no rule. _leave() may follow in place of _resume(). */
bool hydns_plugin_suspend(struct hydns_plugin *p, void (*gone)(void *arg), void *arg);
/* All is as before: the rules count again, as soon as hydnsd has acted upon what has changed meanwhile. */
void hydns_plugin_resume(struct hydns_plugin *p);

struct hydns_thread *hydns_plugin_thread(struct hydns_plugin *p, uint32_t i);

/* The thread's packet rings; NULL: none are wanted, or there was no memory. */
struct hydns_lane_thread *hydns_plugin_lanes(struct hydns_thread *t);
/* Before the start: ports that queries to upstream by packet rings never leave from. */
void hydns_plugin_avoid_ports(struct hydns_plugin *p, bool (*avoid)(void *arg, uint16_t port), void *arg);
/* HYDNS_QUEUE_*: what packet rings are in use for now. */
uint32_t hydns_plugin_rings(const struct hydns_plugin *p);
/* The same for its queries to upstream (plugin/queue/upstream.h). */
struct hydns_upstream_thread;
struct hydns_upstream_thread *hydns_plugin_upstream(struct hydns_thread *t);

/* Read it while the cache entry of the answer is locked, before the answer is encoded. For a resolution: when the
 * resolution begins. */
struct hydns_stamp {         /* opaque to resolvers */
	uint64_t generation;
	uint32_t epoch;
	uint64_t changes;    /* recorded so far, see names.c */
};
struct hydns_stamp hydns_plugin_stamp(const struct hydns_plugin *p);

/* A question, as the client asked it. */
struct hydns_question {
	const uint8_t *name;         /* wire format, any case, name_len octets */
	uint16_t name_len;
	uint16_t qtype;              /* host order */
	uint8_t  variant;            /* HYDNS_VARIANT_* */
	bool     fixed;              /* its answer is authoritative: the TTLs are not counted down */
	bool     failure;            /* its answer is a failure that the resolver remembers (RFC 9520): SERVFAIL, no records */
	bool     kept;               /* preloaded: its answer, which is fixed, stays until it is withdrawn */
	bool     demanded;           /* its answer, which is fixed too, is offered if it is a template (_preload_is_demanded()) */
	bool     bogus;              /* and validation has failed: for the resolver's counters */
	uint64_t account;            /* what its responses are counted by: HYDNS_RATE_ACCOUNT(); 0: they are not */
};

/*
 * Call it with every query that might be counted, when the query comes (now: wall-clock seconds, of a clock that may be
 * late). True: the query is in the sample, which has all queries of a thread with few, else one of several, which stands
 * for all of these. For the others, and only for them, the thread need not call the functions below.
 */
bool hydns_plugin_sample(struct hydns_thread *t, time_t now);
/* The key of a question in the sample. Prefetches what counting it will read: call it before the resolver looks for the
 * answer. */
uint64_t hydns_plugin_prefetch(struct hydns_thread *t, const struct hydns_question *q);
/*
 * The same while nobody knows whether the cache has the answer: prefetches only what hydns_plugin_first_sight() reads. Most
 * questions that need a resolution never come again, and to fetch their counters would cost more than all else
 * that the plugin does for them.
 */
uint64_t hydns_plugin_prefetch_known(struct hydns_thread *t, const struct hydns_question *q);
/*
 * For a query in the sample that needs a resolution: whether this is the first one for its question, as far as is known. Such
 * a sighting is only remembered, not counted, and its answer not offered. When the question comes again it is counted, wherever
 * that answer comes from. While the store is full every sighting counts, since a question must then promise many hits.
 */
bool hydns_plugin_first_sight(struct hydns_thread *t, uint64_t key);
/* Counts a sighting in the sample, once. Returns the estimated sightings, or 0: the question is not hot, and its answer
 * need not be looked at. */
uint32_t hydns_plugin_sighted(struct hydns_thread *t, uint64_t key, uint64_t now_ms);
/* Whether the answer to a hot question should be offered now: hydnsd is connected, and the same answer was not offered a
 * moment ago (expires tells answers apart). sightings: what hydns_plugin_sighted() has returned. */
bool hydns_plugin_due(struct hydns_thread *t, const struct hydns_question *q, uint32_t sightings, time_t expires,
		       uint64_t now_ms);
/* Both, by the question's key and whether it is fixed: for an answer that was in the cache. */
bool hydns_plugin_hot(struct hydns_thread *t, uint64_t key, bool fixed, time_t expires, uint64_t now_ms);

/* How many queries may be parked where the operator says `auto`: several times as many as the resolver itself lets wait (limit),
 * since a parked one costs it nothing. */
uint32_t hydns_plugin_pending_auto(uint64_t limit);

/*
 * Parking. A resolution for the question with this key (hydns_plugin_key()) is under way, and a second client has begun to wait
 * for it: from now on queries for it may be parked. True: until hydns_plugin_over(), which must follow. False: none is parked,
 * because there is no hydnsd, no room, or it is not wanted.
 */
bool hydns_plugin_under_way(struct hydns_thread *t, uint64_t key);
/* Counts the queries that have been parked for it so far as sightings; returns the estimated sightings, as hydns_plugin_sighted();
 * 0: none was parked. If some were, its answer should be offered, whatever else is known of the question. Once for each resolution. */
uint32_t hydns_plugin_parked_sighted(struct hydns_thread *t, uint64_t key, uint64_t now_ms);
/* The resolution has ended, and its answer, if it has one, was offered. Does nothing for other keys. */
void hydns_plugin_over(struct hydns_thread *t, uint64_t key);
/* The same of all questions: nobody will say so. What is parked comes to the resolver. Any thread. */
void hydns_plugin_nobody_waits(struct hydns_plugin *p);

/*
 * Records why the answer to a question in the sample is not offered, for hydnsd to show. key: from _prefetch() or _key().
 * value: the number in the reason's text (not_offered.def). hydns_plugin_offer() records reasons by itself.
 */
void hydns_plugin_not_offered(struct hydns_thread *t, uint64_t key, enum hydns_not_offered_why why, uint32_t value);
uint64_t hydns_plugin_key(const struct hydns_thread *t, const struct hydns_question *q);

/*
 * The thread's next offer depends on this name too: the owner name of an RRset in the resolver's cached answer, whether
 * the reply shows it or not. Names in the reply are found without this call, which then costs nothing in the rule.
 */
void hydns_plugin_depends_on(struct hydns_thread *t, const uint8_t *name, size_t name_len);
/*
 * Offers an answer: wire is the whole reply as it goes to the client (OPT included if there is one, and it must
 * be there if clients with EDNS get extended errors);
 * sent_at: the wall-clock second its TTLs refer to; secure: validated; expires: wall-clock second at
 * which the resolver's own entry ends, or until which a fixed answer may be given. Returns 0 or why it was
 * not offered (negative errno: -EINVAL not offloadable, -ENOBUFS ring full, -ENOTCONN, -ESTALE the cache
 * has changed since the stamp).
 */
int hydns_plugin_offer(struct hydns_thread *t, const struct hydns_question *q, const uint8_t *wire,
			size_t wire_len, time_t sent_at, time_t expires, bool secure,
			struct hydns_stamp stamp);

/*
 * After a resolution: whether its answer, which is in the resolver's cache until expires, should be offered
 * without a query for it. True when another answer to this question was offered that has not ended (now: wall
 * clock), and nothing was withdrawn since that one was made nor since the resolution began (begun); then plain
 * clients are still answered from the cache. Take the offer's own stamp before this call, and read the cache
 * after it.
 */
bool hydns_plugin_offered(struct hydns_thread *t, uint64_t key, time_t expires, time_t now, struct hydns_stamp begun);

/* True when an answer to this question was offered before, and its entry, which lives for lifetime seconds until expires
 * (wall clock), is in its last part: the resolver should refresh it now. True once per re-arm time. */
bool hydns_plugin_refresh_due(struct hydns_thread *t, const struct hydns_question *q, time_t expires,
			 time_t lifetime, time_t now);

/*
 * After a removal from the resolver's cache: when it returns, no kernel answer that depends on name is sent any
 * more (for SUBTREE: on a name at or below it; for ALL: no answer at all). Waits at most flush_timeout_ms for
 * hydnsd, then advances the epoch and waits for a grace period itself.
 */
void hydns_plugin_withdraw(struct hydns_plugin *p, enum hydns_scope scope, const uint8_t *name,
			    size_t name_len);
/*
 * Before the data of a zone (origin: wire format, any case) change: when it returns, no kernel answer is sent that
 * depends on a name at or below the origin. Waits as a withdrawal does if there may be such an answer. From here on
 * the resolver offers nothing until it has made the change and _zone_changed() has returned; answers whose stamp was
 * taken before that are too old.
 */
void hydns_plugin_zone_changing(struct hydns_plugin *p, const uint8_t *origin, size_t len);
void hydns_plugin_zone_changed(struct hydns_plugin *p);

/*
 * A part of the resolver that comes before its zones now answers at and below this name (a local zone of Unbound's); back: it no longer
 * does; name NULL: any such part may have changed. Withdraws all answers there. The kernel denies nothing there until the preloading
 * thread has gathered the names of the zone around it again.
 */
void hydns_plugin_names_change_hands(struct hydns_plugin *p, const uint8_t *name, size_t len, bool back);

/*
 * The same for a version that changes single names, which leaves the rules of the others:
 *
 *   begin
 *   _changes()      for each name that it changes (wire format, any case, at or below the origin; one may come more than once). top_len:
 *                   of a name that comes or goes, octets of the topmost name above it that does so too, because it has no data of its
 *                   own (len: there is none)
 *   _mark()         from here on no plugin of this process offers an answer that depends on one of these names, or with whole on any
 *                   of the zone
 *   hydns_plugin_zone_version() in place of _zone_changing(), once for each plugin; then the version is served
 *   hydns_plugin_zone_changed(), once for each plugin
 *   hydns_plugin_zone_served(), likewise, where a plugin may have begun to preload in between
 *   _unmark(), end  of a version with the same names
 *
 * Where the zone gets other data in the place of these (exchanged), versions of the former data may be served meanwhile that are told as
 * well: so _mark() comes first, then hydns_plugin_zone_exchanged(), once for each plugin, and then these are compared and the names told in
 * which they differ; or, if it was false for all plugins, whole is set.
 */
enum hydns_zone_what {
	HYDNS_ZONE_SOA = 1 << 0,            /* the SOA, or its signatures */
	HYDNS_ZONE_NS = 1 << 1,             /* NS, likewise */
	HYDNS_ZONE_NSEC = 1 << 2,           /* NSEC, likewise */
	HYDNS_ZONE_DATA = 1 << 3,           /* any other data of the name */
	HYDNS_ZONE_COMES_OR_GOES = 1 << 4,  /* the name has data in one of the versions alone */
	HYDNS_ZONE_CUT = 1 << 5,            /* NS or DNAME is there in one of them alone */
	HYDNS_ZONE_SECURITY = 1 << 6,       /* DNSKEY or NSEC3PARAM, or NSEC in one of them alone */
	HYDNS_ZONE_PROOF = 1 << 7,          /* the name is an NSEC3 record's owner, and no other */
};
/* A zone's SOA, of a version: what the kernel's denials show in place of the one that they were offered with (hydns/soa.h). */
struct hydns_zone_soa {
	const void *of;                     /* the zone's data of which this is a version, as the resolver tells them apart; NULL: not known */
	uint64_t shape;                     /* of what else answers show of it: hydns_zone_soa_shows() */
	uint8_t numbers[HYDNS_SOA_NUMBERS];
	uint16_t signature_len;             /* 0: not signed, or not by one signature that has room */
	uint8_t fixed[HYDNS_RRSIG_FIXED];
	uint8_t signature[HYDNS_SIGNATURE_MOST];
};
/* Adds this to the shape: each of the names (with their letters, the owner's too), the TTLs, the minimum, the signature's length. */
void hydns_zone_soa_shows(struct hydns_zone_soa *soa, const void *octets, size_t len);
struct hydns_zone_names;
struct hydns_zone_version {
	uint8_t origin[HYDNS_NAME_MAX];
	size_t origin_len;
	bool whole;                         /* all of the zone's rules go; may be set between begin and _mark() */
	bool exchanged;                     /* likewise; nothing of the zone is offered meanwhile, and whole may be set until it is told */
	uint64_t number;                    /* of this process's, in the order in which they began */
	struct hydns_zone_soa soa;          /* the resolver's to fill, after begin */
	struct hydns_zone_names *names;
};
void hydns_zone_version_mark(const struct hydns_zone_version *v);
void hydns_zone_version_unmark(const struct hydns_zone_version *v);
void hydns_zone_marks_forget(void);         /* no version is under way */
void hydns_zone_version_begin(struct hydns_zone_version *v, const uint8_t *origin, size_t len);
void hydns_zone_version_changes(struct hydns_zone_version *v, const uint8_t *name, size_t len, unsigned what, size_t top_len);
/* Whether anything of the zone was offered: else nothing is lost if it changes as a whole. */
bool hydns_plugin_zone_exchanged(struct hydns_plugin *p, const struct hydns_zone_version *v);
void hydns_plugin_zone_version(struct hydns_plugin *p, const struct hydns_zone_version *v);
void hydns_plugin_zone_served(struct hydns_plugin *p, const struct hydns_zone_version *v);
void hydns_zone_version_end(struct hydns_zone_version *v);
/* After _unmark(): what the version brings is asked for, where the zone is preloaded. */
void hydns_plugin_zone_settled(struct hydns_plugin *p, const struct hydns_zone_version *v);
/*
 * For a version to find answers by, beside the names that they show. The thread's next offer depends on these RRsets of a zone's
 * origin, the sum of HYDNS_ZONE_SOA, _NS, _NSEC and _DATA: those that it shows, and _DATA where it has looked at the
 * origin for additional addresses. For other names at which it has looked for these, found or not, call
 * hydns_plugin_depends_on().
 */
void hydns_plugin_depends_on_origin(struct hydns_thread *t, const uint8_t *origin, size_t len, unsigned what);
/*
 * Preloading, of a resolver with zones: a thread asks the resolver, at service, for all that these zones have answers for, so that
 * these are offered and stay until they are withdrawn; and again for what was withdrawn, or what a version brings. The resolver
 * offers each answer to such a query with kept set, if its question exists in the zone, and else calls _preload_unfit(): whenever it
 * knows that the answer is none to keep. Once, after the start. 0 or a negative errno.
 */
#define HYDNS_PRELOAD_ZONES 65536          /* of a resolver, at most */
struct hydns_preload_list;
/* What a zone says of the names right below one of its own that are not in it; and of types that this one has no data of. */
enum hydns_below {
	HYDNS_BELOW_ABSENT,                  /* the name itself does not exist */
	HYDNS_BELOW_NOTHING,                 /* they do not exist */
	HYDNS_BELOW_CUT,                     /* they are delegated with it */
	HYDNS_BELOW_ELSE,                    /* anything else: there is a wildcard or DNAME, or it lies below a delegation */
	HYDNS_BELOW_FOREIGN,                 /* another zone of this resolver begins there */
};
enum hydns_proofs {
	HYDNS_PROOFS_NONE,                   /* the zone is not signed */
	HYDNS_PROOFS_NSEC,
	HYDNS_PROOFS_NSEC3,
};
struct hydns_name_data {
	enum hydns_below below;
	enum hydns_proofs proofs;            /* of the zone: the same for all of its names */
	bool no_ds;                          /* with HYDNS_BELOW_CUT: it has no DS */
	bool unproved;                       /* with HYDNS_BELOW_NOTHING, in a zone with NSEC3: proofs about names below this one begin above it */
	uint16_t types;                      /* the same: hydns_names_types() of all that the name has */
	uint8_t hashing;                     /* HYDNS_NAMES_HASHING() of the zone; the resolver leaves it 0 */
};
struct hydns_preload_names;
struct hydns_preload_options {
	struct sockaddr_storage service;     /* where the resolver listens */
	uint16_t edns_size;
	const struct hydns_forward_name *zone; /* each once; they are copied */
	size_t zones;
	/* Adds each question to be asked that the zone has data for: of the name, or with below of all at and below it. On the
	 * thread, which calls o.thread_begins first. 0, or -ENOENT: there is no such zone here; names in wire format. */
	int (*list)(void *arg, const uint8_t *origin, size_t origin_len, const uint8_t *name, size_t name_len, bool below,
		    struct hydns_preload_list *to);
	/* Calls hydns_preload_add_name() for each name that the zone has data for, from the origin on, names below others after these; for
	 * names that exist by others alone and are unproved; and for the origins of other zones below it. The return as of list(); -ENOENT
	 * also where nothing is to be said of them. */
	int (*names)(void *arg, const uint8_t *origin, size_t origin_len, struct hydns_preload_names *to);
	/* What the zone has at this name, to *data. The return as of list(). */
	int (*look)(void *arg, const uint8_t *origin, size_t origin_len, const uint8_t *name, size_t name_len, struct hydns_name_data *data);
	/* The zone's SOA, to *soa. The return as of list(). NULL: the resolver does not tell the SOA of versions. */
	int (*soa)(void *arg, const uint8_t *origin, size_t origin_len, struct hydns_zone_soa *soa);
	void *arg;
};
/* Makes this socket's address o->service, if there is none yet, or if it is a loopback one: access lists know these more often. */
void hydns_preload_consider_service(struct hydns_preload_options *o, int fd);
/* -EADDRNOTAVAIL: o->service is none. -E2BIG: more than HYDNS_PRELOAD_ZONES. */
int hydns_plugin_preload(struct hydns_plugin *p, const struct hydns_preload_options *o);
/* Ends it; the functions above are not called any more. At the latest before _leave(). */
void hydns_plugin_end_preload(struct hydns_plugin *p);
/* False: out of memory, or the thread is to end: list() then returns. qtype: host order. */
bool hydns_preload_add(struct hydns_preload_list *l, const uint8_t *name, size_t len, uint16_t qtype);
/* As hydns_preload_add(), for the proof that a delegation has no DS (hydns_preload_no_ds()). */
bool hydns_preload_add_no_ds(struct hydns_preload_list *l, const uint8_t *name, size_t len);
/* As hydns_preload_add(), for the question whose answer is that to all names below this one that do not exist, or are delegated. */
bool hydns_preload_add_below(struct hydns_preload_list *l, const uint8_t *name, size_t len);
/* Whether the question is for a template (names.h): then the answer is kept although it is a denial. */
bool hydns_preload_is_of_template(const uint8_t *name, size_t len, uint16_t qtype);
/* Whether this one, whose answer is a denial, is asked because a query was denied that it could have answered: then its answer does not
 * stay, but competes with others by how often it is asked for. origin_len: octets of its zone's name. */
bool hydns_preload_is_demanded(const struct hydns_question *q, size_t origin_len);
/* A query of a client's, with DO, was denied from a zone. If the zone is preloaded and signed, the thread asks for the answer from which
 * the kernel can give that in future. Any thread. */
void hydns_plugin_demand(struct hydns_plugin *p, const struct hydns_question *q);
/* False: out of memory, or the thread is to end: names() then returns. name: any case. */
bool hydns_preload_add_name(struct hydns_preload_names *to, const uint8_t *name, size_t len, struct hydns_name_data data);
/* Of a zone signed with NSEC3, before its names: how it hashes these. Then also each hash of its chain: the first label, with its length,
 * of an owner name of NSEC3 records. Others, of former chains, do no harm. False: as _add_name(). */
void hydns_preload_hashes(struct hydns_preload_names *to, unsigned algorithm, unsigned iterations, const uint8_t *salt, size_t salt_len);
bool hydns_preload_add_hash(struct hydns_preload_names *to, const uint8_t *label);
/* Whether a query from this address is the thread's. Any thread. */
bool hydns_plugin_is_preload(const struct hydns_plugin *p, const struct sockaddr *from);
void hydns_plugin_preload_unfit(struct hydns_plugin *p);

/* Withdraws everything with one store plus a grace period, without hydnsd. */
void hydns_plugin_withdraw_all(struct hydns_plugin *p);
/* Data of this owner name have changed in the cache (not by a flush): withdraws its rules, without waiting. */
void hydns_plugin_changed(struct hydns_thread *t, const uint8_t *name, size_t name_len);
/* The RRset of this owner name and type (host order) was stored in the cache again, with the same data and another end
 * (was, is: wall-clock seconds). Answers whose TTLs are thereby more than a second below the cache's, over all moves since
 * they were offered, are withdrawn unless they are soon offered again; those that would outlive the data, at once.
 * section: where answers show this copy of the RRset. */
void hydns_plugin_ttl_update(struct hydns_thread *t, const uint8_t *name, size_t name_len, uint16_t rrtype,
			   enum hydns_section section, time_t was, time_t is);

/*
 * A resolution has ended, or was given up, which asked the servers of this zone last (wire format, any case): after took_ms, with a
 * failure or not. hydnsd guards zones below which many fail, or wait. Any thread; takes a lock if it failed or was slow, never else.
 */
void hydns_plugin_resolution(struct hydns_plugin *p, const uint8_t *zone, size_t len, bool failed, uint64_t took_ms);
/* Whether hydnsd wants to know of such a one: otherwise its zone need not be found. */
bool hydns_plugin_wants_resolution(struct hydns_plugin *p, bool failed, uint64_t took_ms);

/* Kernel answers since hydns_plugin_new(). No count falls when hydnsd is restarted. Waits at most timeout_ms; false: *out is
 * what was last known. */
bool hydns_plugin_counts(struct hydns_plugin *p, struct hydns_counts *out, uint32_t timeout_ms);

#endif
