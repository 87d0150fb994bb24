/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A version of a zone: which rules it makes wrong, by the names that it changes. What of them depends on a name that the reply
 * does not show:
 *
 *   a wildcard                  every name below its parent
 *   a delegation or DNAME       that comes or goes: every name below it
 *   a name that comes or goes   and with it names above it that have no data of their own (RFC 8020, RFC 4592): every name at
 *                               and below the topmost of these
 *   data of the origin          every reply that has them. Most versions change the SOA and no more, and most positive replies
 *                               have the origin's NS, so an offer depends on a name that stands for the SOA, NS, NSEC or other data
 *
 * Templates (hydns/names.h) that show the present SOA of a preloaded zone depend on another name in place of the SOA's: a version changes
 * what they show by itself, and withdraws them only where the SOA gets another shape.
 */
#include <stdlib.h>
#include <string.h>
#include "hydns/hash.h"
#include "plugin/internal.h"

/* Of a change that concerns more names, all of the zone is withdrawn. */
#define ENTRIES_MOST (64U << 10)         /* octets */
#define INDEX        (1U << 13)          /* places; more than there are entries of names that differ in a label */

/* Each name once. An entry is as in struct hydns_withdraw_names. */
struct hydns_zone_names {
	uint32_t len;
	uint32_t index[INDEX];           /* open addressing: an entry's end; 0: empty */
	uint8_t entry[ENTRIES_MOST];
	uint32_t retyped_len;
	uint8_t retyped[ENTRIES_MOST];   /* names of which types may come or go, one after the other in wire format */
};

/* The first labels of the names that stand for an origin's RRsets. Should the zone have such a name, rules only go more often than
 * they must. */
static const struct stand_in {
	unsigned what;
	uint8_t label[5];
} stand_ins[] = {
	{ HYDNS_ZONE_SOA, "\4+soa" }, { HYDNS_ZONE_NS, "\4+ns-" }, { HYDNS_ZONE_NSEC, "\4+nsc" }, { HYDNS_ZONE_DATA, "\4+any" },
};
static const struct stand_in present = { .label = "\4+blk" }; /* for the shape of the present SOA */
#define STAND_INS (sizeof(stand_ins) / sizeof(stand_ins[0]))
#define LABEL_LEN sizeof(stand_ins[0].label)

/* out: HYDNS_NAME_MAX octets. Returns its length; 0: it would be too long for a name. */
static size_t stand_in_name(const struct stand_in *s, const uint8_t *origin, size_t len, uint8_t *out)
{
	if (LABEL_LEN + len > HYDNS_NAME_MAX)
		return 0;
	memcpy(out, s->label, LABEL_LEN);
	hydns_name_lower(out + LABEL_LEN, origin, len);
	return LABEL_LEN + len;
}

void hydns_plugin_depends_on_origin(struct hydns_thread *t, const uint8_t *origin, size_t len, unsigned what)
{
	bool known = len && hydns_name_length(origin, len) == len;
	uint8_t name[HYDNS_NAME_MAX];
	size_t name_len;

	for (size_t i = 0; i < STAND_INS; i++) {
		if (!(what & stand_ins[i].what))
			continue;
		name_len = known ? stand_in_name(&stand_ins[i], origin, len, name) : 0;
		if (name_len)
			hydns_plugin_depends_on(t, name, name_len);
		else
			hydns_plugin_depends_on(t, origin, len);       /* each version withdraws such a zone whole */
	}
}

/* Of the zone's SOA. Returns its length, or 0. */
static size_t soa_name(const uint8_t *origin, size_t len, uint8_t *out)
{
	return stand_in_name(&stand_ins[0], origin, len, out);
}

bool hydns_zone_soa_is_changing(const uint8_t *origin, size_t len)
{
	uint8_t name[HYDNS_NAME_MAX];
	size_t name_len = soa_name(origin, len, name);

	return !name_len || hydns_name_is_changing(name, name_len);
}

bool hydns_zone_depends_on_present(struct hydns_left_out *l, const uint8_t *origin, size_t len)
{
	uint8_t name[HYDNS_NAME_MAX];
	size_t name_len = soa_name(origin, len, name), before = l->len;

	if (!name_len)
		return false;
	hydns_left_out_strike(l, name, name_len);
	if (l->len == before)
		return false;
	hydns_left_out_add(l, name, stand_in_name(&present, origin, len, name));
	return true;
}

/* -- gathering --------------------------------------------------------------------------------------------- */
static _Atomic uint64_t begun;

uint64_t hydns_zone_versions_begun(void)
{
	return atomic_load(&begun);
}

void hydns_zone_version_begin(struct hydns_zone_version *v, const uint8_t *origin, size_t len)
{
	*v = (struct hydns_zone_version){ .whole = !len || hydns_name_length(origin, len) != len, .number = atomic_fetch_add(&begun, 1) };
	if (v->whole)
		return;
	hydns_name_lower(v->origin, origin, len);
	v->origin_len = len;
}

void hydns_zone_version_end(struct hydns_zone_version *v)
{
	free(v->names);
	v->names = NULL;
}

static size_t entry_len(const uint8_t *entry)
{
	return 1 + hydns_name_length(entry + 1, HYDNS_NAME_MAX);
}

/* The place of the name's entry, or an empty one for it. NULL: there is none. */
static uint32_t *place_of(struct hydns_zone_names *n, const uint8_t *name, size_t len)
{
	static const __u64 seed[2];            /* who can change the zone can do more harm than a long walk */
	uint32_t first = hydns_key_hash(name, (__u8)len, 0, 0, 0, seed) & (INDEX - 1);

	for (uint32_t i = 0; i < INDEX; i++) {
		uint32_t *place = &n->index[(first + i) & (INDEX - 1)];

		if (!*place || (*place > len && !memcmp(n->entry + *place - len, name, len) &&
				entry_len(n->entry + *place - len - 1) == 1 + len))
			return place;
	}
	return NULL;
}

/* NULL: no memory. */
static struct hydns_zone_names *names_of(struct hydns_zone_version *v)
{
	if (!v->names)
		v->names = calloc(1, sizeof(*v->names));
	return v->names;
}

static void add(struct hydns_zone_version *v, enum hydns_scope scope, const uint8_t *name, size_t len)
{
	struct hydns_zone_names *n = names_of(v);
	uint32_t *place = n ? place_of(n, name, len) : NULL;

	if (place && *place) {
		if (scope == HYDNS_SCOPE_SUBTREE)
			n->entry[*place - len - 1] = (uint8_t)scope;
		return;
	}
	if (!place || n->len + 1 + len > ENTRIES_MOST) {
		v->whole = true;
		return;
	}
	n->entry[n->len] = (uint8_t)scope;
	memcpy(n->entry + n->len + 1, name, len);
	n->len += (uint32_t)(1 + len);
	*place = n->len;
}

/* -- what a change concerns -------------------------------------------------------------------------------- */
static void types_change(struct hydns_zone_version *v, const uint8_t *name, size_t len)
{
	struct hydns_zone_names *n = names_of(v);

	if (!n || n->retyped_len + len > ENTRIES_MOST) {
		v->whole = true;
		return;
	}
	memcpy(n->retyped + n->retyped_len, name, len);
	n->retyped_len += (uint32_t)len;
}

static void origin_changes(struct hydns_zone_version *v, unsigned what)
{
	uint8_t name[HYDNS_NAME_MAX];

	if (what & HYDNS_ZONE_DATA)
		types_change(v, v->origin, v->origin_len);

	if (what & (HYDNS_ZONE_COMES_OR_GOES | HYDNS_ZONE_CUT | HYDNS_ZONE_SECURITY))
		v->whole = true;
	for (size_t i = 0; i < STAND_INS && !v->whole; i++) {
		size_t len = stand_in_name(&stand_ins[i], v->origin, v->origin_len, name);

		if (!len)
			v->whole = true;
		else if (what & stand_ins[i].what)
			add(v, HYDNS_SCOPE_NAME, name, len);
	}
}

static bool is_wildcard(const uint8_t *name)
{
	return name[0] == 1 && name[1] == '*';
}

/* Whether one of the names above this one, up to the last top_len octets of it, begins with "*". */
static bool has_wildcard_above(const uint8_t *name, size_t len, size_t top_len)
{
	bool found = false;

	for (size_t at = 1U + name[0]; len - at >= top_len; at += 1U + name[at])
		found |= is_wildcard(name + at);
	return found;
}

static void name_changes(struct hydns_zone_version *v, const uint8_t *name, size_t len, unsigned what, size_t top_len)
{
	const uint8_t *parent = name + 1 + name[0];

	if (what & HYDNS_ZONE_PROOF) {
		add(v, HYDNS_SCOPE_NAME, name, len);
		return;
	}
	/* Replies that say that a name does not exist have the SOA: they go even if the version should leave that as it is. */
	if (what & (HYDNS_ZONE_COMES_OR_GOES | HYDNS_ZONE_CUT))
		origin_changes(v, HYDNS_ZONE_SOA);
	types_change(v, name, len);
	if (is_wildcard(name)) {
		v->whole |= len - 2 == v->origin_len;
		add(v, HYDNS_SCOPE_SUBTREE, parent, len - 2);
	}
	if (what & HYDNS_ZONE_COMES_OR_GOES) {
		v->whole |= has_wildcard_above(name, len, top_len);     /* a wildcard without data comes or goes */
		add(v, HYDNS_SCOPE_SUBTREE, name + len - top_len, top_len);
	} else {
		add(v, what & HYDNS_ZONE_CUT ? HYDNS_SCOPE_SUBTREE : HYDNS_SCOPE_NAME, name, len);
	}
}

void hydns_zone_version_changes(struct hydns_zone_version *v, const uint8_t *name, size_t len, unsigned what, size_t top_len)
{
	uint8_t lower[HYDNS_NAME_MAX];

	if (v->whole || !what)
		return;
	v->whole = !len || hydns_name_length(name, len) != len;
	if (v->whole)
		return;
	hydns_name_lower(lower, name, len);
	v->whole = !hydns_name_is_in(lower, len, v->origin, v->origin_len) || !hydns_name_ends_with(lower, len, top_len);
	if (v->whole)
		return;
	if (len == v->origin_len)
		origin_changes(v, what);
	else
		name_changes(v, lower, len, what, top_len);
}

/* -- withdrawing ------------------------------------------------------------------------------------------- */
/* The names of one message, as the version has them, and what was offered of each before the generation was advanced. */
struct part {
	bool waits;                      /* for a grace period, even if no rule depends on them */
	const uint8_t *entry[HYDNS_WITHDRAW_NAMES_MOST];
	struct hydns_subtree_offers offers[HYDNS_WITHDRAW_NAMES_MOST];
	enum hydns_scope left[HYDNS_WITHDRAW_NAMES_MOST];
	unsigned names;
};

/* Takes the next names of the version, as many as fit into a message. Returns where the rest begins. */
static size_t take_part(struct hydns_plugin *p, const struct hydns_zone_version *v, size_t at, struct part *out)
{
	const size_t room = sizeof(((struct hydns_request *)0)->octets) - sizeof(struct hydns_withdraw_names);
	size_t used = 0;

	for (out->names = 0; at < v->names->len && out->names < HYDNS_WITHDRAW_NAMES_MOST; out->names++) {
		const uint8_t *entry = v->names->entry + at;
		size_t len = entry_len(entry);

		if (used + len > room)
			break;
		out->entry[out->names] = entry;
		out->offers[out->names] = hydns_subtrees_offers(p->subtrees, entry + 1, len - 1);
		used += len;
		at += len;
	}
	return at;
}

/* The message, without the names that no rule depends on; but if it is to have one, with the first. */
static void fill(struct hydns_plugin *p, struct part *part, struct hydns_request *q)
{
	uint8_t *to = q->names.entry;

	q->names.generation = hydns_plugin_advance(p);
	for (unsigned i = 0; i < part->names; i++) {
		const uint8_t *entry = part->entry[i];
		size_t len = entry_len(entry);

		part->left[i] = hydns_subtrees_left(p->subtrees, entry[0], entry + 1, len - 1);
		if (part->waits && !i && part->left[i] == HYDNS_SCOPE_NONE)
			part->left[i] = HYDNS_SCOPE_NAME;
		if (part->left[i] == HYDNS_SCOPE_NONE)
			continue;
		to[0] = (uint8_t)part->left[i];
		memcpy(to + 1, entry + 1, len - 1);
		to += len;
		q->names.count++;
	}
	q->len = (uint32_t)(to - q->octets);
}

static bool withdraw_part(struct hydns_plugin *p, struct part *part)
{
	struct hydns_request q = { .type = HYDNS_MSG_WITHDRAW_NAMES };

	fill(p, part, &q);
	if (q.names.count && !hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms))
		return false;
	for (unsigned i = 0; i < part->names; i++)
		if (part->left[i] != HYDNS_SCOPE_NONE)
			hydns_subtrees_withdrawn(p->subtrees, part->left[i], part->entry[i] + 1, entry_len(part->entry[i]) - 1,
						 part->offers[i]);
	return true;
}

const uint8_t *hydns_zone_version_entries(const struct hydns_zone_version *v, size_t *len)
{
	*len = v->names ? v->names->len : 0;
	return v->names ? v->names->entry : NULL;
}

const uint8_t *hydns_zone_version_retyped(const struct hydns_zone_version *v, size_t *len)
{
	*len = v->names ? v->names->retyped_len : 0;
	return v->names ? v->names->retyped : NULL;
}

/* Withdraws all replies that have the SOA of the zone of this origin. */
static void withdraw_denials(struct hydns_plugin *p, const uint8_t *origin, size_t len)
{
	uint8_t name[HYDNS_NAME_MAX];
	size_t name_len = soa_name(origin, len, name);

	if (name_len) {
		hydns_plugin_withdraw(p, HYDNS_SCOPE_NAME, name, name_len);
		hydns_plugin_withdraw_present(p, origin, len);
	} else {
		hydns_plugin_zone_changing(p, origin, len);
	}
}

void hydns_plugin_withdraw_present(struct hydns_plugin *p, const uint8_t *origin, size_t len)
{
	uint8_t name[HYDNS_NAME_MAX];
	size_t name_len = stand_in_name(&present, origin, len, name);

	if (name_len)                  /* else nothing depends on it */
		hydns_plugin_withdraw(p, HYDNS_SCOPE_NAME, name, name_len);
}

/* A name is in the program's set before it is served, and without the types that are; and no program begins to use the present SOA.
 * True: one may be using it. */
static bool tell_names(struct hydns_plugin *p, const struct hydns_zone_version *v)
{
	struct hydns_preload_effect effect = { 0 };
	struct hydns_preload *l;

	pthread_rwlock_rdlock(&p->preload_lock);
	l = atomic_load(&p->preload);
	if (l)
		hydns_preload_names_change(l, v, &effect);
	pthread_rwlock_unlock(&p->preload_lock);
	if (effect.around)
		withdraw_denials(p, effect.origin, effect.around);
	if (effect.templates)
		hydns_plugin_withdraw_present(p, v->origin, v->origin_len);
	return effect.waits;
}

static void tell_preload(struct hydns_plugin *p, const struct hydns_zone_version *v,
			 void (*tell)(struct hydns_preload *l, const struct hydns_zone_version *v))
{
	struct hydns_preload *l;

	pthread_rwlock_rdlock(&p->preload_lock);
	l = atomic_load(&p->preload);
	if (l)
		tell(l, v);
	pthread_rwlock_unlock(&p->preload_lock);
}

bool hydns_plugin_zone_exchanged(struct hydns_plugin *p, const struct hydns_zone_version *v)
{
	tell_preload(p, v, hydns_preload_exchanged);
	return p->subtrees && v->origin_len &&
	       hydns_subtrees_left(p->subtrees, HYDNS_SCOPE_SUBTREE, v->origin, v->origin_len) != HYDNS_SCOPE_NONE;
}

void hydns_plugin_zone_served(struct hydns_plugin *p, const struct hydns_zone_version *v)
{
	tell_preload(p, v, hydns_preload_served);
}

void hydns_plugin_zone_settled(struct hydns_plugin *p, const struct hydns_zone_version *v)
{
	tell_preload(p, v, hydns_preload_settled);
}

void hydns_plugin_names_change_hands(struct hydns_plugin *p, const uint8_t *name, size_t len, bool back)
{
	struct hydns_preload_effect effect = { 0 };
	uint8_t lower[HYDNS_NAME_MAX];
	struct hydns_preload *l;

	if (len > sizeof(lower))
		return;
	hydns_name_lower(lower, name, len);
	pthread_rwlock_rdlock(&p->preload_lock);
	l = atomic_load(&p->preload);
	if (l)
		hydns_preload_names_change_hands(l, name ? lower : NULL, len, back, &effect);
	pthread_rwlock_unlock(&p->preload_lock);
	if (effect.around)             /* each denial shows the SOA */
		hydns_plugin_withdraw(p, HYDNS_SCOPE_NAME, effect.origin, effect.around);
	hydns_plugin_withdraw(p, name ? HYDNS_SCOPE_SUBTREE : HYDNS_SCOPE_ALL, name, len);
}

void hydns_plugin_zone_version(struct hydns_plugin *p, const struct hydns_zone_version *v)
{
	bool whole = v->whole || !p->subtrees, waits = tell_names(p, v);
	struct part part = { .waits = waits };

	for (size_t at = 0; v->names && at < v->names->len && !whole; ) {
		at = take_part(p, v, at, &part);
		whole = !withdraw_part(p, &part);      /* hydnsd has not done it: the way that needs no answer */
		waits &= whole;
		part.waits = false;
	}
	if (whole)
		hydns_plugin_zone_changing(p, v->origin, v->origin_len);
	if (waits)
		hydns_plugin_grace(p);
	tell_preload(p, v, hydns_preload_version);
}
