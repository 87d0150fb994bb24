/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded zones: their names, and what a zone says of those below them that it does not have. */
#include <dns/db.h>
#include <dns/dbiterator.h>
#include <dns/fixedname.h>
#include <dns/name.h>
#include <dns/rdataset.h>
#include <dns/rdatasetiter.h>
#include <dns/result.h>
#include <dns/view.h>
#include <dns/zone.h>
#include <isc/util.h>
#include "compat.h"
#include "hydns/names.h"
#include "hydns/nsec3.h"
#include "plugin.h"

/* Whether named answers for this name from another zone. */
static bool is_foreign(const struct hydns_zone_data *z, const dns_name_t *name)
{
	dns_zone_t *zone = NULL;
	bool foreign;

	(void)dns_view_findzone(z->view, name, 0, &zone);
	foreign = zone != NULL && zone != z->zone;
	if (zone != NULL)
		dns_zone_detach(&zone);
	return foreign;
}

/* What a node has. */
struct content {
	bool any, ns, dname, ds;
	uint16_t types;                /* hydns_names_types() of all */
};

static struct content content_of(const struct hydns_zone_data *z, dns_dbnode_t *node)
{
	dns_rdatasetiter_t *types = NULL;
	struct content c = { 0 };

	if (dns_db_allrdatasets(z->db, node, z->version, 0, 0, &types) != ISC_R_SUCCESS)
		return (struct content){ .any = true, .dname = true };  /* nothing is said below it */
	for (isc_result_t result = dns_rdatasetiter_first(types); result == ISC_R_SUCCESS; result = dns_rdatasetiter_next(types)) {
		dns_rdataset_t r;

		dns_rdataset_init(&r);
		dns_rdatasetiter_current(types, &r);
		c.any = true;
		c.types |= hydns_names_types(r.type);
		c.ns |= r.type == dns_rdatatype_ns;
		c.dname |= r.type == dns_rdatatype_dname;
		c.ds |= r.type == dns_rdatatype_ds;
		dns_rdataset_disassociate(&r);
	}
	dns_rdatasetiter_destroy(&types);
	return c;
}

/* --- names that exist by others alone, in a zone with NSEC3 ---------------------------------------------------------- */
static bool has_nsec3(const struct hydns_zone_data *z, const dns_name_t *hashed)
{
	dns_dbnode_t *node = NULL;
	dns_rdataset_t r;
	isc_result_t result;

	if (dns_db_findnsec3node(z->db, hashed, false, &node) != ISC_R_SUCCESS)
		return false;
	dns_rdataset_init(&r);
	result = dns_db_findrdataset(z->db, node, z->version, dns_rdatatype_nsec3, 0, 0, &r, NULL);
	if (dns_rdataset_isassociated(&r))
		dns_rdataset_disassociate(&r);
	dns_db_detachnode(z->db, &node);
	return result == ISC_R_SUCCESS;
}

/* False: the way is none that the program computes, or there is no room for the name. dns_nsec3_hashname() is for named's own threads. */
static bool hashed_name(const struct hydns_zone_data *z, const dns_name_t *name, dns_name_t *hashed)
{
	struct hydns_nsec3 how = { .iterations = (uint8_t)z->hashing.iterations, .salt_len = (uint8_t)z->hashing.salt_len };
	uint8_t hash[HYDNS_SHA1_OCTETS], label[1 + HYDNS_HASHED_LABEL];
	isc_region_t r, first = { .base = label, .length = sizeof(label) };
	dns_name_t relative;

	if (!hydns_nsec3_fits(z->hashing.algorithm, z->hashing.iterations, (unsigned int)z->hashing.salt_len))
		return false;
	memcpy(how.salt, z->hashing.salt, z->hashing.salt_len);
	(void)dns_name_downcase(name, hashed, NULL);
	dns_name_toregion(hashed, &r);
	hydns_nsec3_hash(r.base, r.length, &how, hash);
	hydns_hash_to_label(hash, label);
	dns_name_init(&relative, NULL);
	dns_name_fromregion(&relative, &first);
	return dns_name_concatenate(&relative, dns_db_origin(z->db), hashed, NULL) == ISC_R_SUCCESS;
}

/* With opt-out one that only delegations without signatures make exist has no record (RFC 5155 section 7.1): named then proves that one
 * above is the closest encloser. */
static bool is_unproved(const struct hydns_zone_data *z, const dns_name_t *name)
{
	dns_fixedname_t fixed;
	dns_name_t *hashed = dns_fixedname_initname(&fixed);

	return z->proofs == HYDNS_PROOFS_NSEC3 && hashed_name(z, name, hashed) && !has_nsec3(z, hashed);
}

static bool is_origin(const struct hydns_zone_data *z, const dns_name_t *name)
{
	return dns_name_equal(name, dns_db_origin(z->db));
}

static struct hydns_name_data only(enum hydns_below below)
{
	return (struct hydns_name_data){ .below = below };
}

static struct hydns_name_data cut(const struct content *c)
{
	return (struct hydns_name_data){ .below = HYDNS_BELOW_CUT, .no_ds = !c->ds };
}

/* Of a name that is not below a delegation or DNAME. */
static struct hydns_name_data data_of(const struct hydns_zone_data *z, const dns_name_t *name, const struct content *c)
{
	struct hydns_name_data data = { .below = HYDNS_BELOW_NOTHING, .types = c->types };

	if (is_foreign(z, name))
		data.below = HYDNS_BELOW_FOREIGN;
	else if (c->dname || dns_name_iswildcard(name))
		data.below = HYDNS_BELOW_ELSE;
	else if (c->ns && !is_origin(z, name))
		return cut(c);
	data.unproved = !c->any && is_unproved(z, name);
	return data;
}

static bool add(const struct hydns_zone_data *z, struct hydns_preload_names *to, const dns_name_t *name, struct hydns_name_data what)
{
	isc_region_t r;

	what.proofs = z->proofs;
	dns_name_toregion(name, &r);
	return hydns_preload_add_name(to, r.base, r.length, what);
}

/* --- all names ----------------------------------------------------------------------------------------------------- */
struct walk {
	const struct hydns_zone_data *z;
	struct hydns_preload_names *to;
	dns_name_t *last;
	dns_name_t *hides;             /* the last name below which the zone's own data are hidden */
	bool hidden;                   /* there was one */
};

/* The names above it that have no data, but for those above the last name, for names come in canonical order. */
static bool add_above(struct walk *w, const dns_name_t *name)
{
	const unsigned int labels = dns_name_countlabels(name), origin = dns_name_countlabels(dns_db_origin(w->z->db));
	const struct content nothing = { 0 };
	bool more = true;

	for (unsigned int n = origin + 1; more && n < labels; n++) {
		dns_name_t above;

		dns_name_init(&above, NULL);
		dns_name_getlabelsequence(name, labels - n, n, &above);
		if (!dns_name_issubdomain(w->last, &above))
			more = add(w->z, w->to, &above, data_of(w->z, &above, &nothing));
	}
	return more;
}

static bool add_node(struct walk *w, dns_dbnode_t *node, const dns_name_t *name)
{
	const struct content c = content_of(w->z, node);
	struct hydns_name_data what;

	if (!c.any)
		return true;
	if (w->hidden && dns_name_issubdomain(name, w->hides))
		return add(w->z, w->to, name, only(HYDNS_BELOW_ELSE));
	if (w->z->proofs == HYDNS_PROOFS_NSEC3 && !add_above(w, name))
		return false;
	dns_name_copy(name, w->last);
	what = data_of(w->z, name, &c);
	if (what.below == HYDNS_BELOW_CUT || what.below == HYDNS_BELOW_FOREIGN || c.dname) {
		dns_name_copy(name, w->hides);
		w->hidden = true;
	}
	return add(w->z, w->to, name, what);
}

/* Zones that begin below this one, whether it has data of theirs or not. */
static isc_result_t add_zone(dns_zone_t *zone, void *arg)
{
	const struct walk *w = arg;
	const dns_name_t *origin = dns_zone_getorigin(zone);

	if (zone != w->z->zone && dns_name_issubdomain(origin, dns_db_origin(w->z->db)))
		(void)add(w->z, w->to, origin, only(HYDNS_BELOW_FOREIGN));
	return ISC_R_SUCCESS;
}

/* The owner names of NSEC3 records. */
static void add_chain(const struct hydns_zone_data *z, struct hydns_preload_names *to)
{
	dns_fixedname_t fixed;
	dns_name_t *name = dns_fixedname_initname(&fixed);
	dns_dbiterator_t *all = NULL;
	isc_result_t result;
	bool more = true;

	if (z->proofs != HYDNS_PROOFS_NSEC3 || dns_db_createiterator(z->db, DNS_DB_NSEC3ONLY, &all) != ISC_R_SUCCESS)
		return;
	for (result = dns_dbiterator_first(all); more && result == ISC_R_SUCCESS; result = dns_dbiterator_next(all)) {
		dns_dbnode_t *node = NULL;
		isc_region_t r;

		if (dns_dbiterator_current(all, &node, name) != ISC_R_SUCCESS)
			break;
		dns_db_detachnode(z->db, &node);
		dns_name_toregion(name, &r);
		more = hydns_preload_add_hash(to, r.base);
	}
	dns_dbiterator_destroy(&all);
}

void hydns_zone_names(const struct hydns_zone_data *z, struct hydns_preload_names *to)
{
	dns_fixedname_t fixed, last, hides;
	dns_name_t *name = dns_fixedname_initname(&fixed);
	struct walk w = { .z = z, .to = to, .last = dns_fixedname_initname(&last), .hides = dns_fixedname_initname(&hides) };
	dns_dbiterator_t *all = NULL;
	isc_result_t result, ignored;
	bool more = true;

	if (dns_db_createiterator(z->db, DNS_DB_NONSEC3, &all) != ISC_R_SUCCESS)
		return;
	if (z->proofs == HYDNS_PROOFS_NSEC3)
		hydns_preload_hashes(to, z->hashing.algorithm, z->hashing.iterations, z->hashing.salt, z->hashing.salt_len);
	for (result = dns_dbiterator_first(all); more && result == ISC_R_SUCCESS; result = dns_dbiterator_next(all)) {
		dns_dbnode_t *node = NULL;

		if (dns_dbiterator_current(all, &node, name) != ISC_R_SUCCESS)
			break;
		more = add_node(&w, node, name);
		dns_db_detachnode(z->db, &node);
	}
	dns_dbiterator_destroy(&all);
	if (more)
		add_chain(z, to);
	(void)dns_view_apply(z->view, false, &ignored, add_zone, &w);
}

/* --- one name ------------------------------------------------------------------------------------------------------ */
static isc_result_t find(const struct hydns_zone_data *z, const dns_name_t *name, dns_dbnode_t **node)
{
	dns_fixedname_t fixed;
	dns_rdataset_t r;
	isc_result_t result;

	dns_rdataset_init(&r);
	result = dns_db_find(z->db, name, z->version, dns_rdatatype_any, DNS_DBFIND_NOWILD, 0, node, dns_fixedname_initname(&fixed), &r, NULL);
	if (dns_rdataset_isassociated(&r))
		dns_rdataset_disassociate(&r);
	/* what hides the name, and not its own delegation */
	return (result == DNS_R_DELEGATION || result == DNS_R_DNAME) && !dns_name_equal(dns_fixedname_name(&fixed), name) ? DNS_R_GLUE : result;
}

static bool has_wildcard(const struct hydns_zone_data *z, const dns_name_t *name)
{
	dns_fixedname_t fixed;
	dns_name_t *wildcard = dns_fixedname_initname(&fixed);
	dns_dbnode_t *node = NULL;
	isc_result_t result;

	if (dns_name_concatenate(dns_wildcardname, name, wildcard, NULL) != ISC_R_SUCCESS)
		return false;          /* it would be too long for a name */
	result = find(z, wildcard, &node);
	if (node != NULL)
		dns_db_detachnode(z->db, &node);
	return result != DNS_R_NXDOMAIN;
}

static struct hydns_name_data look(const struct hydns_zone_data *z, const dns_name_t *name)
{
	dns_dbnode_t *node = NULL;
	isc_result_t result = find(z, name, &node);
	struct content c = { 0 };

	if (node != NULL) {
		if (result == ISC_R_SUCCESS || result == DNS_R_DELEGATION)   /* else it may be that of the NSEC record before the name */
			c = content_of(z, node);
		dns_db_detachnode(z->db, &node);
	}
	if (is_foreign(z, name))
		return only(HYDNS_BELOW_FOREIGN);
	if (result == DNS_R_NXDOMAIN || result == DNS_R_EMPTYWILD)
		return only(HYDNS_BELOW_ABSENT);
	if (result == DNS_R_DELEGATION)
		return cut(&c);
	if ((result != ISC_R_SUCCESS && result != DNS_R_EMPTYNAME) || has_wildcard(z, name))
		return only(HYDNS_BELOW_ELSE);
	return data_of(z, name, &c);
}

struct hydns_name_data hydns_zone_look(const struct hydns_zone_data *z, const dns_name_t *name)
{
	struct hydns_name_data data = look(z, name);

	data.proofs = z->proofs;
	return data;
}

/* --- how it is signed ---------------------------------------------------------------------------------------------- */
enum hydns_proofs hydns_zone_proofs(dns_db_t *db, dns_dbversion_t *version, struct hydns_zone_hashing *how)
{
	dns_hash_t hash;
	uint8_t flags;

	*how = (struct hydns_zone_hashing){ .salt_len = sizeof(how->salt) };
	if (!dns_db_issecure(db))
		return HYDNS_PROOFS_NONE;
	if (dns_db_getnsec3parameters(db, version, &hash, &flags, &how->iterations, how->salt, &how->salt_len) != ISC_R_SUCCESS)
		return HYDNS_PROOFS_NSEC;
	how->algorithm = hash;
	return HYDNS_PROOFS_NSEC3;
}
