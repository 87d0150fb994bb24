/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers from zones: which are the same for everybody. */
#include <string.h>
#include <isc/radix.h>
#include <isc/util.h>
#include <dns/acl.h>
#include <dns/db.h>
#include <dns/fixedname.h>
#include <dns/iptable.h>
#include <dns/message.h>
#include <dns/name.h>
#include <dns/rdataset.h>
#include <dns/view.h>
#include <dns/zone.h>
#include <ns/client.h>
#include <ns/query.h>
#include "compat.h"
#include "plugin.h"

/* --- a zone's access control ---------------------------------------------------------------------------------- */
static bool same_verdict(const bool *a, const bool *b)
{
	return a == NULL || b == NULL ? a == b : *a == *b;
}

/* Whether both trees have the same prefixes, in the same order of entry. A tree is at most as deep as an address has bits. */
static bool same_tree(const isc_radix_node_t *a, const isc_radix_node_t *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	if (a->bit != b->bit || (a->prefix == NULL) != (b->prefix == NULL) ||
	    (a->prefix != NULL && (a->prefix->bitlen != b->prefix->bitlen || a->prefix->family != b->prefix->family ||
				   memcmp(&a->prefix->add, &b->prefix->add, (a->prefix->bitlen + 7) / 8) != 0)))
		return false;
	for (int family = 0; family < RADIX_FAMILIES; family++)
		if (a->node_num[family] != b->node_num[family] || !same_verdict(a->data[family], b->data[family]))
			return false;
	return same_tree(a->l, b->l) && same_tree(a->r, b->r);
}

static bool same_acl(const dns_acl_t *a, const dns_acl_t *b)
{
	if (a->length != b->length || !ISC_LIST_EMPTY(a->ports_and_transports) ||
	    !ISC_LIST_EMPTY(b->ports_and_transports))
		return false;
	for (unsigned int i = 0; i < a->length; i++) {
		const dns_aclelement_t *x = &a->elements[i], *y = &b->elements[i];

		if (x->type != y->type || x->negative != y->negative || x->node_num != y->node_num)
			return false;
		if (x->type == dns_aclelementtype_nestedacl ? !same_acl(x->nestedacl, y->nestedacl) :
		    x->type != dns_aclelementtype_localhost && x->type != dns_aclelementtype_localnets)
			return false;
	}
	return same_tree(a->iptable->radix->head, b->iptable->radix->head);
}

/* named parses the options' allow-query once for the zones and once for the view, so there are two objects of it. The
 * zones share theirs. It is compared once and then known by its address: it stays attached, so that nothing else can
 * have that address. */
static bool is_views_acl(struct hydns_instance *inst, dns_acl_t *of_zone, const dns_acl_t *of_view)
{
	dns_acl_t *expected = NULL, *mine = NULL;

	if (of_zone == atomic_load(&inst->zones_acl))
		return true;
	if (of_view == NULL || !same_acl(of_zone, of_view))
		return false;
	dns_acl_attach(of_zone, &mine);
	if (!atomic_compare_exchange_strong(&inst->zones_acl, &expected, mine))
		dns_acl_detach(&mine);
	return true;
}

void hydns_zones_forget_acl(struct hydns_instance *inst)
{
	dns_acl_t *acl = atomic_exchange(&inst->zones_acl, NULL);

	if (acl != NULL)
		dns_acl_detach(&acl);
}

/* The kernel has the view's access list alone. */
static bool admits_as_the_view(struct hydns_instance *inst, const query_ctx_t *qctx)
{
	dns_acl_t *who = dns_zone_getqueryacl(qctx->zone), *where = dns_zone_getqueryonacl(qctx->zone);

	return (who == NULL || who == qctx->view->queryacl || dns_acl_isany(who) ||
		is_views_acl(inst, who, qctx->view->queryacl)) &&
	       (where == NULL || dns_acl_isany(where));
}

/* --- which answers ---------------------------------------------------------------------------------------------- */
bool hydns_zone_is_authoritative(const query_ctx_t *qctx)
{
	const dns_zonetype_t type = qctx->zone != NULL ? dns_zone_gettype(qctx->zone) : dns_zone_none;

	return type == dns_zone_primary || type == dns_zone_secondary;
}

/* A zone with statistics of its own would miss the queries that the kernel answers. */
bool hydns_zone_is_fit(struct hydns_instance *inst, const query_ctx_t *qctx)
{
	return hydns_db_notifies(qctx->db) && dns_zone_getrequeststats(qctx->zone) == NULL &&
	       dns_zone_getrcvquerystats(qctx->zone) == NULL && admits_as_the_view(inst, qctx);
}

void hydns_zone_tell(struct hydns_plugin *p, const ns_client_t *client)
{
	dns_fixedname_t fixed;
	dns_name_t *name = dns_fixedname_initname(&fixed);
	isc_region_t r;

	if (client->query.authzone == NULL)
		return;
	(void)dns_name_downcase(dns_zone_getorigin(client->query.authzone), name, NULL);
	dns_name_toregion(name, &r);
	hydns_plugin_answers_from(p, r.base, r.length);
}

/* What may make a response from a zone differ by client. */
struct addition {
	bool a, aaaa;
	bool left_out;                    /* a record did not fit */
};

static void look_at_section(const dns_message_t *m, dns_section_t section, struct addition *out)
{
	for (dns_name_t *name = ISC_LIST_HEAD(m->sections[section]); name != NULL; name = ISC_LIST_NEXT(name, link))
		for (dns_rdataset_t *r = ISC_LIST_HEAD(name->list); r != NULL; r = ISC_LIST_NEXT(r, link)) {
			out->left_out |= (r->attributes & DNS_RDATASETATTR_RENDERED) == 0;
			out->a |= section == DNS_SECTION_ADDITIONAL && r->type == dns_rdatatype_a;
			out->aaaa |= section == DNS_SECTION_ADDITIONAL && r->type == dns_rdatatype_aaaa;
		}
}

/* named leaves out additional records that do not fit, and without preferred-glue those of the client's own address family
 * come first. A complete response is offered: the program gives it to clients that have room for all of it. */
enum hydns_not_offered_why hydns_why_zone_not_offered(const ns_client_t *client)
{
	const dns_message_t *m = client->message;
	const dns_rdatatype_t preferred = client->view->preferred_glue;
	struct addition add = { 0 };

	look_at_section(m, DNS_SECTION_ANSWER, &add);
	look_at_section(m, DNS_SECTION_AUTHORITY, &add);
	look_at_section(m, DNS_SECTION_ADDITIONAL, &add);
	if (add.left_out)
		return HYDNS_NOT_OFFERED_LEFT_OUT;
	return add.a && add.aaaa && preferred != dns_rdatatype_a && preferred != dns_rdatatype_aaaa ? HYDNS_NOT_OFFERED_GLUE :
		HYDNS_NOT_OFFERED_NONE;
}

/* --- what an answer depends on beside its names ------------------------------------------------------------- */
struct dependent {
	struct hydns_thread *thread;
	dns_view_t *view;
};

static bool is_origin(dns_view_t *view, const dns_name_t *name)
{
	dns_zone_t *zone = NULL;

	if (hydns_find_zone(view, name, &zone) != ISC_R_SUCCESS)
		return false;
	dns_zone_detach(&zone);
	return true;
}

/* HYDNS_ZONE_*, of an RRset at an origin. */
static unsigned part_of(const dns_rdataset_t *r)
{
	switch (r->type == dns_rdatatype_rrsig ? r->covers : r->type) {
	case dns_rdatatype_soa:
		return HYDNS_ZONE_SOA;
	case dns_rdatatype_ns:
		return HYDNS_ZONE_NS;
	case dns_rdatatype_nsec:
		return HYDNS_ZONE_NSEC;
	default:
		return HYDNS_ZONE_DATA;
	}
}

/* what: of a name that is an origin. Of others, those that the reply shows are found in it. */
static void depends_on(const struct dependent *d, const dns_name_t *name, unsigned what, bool shown)
{
	isc_region_t r;

	dns_name_toregion(name, &r);
	if (is_origin(d->view, name))
		hydns_plugin_depends_on_origin(d->thread, r.base, r.length, what);
	else if (!shown)
		hydns_plugin_depends_on(d->thread, r.base, r.length);
}

/* named looks for addresses at these names, for the additional section. */
static isc_result_t look_for(void *arg, const dns_name_t *name, dns_rdatatype_t type, dns_rdataset_t *found DNS__DB_FLARG)
{
	UNUSED(type);
	UNUSED(found);
	depends_on(arg, name, HYDNS_ZONE_DATA, false);
	return ISC_R_SUCCESS;
}

void hydns_zone_dependencies(struct hydns_thread *t, const ns_client_t *client)
{
	struct dependent d = { t, client->view };

	for (dns_section_t section = DNS_SECTION_ANSWER; section <= DNS_SECTION_ADDITIONAL; section++)
		for (dns_name_t *name = ISC_LIST_HEAD(client->message->sections[section]); name != NULL; name = ISC_LIST_NEXT(name, link))
			for (dns_rdataset_t *r = ISC_LIST_HEAD(name->list); r != NULL; r = ISC_LIST_NEXT(r, link)) {
				depends_on(&d, name, part_of(r), true);
				(void)dns_rdataset_additionaldata(r, name, look_for, &d, 0);
			}
}
