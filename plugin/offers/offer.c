/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Making an offer of an answer. No locks, no allocation, no system call but a doorbell. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "hydns/dns.h"
#include "hydns/names.h"
#include "plugin/internal.h"
#include "plugin/log.h"

/* A rule is dead at its expiry; the places of its names in names.c are held a little longer. */
#define NAMES_MARGIN_MS 2000U

/* What an offer is made of, gathered before a frame is reserved. */
struct draft {
	const struct hydns_question *q;
	const uint8_t *wire;             /* the reply, wire_len octets */
	size_t wire_len;
	struct hydns_wire_answer *a;     /* the reply, dissected */
	uint64_t key;
	uint64_t base_ns;
	uint32_t ttl;
	bool secure;
	struct hydns_stamp stamp;
	struct hydns_left_out *left_out; /* the thread's */
	bool template;                   /* it may be one */
	struct hydns_preload_template at; /* where that stands, and the present SOA of its zone that it shows */
};

/* Why an answer is not offered, and the number that goes with it. */
struct fault {
	enum hydns_not_offered_why why;
	uint32_t value;
};

static const uint8_t *text_of(const struct draft *d, unsigned i)
{
	return d->a->text + d->a->name[i].text;
}

static bool edns_size_ok(struct hydns_plugin *p, const struct hydns_wire_answer *a)
{
	const uint16_t configured = __atomic_load_n(&p->o.edns_size, __ATOMIC_RELAXED);

	if (!a->edns_size || !configured || a->edns_size == configured)
		return true;
	if (!atomic_exchange(&p->edns_size_logged, true))
		hydns_log(p, HYDNS_LOG_WARNING, "replies carry EDNS payload size %u, but %u is configured: "
			  "they are not offered", a->edns_size, configured);
	return false;
}

/* The minimum TTL spares the kernel path answers that are soon gone. A failure that many clients wait for may be one. */
static uint32_t min_ttl(const struct hydns_plugin_options *o, const struct hydns_question *q)
{
	return q->failure ? 0 : o->min_ttl;
}

/* Sets base and TTL of the rule: from the second that the reply's TTLs refer to, as long as answer and cache entry live.
 * Static TTLs say nothing about the latter. False: there is no life left, or less than the minimum TTL. */
static bool life_ok(const struct hydns_plugin_options *o, struct draft *d, time_t sent_at, time_t expires)
{
	uint64_t began = (uint64_t)sent_at * HYDNS_NS_PER_S;
	struct hydns_moment now = hydns_moment();

	d->ttl = d->q->fixed ? HYDNS_TTL_MAX : d->a->ttl;
	if (expires - sent_at < d->ttl)
		d->ttl = expires > sent_at ? (uint32_t)(expires - sent_at) : 0;
	if (sent_at < 0 || expires <= sent_at || began > now.real_ns || now.real_ns - began >= now.mono_ns)
		return false;
	d->base_ns = now.mono_ns - (now.real_ns - began);
	if (d->ttl < min_ttl(o, d->q) || now.mono_ns - d->base_ns >= d->ttl * HYDNS_NS_PER_S)
		return false;
	if (o->max_ttl && d->ttl > o->max_ttl && !d->q->kept)
		d->ttl = o->max_ttl;
	return true;
}

/* Registers an owner name; and its RRset, unless that is the question's own, whose refresh brings an offer anyway. */
static bool name_ok(struct hydns_plugin *p, const struct draft *d, unsigned i, uint16_t rrtype, uint64_t until)
{
	const uint8_t *name = text_of(d, i), *asked = text_of(d, 0);
	size_t len = d->a->name[i].len;
	bool own = rrtype == d->q->qtype && len == d->q->name_len && memcmp(name, asked, len) == 0;

	return hydns_names_offer(p->names, name, len, HYDNS_NAMES_ALL, until, d->stamp.changes) &&
	       (rrtype == HYDNS_NAMES_ALL || own ||
		hydns_names_offer(p->names, name, len, rrtype, until, d->stamp.changes));
}

/* Registers the left-out names. The reply does not show their TTLs, so TTL updates of theirs do not matter. */
static bool left_out_ok(struct hydns_plugin *p, const struct draft *d, uint64_t until)
{
	const struct hydns_left_out *l = d->left_out;

	HYDNS_FOR_LEFT_OUT(l, i, at)
		if (!hydns_names_offer(p->names, l->block + at, l->name_len[i], HYDNS_NAMES_ALL, until, d->stamp.changes))
			return false;
	return true;
}

/* Counts the offer in the subtrees of all its dependencies. */
static void count_in_subtrees(struct hydns_plugin *p, const struct draft *d)
{
	const struct hydns_left_out *l = d->left_out;

	for (unsigned i = 0; i < d->a->names; i++)
		hydns_subtrees_offer(p->subtrees, text_of(d, i), d->a->name[i].len);
	HYDNS_FOR_LEFT_OUT(l, i, at)
		hydns_subtrees_offer(p->subtrees, l->block + at, l->name_len[i]);
}

/* Whether a zone's version is changing one of the dependencies. */
static bool any_is_changing(const struct draft *d)
{
	const struct hydns_left_out *l = d->left_out;

	if (d->at.soa.id && hydns_zone_soa_is_changing(d->at.origin, d->at.origin_len))
		return true;
	for (unsigned i = 0; i < d->a->names; i++)
		if (hydns_name_is_changing(text_of(d, i), d->a->name[i].len))
			return true;
	HYDNS_FOR_LEFT_OUT(l, i, at)
		if (hydns_name_is_changing(l->block + at, l->name_len[i]))
			return true;
	return false;
}

/* Registers all dependencies. False: one of them has just changed. */
static bool names_ok(struct hydns_plugin *p, const struct draft *d)
{
	uint64_t until = d->base_ns / HYDNS_NS_PER_MS + d->ttl * 1000ULL + NAMES_MARGIN_MS;

	for (unsigned i = 0; i < d->a->names; i++) {
		bool own = i >= d->a->answer_names && (p->o.flags & HYDNS_RESOLVER_OWN_PROOFS);

		if (!name_ok(p, d, i, own ? HYDNS_NAMES_ALL : d->a->name[i].rrtype, until))
			return false;
	}
	return left_out_ok(p, d, until);
}

static uint32_t account_octets(const struct draft *d)
{
	return d->q->account ? HYDNS_RULE_ACCOUNT : 0;
}

static uint32_t soa_octets(const struct draft *d)
{
	return d->at.soa.id ? sizeof(d->at.soa) : 0;
}

/* Octets of the extended errors in a frame. */
static uint32_t errors_octets(const struct hydns_wire_answer *a)
{
	return a->errors_len ? sizeof(a->errors_len) + a->errors_len : 0U;
}

/* What the reply shows is not left out. False: what remains does not fit a rule beside the answer. */
static bool strike_shown(const struct draft *d)
{
	struct hydns_left_out *l = d->left_out;

	for (unsigned i = 0; l->len && i < d->a->names; i++)
		hydns_left_out_strike(l, text_of(d, i), d->a->name[i].len);
	return !l->overflow && HYDNS_RULE_SPACE(d->q->name_len, d->a->answer_len,
						ntohs(d->a->ancount) + ntohs(d->a->nscount) + ntohs(d->a->arcount),
						account_octets(d) + errors_octets(d->a) + l->len) <= HYDNS_SLOT_MOST;
}

/* At least 1: the answer was asked for, though other threads may have counted all its sightings. */
static uint32_t sightings(const struct hydns_thread *t, uint64_t key)
{
	uint32_t count = hydns_sketch_estimate(t->hot.sketch, key);

	return count ? count : 1;
}

static uint8_t flags_of(const struct draft *d)
{
	return (d->secure ? HYDNS_RULE_SECURE : 0) | (d->q->fixed ? HYDNS_RULE_STATIC_TTL : 0) |
	       (d->q->bogus ? HYDNS_RULE_BOGUS : 0) | (d->a->errors_len ? HYDNS_RULE_ERRORS : 0) |
	       (d->left_out->len ? HYDNS_RULE_LEFT_OUT : 0) | (d->q->kept ? HYDNS_RULE_KEPT : 0) | (d->q->account ? HYDNS_RULE_COUNTED : 0) |
	       (d->template ? HYDNS_RULE_TEMPLATE : 0);
}

static void fill_blocks(const struct draft *d, uint8_t *at)
{
	const struct hydns_wire_answer *a = d->a;

	memcpy(at, &d->q->account, account_octets(d));
	at += account_octets(d);
	memcpy(at, &d->at.soa, soa_octets(d));
	at += soa_octets(d);
	if (a->errors_len) {
		memcpy(at, &a->errors_len, sizeof(a->errors_len));
		memcpy(at + sizeof(a->errors_len), d->wire + a->errors, a->errors_len);
	}
	memcpy(at + errors_octets(a), d->left_out->block, d->left_out->len);
}

static void fill(const struct hydns_thread *t, const struct draft *d, struct hydns_offer *f, uint32_t len)
{
	const struct hydns_wire_answer *a = d->a;

	*f = (struct hydns_offer){
		.frame = { .len = len, .type = HYDNS_FRAME_OFFER },
		.generation = d->stamp.generation,
		.base_ns = d->base_ns,
		.epoch = d->stamp.epoch,
		.ttl = d->ttl,
		.count = sightings(t, d->key),
		.window_ms = hydns_sketch_window_ms(t->hot.sketch),
		.reply_flags = a->reply_flags,
		.ancount = a->ancount,
		.nscount = a->nscount,
		.arcount = a->arcount,
		.qtype = htons(d->template ? d->at.qtype : d->q->qtype),
		.answer_len = a->answer_len,
		.name_len = (uint8_t)d->q->name_len,
		.variant = d->q->variant,
		.flags = flags_of(d),
		.gap = d->at.soa.id != 0,
	};
	memcpy(f->data, text_of(d, 0), d->q->name_len);
	memcpy(f->data + d->q->name_len, d->wire + a->answer, a->answer_len);
	fill_blocks(d, f->data + d->q->name_len + a->answer_len);
}

static int put_offer(struct hydns_thread *t, const struct draft *d)
{
	uint32_t len = (HYDNS_OFFER_DATA + d->q->name_len + d->a->answer_len + account_octets(d) + soa_octets(d) + errors_octets(d->a) +
			d->left_out->len + 7U) & ~7U;
	struct hydns_ring *ring = t->ring.ring;
	struct hydns_offer *f = hydns_producer_reserve(&t->ring, len, HYDNS_RING_FOR_CHANGES);

	if (!f)
		return -ENOBUFS;
	fill(t, d, f, len);
	__atomic_store_n(&ring->offered, ring->offered + 1, __ATOMIC_RELAXED);
	hydns_thread_commit(t, len);
	return 0;
}

void hydns_plugin_depends_on(struct hydns_thread *t, const uint8_t *name, size_t name_len)
{
	if (name_len && hydns_name_length(name, name_len) == name_len)
		hydns_left_out_add(&t->left_out, name, name_len);
	else
		t->left_out.overflow = true;   /* no withdrawal could name it */
}

/* HYDNS_NOT_OFFERED_NONE: the kernel path can take the answer, and the draft is complete. */
static struct fault fault_of(struct hydns_plugin *p, struct draft *d, time_t sent_at, time_t expires)
{
	struct fault f = { 0 };

	f.why = hydns_wire_dissect(d->wire, d->wire_len, d->q, d->a, &f.value);
	if (f.why)
		return f;
	if (!edns_size_ok(p, d->a))
		return (struct fault){ HYDNS_NOT_OFFERED_EDNS_SIZE, d->a->edns_size };
	if (!life_ok(&p->o, d, sent_at, expires))
		return (struct fault){ d->ttl < min_ttl(&p->o, d->q) ? HYDNS_NOT_OFFERED_SHORT_TTL : HYDNS_NOT_OFFERED_STALE, d->ttl };
	if (!strike_shown(d))
		return (struct fault){ HYDNS_NOT_OFFERED_TOO_LARGE, (uint32_t)d->wire_len };
	return f;
}

/* Checks that the draft is not outdated, and puts it into the ring. As hydns_plugin_offer(). */
static int offer_draft(struct hydns_thread *t, const struct draft *d)
{
	struct hydns_plugin *p = t->plugin;
	int error;

	if (p->subtrees)
		count_in_subtrees(p, d);
	if (any_is_changing(d)) {
		hydns_plugin_not_offered(t, d->key, HYDNS_NOT_OFFERED_ZONE_CHANGING, 0);
		return -ESTALE;
	}
	/* Changes advance the generation too, but names_ok() knows which names they concern. */
	if (d->stamp.generation < atomic_load(&p->withdrawn) ||
	    d->stamp.epoch != hydns_pages_epoch(p->pages) || !names_ok(p, d)) {
		hydns_plugin_not_offered(t, d->key, HYDNS_NOT_OFFERED_CHANGED, 0);
		return -ESTALE;
	}
	error = put_offer(t, d);
	if (error)
		hydns_plugin_not_offered(t, d->key, HYDNS_NOT_OFFERED_RING_FULL, 0);
	return error;
}

/* Rate-limiting counts the denials of types by their names, which a template does not know. A template may stand elsewhere than at the
 * question's name. */
static bool is_template(struct hydns_plugin *p, struct draft *d)
{
	uint8_t *name = d->a->text + d->a->name[0].text;
	struct hydns_preload *l;
	bool is = false;

	if (!hydns_preload_is_of_template(name, d->q->name_len, d->q->qtype) || (hydns_denies_types(d->q->qtype) && d->q->account))
		return false;
	pthread_rwlock_rdlock(&p->preload_lock);
	l = atomic_load(&p->preload);
	if (l)
		is = hydns_preload_is_template(l, d->q, name, d->wire, d->wire_len, &d->at);
	pthread_rwlock_unlock(&p->preload_lock);
	return is;
}

/* What no client asks for; and of a delegation that it has no DS: as rules of their own each version would withdraw all of these. */
static bool must_be_template(const struct draft *d)
{
	return d->q->demanded || (d->q->kept && d->q->qtype == HYDNS_TYPE_DS && hydns_wire_denies(d->wire, d->wire_len));
}

static int offer(struct hydns_thread *t, struct draft *d, time_t sent_at, time_t expires)
{
	struct hydns_plugin *p = t->plugin;
	uint32_t serial = hydns_store_serial(p);
	struct fault f;
	int error = 0;

	/* Read closed after the stamp was taken, and before the offer is written (leave.c). */
	if (!atomic_load(&p->ready) || atomic_load(&p->closed))
		return -ENOTCONN;
	d->key = hydns_question_key(d->q, p->seed);
	f = fault_of(p, d, sent_at, expires);
	d->template = !f.why && (d->q->kept || d->q->demanded) && is_template(p, d);
	if (d->at.soa.id && !hydns_zone_depends_on_present(d->left_out, d->at.origin, d->at.origin_len))
		d->at.soa.id = 0;
	if (!d->template && must_be_template(d))
		return -EINVAL;
	if (f.why)
		hydns_plugin_not_offered(t, d->key, f.why, f.value);
	else
		error = offer_draft(t, d);
	if (error)
		return error;
	/* Also what can't be offered, so that it is not dissected again with the next query. */
	hydns_offered_record(p->offered, d->key, hydns_answer_id(p, d->q->fixed, expires), serial,
			     (uint32_t)hydns_mono_coarse_ms(), d->stamp.generation, f.why ? 0 : sightings(t, d->key));
	if (f.why)
		return -EINVAL;
	atomic_store_explicit(&p->offered_in, serial, memory_order_relaxed);
	return 0;
}

/* What became of an answer to a query of the preloading thread; of other errors it asks again. */
static void tell_preload(struct hydns_plugin *p, const struct draft *d, int error)
{
	struct hydns_preload *l;

	if (error && error != -EINVAL && error != -ESTALE)
		return;
	if (error == -ESTALE) {
		pthread_rwlock_rdlock(&p->preload_lock);
		l = atomic_load(&p->preload);
		if (l)
			hydns_preload_again(l, text_of(d, 0), d->q->name_len, d->q->qtype, d->q->variant);
		pthread_rwlock_unlock(&p->preload_lock);
	}
	atomic_fetch_add(&p->preload_told, 1);
}

int hydns_plugin_offer(struct hydns_thread *t, const struct hydns_question *q, const uint8_t *wire,
			size_t wire_len, time_t sent_at, time_t expires, bool secure,
			struct hydns_stamp stamp)
{
	struct hydns_wire_answer a;            /* large, and not initialized */
	struct draft d = { .q = q, .wire = wire, .wire_len = wire_len, .a = &a, .secure = secure, .stamp = stamp,
			   .left_out = &t->left_out };
	int error = offer(t, &d, sent_at, expires);

	if (q->kept)
		tell_preload(t->plugin, &d, error);
	hydns_left_out_clear(&t->left_out);
	return error;
}
