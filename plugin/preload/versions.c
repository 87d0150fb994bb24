/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What other threads tell the preloading thread, and ask of it: versions of zones, and whether an answer may be a template. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include "hydns/names.h"
#include "plugin/preload/state.h"

#define CHANGED_MOST (1U << 18)        /* octets of names that versions change, until they are asked for */

/* False: there are too many, or there is no memory. */
static bool append(struct hydns_preload_octets *to, const uint8_t *more, size_t len)
{
	uint8_t *octets = to->len + len <= CHANGED_MOST ? realloc(to->octets, to->len + len) : NULL;

	if (!octets)
		return false;
	memcpy(octets + to->len, more, len);
	to->octets = octets;
	to->len += len;
	return true;
}

void hydns_preload_forget(struct hydns_preload_octets *n)
{
	free(n->octets);
	*n = (struct hydns_preload_octets){ 0 };
}

/* All names of the zone are to be gathered anew. */
static void doubt(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	pthread_mutex_lock(&l->lock);
	z->complete = false;
	atomic_store(&z->changed, true);
	pthread_mutex_unlock(&l->lock);
}

/* Another zone comes below a preloaded one, which was not there when that was loaded: the answers for names that do not exist in this
 * one would be wrong there. goes: it goes, and this one's answers may come back. */
static void zone_below_changes(struct hydns_preload *l, const uint8_t *name, size_t len, bool goes, struct hydns_preload_effect *out)
{
	struct hydns_preload_zone *z = len > 1 ? hydns_preload_zone_of(l, name + 1 + name[0], len - 1U - name[0]) : NULL;

	for (size_t at = 0; z && !goes && len - at > z->len; at += 1U + name[at])
		if (hydns_name_set_is_foreign(l->set, name + at, len - at))
			return;
	if (!z)
		return;
	hydns_name_set_change(l->set, name, len, z->len, hydns_preload_number(l, z), false);
	doubt(l, z);
	memcpy(out->origin, z->name, z->len);
	out->around = z->len;
}

/* Whether children may come with a version of single names: only a whole one signs a zone. */
static bool may_have_children(const struct hydns_preload_zone *z)
{
	return !z->complete || atomic_load(&z->proofs) == HYDNS_PROOFS_NSEC;
}

void hydns_preload_tell_set(struct hydns_preload *l, const struct hydns_preload_zone *z, const uint8_t *names, size_t len, bool children)
{
	for (size_t at = 0; at < len; at += hydns_name_length(names + at, HYDNS_NAME_MAX))
		hydns_name_set_change(l->set, names + at, hydns_name_length(names + at, HYDNS_NAME_MAX), z->len,
				      hydns_preload_number(l, z), children);
}

static bool is_told(const struct hydns_preload *l, const struct hydns_zone_version *v)
{
	return v->number >= l->from;
}

void hydns_preload_tell_hashes(struct hydns_preload *l, const struct hydns_preload_zone *z, const uint8_t *hashes, size_t len)
{
	for (size_t at = 0; at + HYDNS_SHA1_OCTETS <= len; at += HYDNS_SHA1_OCTETS)
		hydns_name_set_hash_comes(l->set, z->name, z->len, hashes + at);
}

/* Adds the hashes of the version's NSEC3 records, and of names that could be those of one. False: there are too many, or no memory. */
static bool append_hashes(struct hydns_preload_octets *to, const struct hydns_preload_zone *z, const struct hydns_zone_version *v)
{
	size_t len, name_len;
	const uint8_t *entries = hydns_zone_version_entries(v, &len);
	uint8_t hash[HYDNS_SHA1_OCTETS];

	for (size_t at = 0; at < len; at += 1 + name_len) {
		name_len = hydns_name_length(entries + at + 1, HYDNS_NAME_MAX);
		if (name_len == 1 + HYDNS_HASHED_LABEL + z->len && hydns_hash_of_label(entries + at + 1, hash) &&
		    !append(to, hash, sizeof(hash)))
			return false;
	}
	return true;
}

/* Before a version is served that has other hashes than the table. */
static void hashes_change(struct hydns_preload *l, struct hydns_preload_zone *z, const struct hydns_zone_version *v)
{
	struct hydns_preload_octets hashes = { 0 };

	pthread_mutex_lock(&l->lock);
	if (!z->complete || atomic_load(&z->proofs) == HYDNS_PROOFS_NSEC3)
		z->comes_whole |= !append_hashes(&hashes, z, v) || (hashes.len && !append(&z->hashes, hashes.octets, hashes.len));
	z->complete &= !z->comes_whole;
	pthread_mutex_unlock(&l->lock);
	hydns_preload_tell_hashes(l, z, hashes.octets, hashes.len);
	hydns_preload_forget(&hashes);
}

void hydns_preload_exchanged(struct hydns_preload *l, const struct hydns_zone_version *v)
{
	struct hydns_preload_zone *z = hydns_preload_zone_at(l, v->origin, v->origin_len);

	if (!z)
		return;
	pthread_mutex_lock(&l->lock);
	z->under_way += is_told(l, v);
	pthread_mutex_unlock(&l->lock);
}

void hydns_preload_names_change(struct hydns_preload *l, const struct hydns_zone_version *v, struct hydns_preload_effect *out)
{
	struct hydns_preload_zone *z = hydns_preload_zone_at(l, v->origin, v->origin_len);
	size_t len;
	const uint8_t *names = hydns_zone_version_retyped(v, &len);
	bool children;

	*out = (struct hydns_preload_effect){ 0 };
	if (v->whole)
		zone_below_changes(l, v->origin, v->origin_len, false, out);
	if (!z)
		return;
	pthread_mutex_lock(&l->lock);
	children = may_have_children(z);
	hydns_preload_soa_changes(l, z, v, out);
	z->under_way += is_told(l, v) && !v->exchanged;
	z->uncommitted += is_told(l, v);
	if (!z->retyping.len && !z->comes_whole)
		z->before = hydns_name_set_now(l->set);
	if (v->whole || (len && !append(&z->retyping, names, len)))
		z->comes_whole = true;
	z->complete &= !z->comes_whole;
	pthread_mutex_unlock(&l->lock);
	if (!v->whole) {
		hydns_preload_tell_set(l, z, names, len, children);
		hashes_change(l, z, v);
	}
}

void hydns_preload_version(struct hydns_preload *l, const struct hydns_zone_version *v)
{
	struct hydns_preload_zone *z = hydns_preload_zone_at(l, v->origin, v->origin_len);
	size_t len;
	const uint8_t *entries = hydns_zone_version_entries(v, &len);

	if (!z)
		return;
	pthread_mutex_lock(&l->lock);
	if (v->whole || (len && !append(&z->coming, entries, len)))
		z->comes_whole = true;
	z->complete &= !z->comes_whole;
	pthread_mutex_unlock(&l->lock);
}

void hydns_preload_served(struct hydns_preload *l, const struct hydns_zone_version *v)
{
	struct hydns_preload_zone *z = hydns_preload_zone_at(l, v->origin, v->origin_len);

	if (!z)
		return;
	if (!is_told(l, v))
		doubt(l, z);
	pthread_mutex_lock(&l->lock);
	if (z->uncommitted && is_told(l, v))
		z->uncommitted--;
	hydns_preload_soa_served(l, z);
	pthread_mutex_unlock(&l->lock);
}

/* No version of the zone is under way any more. The caller has the lock. */
static void take_over(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	if (z->comes_whole || (z->retyping.len && !append(&l->retyped, z->retyping.octets, z->retyping.len)) ||
	    (z->coming.len && !append(&l->changed, z->coming.octets, z->coming.len))) {
		atomic_store(&z->changed, true);
		z->complete = false;
	}
	hydns_preload_forget(&z->coming);
	hydns_preload_forget(&z->retyping);
	hydns_preload_forget(&z->hashes);
	z->comes_whole = false;
}

void hydns_preload_settled(struct hydns_preload *l, const struct hydns_zone_version *v)
{
	struct hydns_preload_zone *z = hydns_preload_zone_at(l, v->origin, v->origin_len);

	if (!z)
		return;
	atomic_fetch_add(&z->versions, 1);
	pthread_mutex_lock(&l->lock);
	if (z->under_way && is_told(l, v))
		z->under_way--;
	if (!z->under_way)
		take_over(l, z);
	pthread_mutex_unlock(&l->lock);
	if (eventfd_write(l->wake_fd, 1))
		return;                /* it is awake */
}

void hydns_preload_names_change_hands(struct hydns_preload *l, const uint8_t *name, size_t len, bool back,
				      struct hydns_preload_effect *out)
{
	*out = (struct hydns_preload_effect){ 0 };
	if (name)
		zone_below_changes(l, name, len, back, out);
	for (size_t i = 0; i < l->o.zones; i++)
		if (!name || hydns_name_is_in(l->zone[i].name, l->zone[i].len, name, len))
			doubt(l, &l->zone[i]);
	if (eventfd_write(l->wake_fd, 1))
		return;                /* it is awake */
}

/* -- templates ---------------------------------------------------------------------------------------------- */
struct showing {
	struct hydns_name_set *set;
	uint16_t zone;
	const uint8_t *parent;         /* of the template's name */
	size_t parent_len;
};

static void show_name(void *arg, const uint8_t *name, size_t len)
{
	const struct showing *s = arg;

	if (len > s->parent_len && !memcmp(name + len - s->parent_len, s->parent, s->parent_len))
		hydns_name_set_show(s->set, name, len, s->parent_len, s->zone);
}

/* Names that may be compressed otherwise in an answer that is like this one. That of a type is for the name itself where it has a proof;
 * to the other names that a proof shows, the queries that it is for are no nearer than the template's. */
static bool shows_names(const struct showing *s, const struct hydns_question *q, bool proves, const uint8_t *wire, size_t len)
{
	return (proves && hydns_denies_types(q->qtype)) || hydns_wire_names(wire, len, show_name, (void *)(uintptr_t)s);
}

/* Whether the answer proves by a hash that names do not exist; then *t is where it stands. */
static bool stands_at_hash(struct hydns_preload *l, const struct hydns_question *q, const uint8_t *name, struct hydns_name_template *t)
{
	return (q->variant & HYDNS_VARIANT_DO) && q->qtype == HYDNS_BELOW_TYPE && hydns_is_probe(name) &&
	       hydns_name_set_template(l->set, name, q->name_len, q->qtype, t) && t->qtype == HYDNS_HASHED_TYPE && t->len == q->name_len;
}

/* Whether names right below this one's parent have their template at this name, with DO: proofs begin above them. */
static bool stands_below(struct hydns_preload *l, const struct hydns_question *q, const uint8_t *name)
{
	struct hydns_name_template t;

	return hydns_name_set_template(l->set, name, q->name_len, q->qtype, &t) && t.qtype == q->qtype && t.len == q->name_len &&
	       !memcmp(t.name, name, t.len);
}

/* Whether the proof that a delegation has no DS has its template at this name. Where each version would withdraw it, because none shows the
 * present SOA, it has none: there may be as many as delegations. */
static bool stands_at_cut(struct hydns_preload *l, const struct hydns_preload_zone *z, const struct hydns_question *q, const uint8_t *name)
{
	return hydns_name_set_proves_no_ds(l->set, name, q->name_len) && !hydns_name_set_soa_is_bare(l->set, hydns_preload_number(l, z));
}

/* Which present SOA belongs into a template that denies: all do but referrals. */
static void show_present(struct hydns_preload *l, const struct hydns_preload_zone *z, bool denies, bool proves,
			 struct hydns_preload_template *out)
{
	if (!denies || !hydns_name_set_soa(l->set, hydns_preload_number(l, z), proves, &out->soa))
		return;
	memcpy(out->origin, z->name, z->len);
	out->origin_len = z->len;
}

bool hydns_preload_is_template(struct hydns_preload *l, const struct hydns_question *q, uint8_t *name, const uint8_t *wire, size_t len,
			       struct hydns_preload_template *out)
{
	struct hydns_name_template at;
	const bool hashed = stands_at_hash(l, q, name, &at);
	const size_t label = hashed ? HYDNS_HASHED_LEN : hydns_denies_types(q->qtype) ? 0 : 1U + name[0];
	struct showing s = { .set = l->set, .parent = name + label, .parent_len = q->name_len - label };
	const struct hydns_preload_zone *z = hydns_preload_zone_of(l, s.parent, s.parent_len);
	const bool proves = z && (q->variant & HYDNS_VARIANT_DO) && atomic_load(&z->proofs) != HYDNS_PROOFS_NONE &&
			    (!label || hydns_is_probe(name) || hydns_wire_denies(wire, len));

	s.zone = z ? hydns_preload_number(l, z) : 0;
	if (proves && label && !hydns_is_probe(name) && !stands_below(l, q, name))
		return false;
	if (q->qtype == HYDNS_TYPE_DS && !(proves && stands_at_cut(l, z, q, name)))
		return false;
	if (!z || !hydns_wire_may_be_for_all(wire, len, proves) || !hydns_preload_is_complete(l, z) || !shows_names(&s, q, proves, wire, len) ||
	    !hydns_name_set_state(l->set).open || !hydns_preload_is_complete(l, z))
		return false;
	if (hashed)
		memcpy(name, at.name, HYDNS_HASHED_LEN);
	*out = (struct hydns_preload_template){ .qtype = hashed ? HYDNS_HASHED_TYPE : q->qtype };
	show_present(l, z, hydns_wire_denies(wire, len), proves, out);
	return true;
}
