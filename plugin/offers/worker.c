/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What resolver threads call with every query: no locks, no allocation, no system call but a doorbell. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include "plugin/clock.h"
#include "plugin/internal.h"
#include "plugin/log.h"

/* A rule is dead at its expiry; the places of its names in names.c are held a little longer. */
#define NAMES_MARGIN_MS 2000U
#define TTL_ANY         0x7fffffffU   /* RFC 2181 section 8 */
/* What offers leave of a ring: an offer comes again, a change or renewal that finds no room does not. */
#define FOR_CHANGES     (HYDNS_RING_BYTES / 4)

/* What an offer is made of, gathered before a frame is reserved. */
struct draft {
	const struct hydns_question *q;
	struct hydns_wire_answer a;
	uint64_t key;
	uint64_t base_ns;
	uint32_t ttl;
	bool secure;
	struct hydns_stamp stamp;
	struct hydns_left_out *left_out; /* the thread's */
};

static uint32_t store_serial(struct hydns_plugin *p)
{
	return atomic_load_explicit(&p->store_serial, memory_order_relaxed);
}

static void commit(struct hydns_thread *t, uint32_t len)
{
	/* Fails only when the counter is full, and then hydnsd is awake. */
	if (hydns_producer_commit(&t->ring, len) && eventfd_write(t->plugin->doorbell, 1))
		return;
}

/* Tells the answers to a question apart: by their ends, or where they have none, by what was withdrawn between. */
static uint32_t answer_id(const struct hydns_plugin *p, bool fixed, time_t expires)
{
	return fixed ? (uint32_t)atomic_load(&p->withdrawn) : (uint32_t)expires;
}

/* As long as hydnsd was told nothing since its store was empty, the table of offers need not be looked at. */
static bool offered_anything(const struct hydns_plugin *p)
{
	return atomic_load_explicit(&p->offered_in, memory_order_relaxed) ==
	       atomic_load_explicit(&p->store_serial, memory_order_relaxed);
}

bool hydns_plugin_sample(struct hydns_thread *t, time_t now)
{
	struct hydns_ring *ring = t->ring.ring;

	if (hydns_sample_skips(&t->sample, (uint32_t)now))
		return false;
	__atomic_store_n(&ring->queries,
			 ring->queries + hydns_sample_take(&t->sample, (uint32_t)now, hydns_mono_coarse_ms()),
			 __ATOMIC_RELAXED);
	return true;
}

uint64_t hydns_plugin_prefetch(struct hydns_thread *t, const struct hydns_question *q)
{
	uint64_t key = hydns_question_key(q, t->plugin->seed);

	hydns_sketch_prefetch(t->hot.sketch, key);
	if (offered_anything(t->plugin))
		hydns_offered_prefetch(t->hot.offered, key);
	return key;
}

uint32_t hydns_plugin_sighted(struct hydns_thread *t, uint64_t key, uint64_t now_ms)
{
	struct hydns_plugin *p = t->plugin;

	return hydns_hot_sighted(&t->hot, key, store_serial(p), p->o.admission,
				 __atomic_load_n(&t->ring.ring->threshold, __ATOMIC_RELAXED), t->sample.weight, now_ms);
}

static bool is_due(struct hydns_plugin *p, uint64_t key, uint32_t sightings, bool fixed, time_t expires,
		   uint64_t now_ms)
{
	return sightings && atomic_load_explicit(&p->ready, memory_order_relaxed) &&
	       !hydns_offered_lately(p->offered, key, answer_id(p, fixed, expires), store_serial(p), (uint32_t)now_ms,
				     sightings);
}

bool hydns_plugin_due(struct hydns_thread *t, const struct hydns_question *q, uint32_t sightings, time_t expires,
		       uint64_t now_ms)
{
	return is_due(t->plugin, hydns_question_key(q, t->plugin->seed), sightings, q->fixed, expires, now_ms);
}

bool hydns_plugin_hot(struct hydns_thread *t, uint64_t key, bool fixed, time_t expires, uint64_t now_ms)
{
	return is_due(t->plugin, key, hydns_plugin_sighted(t, key, now_ms), fixed, expires, now_ms);
}

/* What an offer fails for, and the number that goes with it. */
struct fault {
	enum hydns_not_offered_why why;
	uint32_t value;
};

uint64_t hydns_plugin_key(const struct hydns_thread *t, const struct hydns_question *q)
{
	return hydns_question_key(q, t->plugin->seed);
}

void hydns_plugin_not_offered(struct hydns_thread *t, uint64_t key, enum hydns_not_offered_why why, uint32_t value)
{
	hydns_not_offered_record(t->ring.ring, key, why, value, hydns_mono_coarse_ms());
}

static bool edns_size_ok(struct hydns_plugin *p, const struct hydns_wire_answer *a)
{
	if (!a->edns_size || !p->o.edns_size || a->edns_size == p->o.edns_size)
		return true;
	if (!atomic_exchange(&p->edns_size_logged, true))
		hydns_log(p, HYDNS_LOG_WARNING, "replies carry EDNS payload size %u, but %u is configured: "
			  "they are not offered", a->edns_size, p->o.edns_size);
	return false;
}

/* Life of the rule: from the second that its TTLs refer to, as long as answer and cache entry live. TTLs that are
 * not counted down say nothing of it. */
static bool life_ok(const struct hydns_plugin_options *o, struct draft *d, time_t sent_at, time_t expires)
{
	uint64_t began = (uint64_t)sent_at * HYDNS_NS_PER_S;
	struct hydns_moment now = hydns_moment();

	d->ttl = d->q->fixed ? TTL_ANY : d->a.ttl;
	if (expires - sent_at < d->ttl)
		d->ttl = expires > sent_at ? (uint32_t)(expires - sent_at) : 0;
	if (sent_at < 0 || expires <= sent_at || began > now.real_ns || now.real_ns - began >= now.mono_ns)
		return false;
	d->base_ns = now.mono_ns - (now.real_ns - began);
	if (d->ttl < o->min_ttl || now.mono_ns - d->base_ns >= d->ttl * HYDNS_NS_PER_S)
		return false;
	if (o->max_ttl && d->ttl > o->max_ttl)
		d->ttl = o->max_ttl;
	return true;
}

/* Notes an RRset's owner; and the RRset itself unless it is the question's own, whose renewal brings the
 * answer's own renewal. */
static bool name_ok(struct hydns_plugin *p, const struct draft *d, const uint8_t *asked, const uint8_t *name,
		    size_t len, uint16_t rrtype, uint64_t until)
{
	bool own = rrtype == d->q->qtype && len == d->q->name_len && memcmp(name, asked, len) == 0;

	return hydns_names_offer(p->names, name, len, HYDNS_NAMES_ALL, until, d->stamp.changes) &&
	       (rrtype == HYDNS_NAMES_ALL || own ||
		hydns_names_offer(p->names, name, len, rrtype, until, d->stamp.changes));
}

/* Notes the owners of RRsets that the reply does not show: their TTLs do not matter, so their renewals don't. */
static bool left_out_ok(struct hydns_plugin *p, const struct draft *d, uint64_t until)
{
	const struct hydns_left_out *l = d->left_out;
	size_t n;

	for (size_t at = 1; at < l->len; at += n) {
		n = hydns_name_length(l->block + at, l->len - at);
		if (!hydns_names_offer(p->names, l->block + at, n, HYDNS_NAMES_ALL, until, d->stamp.changes))
			return false;
	}
	return true;
}

/* Counts the offer for the subtrees that it is of. */
static void note_subtrees(struct hydns_plugin *p, const struct draft *d, const uint8_t *wire, size_t len)
{
	const struct hydns_left_out *l = d->left_out;
	uint8_t name[HYDNS_NAME_MAX];
	size_t n;

	hydns_name_lower(name, d->q->name, d->q->name_len);
	hydns_subtrees_offer(p->subtrees, name, d->q->name_len);
	for (unsigned i = 0; i < d->a.names; i++)
		if (hydns_wire_name(wire, len, d->a.name[i], name, &n))
			hydns_subtrees_offer(p->subtrees, name, n);
	for (size_t at = 1; at < l->len; at += n) {
		n = hydns_name_length(l->block + at, l->len - at);
		hydns_subtrees_offer(p->subtrees, l->block + at, n);
	}
}

/* Notes everything that the answer is built from; false when some of it has just changed. */
static bool names_ok(struct hydns_plugin *p, const struct draft *d, const uint8_t *wire, size_t len)
{
	uint64_t until = d->base_ns / HYDNS_NS_PER_MS + d->ttl * 1000ULL + NAMES_MARGIN_MS;
	uint8_t asked[HYDNS_NAME_MAX], name[HYDNS_NAME_MAX];
	size_t n;

	hydns_name_lower(asked, d->q->name, d->q->name_len);
	if (!hydns_names_offer(p->names, asked, d->q->name_len, HYDNS_NAMES_ALL, until, d->stamp.changes))
		return false;
	for (unsigned i = 0; i < d->a.names; i++) {
		bool own = i >= d->a.answer_names && (p->o.flags & HYDNS_RESOLVER_OWN_PROOFS);

		if (!hydns_wire_name(wire, len, d->a.name[i], name, &n) ||
		    !name_ok(p, d, asked, name, n, own ? HYDNS_NAMES_ALL : d->a.rrtype[i], until))
			return false;
	}
	return left_out_ok(p, d, until);
}

/* What the reply shows is no longer left out. False: what is left does not fit a rule beside the answer. */
static bool strike_shown(struct draft *d, const uint8_t *wire, size_t len)
{
	struct hydns_left_out *l = d->left_out;
	uint8_t name[HYDNS_NAME_MAX];
	size_t n;

	hydns_name_lower(name, d->q->name, d->q->name_len);
	hydns_left_out_strike(l, name, d->q->name_len);
	for (unsigned i = 0; l->len && i < d->a.names; i++)
		if (hydns_wire_name(wire, len, d->a.name[i], name, &n))
			hydns_left_out_strike(l, name, n);
	return !l->overflow && HYDNS_RULE_SPACE(d->q->name_len, d->a.answer_len,
						ntohs(d->a.ancount) + ntohs(d->a.nscount) + ntohs(d->a.arcount),
						l->len) <= HYDNS_SLOT_MOST;
}

/* Another thread may have seen all of them: the answer that is offered was asked for at least once. */
static uint32_t sightings(const struct hydns_thread *t, uint64_t key)
{
	uint32_t count = hydns_sketch_estimate(t->hot.sketch, key);

	return count ? count : 1;
}

static void fill(const struct hydns_thread *t, const struct draft *d, const uint8_t *wire,
		 struct hydns_offer *f, uint32_t len)
{
	*f = (struct hydns_offer){
		.frame = { .len = len, .type = HYDNS_FRAME_OFFER },
		.generation = d->stamp.generation,
		.base_ns = d->base_ns,
		.epoch = d->stamp.epoch,
		.ttl = d->ttl,
		.count = sightings(t, d->key),
		.window_ms = hydns_sketch_window_ms(t->hot.sketch),
		.reply_flags = d->a.reply_flags,
		.ancount = d->a.ancount,
		.nscount = d->a.nscount,
		.arcount = d->a.arcount,
		.qtype = htons(d->q->qtype),
		.answer_len = d->a.answer_len,
		.name_len = (uint8_t)d->q->name_len,
		.variant = d->q->variant,
		.flags = (d->secure ? HYDNS_RULE_SECURE : 0) | (d->q->fixed ? HYDNS_RULE_STATIC_TTL : 0) |
			 (d->left_out->len ? HYDNS_RULE_LEFT_OUT : 0),
	};
	hydns_name_lower(f->data, d->q->name, d->q->name_len);
	memcpy(f->data + d->q->name_len, wire + d->a.answer, d->a.answer_len);
	memcpy(f->data + d->q->name_len + d->a.answer_len, d->left_out->block, d->left_out->len);
}

static int put_offer(struct hydns_thread *t, const struct draft *d, const uint8_t *wire)
{
	uint32_t len = (HYDNS_OFFER_DATA + d->q->name_len + d->a.answer_len + d->left_out->len + 7U) & ~7U;
	struct hydns_ring *ring = t->ring.ring;
	struct hydns_offer *f = hydns_producer_reserve(&t->ring, len, FOR_CHANGES);

	if (!f)
		return -ENOBUFS;
	fill(t, d, wire, f, len);
	__atomic_store_n(&ring->offered, ring->offered + 1, __ATOMIC_RELAXED);
	commit(t, len);
	return 0;
}

void hydns_plugin_depends_on(struct hydns_thread *t, const uint8_t *name, size_t name_len)
{
	if (name_len && hydns_name_length(name, name_len) == name_len)
		hydns_left_out_add(&t->left_out, name, name_len);
	else
		t->left_out.overflow = true;   /* what nobody could match can't be withdrawn */
}

/* Whether the kernel path can take the answer at all: HYDNS_NOT_OFFERED_NONE. */
static struct fault fault_of(struct hydns_plugin *p, struct draft *d, const uint8_t *wire, size_t len,
			     time_t sent_at, time_t expires)
{
	struct fault f = { 0 };

	f.why = hydns_wire_dissect(wire, len, d->q, &d->a, &f.value);
	if (f.why)
		return f;
	if (!edns_size_ok(p, &d->a))
		return (struct fault){ HYDNS_NOT_OFFERED_EDNS_SIZE, d->a.edns_size };
	if (!life_ok(&p->o, d, sent_at, expires))
		return (struct fault){ d->ttl < p->o.min_ttl ? HYDNS_NOT_OFFERED_SHORT_TTL : HYDNS_NOT_OFFERED_STALE, d->ttl };
	if (!strike_shown(d, wire, len))
		return (struct fault){ HYDNS_NOT_OFFERED_TOO_LARGE, (uint32_t)len };
	return f;
}

static int offer(struct hydns_thread *t, struct draft *d, const uint8_t *wire, size_t wire_len, time_t sent_at,
		 time_t expires)
{
	struct hydns_plugin *p = t->plugin;
	uint32_t serial = store_serial(p);
	struct fault f;
	int error;

	/* closed: to be read after the stamp was taken, and before the offer is written (leave.c) */
	if (!atomic_load(&p->ready) || atomic_load(&p->closed))
		return -ENOTCONN;
	d->key = hydns_question_key(d->q, p->seed);
	f = fault_of(p, d, wire, wire_len, sent_at, expires);
	if (f.why) {
		error = -EINVAL;   /* noted below: no use in encoding it again with the next query */
		hydns_plugin_not_offered(t, d->key, f.why, f.value);
	} else {
		if (p->subtrees)
			note_subtrees(p, d, wire, wire_len);
		/* Changes advance the generation too, but names_ok() knows which names they concern. */
		if (d->stamp.generation < atomic_load(&p->withdrawn) ||
		    d->stamp.epoch != hydns_pages_epoch(p->pages) || !names_ok(p, d, wire, wire_len)) {
			hydns_plugin_not_offered(t, d->key, HYDNS_NOT_OFFERED_CHANGED, 0);
			return -ESTALE;
		}
		error = put_offer(t, d, wire);
		if (error) {
			hydns_plugin_not_offered(t, d->key, HYDNS_NOT_OFFERED_RING_FULL, 0);
			return error;
		}
	}
	hydns_offered_record(p->offered, d->key, answer_id(p, d->q->fixed, expires), serial,
			   (uint32_t)hydns_mono_coarse_ms(), d->stamp.generation,
			   error ? 0 : sightings(t, d->key));
	if (!error)
		atomic_store_explicit(&p->offered_in, serial, memory_order_relaxed);
	return error;
}

int hydns_plugin_offer(struct hydns_thread *t, const struct hydns_question *q, const uint8_t *wire,
			size_t wire_len, time_t sent_at, time_t expires, bool secure,
			struct hydns_stamp stamp)
{
	struct draft d = { .q = q, .secure = secure, .stamp = stamp, .left_out = &t->left_out };
	int error = offer(t, &d, wire, wire_len, sent_at, expires);

	hydns_left_out_clear(&t->left_out);
	return error;
}

bool hydns_plugin_offered(struct hydns_thread *t, const struct hydns_question *q, time_t expires,
			   time_t now, struct hydns_stamp begun)
{
	struct hydns_plugin *p = t->plugin;
	uint64_t key, withdrawn;

	if (!atomic_load_explicit(&p->ready, memory_order_relaxed) || !offered_anything(p))
		return false;
	key = hydns_question_key(q, p->seed);
	/* After the caller's stamp: a withdrawal that is not seen here makes that one too old. */
	withdrawn = atomic_load(&p->withdrawn);
	return begun.generation >= withdrawn && begun.epoch == hydns_pages_epoch(p->pages) &&
	       hydns_offered_stands(p->offered, key, store_serial(p), (uint32_t)now, withdrawn) &&
	       !hydns_offered_lately(p->offered, key, (uint32_t)expires, store_serial(p),
				     (uint32_t)hydns_mono_coarse_ms(), 0);
}

bool hydns_plugin_refresh_due(struct hydns_thread *t, const struct hydns_question *q, time_t expires,
			 time_t lifetime, time_t now)
{
	struct hydns_plugin *p = t->plugin;

	return hydns_hot_near_end((uint64_t)expires, (uint64_t)lifetime, (uint64_t)now, p->o.refresh_percent) &&
	       hydns_hot_refresh_due(&t->hot, hydns_question_key(q, p->seed), store_serial(p), hydns_mono_coarse_ms());
}

bool hydns_plugin_watches(const struct hydns_plugin *p)
{
	return hydns_names_changes(p->names) != 0;
}

static bool put_changed(struct hydns_thread *t, const struct hydns_changed *what, const uint8_t *name)
{
	uint32_t size = (offsetof(struct hydns_changed, data) + what->name_len + 7U) & ~7U;
	struct hydns_changed *f = hydns_producer_reserve(&t->ring, size, 0);

	if (!f)
		return false;
	memset(f, 0, size);
	*f = *what;
	f->frame = (struct hydns_frame){ .len = size, .type = HYDNS_FRAME_CHANGED };
	memcpy(f->data, name, what->name_len);
	if (!what->ttl_of)
		atomic_store(&t->changed_head, t->ring.head + size);
	commit(t, size);
	return true;
}

/* Without hydnsd, and until it has caught up with what its rings hold, the rules of the name wait. */
static void rest_while_away(struct hydns_plugin *p, const uint8_t *name, size_t len)
{
	if (!atomic_load(&p->ready) || hydns_pages_suspended(p->pages))
		hydns_plugin_mark(p, name, len);
}

void hydns_plugin_changed(struct hydns_thread *t, const uint8_t *name, size_t name_len)
{
	struct hydns_plugin *p = t->plugin;
	struct hydns_changed what = { .name_len = (uint8_t)name_len };
	uint8_t lower[HYDNS_NAME_MAX];

	if (name_len == 0 || hydns_name_length(name, name_len) != name_len) {
		hydns_pages_advance_generation(p->pages);
		hydns_plugin_kill_rules(p);
		return;
	}
	hydns_name_lower(lower, name, name_len);
	if (!hydns_names_change(p->names, lower, name_len, HYDNS_NAMES_ALL, hydns_mono_coarse_ms()))
		return;
	what.generation = hydns_pages_advance_generation(p->pages);
	if (hydns_plugin_dead(p))
		return;
	/* Without hydnsd the frame waits in the ring for the next one, and the name's rules with it. The link thread, when
	 * it loses hydnsd, first clears ready, then looks for a CHANGED frame that was not acted upon: either it sees
	 * ours or we see that ready is gone. */
	if (!put_changed(t, &what, lower))
		hydns_plugin_kill_rules(p);
	else
		rest_while_away(p, lower, name_len);
}

/* The monotonic time of a second of the wall clock, 0 when it is before the host's start. */
static uint64_t mono_of(time_t second)
{
	struct hydns_moment now = hydns_moment();
	int64_t at = (int64_t)(now.mono_ns - now.real_ns) + (int64_t)second * (int64_t)HYDNS_NS_PER_S;

	return at > 0 ? (uint64_t)at : 0;
}

/* Rules that hold the RRset end no later than it did before: with a full ring they only count down lower TTLs until then.
 * Without hydnsd, when that would be for seconds, they wait, and half of the ring is left to changes of data. */
static void tell_renewed(struct hydns_thread *t, const uint8_t *lower, size_t len, uint16_t rrtype,
			 enum hydns_section section, time_t is)
{
	struct hydns_plugin *p = t->plugin;
	struct hydns_changed what = {
		.name_len = (uint8_t)len, .ttl_of = htons(rrtype), .section = (uint8_t)section, .end_ns = mono_of(is),
	};
	uint64_t now = hydns_mono_coarse_ms();

	/* both, for both are noted by offers under way */
	what.shared = hydns_names_change(p->names, lower, len, rrtype, now);
	if (!hydns_names_change(p->names, lower, len, HYDNS_NAMES_ALL, now))
		return;
	what.generation = hydns_pages_advance_generation(p->pages);
	if (atomic_load(&p->ready) || (!hydns_plugin_dead(p) && hydns_producer_roomy(&t->ring)))
		put_changed(t, &what, lower);
	rest_while_away(p, lower, len);
}

void hydns_plugin_ttl_update(struct hydns_thread *t, const uint8_t *name, size_t name_len, uint16_t rrtype,
			   enum hydns_section section, time_t was, time_t is)
{
	uint8_t lower[HYDNS_NAME_MAX];

	if (name_len == 0 || hydns_name_length(name, name_len) != name_len)
		return;
	hydns_name_lower(lower, name, name_len);
	switch (hydns_rrset_ends_move(t->plugin->ends, lower, name_len, rrtype, section, (uint32_t)was, (uint32_t)is)) {
	case HYDNS_END_LITTLE:
		return;
	case HYDNS_END_LATER:
		tell_renewed(t, lower, name_len, rrtype, section, is);
		return;
	case HYDNS_END_EARLIER:
		hydns_plugin_changed(t, lower, name_len);
		return;
	}
}
