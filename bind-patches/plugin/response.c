/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which responses are the same for everybody: those to a plain query, from the cache alone or from zones alone, in
 * which nothing depends on the client.
 */
#include <isc/util.h>
#include <dns/message.h>
#include <dns/name.h>
#include <dns/rdataset.h>
#include <dns/view.h>
#include <ns/client.h>
#include <ns/query.h>
#include "compat.h"
#include "plugin.h"

/* --- the query ----------------------------------------------------------------------------------------------- */
bool hydns_query_is_plain(const ns_client_t *client)
{
	const dns_message_t *m = client->message;
	const unsigned int special = NS_CLIENTATTR_TCP | NS_CLIENTATTR_MULTICAST | NS_CLIENTATTR_WANTNSID |
		NS_CLIENTATTR_WANTEXPIRE | NS_CLIENTATTR_HAVEECS | NS_CLIENTATTR_WANTPAD;

	return (client->attributes & special) == 0 && m->opcode == dns_opcode_query &&
	       m->rdclass == dns_rdataclass_in && m->tsigkey == NULL && client->signer == NULL &&
	       (m->flags & (DNS_MESSAGEFLAG_CD | DNS_MESSAGEFLAG_TC)) == 0 && client->ednsversion <= 0;
}

/* named answers a question for signatures with those that happen to be cached, of any type. */
static bool type_is_plain(dns_rdatatype_t type)
{
	return type != dns_rdatatype_any && type != dns_rdatatype_rrsig && type != dns_rdatatype_sig;
}

/* dns64 says by client who gets mapped addresses, and for which. */
static bool is_by_client(const query_ctx_t *qctx)
{
	return qctx->client->query.qtype == dns_rdatatype_aaaa && !ISC_LIST_EMPTY(qctx->view->dns64);
}

/* Why the answer to a plain query is not the same for everybody, from what named has done to it; NONE: it is. Clients
 * without EDNS get no extended error (RFC 8914), but have the same rule. */
static enum hydns_not_offered_why why_processing(const query_ctx_t *qctx)
{
	const ns_client_t *client = qctx->client;

	if (!type_is_plain(client->query.qtype))
		return HYDNS_NOT_OFFERED_BY_TYPE;
	if (is_by_client(qctx) || qctx->dns64)
		return HYDNS_NOT_OFFERED_DNS64;
	if (qctx->rpz || qctx->nxrewrite || qctx->redirected ||
	    (client->query.attributes & NS_QUERYATTR_SYNTHESIZED) != 0)
		return HYDNS_NOT_OFFERED_SYNTHESIZED;
	return hydns_has_extended_error(client) ? HYDNS_NOT_OFFERED_EXTENDED_ERROR : HYDNS_NOT_OFFERED_NONE;
}

/* --- where the answer came from ------------------------------------------------------------------------------ */
/* With auth-nxdomain yes an NXDOMAIN from the cache has AA, too. */
static bool aa_is_of_cache(const query_ctx_t *qctx)
{
	const dns_message_t *m = qctx->client->message;

	return (m->flags & DNS_MESSAGEFLAG_AA) == 0 || (m->rcode == dns_rcode_nxdomain && qctx->view->auth_nxdomain);
}

/* Clients that do not ask for recursion, or may not, get something else from the cache. */
static bool is_from_cache(const query_ctx_t *qctx, const struct hydns_sources *s)
{
	const ns_client_t *client = qctx->client;

	return !s->unfit && (client->attributes & NS_CLIENTATTR_RA) != 0 && !qctx->authoritative && aa_is_of_cache(qctx) &&
	       (client->message->flags & DNS_MESSAGEFLAG_RD) != 0;
}

/* Clients whose EDNS size is no more than 512 get minimal responses. The program passes their queries. */
static bool gets_less(const ns_client_t *client)
{
	return client->ednsversion >= 0 && client->udpsize <= HYDNS_PLAIN_UDP_SIZE;
}

/* If the view does recursion, all clients that the kernel answers may recurse: RA is the same for all. */
static bool is_from_zones(const query_ctx_t *qctx, const struct hydns_sources *s)
{
	const ns_client_t *client = qctx->client;

	return !gets_less(client) && s->zone && !s->unfit && !s->cache &&
	       ((client->attributes & NS_CLIENTATTR_RA) != 0) == qctx->view->recursion;
}

/* Why neither of them is true. */
static enum hydns_not_offered_why why_sources(const query_ctx_t *qctx, const struct hydns_sources *s)
{
	const ns_client_t *client = qctx->client;

	if (s->unfit)
		return HYDNS_NOT_OFFERED_ZONE_OWN;
	if (s->zone && s->cache)
		return HYDNS_NOT_OFFERED_MIXED;
	if (s->zone && gets_less(client))
		return HYDNS_NOT_OFFERED_SMALL_SIZE;
	if ((client->attributes & NS_CLIENTATTR_RA) == 0 || (client->message->flags & DNS_MESSAGEFLAG_RD) == 0)
		return HYDNS_NOT_OFFERED_NO_RECURSION;
	return HYDNS_NOT_OFFERED_MIXED;
}

/* --- its records --------------------------------------------------------------------------------------------- */
/* Zone data in the middle of a chain of aliases, and data that are not validated yet, are not the cache's. */
static enum hydns_not_offered_why why_not_of_cache(const dns_rdataset_t *r)
{
	if ((r->attributes & (DNS_RDATASETATTR_STALE | DNS_RDATASETATTR_STALE_WINDOW | DNS_RDATASETATTR_ANCIENT)) != 0)
		return HYDNS_NOT_OFFERED_STALE;
	if (DNS_TRUST_PENDING(r->trust))
		return HYDNS_NOT_OFFERED_UNVALIDATED;
	return r->trust == dns_trust_ultimate ? HYDNS_NOT_OFFERED_MIXED : HYDNS_NOT_OFFERED_NONE;
}

/* A zone's additional section also has glue, addresses from below a zone cut. */
static enum hydns_not_offered_why why_not_of_zone(const dns_rdataset_t *r)
{
	return r->trust == dns_trust_ultimate || r->trust == dns_trust_glue ? HYDNS_NOT_OFFERED_NONE : HYDNS_NOT_OFFERED_MIXED;
}

/* True where the program can give the order that named gives: "rrset-order random", which it does by rotation. It rotates
 * all of a resolver's RRsets or none, so not those of one name. In "cyclic" the next record depends on named's last answer,
 * which a CPU that answers by itself does not know. */
static bool order_is_general(dns_rdataset_t *r)
{
	return r->type == dns_rdatatype_rrsig || (r->attributes & DNS_RDATASETATTR_NEGATIVE) != 0 ||
	       dns_rdataset_count(r) < 2 ||
	       (r->attributes & DNS_RDATASETATTR_RANDOMIZE) != 0;
}

static isc_result_t found_addition(void *arg, const dns_name_t *name, dns_rdatatype_t type,
				   dns_rdataset_t *found DNS__DB_FLARG)
{
	UNUSED(name);
	UNUSED(type);
	UNUSED(found);
	*(bool *)arg = true;
	return ISC_R_SUCCESS;
}

/* named adds addresses of names in the records when they happen to be cached, which changes without a notice. HTTPS and
 * SVCB may name their own owner. */
static bool wants_addition(const query_ctx_t *qctx, const dns_name_t *owner, dns_rdataset_t *r)
{
	bool any = false;

	if ((qctx->view->minimalresponses == dns_minimal_yes && qctx->qtype != dns_rdatatype_ns) ||
	    (r->attributes & DNS_RDATASETATTR_NEGATIVE) != 0)
		return false;
	(void)dns_rdataset_additionaldata(r, owner, found_addition, &any, 0);
	return any;
}

static enum hydns_not_offered_why look_at_record(const query_ctx_t *qctx, const dns_name_t *owner, dns_rdataset_t *r,
						 struct hydns_response *out)
{
	enum hydns_not_offered_why why = out->fixed ? why_not_of_zone(r) : why_not_of_cache(r);

	if (why != HYDNS_NOT_OFFERED_NONE)
		return why;
	if (!order_is_general(r))
		return HYDNS_NOT_OFFERED_ORDER;
	/* without recursion additional records are the zone's own, and all of them are looked at */
	if ((!out->fixed || qctx->view->recursion) && wants_addition(qctx, owner, r))
		return HYDNS_NOT_OFFERED_ADDITION;
	if (r->trust != dns_trust_secure || (r->attributes & DNS_RDATASETATTR_OPTOUT) != 0)
		out->secure = false;
	if (r->ttl < out->ttl)
		out->ttl = r->ttl;
	return HYDNS_NOT_OFFERED_NONE;
}

/* NONE: all of them may be offered, and there is at least one. Reads out->fixed, writes the rest of *out. */
static enum hydns_not_offered_why look_at_records(const query_ctx_t *qctx, struct hydns_response *out)
{
	dns_message_t *m = qctx->client->message;
	static const dns_section_t sections[] = { DNS_SECTION_ANSWER, DNS_SECTION_AUTHORITY, DNS_SECTION_ADDITIONAL };
	const size_t n = out->fixed ? 3 : 2;
	bool any = false;

	out->ttl = UINT32_MAX;
	out->secure = true;
	for (size_t i = 0; i < n; i++)
		for (dns_name_t *name = ISC_LIST_HEAD(m->sections[sections[i]]); name != NULL;
		     name = ISC_LIST_NEXT(name, link))
			for (dns_rdataset_t *r = ISC_LIST_HEAD(name->list); r != NULL; r = ISC_LIST_NEXT(r, link)) {
				enum hydns_not_offered_why why = look_at_record(qctx, name, r, out);

				if (why != HYDNS_NOT_OFFERED_NONE)
					return why;
				any = true;
			}
	if (!any)
		return HYDNS_NOT_OFFERED_NO_RECORD;
	return out->fixed || out->ttl > 0 ? HYDNS_NOT_OFFERED_NONE : HYDNS_NOT_OFFERED_ZERO_TTL;
}

/* named sends owner names with the letters that it first received. To a question in small letters everybody gets the same
 * answer. Lengths of labels are below 'A'. */
static bool has_capitals(const isc_region_t *name)
{
	for (unsigned int i = 0; i < name->length; i++)
		if (name->base[i] >= 'A' && name->base[i] <= 'Z')
			return true;
	return false;
}

enum hydns_not_offered_why hydns_why_failure_not_offered(const query_ctx_t *qctx, const isc_region_t *name)
{
	if (!type_is_plain(qctx->client->query.qtype))
		return HYDNS_NOT_OFFERED_BY_TYPE;
	if (hydns_has_extended_error(qctx->client))
		return HYDNS_NOT_OFFERED_EXTENDED_ERROR;
	return has_capitals(name) ? HYDNS_NOT_OFFERED_CAPITALS : HYDNS_NOT_OFFERED_NONE;
}

enum hydns_not_offered_why hydns_why_not_offered(const query_ctx_t *qctx, const struct hydns_sources *s,
						 const isc_region_t *name, struct hydns_response *out)
{
	enum hydns_not_offered_why why = why_processing(qctx);

	if (why != HYDNS_NOT_OFFERED_NONE)
		return why;
	out->fixed = is_from_zones(qctx, s);
	if (!out->fixed && !is_from_cache(qctx, s))
		return why_sources(qctx, s);
	why = look_at_records(qctx, out);
	if (why != HYDNS_NOT_OFFERED_NONE)
		return why;
	return has_capitals(name) ? HYDNS_NOT_OFFERED_CAPITALS : HYDNS_NOT_OFFERED_NONE;
}

/* --- as it was rendered -------------------------------------------------------------------------------------- */
/* Additional records from the cache may change without a notice. The OPT record counts as one. */
static bool has_additional(const ns_client_t *client, const uint8_t *wire)
{
	return (wire[10] << 8 | wire[11]) != ((client->attributes & NS_CLIENTATTR_WANTOPT) != 0);
}

/* True when the response's AD bit is what its records' trust makes us expect. */
static bool ad_is_as_expected(const ns_client_t *client, const uint8_t *wire, bool secure)
{
	bool asked = (client->attributes & (NS_CLIENTATTR_WANTAD | NS_CLIENTATTR_WANTDNSSEC)) != 0;

	return ((wire[3] & 0x20) != 0) == (asked && secure);
}

enum hydns_not_offered_why hydns_why_rendered_not_offered(const ns_client_t *client, const uint8_t *wire, size_t len,
							  bool fixed, bool secure)
{
	if (len < 12 || (wire[2] & 0x02) != 0)
		return HYDNS_NOT_OFFERED_TRUNCATED;
	if (!ad_is_as_expected(client, wire, secure))
		return HYDNS_NOT_OFFERED_UNVALIDATED;
	if (fixed)
		return hydns_why_zone_not_offered(client);
	return has_additional(client, wire) ? HYDNS_NOT_OFFERED_ADDITION : HYDNS_NOT_OFFERED_NONE;
}
