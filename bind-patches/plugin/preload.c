/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded zones: what there is to ask of them, from their databases. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <dns/db.h>
#include <dns/dbiterator.h>
#include <dns/fixedname.h>
#include <dns/name.h>
#include <dns/rdataset.h>
#include <dns/rdatasetiter.h>
#include <dns/view.h>
#include <dns/zone.h>
#include <isc/util.h>
#include "compat.h"
#include "hydns/preload.h"
#include "plugin.h"
#include "plugin/clock.h"

/* --- one name ---------------------------------------------------------------------------------------------------- */
static bool add(struct hydns_preload_list *to, const dns_name_t *name, dns_rdatatype_t type)
{
	isc_region_t r;

	dns_name_toregion(name, &r);
	return hydns_preload_add(to, r.base, r.length, type);
}

static bool add_types(dns_rdatasetiter_t *types, const dns_name_t *name, struct hydns_preload_list *to,
		      struct hydns_preload_found *found)
{
	bool more = true;

	for (isc_result_t result = dns_rdatasetiter_first(types); more && result == ISC_R_SUCCESS; result = dns_rdatasetiter_next(types)) {
		dns_rdataset_t r;

		dns_rdataset_init(&r);
		dns_rdatasetiter_current(types, &r);
		hydns_preload_look_at(found, r.type);
		if (hydns_preload_asks(r.type))
			more = add(to, name, r.type);
		dns_rdataset_disassociate(&r);
	}
	return more;
}

/* What is answered below an origin for names that do not exist, and below a delegation for all names. */
static bool add_below(struct hydns_preload_list *to, const dns_name_t *name)
{
	isc_region_t r;

	dns_name_toregion(name, &r);
	return hydns_preload_add_below(to, r.base, r.length);
}

static bool add_no_ds(struct hydns_preload_list *to, const dns_name_t *name)
{
	isc_region_t r;

	dns_name_toregion(name, &r);
	return hydns_preload_add_no_ds(to, r.base, r.length);
}

static bool add_more(const dns_name_t *name, bool is_origin, bool is_signed, const struct hydns_preload_found *found,
		     struct hydns_preload_list *to)
{
	uint16_t type[HYDNS_PRELOAD_MORE];
	unsigned int n = hydns_preload_more(found, is_origin, type);
	bool more = true;

	for (unsigned int i = 0; more && i < n; i++)
		more = add(to, name, type[i]);
	if (more && hydns_preload_no_ds(found, is_origin, is_signed))
		more = add_no_ds(to, name);
	return more && (!hydns_preload_below(found) || add_below(to, name));
}

static bool list_node(dns_db_t *db, dns_dbversion_t *version, dns_dbnode_t *node, const dns_name_t *name, struct hydns_preload_list *to)
{
	dns_rdatasetiter_t *types = NULL;
	struct hydns_preload_found found = { 0 };
	bool more;

	if (dns_db_allrdatasets(db, node, version, 0, 0, &types) != ISC_R_SUCCESS)
		return true;
	more = add_types(types, name, to, &found);
	dns_rdatasetiter_destroy(&types);
	return more && add_more(name, dns_name_equal(name, dns_db_origin(db)), dns_db_issecure(db), &found, to);
}

/* --- a zone ------------------------------------------------------------------------------------------------------- */
static void list_one(dns_db_t *db, dns_dbversion_t *version, const dns_name_t *name, struct hydns_preload_list *to)
{
	dns_dbnode_t *node = NULL;

	if (dns_db_findnode(db, name, false, &node) != ISC_R_SUCCESS)
		return;
	(void)list_node(db, version, node, name, to);
	dns_db_detachnode(db, &node);
}

/* Where the name is not in the zone, the iterator stands before what is below it. */
static isc_result_t begin_at(dns_dbiterator_t *all, const dns_name_t *name)
{
	isc_result_t result = dns_dbiterator_seek(all, name);

	return result == DNS_R_PARTIALMATCH || result == ISC_R_NOTFOUND ? dns_dbiterator_next(all) : result;
}

static void list_below(dns_db_t *db, dns_dbversion_t *version, const dns_name_t *top, struct hydns_preload_list *to)
{
	dns_dbiterator_t *all = NULL;
	dns_fixedname_t fixed;
	dns_name_t *name = dns_fixedname_initname(&fixed);
	isc_result_t result;
	bool more = true;

	if (dns_db_createiterator(db, DNS_DB_NONSEC3, &all) != ISC_R_SUCCESS)
		return;
	result = dns_name_equal(top, dns_db_origin(db)) ? dns_dbiterator_first(all) : begin_at(all, top);
	for (; more && result == ISC_R_SUCCESS; result = dns_dbiterator_next(all)) {
		dns_dbnode_t *node = NULL;

		if (dns_dbiterator_current(all, &node, name) != ISC_R_SUCCESS)
			break;
		more = dns_name_issubdomain(name, top) && list_node(db, version, node, name, to);
		dns_db_detachnode(db, &node);
	}
	dns_dbiterator_destroy(&all);
}

static void to_name(const uint8_t *wire, size_t len, dns_name_t *out)
{
	isc_region_t r = { .base = UNCONST(wire), .length = (unsigned int)len };

	dns_name_init(out, NULL);
	dns_name_fromregion(out, &r);
}

/* What the thread has of the instance that it preloads for: a reload that keeps the rules puts the next one there. Whoever looks into
 * the view holds the lock. */
struct hydns_preloading {
	pthread_mutex_t lock;
	const struct hydns_instance *inst;
};

static int find_data(const struct hydns_instance *inst, const uint8_t *origin, size_t len, struct hydns_zone_data *z)
{
	dns_name_t name;

	*z = (struct hydns_zone_data){ .view = UNCONST(inst->view) };
	to_name(origin, len, &name);
	if (hydns_find_zone(z->view, &name, &z->zone) != ISC_R_SUCCESS)
		return -ENOENT;
	if (dns_zone_getdb(z->zone, &z->db) != ISC_R_SUCCESS) {
		dns_zone_detach(&z->zone);
		return -ENOENT;
	}
	dns_db_currentversion(z->db, &z->version);
	z->proofs = hydns_zone_proofs(z->db, z->version, &z->hashing);
	return 0;
}

/* With 0 the caller has the lock, until close_zone(). */
static int open_zone(struct hydns_preloading *of, const uint8_t *origin, size_t len, struct hydns_zone_data *z)
{
	int error;

	pthread_mutex_lock(&of->lock);
	error = find_data(of->inst, origin, len, z);
	if (error != 0)
		pthread_mutex_unlock(&of->lock);
	return error;
}

static void close_zone(struct hydns_preloading *of, struct hydns_zone_data *z)
{
	dns_db_closeversion(z->db, &z->version, false);
	dns_db_detach(&z->db);
	dns_zone_detach(&z->zone);
	pthread_mutex_unlock(&of->lock);
}

/* These four on the preloading thread. */
static int list(void *arg, const uint8_t *origin, size_t origin_len, const uint8_t *wire, size_t len, bool below,
		struct hydns_preload_list *to)
{
	struct hydns_zone_data z;
	dns_name_t name;
	int error = open_zone(arg, origin, origin_len, &z);

	if (error != 0)
		return error;
	to_name(wire, len, &name);
	if (below)
		list_below(z.db, z.version, &name, to);
	else
		list_one(z.db, z.version, &name, to);
	close_zone(arg, &z);
	return 0;
}

static int names(void *arg, const uint8_t *origin, size_t origin_len, struct hydns_preload_names *to)
{
	struct hydns_zone_data z;
	int error = open_zone(arg, origin, origin_len, &z);

	if (error != 0)
		return error;
	hydns_zone_names(&z, to);
	close_zone(arg, &z);
	return 0;
}

static int look(void *arg, const uint8_t *origin, size_t origin_len, const uint8_t *wire, size_t len, struct hydns_name_data *data)
{
	struct hydns_zone_data z;
	dns_name_t name;
	int error = open_zone(arg, origin, origin_len, &z);

	if (error != 0)
		return error;
	to_name(wire, len, &name);
	*data = hydns_zone_look(&z, &name);
	close_zone(arg, &z);
	return 0;
}

static int soa_of(void *arg, const uint8_t *origin, size_t origin_len, struct hydns_zone_soa *soa)
{
	struct hydns_zone_data z;
	int error = open_zone(arg, origin, origin_len, &z);

	if (error != 0)
		return error;
	(void)hydns_soa_of(z.db, z.version, soa);
	close_zone(arg, &z);
	return 0;
}

/* --- which zones -------------------------------------------------------------------------------------------------- */
/* Those that the options name, in that order, and then those whose own statements say so. */
struct wanted {
	struct hydns_names names;
	size_t named;                      /* of these by the options */
	bool short_of_memory, too_many;
};

static bool says_so(dns_zone_t *zone)
{
	return (dns_zone_getoptions(zone) & DNS_ZONEOPT_PRELOAD) != 0;
}

static bool is_named(const struct wanted *w, const struct hydns_forward_name *name)
{
	for (size_t i = 0; i < w->named; i++)
		if (w->names.name[i].name_len == name->name_len && memcmp(w->names.name[i].name, name->name, name->name_len) == 0)
			return true;
	return false;
}

static isc_result_t add_zone(dns_zone_t *zone, void *arg)
{
	struct hydns_forward_name name = { .name_len = 0 };
	struct wanted *w = arg;
	dns_fixedname_t fixed;
	dns_name_t *origin = dns_fixedname_initname(&fixed);

	if (!says_so(zone))
		return ISC_R_SUCCESS;
	(void)dns_name_downcase(dns_zone_getorigin(zone), origin, NULL);
	name.name_len = (uint8_t)origin->length;
	memcpy(name.name, origin->ndata, origin->length);
	if (is_named(w, &name))
		return ISC_R_SUCCESS;
	if (w->names.count == HYDNS_PRELOAD_ZONES)
		w->too_many = true;
	else if (!hydns_names_add(&w->names, &name))
		w->short_of_memory = true;
	return ISC_R_SUCCESS;
}

static struct wanted wanted_of(const struct hydns_instance *inst)
{
	struct wanted w = { .named = 0 };

	for (; w.named < inst->o.preload.count && !w.short_of_memory; w.named++)
		w.short_of_memory = !hydns_names_add(&w.names, &inst->o.preload.name[w.named]);
	w.named = w.names.count;
	(void)dns_view_apply(UNCONST(inst->view), false, NULL, add_zone, &w);
	return w;
}

static isc_result_t find_one(dns_zone_t *zone, void *arg)
{
	*(bool *)arg = says_so(zone);
	return *(bool *)arg ? ISC_R_EXISTS : ISC_R_SUCCESS;
}

bool hydns_preload_is_wanted(const struct hydns_instance *inst, dns_view_t *view)
{
	bool found = inst->o.preload.count != 0;

	if (!found)
		(void)dns_view_apply(view, true, NULL, find_one, &found);
	return found;
}

/* Whether inst wants others than former has wanted since its start. */
static bool are_news(const struct hydns_instance *former, const struct hydns_instance *inst)
{
	const struct wanted w = wanted_of(inst);
	const size_t n = w.names.count;
	bool news = n != former->preloaded.count ||
		    (n != 0 && memcmp(w.names.name, former->preloaded.name, n * sizeof(*w.names.name)) != 0);

	free(w.names.name);
	return news;
}

bool hydns_preload_is_news(struct hydns_instance *inst)
{
	bool news;

	if (!atomic_load(&inst->open))
		return false;
	pthread_mutex_lock(&inst->starting);
	news = are_news(inst, inst);
	pthread_mutex_unlock(&inst->starting);
	return news;
}

/* --- a reload ----------------------------------------------------------------------------------------------------- */
/* All loops wait meanwhile. To look at a name takes far less, to gather a large zone's names far more. */
#define HAND_OVER_MS 100

static bool lock_soon(struct hydns_preloading *of)
{
	const uint64_t end = hydns_mono_ns() + HAND_OVER_MS * HYDNS_NS_PER_MS;
	const struct timespec until = { .tv_sec = (time_t)(end / HYDNS_NS_PER_S), .tv_nsec = (long)(end % HYDNS_NS_PER_S) };

	return pthread_mutex_clocklock(&of->lock, CLOCK_MONOTONIC, &until) == 0;
}

const char *hydns_preload_hand_over(struct hydns_instance *former, struct hydns_instance *inst)
{
	struct hydns_preloading *of = former->preloading;

	if (are_news(former, inst))
		return "it preloads other zones";
	if (of != NULL && !lock_soon(of))
		return "a zone was being read, to be preloaded";
	inst->preloaded = former->preloaded;
	former->preloaded = (struct hydns_names){ 0 };
	if (of == NULL)
		return NULL;
	of->inst = inst;
	inst->preloading = of;
	former->preloading = NULL;
	pthread_mutex_unlock(&of->lock);
	return NULL;
}

/* --- the start --------------------------------------------------------------------------------------------------- */
static void choose(struct hydns_instance *inst)
{
	struct wanted w = wanted_of(inst);

	if (w.too_many)
		hydns_named_log(HYDNS_LOG_ERROR, "hydns-preload: more than 65536 zones of a view have it: the others are not preloaded");
	if (w.short_of_memory)
		hydns_named_log(HYDNS_LOG_ERROR, "hydns-preload: out of memory: some zones are not preloaded");
	free(inst->preloaded.name);
	inst->preloaded = w.names;
}

_Static_assert(HYDNS_PRELOAD_ZONES == 65536, "as the words above say");

static struct hydns_preloading *preloading_of(const struct hydns_instance *inst)
{
	struct hydns_preloading *of = malloc(sizeof(*of));

	if (of == NULL)
		return NULL;
	pthread_mutex_init(&of->lock, NULL);
	of->inst = inst;
	return of;
}

static int begin(struct hydns_instance *inst, struct hydns_plugin *p)
{
	struct hydns_preload_options o = {
		.edns_size = hydns_edns_size(UNCONST(inst->view)), .list = list, .names = names, .look = look, .soa = soa_of,
		.zone = inst->preloaded.name, .zones = inst->preloaded.count,
	};

	if (inst->preloading == NULL)
		inst->preloading = preloading_of(inst);
	if (inst->preloading == NULL)
		return -ENOMEM;
	o.arg = inst->preloading;
	for (size_t i = 0; i < inst->sockets; i++)     /* of the view */
		hydns_preload_consider_service(&o, inst->socket[i].fd);
	return hydns_plugin_preload(p, &o);
}

void hydns_preload_begin(struct hydns_instance *inst, struct hydns_plugin *p)
{
	char text[128];
	int error;

	choose(inst);
	if (inst->preloaded.count == 0)
		return;
	error = begin(inst, p);
	if (error == 0)
		return;
	snprintf(text, sizeof(text), "hydns-preload: no zone is preloaded: cannot ask named itself: %s", strerror(-error));
	hydns_named_log(HYDNS_LOG_ERROR, text);
}

void hydns_preload_end(struct hydns_instance *inst)
{
	if (inst->preloading == NULL)
		return;
	pthread_mutex_destroy(&inst->preloading->lock);
	free(inst->preloading);
	inst->preloading = NULL;
}
