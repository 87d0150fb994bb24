/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a response that named makes at the end of a resolution is the one that it would make from its cache now. The resolution
 * may be older than a flush, which its answer does not show. So each RRset of the response is looked up again, as for a client that
 * asks now, and must be the very one that the cache has.
 */
#include <isc/util.h>
#include <dns/db.h>
#include <dns/fixedname.h>
#include <dns/message.h>
#include <dns/name.h>
#include <dns/rdataset.h>
#include <dns/view.h>
#include <dns/zone.h>
#include <dns/zt.h>
#include <ns/client.h>
#include <ns/query.h>
#include "plugin.h"

/* What the cache has for a name of the response. */
struct cached {
	dns_rdataset_t data, signatures;
};

static void free_cached(struct cached *c)
{
	if (dns_rdataset_isassociated(&c->data))
		dns_rdataset_disassociate(&c->data);
	if (dns_rdataset_isassociated(&c->signatures))
		dns_rdataset_disassociate(&c->signatures);
}

/* Whatever is found, also a denial or an alias. */
static void look_up(const query_ctx_t *qctx, dns_db_t *cache, const dns_name_t *name, struct cached *out)
{
	dns_fixedname_t found;
	dns_dbnode_t *node = NULL;

	dns_rdataset_init(&out->data);
	dns_rdataset_init(&out->signatures);
	(void)dns_db_find(cache, name, NULL, qctx->client->query.qtype, 0, qctx->client->now, &node, dns_fixedname_initname(&found),
			  &out->data, &out->signatures);
	if (node != NULL)
		dns_db_detachnode(cache, &node);
}

/* Both are views of the same memory of the cache, made in the same second of its time. */
static bool is_same(const dns_rdataset_t *a, const dns_rdataset_t *b)
{
	return dns_rdataset_isassociated(b) && a->methods == b->methods && a->type == b->type && a->slab.raw == b->slab.raw &&
	       a->ttl == b->ttl;
}

static bool has_all_of(const query_ctx_t *qctx, dns_db_t *cache, const dns_name_t *name)
{
	struct cached c;
	bool all = true;

	look_up(qctx, cache, name, &c);
	for (dns_rdataset_t *r = ISC_LIST_HEAD(name->list); all && r != NULL; r = ISC_LIST_NEXT(r, link))
		all = is_same(r, &c.data) || is_same(r, &c.signatures);
	free_cached(&c);
	return all;
}

/* Where named looks before its cache, and may have other rules for who is answered. */
static bool is_in_zone(const dns_view_t *view, const dns_name_t *name)
{
	dns_zone_t *zone = NULL;
	isc_result_t result = dns_view_findzone(UNCONST(view), name, DNS_ZTFIND_MIRROR, &zone);

	if (zone != NULL)
		dns_zone_detach(&zone);
	return result != ISC_R_NOTFOUND;
}

bool hydns_cache_gives(const query_ctx_t *qctx)
{
	static const dns_section_t sections[] = { DNS_SECTION_ANSWER, DNS_SECTION_AUTHORITY };
	const dns_message_t *m = qctx->client->message;
	dns_db_t *cache = NULL;
	bool all = true;

	if (qctx->view->cachedb == NULL)
		return false;
	dns_db_attach(qctx->view->cachedb, &cache);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		for (dns_name_t *name = ISC_LIST_HEAD(m->sections[sections[i]]); all && name != NULL; name = ISC_LIST_NEXT(name, link))
			all = !is_in_zone(qctx->view, name) && has_all_of(qctx, cache, name);
	dns_db_detach(&cache);
	return all;
}
