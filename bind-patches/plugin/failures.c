/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failures that named remembers for servfail-ttl seconds (RFC 9520). Until then it looks into nothing else for the question: all
 * who ask for recursion get the same failure, without an extended error.
 */
#include <isc/result.h>
#include <isc/time.h>
#include <dns/badcache.h>
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
