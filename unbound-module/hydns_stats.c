/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's answers in Unbound's statistics. hydnsd counts them for the whole server, since it began. */
#include "config.h"
#include <string.h>
#include "hydns_daemon.h"
#include "daemon/remote.h"
#include "libunbound/unbound.h"
#include "sldns/pkthdr.h"
#include "sldns/rrdef.h"

/* How long the statistics wait for hydnsd; without an answer they show what is known. */
#define COUNTS_WAIT_MS 200

/* Counters start again when hydnsd does. */
static void refresh(struct hydns_daemon* d)
{
	(void)hydns_publish_counts(d->publish, &d->last, COUNTS_WAIT_MS);
	if(d->last.answered < d->base.answered)
		memset(&d->base, 0, sizeof(d->base));
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

void hydns_stats_add(struct hydns_daemon* d, struct ub_stats_info* total, int reset)
{
	struct ub_server_stats* svr = &total->svr;
	struct hydns_counts base;
	long long answered;

	if(!d)
		return;
	refresh(d);
	base = d->base;
	answered = (long long)(d->last.answered - base.answered);
	/* the kernel path answers nothing but recursion-desired, opcode QUERY, class IN over UDP */
	svr->num_queries += answered;
	svr->qclass[LDNS_RR_CLASS_IN] += answered;
	svr->qopcode[LDNS_PACKET_QUERY] += answered;
	svr->qbit_RD += answered;
	svr->qbit_AD += (long long)(d->last.ad - base.ad);
	svr->qipv6 += (long long)(d->last.ipv6 - base.ipv6);
	svr->qEDNS += (long long)(d->last.edns - base.edns);
	svr->qEDNS_DO += (long long)(d->last.edns_do - base.edns_do);
	svr->num_queries_cookie_valid += (long long)(d->last.cookie_valid - base.cookie_valid);
	svr->num_queries_cookie_client += (long long)(d->last.cookie_client - base.cookie_client);
	svr->num_queries_cookie_invalid += (long long)(d->last.cookie_invalid - base.cookie_invalid);
	svr->ans_secure += (long long)(d->last.secure - base.secure);
	add_types(svr, &d->last, &base);
	add_rcodes(svr, &d->last, &base);
	d->shown = answered;
	if(reset)
		d->base = d->last;
}

int hydns_stats_print(struct hydns_daemon* d, struct remote_stream* stream)
{
	if(!d)
		return 1;
	return ssl_printf(stream, "hydns.offering=%d\n", atomic_load(&d->open)) &&
		ssl_printf(stream, "hydns.answered=%lld\n", d->shown) &&
		ssl_printf(stream, "hydns.rules=%lld\n", (long long)d->last.rules);
}

void hydns_stats_reset(struct hydns_daemon* d)
{
	if(!d)
		return;
	refresh(d);
	d->base = d->last;
}
