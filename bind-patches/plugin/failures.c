/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures that named remembers for servfail-ttl seconds (RFC 9520): until then it looks into nothing else for the question, and all
 * who ask for recursion get the same failure, without an extended error. And the zones below which fetches fail or are slow.
 */
#include <isc/result.h>
#include <isc/stdtime.h>
#include <isc/time.h>
#include <dns/badcache.h>
#include <dns/fixedname.h>
#include <dns/resolver.h>
#include <dns/view.h>
#include <ns/client.h>
#include <ns/query.h>
#include "plugin.h"

static bool may_recurse(const ns_client_t *client)
{
	return (client->query.attributes & NS_QUERYATTR_RECURSIONOK) != 0 && (client->attributes & NS_CLIENTATTR_NOSETFC) != 0;
}

/* named compares with the second in which it has received the query, and still answers in the last one. */
bool hydns_failure_is_remembered(const query_ctx_t *qctx, time_t *end)
{
	const ns_client_t *client = qctx->client;
	isc_stdtime_t last;

	if (qctx->result != DNS_R_SERVFAIL || !may_recurse(client) ||
	    dns_badcache_expiry(qctx->view->failcache, client->query.origqname, client->query.qtype,
				isc_time_seconds(&client->tnow), &last) != ISC_R_SUCCESS)
		return false;
	*end = (time_t)last + 1;
	return true;
}

/* Each view has a memory of its own, which is empty after a reload. Should a zone have such a name, failures only go more often than
 * they must. */
static const uint8_t memory[] = "\x09+failures";

void hydns_failure_depends(struct hydns_thread *t)
{
	hydns_plugin_depends_on(t, memory, sizeof(memory));
}

void hydns_failures_withdraw(struct hydns_plugin *p)
{
	hydns_plugin_withdraw(p, HYDNS_SCOPE_NAME, memory, sizeof(memory));
}

/* -- fetches ------------------------------------------------------------------------------------------------ */
static bool has_failed(isc_result_t result)
{
	switch (result) {
	case DNS_R_SERVFAIL:
	case DNS_R_FORMERR:
	case ISC_R_FAILURE:
	case ISC_R_TIMEDOUT:
	case ISC_R_CANCELED:           /* for want of room, mostly */
	case ISC_R_QUOTA:
	case ISC_R_HOSTUNREACH:
	case ISC_R_NETUNREACH:
	case ISC_R_CONNREFUSED:
		return true;
	default:
		return false;
	}
}

/* The deepest zone cut above the name that the cache knows: the zone whose servers are asked. */
static void tell_zone(struct hydns_plugin *p, const query_ctx_t *qctx, bool failed, uint64_t took_ms)
{
	dns_fixedname_t fixed;
	dns_name_t *cut = dns_fixedname_initname(&fixed);
	dns_rdataset_t servers;

	dns_rdataset_init(&servers);
	if (dns_view_findzonecut(qctx->view, qctx->client->query.qname, cut, NULL, qctx->client->now, 0, false, true, &servers, NULL) ==
	    ISC_R_SUCCESS)
		hydns_plugin_resolution(p, cut->ndata, cut->length, failed, took_ms);
	if (dns_rdataset_isassociated(&servers))
		dns_rdataset_disassociate(&servers);
}

void hydns_fetch_ended(struct hydns_plugin *p, const query_ctx_t *qctx)
{
	isc_time_t now = isc_time_now();
	uint64_t took_ms = isc_time_microdiff(&now, &qctx->client->requesttime) / 1000;
	bool failed = has_failed(qctx->fresp->result);

	if (hydns_plugin_wants_resolution(p, failed, took_ms))
		tell_zone(p, qctx, failed, took_ms);
}
