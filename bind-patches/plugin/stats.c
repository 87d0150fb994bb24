/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds kernel answers to named's own counters whenever these are shown. */
#include <isc/stats.h>
#include <isc/util.h>
#include <dns/opcode.h>
#include <dns/stats.h>
#include <ns/server.h>
#include <ns/stats.h>
#include "plugin.h"

/* How long the statistics wait for hydnsd; without an answer they show the last known counts. */
#define WAIT_MS 100

static void add(const ns_server_t *server, isc_statscounter_t counter, uint64_t n)
{
	isc_stats_add(ns_stats_get(server->nsstats), counter, n);
}

/* named counts a reply with TC to a client above rate-limit as an answer, without data or NXDOMAIN. */
static void count_slips_as_answers(struct hydns_counts *c)
{
	uint64_t nodata = c->slipped - c->slipped_nxdomain;

	c->answered += c->slipped;
	c->ipv6 += c->slipped_ipv6;
	c->edns += c->slipped_edns;
	c->authoritative += c->slipped_aa;
	c->nodata += nodata;
	c->rcode[dns_rcode_noerror] += nodata;
	c->rcode[dns_rcode_nxdomain] += c->slipped_nxdomain;
}

/* The program answers only opcode QUERY over UDP. What it drops is a query that rate-limit has dropped. */
static void add_queries(const ns_server_t *server, const struct hydns_counts *now, const struct hydns_counts *before)
{
	uint64_t answered = now->answered - before->answered, ipv6 = now->ipv6 - before->ipv6;
	uint64_t edns = now->edns - before->edns, aa = now->authoritative - before->authoritative;
	uint64_t nodata = now->nodata - before->nodata, referrals = now->referrals - before->referrals;
	uint64_t failed = now->rcode[dns_rcode_servfail] - before->rcode[dns_rcode_servfail];
	uint64_t noerror = now->rcode[dns_rcode_noerror] - before->rcode[dns_rcode_noerror];
	uint64_t limited = now->limited - before->limited, limited6 = now->limited_ipv6 - before->limited_ipv6;
	uint64_t slipped = now->slipped - before->slipped;

	add(server, ns_statscounter_requestv4, answered - ipv6 + limited - limited6);
	add(server, ns_statscounter_requestv6, ipv6 + limited6);
	add(server, ns_statscounter_udp, answered + limited);
	add(server, ns_statscounter_edns0in, edns + now->limited_edns - before->limited_edns);
	add(server, ns_statscounter_ratedropped, limited);
	add(server, ns_statscounter_rateslipped, slipped);
	add(server, ns_statscounter_truncatedresp, slipped);
	add(server, ns_statscounter_dropped, limited);
	add(server, ns_statscounter_edns0out, edns);
	add(server, ns_statscounter_response, answered);
	add(server, ns_statscounter_authans, aa);
	add(server, ns_statscounter_nonauthans, answered - aa - failed);     /* named counts a failure as neither */
	add(server, ns_statscounter_servfail, failed);
	add(server, ns_statscounter_success, noerror - nodata - referrals);
	add(server, ns_statscounter_nxrrset, nodata);
	add(server, ns_statscounter_referral, referrals);
	add(server, ns_statscounter_nxdomain, now->rcode[dns_rcode_nxdomain] - before->rcode[dns_rcode_nxdomain]);
	add(server, ns_statscounter_cookiein, now->cookie_valid - before->cookie_valid +
	    now->cookie_client - before->cookie_client);
	add(server, ns_statscounter_cookiematch, now->cookie_valid - before->cookie_valid);
	add(server, ns_statscounter_cookienew, now->cookie_client - before->cookie_client);
	dns_opcodestats_add(server->opcodestats, dns_opcode_query, answered + limited);
}

static void add_types_and_rcodes(const ns_server_t *server, const struct hydns_counts *now, const struct hydns_counts *before)
{
	for (int i = 0; i < HYDNS_COUNT_TYPES; i++)
		dns_rdatatypestats_add(server->rcvquerystats, (dns_rdatatype_t)i, now->type[i] - before->type[i]);
	for (int i = 0; i < HYDNS_COUNT_RCODES; i++)
		dns_rcodestats_add(server->rcodestats, (dns_rcode_t)i, now->rcode[i] - before->rcode[i]);
}

static void count(struct hydns_instance *inst, const ns_server_t *server)
{
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	struct hydns_counts now;

	if (p == NULL)
		return;
	pthread_mutex_lock(&inst->starting);
	/* the last known counts if hydnsd does not answer: they never fall */
	(void)hydns_plugin_counts(p, &now, WAIT_MS);
	count_slips_as_answers(&now);
	add_queries(server, &now, &inst->counted);
	add_types_and_rcodes(server, &now, &inst->counted);
	inst->counted = now;
	pthread_mutex_unlock(&inst->starting);
}

ns_hookresult_t hydns_on_stats(void *arg, void *data, isc_result_t *result)
{
	UNUSED(result);
	count(data, arg);
	return NS_HOOK_CONTINUE;
}

/* Ends kernel answers first, so that none comes after the last count. */
void hydns_stats_end(struct hydns_instance *inst)
{
	struct hydns_plugin *p = atomic_load(&inst->plugin);

	if (p != NULL)
		hydns_plugin_close(p);
	if (inst->server != NULL)
		count(inst, inst->server);
	inst->counted = (struct hydns_counts){ 0 };
}
