/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's answers in Unbound's statistics. hydnsd counts them for the whole server; its counts never fall. */
#include "config.h"
#include "hydns_compat.h"
#include "hydns_daemon.h"
#include "libunbound/unbound.h"
#include "sldns/pkthdr.h"
#include "sldns/rrdef.h"

/* How long the statistics wait for hydnsd; without an answer they show the last known counts. */
#define COUNTS_WAIT_MS 200

void hydns_stats_ask(struct hydns_daemon* d)
{
	if(d)
		(void)hydns_plugin_counts(d->plugin, &d->last, COUNTS_WAIT_MS);
}

static void add_types(struct ub_server_stats* svr, const struct hydns_counts* last,
	const struct hydns_counts* base)
{
	int i;

	for(i = 0; i < HYDNS_COUNT_TYPES; i++) {
		long long n = (long long)(last->type[i] - base->type[i]);

		if(i < UB_STATS_QTYPE_NUM)
			svr->qtype[i] += n;
		else	svr->qtype_big += n;
	}
}

static void add_rcodes(struct ub_server_stats* svr, const struct hydns_counts* last,
	const struct hydns_counts* base)
{
	int i;

	for(i = 0; i < HYDNS_COUNT_RCODES && i < UB_STATS_RCODE_NUM; i++)
		svr->ans_rcode[i] += (long long)(last->rcode[i] - base->rcode[i]);
}

/* Unbound counts the response code of these twice: when it finds them in its cache, and with each reply. */
static void add_bogus(struct ub_server_stats* svr, long long n)
{
	svr->ans_bogus += n;
	svr->ans_rcode[LDNS_RCODE_SERVFAIL] += n;
}

/* Queries that waited in the kernel for longer than discard-timeout, and were dropped there: Unbound would have read them, found
 * nothing in its cache, and dropped its reply. The program parks those with RD set alone. */
static void add_discarded(struct ub_server_stats* svr, const struct hydns_discards* last,
	const struct hydns_discards* base)
{
	long long n = (long long)(last->queries - base->queries);

	svr->num_queries += n;
	svr->num_queries_missed_cache += n;
	HYDNS_COUNT_DISCARDED(svr, n);
	svr->qclass[LDNS_RR_CLASS_IN] += n;
	svr->qopcode[LDNS_PACKET_QUERY] += n;
	svr->qbit_RD += n;
	svr->qbit_AD += (long long)(last->ad - base->ad);
	svr->qipv6 += (long long)(last->ipv6 - base->ipv6);
	svr->qEDNS += (long long)(last->edns - base->edns);
	svr->qEDNS_DO += (long long)(last->edns_do - base->edns_do);
}

long long hydns_stats_dropped(struct hydns_daemon* d)
{
	return d && HYDNS_DISCARDED_ARE_DROPPED ? (long long)(d->last.discarded.queries - d->base.discarded.queries) : 0;
}

void hydns_stats_add(struct hydns_daemon* d, struct ub_server_stats* svr)
{
	const struct hydns_counts *last, *base;
	long long answered, limited;

	if(!d)
		return;
	last = &d->last;
	base = &d->base;
	answered = (long long)(last->answered - base->answered);
	limited = (long long)(last->limited - base->limited);
	/* the program answers queries with opcode QUERY, class IN, over UDP */
	svr->num_queries += answered + limited;
	svr->num_queries_ip_ratelimited += limited;
	svr->qclass[LDNS_RR_CLASS_IN] += answered;
	svr->qopcode[LDNS_PACKET_QUERY] += answered;
	svr->qbit_RD += answered - (long long)(last->no_rd - base->no_rd);
	svr->qbit_AD += (long long)(last->ad - base->ad);
	svr->qipv6 += (long long)(last->ipv6 - base->ipv6);
	svr->qEDNS += (long long)(last->edns - base->edns);
	svr->qEDNS_DO += (long long)(last->edns_do - base->edns_do);
	svr->num_queries_cookie_valid += (long long)(last->cookie_valid - base->cookie_valid);
	svr->num_queries_cookie_client += (long long)(last->cookie_client - base->cookie_client);
	svr->num_queries_cookie_invalid += (long long)(last->cookie_invalid - base->cookie_invalid);
	svr->ans_secure += (long long)(last->secure - base->secure);
	add_bogus(svr, (long long)(last->bogus - base->bogus));
	/* referrals of auth-zones as well */
	svr->ans_rcode_nodata += (long long)(last->nodata - base->nodata + last->referrals - base->referrals);
	svr->num_query_authzone_down += (long long)(last->from_zone - base->from_zone);
	add_discarded(svr, &last->discarded, &base->discarded);
	add_types(svr, last, base);
	add_rcodes(svr, last, base);
	d->shown = answered;
}

void hydns_stats_reset(struct hydns_daemon* d)
{
	if(d)
		d->base = d->last;
}
