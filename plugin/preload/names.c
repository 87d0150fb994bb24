/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The set of names, as the preloading thread fills it: of each zone before it is asked for, and after versions that change them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "hydns/names.h"
#include "plugin/clock.h"
#include "plugin/preload/state.h"

#define MERGE_PAUSE 10                 /* times what a merge has taken */

/* Asks for a set of so many names and children, in place of the former one. */
static int get_set(struct hydns_preload *l, size_t names, size_t children)
{
	const uint32_t buckets = hydns_names_buckets(names > children ? names : children), leaves = hydns_names_leaves(children, buckets);
	struct hydns_request q = { .type = HYDNS_MSG_NAMES, .len = sizeof(struct hydns_names_request), .fd = -1 };
	const struct hydns_names_request wanted = { .buckets = buckets, .leaves = leaves, .zones = l->o.soa ? (uint32_t)l->o.zones : 0 };

	_Static_assert(HYDNS_PRELOAD_ZONES <= HYDNS_NAMES_ZONES_MOST, "hydnsd takes them all");
	memcpy(q.octets, &wanted, sizeof(wanted));
	if (!hydns_requests_ask(&l->p->requests, &q, l->p->o.flush_timeout_ms) || q.fd < 0)
		return -ENOTCONN;
	return hydns_name_set_take(l->set, q.fd, &wanted);
}

struct hydns_preload_names {
	struct hydns_preload *of;
	struct hydns_name_load load;
	size_t count, children;
	enum hydns_proofs proofs;
	uint8_t last[HYDNS_NAME_MAX];  /* the name before this one, in lower case */
	size_t last_len;
	bool fills;                    /* else it only counts */
	uint8_t hashing;               /* as of the zone */
};

/* How many of the name and those above it, below the origin, are not above the last name or it. Names come in canonical order, in which
 * these follow each other. */
static size_t new_children(const struct hydns_preload_names *to, const uint8_t *name, size_t len, size_t origin_len)
{
	size_t count = 0;

	for (size_t at = 0; len - at > origin_len; at += 1U + name[at], count++) {
		const size_t left = len - at;

		if (to->last_len >= left && !memcmp(to->last + to->last_len - left, name + at, left))
			break;
	}
	return count;
}

bool hydns_preload_add_name(struct hydns_preload_names *to, const uint8_t *name, size_t len, struct hydns_name_data data)
{
	uint8_t lower[HYDNS_NAME_MAX];

	to->count++;
	if (atomic_load(&to->of->stopping) || len > sizeof(lower))
		return false;
	hydns_name_lower(lower, name, len);
	to->proofs = data.proofs;
	data.hashing = to->hashing;
	if (data.proofs == HYDNS_PROOFS_NSEC) {
		to->children += new_children(to, lower, len, to->load.origin_len);
		memcpy(to->last, lower, len);
		to->last_len = len;
	}
	if (to->fills)
		hydns_name_set_found(to->of->set, &to->load, lower, len, data);
	return true;
}

/* -- how zones hash names ------------------------------------------------------------------------------------- */
/* A bit for each number that another zone has. */
static unsigned used_by_others(const struct hydns_preload *l, const struct hydns_preload_zone *z)
{
	unsigned used = 0;

	for (size_t i = 0; i < l->o.zones; i++)
		if (&l->zone[i] != z)
			used |= 1U << atomic_load(&l->zone[i].hashing);
	return used;
}

/* The number of this way in the set, where another zone has it already, or of one that no other has. 0: there are too many. */
static uint8_t number_of(struct hydns_preload *l, const struct hydns_preload_zone *z, const struct hydns_nsec3 *how)
{
	const unsigned used = used_by_others(l, z);
	struct hydns_nsec3 there;
	uint8_t empty = 0;

	for (uint8_t n = 1; hydns_name_set_hashing(l->set, n, &there); n++) {
		if (!(used >> n & 1))
			empty = n;
		else if (!memcmp(&there, how, sizeof(there)))
			return n;
	}
	if (empty)
		hydns_name_set_hash_so(l->set, empty, how);
	return empty;
}

void hydns_preload_hashes(struct hydns_preload_names *to, unsigned algorithm, unsigned iterations, const uint8_t *salt, size_t salt_len)
{
	struct hydns_nsec3 how = { .iterations = (uint8_t)iterations, .salt_len = (uint8_t)salt_len };
	struct hydns_preload_zone *z;

	if (!to->fills || !hydns_nsec3_fits(algorithm, iterations, (unsigned)salt_len))
		return;
	memcpy(how.salt, salt, salt_len);
	z = &to->of->zone[to->load.zone];
	to->hashing = number_of(to->of, z, &how);
	atomic_store(&z->hashing, to->hashing);
}

bool hydns_preload_add_hash(struct hydns_preload_names *to, const uint8_t *label)
{
	const struct hydns_preload_zone *z = &to->of->zone[to->load.zone];
	uint8_t hash[HYDNS_SHA1_OCTETS];

	if (!hydns_hash_of_label(label, hash))
		return true;
	to->children++;
	if (to->fills && to->hashing)
		hydns_name_set_hash_comes(to->of->set, z->name, z->len, hash);
	return !atomic_load(&to->of->stopping);
}

/* -- filling the set ------------------------------------------------------------------------------------------ */
static void set_complete(struct hydns_preload *l, struct hydns_preload_zone *z, bool complete)
{
	pthread_mutex_lock(&l->lock);
	z->complete = complete && !z->comes_whole && !atomic_load(&z->changed);
	pthread_mutex_unlock(&l->lock);
}

bool hydns_preload_is_complete(struct hydns_preload *l, const struct hydns_preload_zone *z)
{
	bool complete;

	pthread_mutex_lock(&l->lock);
	complete = z->complete;
	pthread_mutex_unlock(&l->lock);
	return complete;
}

/* How many names the zone has, or had when they were gathered. */
static size_t names_of(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	struct hydns_preload_names to = { .of = l, .load.origin_len = z->len };

	if (!z->names && !l->o.names(l->o.arg, z->name, z->len, &to)) {
		z->names = to.count;
		z->children = to.children;
	}
	return z->names;
}

/* What versions bring that are not served yet was told to the former set. */
static void tell_again(struct hydns_preload *l)
{
	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->o.zones; i++) {
		const struct hydns_preload_zone *z = &l->zone[i];

		hydns_preload_tell_set(l, z, z->retyping.octets, z->retyping.len, true);
		hydns_preload_tell_hashes(l, z, z->hashes.octets, z->hashes.len);
	}
	pthread_mutex_unlock(&l->lock);
}

static void set_incomplete(struct hydns_preload *l)
{
	for (size_t i = 0; i < l->o.zones; i++) {
		set_complete(l, &l->zone[i], false);
		hydns_preload_want_soa(l, &l->zone[i]);
	}
}

/* A set that has room for all zones. A new one does not know which names the answers of the former one's templates show, so these are
 * withdrawn with all else, and all zones are loaded anew. False: there is none. */
static bool have_room(struct hydns_preload *l)
{
	struct hydns_name_set_state now = hydns_name_set_state(l->set);
	size_t names = 0, children = 0;

	for (size_t i = 0; i < l->o.zones; i++) {
		names += names_of(l, &l->zone[i]);
		children += l->zone[i].children;
	}
	if (now.exists && !now.full && names <= now.room / 8 * 5 &&    /* one in 10^10 finds no place; of 3/4 one in 10^5 */
	    children <= now.children) {
		if (now.table_full) {  /* of what has gone */
			hydns_name_set_empty_table(l->set);
			set_incomplete(l);     /* so that all are gathered */
			tell_again(l);
		}
		return true;
	}
	set_incomplete(l);
	for (size_t i = 0; i < l->o.zones; i++) {
		l->zone[i].gathered = false;
		atomic_store(&l->zone[i].hashing, 0);
	}
	if (now.names) {               /* else it had no zone's, so there are no templates */
		hydns_plugin_withdraw_all(l->p);
		l->all = true;
	}
	l->set_refused = get_set(l, names, children) != 0;
	tell_again(l);
	return !l->set_refused;
}

/*
 * Which changes the data show that are read after this call. Those of a version that is not served yet are told already, and they do
 * not.
 */
static uint32_t changes_shown(struct hydns_preload *l, const struct hydns_preload_zone *z)
{
	uint32_t since;

	pthread_mutex_lock(&l->lock);
	since = z->retyping.len || z->comes_whole ? z->before : hydns_name_set_now(l->set);
	pthread_mutex_unlock(&l->lock);
	return since;
}

/* Gathers the zone's names. The set is closed meanwhile, for parts of what it says are of former data. */
static bool gather_names(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	struct hydns_preload_names to = { .of = l, .fills = true };
	int error;

	hydns_name_set_open(l->set, false);
	hydns_plugin_grace(l->p);      /* no program goes on with what it was */
	to.load = (struct hydns_name_load){ .zone = hydns_preload_number(l, z), .number = ++z->loads, .origin_len = z->len,
					    .since = changes_shown(l, z) };
	atomic_store(&z->hashing, 0);
	error = l->o.names(l->o.arg, z->name, z->len, &to);
	z->names = to.count;
	z->children = to.children;
	atomic_store(&z->proofs, (int)to.proofs);
	if (!error && z->gathered)     /* it may have lost some */
		hydns_name_set_loaded(l->set, &to.load);
	z->gathered = true;
	return !error && !atomic_load(&l->stopping) && !hydns_name_set_state(l->set).full;
}

/* Others come with their own loads: none is complete before, so it has no templates. */
static bool was_loaded(const struct hydns_preload_zone *z)
{
	return z->state != HYDNS_PRELOAD_WANTED && z->state != HYDNS_PRELOAD_ABSENT;
}

/* Of a zone that is about to be asked for. The names of others that a new set has lost come with it. */
void hydns_preload_load_names(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	set_complete(l, z, false);
	if (!have_room(l))
		return;
	for (size_t i = 0; i < l->o.zones; i++) {
		struct hydns_preload_zone *each = &l->zone[i];

		if (each != z && (!was_loaded(each) || hydns_preload_is_complete(l, each)))
			continue;
		set_complete(l, each, gather_names(l, each));
		hydns_preload_find_soa(l, each);
	}
	hydns_name_set_open(l->set, true);
	l->merge_from_ms = 0;
	hydns_preload_merge(l);
}

void hydns_preload_merge(struct hydns_preload *l)
{
	uint64_t began_ms = hydns_mono_coarse_ms();

	if (began_ms < l->merge_from_ms)
		return;
	hydns_name_set_merge(l->set);
	l->merge_from_ms = began_ms + (hydns_mono_coarse_ms() - began_ms) * MERGE_PAUSE;
}

/* What the zone's data say now of the name and those above it. */
static void look_at_one(struct hydns_preload *l, const struct hydns_preload_zone *z, const uint8_t *name, size_t len, uint32_t since)
{
	struct hydns_name_data data;

	if (l->o.look(l->o.arg, z->name, z->len, name, len, &data))
		return;
	data.hashing = atomic_load(&z->hashing);
	hydns_name_set_settle(l->set, name, len, z->len, hydns_preload_number(l, z), data, since);
}

static void look_at(struct hydns_preload *l, const struct hydns_preload_zone *z, const uint8_t *name, size_t len)
{
	const uint32_t since = changes_shown(l, z);

	for (size_t at = 0; len - at > z->len; at += 1U + name[at])
		look_at_one(l, z, name + at, len - at, since);
	look_at_one(l, z, z->name, z->len, since);
}

void hydns_preload_look_again(struct hydns_preload *l)
{
	struct hydns_preload_octets retyped = hydns_preload_take(l, &l->retyped);

	for (size_t at = 0; at < retyped.len; ) {
		const uint8_t *name = retyped.octets + at;
		size_t len = hydns_name_length(name, HYDNS_NAME_MAX);
		const struct hydns_preload_zone *z = hydns_preload_zone_of(l, name, len);

		if (z)
			look_at(l, z, name, len);
		at += len;
	}
	free(retyped.octets);
}
