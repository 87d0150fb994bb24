/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded auth-zones: their names, and what Unbound answers for those below them that a zone does not have. Unbound's local zones come
 * before its auth-zones, so nothing is said of a name that is in one.
 */
#include "config.h"
#include <errno.h>
#include <string.h>
#include "hydns_compat.h"
#include "hydns_daemon.h"
#include "hydns/names.h"
#include "daemon/daemon.h"
#include "services/authzone.h"
#include "services/localzone.h"
#include "sldns/rrdef.h"
#include "sldns/sbuffer.h"
#include "util/data/dname.h"
#include "util/data/packed_rrset.h"
#include "util/rbtree.h"
#include "validator/val_nsec3.h"
#include "validator/val_secalgo.h"

#define WILDCARD_LEN 2
#define NSEC3PARAM_LEAST 5              /* octets of RDATA before the salt */

/* A name within a zone. */
struct within {
	struct hydns_daemon* d;
	struct auth_zone* z;
	enum hydns_proofs proofs;
	uint8_t* name;
	size_t len;
};

/* --- other zones --------------------------------------------------------------------------------------------- */
/* Whether a local zone may answer for the name. */
static int is_local(struct local_zones* local, uint8_t* name, size_t len)
{
	int found;

	lock_rw_rdlock(&local->lock);
	found = HYDNS_LOCAL_ZONE(local, name, len, dname_count_labels(name), LDNS_RR_TYPE_A) != NULL;
	lock_rw_unlock(&local->lock);
	return found;
}

static int is_foreign(const struct within* w)
{
	return is_local(w->d->daemon->local_zones, w->name, w->len) ||
		auth_zones_find_zone(w->d->daemon->env->auth_zones, w->name, w->len, LDNS_RR_CLASS_IN) != w->z;
}

static int add_foreign(struct hydns_preload_names* to, const struct within* zone, uint8_t* name, size_t len)
{
	struct hydns_name_data foreign;

	memset(&foreign, 0, sizeof(foreign));
	foreign.below = HYDNS_BELOW_FOREIGN;
	foreign.proofs = zone->proofs;
	return len <= zone->len || !dname_subdomain_c(name, zone->name) || hydns_preload_add_name(to, name, len, foreign);
}

/* Those that begin below this one, whether it has data there or not. */
static void add_zones(const struct within* zone, struct hydns_preload_names* to)
{
	struct auth_zone* other;
	int more = 1;

	RBTREE_FOR(other, struct auth_zone*, &zone->d->daemon->env->auth_zones->ztree)
		more = more && add_foreign(to, zone, other->name, other->namelen);
}

static void add_local_zones(const struct within* zone, struct hydns_preload_names* to)
{
	struct local_zones* local = zone->d->daemon->local_zones;
	struct local_zone* other;
	int more = 1;

	lock_rw_rdlock(&local->lock);
	RBTREE_FOR(other, struct local_zone*, &local->ztree)
		more = more && add_foreign(to, zone, other->name, other->namelen);
	lock_rw_unlock(&local->lock);
}

/* --- one name ------------------------------------------------------------------------------------------------ */
struct content {
	int any, ns, dname, ds;         /* any: that are not proofs alone, as those of hashed names */
	int nsec, nsec3, nsec3param;
	uint16_t types;                 /* hydns_names_types() of all */
};

static struct content content_of(const struct auth_data* n)
{
	struct content c;
	const struct auth_rrset* r;

	memset(&c, 0, sizeof(c));
	for(r = n ? n->rrsets : NULL; r; r = r->next) {
		c.any |= r->type != LDNS_RR_TYPE_NSEC3 && r->type != LDNS_RR_TYPE_RRSIG;
		c.ns |= r->type == LDNS_RR_TYPE_NS;
		c.dname |= r->type == LDNS_RR_TYPE_DNAME;
		c.ds |= r->type == LDNS_RR_TYPE_DS;
		c.nsec |= r->type == LDNS_RR_TYPE_NSEC;
		c.nsec3 |= r->type == LDNS_RR_TYPE_NSEC3;
		c.nsec3param |= r->type == LDNS_RR_TYPE_NSEC3PARAM;
		c.types |= (uint16_t)hydns_names_types(r->type);
	}
	return c;
}

/* For a search of a zone's data. */
static void set_key(struct auth_data* key, uint8_t* name, size_t len)
{
	memset(key, 0, sizeof(*key));
	key->node.key = key;
	key->name = name;
	key->namelen = len;
	key->namelabs = dname_count_labels(name);
}

static struct auth_data* node_at(struct auth_zone* z, uint8_t* name, size_t len)
{
	struct auth_data key;

	set_key(&key, name, len);
	return (struct auth_data*)rbtree_search(&z->data, &key);
}

static struct content content_at(struct auth_zone* z, uint8_t* name, size_t len)
{
	return content_of(node_at(z, name, len));
}

static int is_wildcard(const uint8_t* name)
{
	return name[0] == 1 && name[1] == '*';
}

static int has_wildcard(struct auth_zone* z, const uint8_t* name, size_t len)
{
	uint8_t wildcard[LDNS_MAX_DOMAINLEN + WILDCARD_LEN];

	if(len + WILDCARD_LEN > LDNS_MAX_DOMAINLEN)
		return 0;
	memcpy(wildcard, "\1*", WILDCARD_LEN);
	memcpy(wildcard + WILDCARD_LEN, name, len);
	return content_at(z, wildcard, len + WILDCARD_LEN).any;
}

/* Whether a delegation or DNAME above the name hides its data. */
static int is_hidden(const struct within* w)
{
	uint8_t* name = w->name;
	size_t len = w->len;

	while(len > w->z->namelen) {
		struct content c;

		dname_remove_label(&name, &len);
		c = content_at(w->z, name, len);
		if(c.dname || (c.ns && len > w->z->namelen))
			return 1;
	}
	return 0;
}

/* Whether there are data below a name that has none. */
static int is_empty_nonterminal(const struct within* w)
{
	struct auth_data key, *n;
	rbnode_type* found = NULL;

	set_key(&key, w->name, w->len);
	(void)rbtree_find_less_equal(&w->z->data, &key, &found);
	n = (struct auth_data*)(found ? rbtree_next(found) : rbtree_first(&w->z->data));
	return n != (struct auth_data*)RBTREE_NULL && dname_strict_subdomain_c(n->name, w->name);
}

/* Unbound looks for a wildcard from the name up to the closest one that has data, past those that have none, which would end the search
 * by RFC 4592 section 3.3.1. */
static int may_be_of_wildcard(const struct within* w)
{
	uint8_t* name = w->name;
	size_t len = w->len;

	for(;;) {
		if(has_wildcard(w->z, name, len))
			return 1;
		if(len <= w->z->namelen || content_at(w->z, name, len).any)
			return 0;
		dname_remove_label(&name, &len);
	}
}

static struct hydns_name_data data_of(const struct within* w)
{
	const struct content c = content_at(w->z, w->name, w->len);
	struct hydns_name_data data;

	memset(&data, 0, sizeof(data));
	data.types = c.types;
	data.proofs = w->proofs;
	if(is_foreign(w))
		data.below = HYDNS_BELOW_FOREIGN;
	else if(!c.any && !is_empty_nonterminal(w))
		data.below = HYDNS_BELOW_ABSENT;
	else if(c.dname || is_wildcard(w->name) || is_hidden(w))
		data.below = HYDNS_BELOW_ELSE;
	else if(c.ns && w->len > w->z->namelen)
		data.below = HYDNS_BELOW_CUT;
	else	data.below = may_be_of_wildcard(w) ? HYDNS_BELOW_ELSE : HYDNS_BELOW_NOTHING;
	data.no_ds = data.below == HYDNS_BELOW_CUT && !c.ds && c.types != HYDNS_NAMES_TYPES_ALL; /* nor is it an alias */
	data.unproved = !c.any;         /* Unbound takes the closest name with data for the closest encloser */
	return data;
}

/* --- all names ----------------------------------------------------------------------------------------------- */
/* The names above it that have no data, of which the one before it in the zone's order, which may be NULL, has not told already. */
static int add_above(struct within w, const struct auth_data* before, struct hydns_preload_names* to)
{
	for(;;) {
		dname_remove_label(&w.name, &w.len);
		if(w.len <= w.z->namelen || (before && dname_subdomain_c(before->name, w.name)))
			return 1;
		if(!content_at(w.z, w.name, w.len).any && !hydns_preload_add_name(to, w.name, w.len, data_of(&w)))
			return 0;
	}
}

static int add_node(struct within w, const struct auth_data* before, struct hydns_preload_names* to)
{
	return (w.len <= w.z->namelen || add_above(w, before, to)) && hydns_preload_add_name(to, w.name, w.len, data_of(&w));
}

static void add_nodes(struct within w, struct hydns_preload_names* to)
{
	struct auth_data* n, *before = NULL;
	int more = 1;

	RBTREE_FOR(n, struct auth_data*, &w.z->data) {
		w.name = n->name;
		w.len = n->namelen;
		if(more && content_of(n).any) {
			more = add_node(w, before, to);
			before = n;
		}
	}
}

/* --- how it is signed ---------------------------------------------------------------------------------------- */
static enum hydns_proofs proofs_of(struct auth_zone* z)
{
	const struct content c = content_at(z, z->name, z->namelen);

	return c.nsec || c.nsec3 ? HYDNS_PROOFS_NSEC : c.nsec3param ? HYDNS_PROOFS_NSEC3 : HYDNS_PROOFS_NONE;
}

int hydns_zone_is_signed(struct auth_zone* z)
{
	return proofs_of(z) != HYDNS_PROOFS_NONE;
}

/* Whether there are proofs in a zone that does not look signed. Unbound gives them. */
static int has_stray_proofs(struct auth_zone* z)
{
	struct auth_data* n;

	if(hydns_zone_is_signed(z))
		return 0;
	RBTREE_FOR(n, struct auth_data*, &z->data)
		if(content_of(n).nsec || content_of(n).nsec3)
			return 1;
	return 0;
}

/* --- the chain of NSEC3 records, as az_add_nsec3_proof() of Unbound's authzone.c takes them ----------------------- */
/* The same parameters as az_nsec3_param(). */
static int tell_hashing(struct auth_zone* z, struct hydns_preload_names* to)
{
	const struct auth_data* apex = node_at(z, z->name, z->namelen);
	const struct auth_rrset* r;
	size_t i;

	for(r = apex ? apex->rrsets : NULL; r && r->type != LDNS_RR_TYPE_NSEC3PARAM; r = r->next)
		;
	for(i = 0; r && i < r->data->count; i++) {
		const uint8_t* rdata = r->data->rr_data[i] + 2;
		size_t len = r->data->rr_len[i];

		if(len < 2 + NSEC3PARAM_LEAST || len < 2 + NSEC3PARAM_LEAST + (size_t)rdata[4] ||
			nsec3_hash_algo_size_supported(rdata[0]) == 0 || (rdata[1] & NSEC3_UNKNOWN_FLAGS))
			continue;
		hydns_preload_hashes(to, rdata[0], sldns_read_uint16(rdata + 2), rdata + NSEC3PARAM_LEAST, rdata[4]);
		return 1;
	}
	return 0;
}

/* Whether it is the owner name of a record of the chain: a label and the zone's name. */
static int is_in_chain(const struct auth_zone* z, const struct auth_data* n)
{
	uint8_t hash[HYDNS_SHA1_OCTETS];

	return n->namelen == 1U + n->name[0] + z->namelen && hydns_hash_of_label(n->name, hash);
}

/* Whether all proofs are NSEC3 records in their places. Unbound gives others that it comes across, too. */
static int is_all_chain(struct auth_zone* z)
{
	struct auth_data* n;

	RBTREE_FOR(n, struct auth_data*, &z->data) {
		const struct content c = content_of(n);

		if(c.nsec || (c.nsec3 && !is_in_chain(z, n)))
			return 0;
	}
	return 1;
}

static void add_chain(struct auth_zone* z, struct hydns_preload_names* to)
{
	struct auth_data* n;
	int more = 1;

	RBTREE_FOR(n, struct auth_data*, &z->data)
		if(more && content_of(n).nsec3)
			more = hydns_preload_add_hash(to, n->name);
}

/* --- for the preloading thread ------------------------------------------------------------------------------- */
int hydns_names_all(void* arg, const uint8_t* origin, size_t origin_len, struct hydns_preload_names* to)
{
	struct hydns_daemon* d = (struct hydns_daemon*)arg;
	struct auth_zone* z = hydns_preload_open_zone(d, origin, origin_len);
	int is_sound;

	if(!z)
		return -ENOENT;
	is_sound = !has_stray_proofs(z);
	if(is_sound) {
		struct within zone = { d, z, proofs_of(z), z->name, z->namelen };
		int hashes = zone.proofs == HYDNS_PROOFS_NSEC3 && is_all_chain(z) && tell_hashing(z, to);

		add_nodes(zone, to);
		if(hashes)
			add_chain(z, to);
		add_zones(&zone, to);
		add_local_zones(&zone, to);
	}
	hydns_preload_close_zone(d, z);
	return is_sound ? 0 : -ENOENT;
}

int hydns_names_look(void* arg, const uint8_t* origin, size_t origin_len, const uint8_t* name, size_t name_len,
	struct hydns_name_data* data)
{
	struct hydns_daemon* d = (struct hydns_daemon*)arg;
	struct auth_zone* z = hydns_preload_open_zone(d, origin, origin_len);
	uint8_t copy[HYDNS_NAME_MAX];
	struct within w = { d, z, HYDNS_PROOFS_NONE, copy, name_len };

	if(!z)
		return -ENOENT;
	memcpy(copy, name, name_len);
	w.proofs = proofs_of(z);
	*data = data_of(&w);
	hydns_preload_close_zone(d, z);
	return 0;
}
