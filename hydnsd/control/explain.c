/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Why a question, or a client, is or is not answered in the kernel. Dry runs of the program give the reason for a query to each
 * address and port of each resolver; words.c puts it into words.
 */
#include <stdio.h>
#include <string.h>

#include "hydns/reasons.h"
#include "hydnsd/control/asked.h"
#include "hydnsd/control/pick.h"
#include "hydnsd/control/report.h"
#include "hydnsd/control/forwards.h"
#include "hydnsd/control/text.h"
#include "hydnsd/control/words.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/netdev/prefixes.h"

/* Dry runs so far. */
struct asking {
	struct hydnsd *d;
	const struct hydnsd_asked *q;
	struct hydnsd_query query;
	unsigned ifindex;              /* by which the query comes */
	int error;                     /* of a dry run that failed */
	uint32_t resolver;             /* the present one */
	struct hydnsd_verdict best;    /* the verdict on it */
	bool picked[HYDNSD_FAMILIES];  /* client[] is set */
	uint8_t client[HYDNSD_FAMILIES][16];
};

/* -- dry runs ---------------------------------------------------------------------------------------------------- */
static struct hydns_outcome ask(struct asking *a, const uint8_t client[16], const struct hydns_service_key *service)
{
	struct hydns_outcome said = { HYDNS_R_NO_ENTRY, HYDNS_R_NO_ENTRY };
	uint8_t frame[HYDNSD_PROBE_MOST];
	size_t len = hydnsd_probe_frame(&a->query, client, service, frame);
	int rc = hydns_kern_dry_run(a->d->kern, frame, len, a->ifindex, &said);

	if (rc)
		a->error = rc;
	return said;
}

struct trying {
	struct asking *asking;
	const struct hydns_service_key *service;
};

static bool is_let_in(const uint8_t client[16], void *arg)
{
	struct trying *t = arg;
	enum hydns_reason r = ask(t->asking, client, t->service).beneath;

	return r != HYDNS_R_ACL && r != HYDNS_R_BAD_SOURCE;
}

/* The client for a query to this service; NULL: the named client is of the other family. */
static const uint8_t *client_for(struct asking *a, const struct hydns_service_key *service)
{
	bool v4 = hydnsd_is_mapped(service->addr);
	int family = v4 ? HYDNSD_IPV4 : HYDNSD_IPV6;
	struct trying t = { a, service };

	if (a->q->has_client)
		return hydnsd_is_mapped(a->q->client) == v4 ? a->q->client : NULL;
	if (!a->picked[family])
		hydnsd_pick_client(a->d, a->resolver, v4, is_let_in, &t, a->client[family]);
	a->picked[family] = true;
	return a->client[family];
}

/* -- verdicts ---------------------------------------------------------------------------------------------------- */
/* The verdict that says most has the largest: an answer, then a rule, then a client that is let in. */
static unsigned weight(const struct hydnsd_verdict *v)
{
	enum hydns_reason r = v->said.beneath;

	if (v->resolver == HYDNS_RESOLVERS)
		return 0;
	if (!v->asked)
		return 1;
	return r == HYDNS_R_ANSWERED ? 5 : !hydnsd_words_let_in(r) ? 2 : v->handle ? 4 : 3;
}

static void ask_at(const struct hydns_service_key *service, uint32_t resolver, void *arg)
{
	struct asking *a = arg;
	struct hydnsd_verdict v = a->best;
	const uint8_t *client;

	if (resolver != a->resolver || a->error)
		return;
	client = client_for(a, service);
	if (!client)
		return;
	memcpy(v.client, client, sizeof(v.client));
	v.service = *service;
	v.said = ask(a, client, service);
	v.asked = true;
	if (weight(&v) > weight(&a->best))
		a->best = v;
}

/* Without a question, a client is answered when its queries get as far as the rules. */
static void conclude(const struct hydnsd_asked *q, struct hydnsd_verdict *v, bool offers)
{
	if (!q->name.len && hydnsd_words_let_in(v->said.beneath)) {
		v->said.beneath = offers ? HYDNS_R_ANSWERED : HYDNS_R_MISS;
		if (v->said.reason != HYDNS_R_PAUSED)
			v->said.reason = v->said.beneath;
	}
}

static bool forbids_offers(const struct hydnsd_resolver *a)
{
	for (uint32_t i = 0; i < a->note_count; i++)
		if (a->note[i].kind == HYDNS_NOTE_OBSTACLE)
			return true;
	return false;
}

static void judge(struct asking *a, uint32_t i)
{
	const struct hydnsd_asked *q = a->q;

	a->resolver = i;
	a->best = (struct hydnsd_verdict){ .resolver = i, .said = { HYDNS_R_NOT_SERVICE, HYDNS_R_NOT_SERVICE } };
	memset(a->picked, 0, sizeof(a->picked));
	if (q->name.len)
		a->best.handle = hydns_store_find(hydnsd_rules_store(a->d->rules), q->name.octet, q->name.len, q->query.qtype,
						  q->variant, (uint8_t)i);
	if (!q->has_client)
		hydnsd_families_of(a->d, i, &a->best.families);
	hydnsd_services_each(a->d, ask_at, a);
	conclude(q, &a->best, !forbids_offers(&a->d->resolver[i]));
	hydnsd_words_find(a->d, q, &a->best);
}

static bool is_there(const struct hydnsd_resolver *a)
{
	return a->state != HYDNSD_RESOLVER_FREE && a->state != HYDNSD_RESOLVER_CLOSING;
}

static unsigned judge_all(struct asking *a, struct hydnsd_verdict *best)
{
	unsigned resolvers = 0;

	*best = (struct hydnsd_verdict){ .resolver = HYDNS_RESOLVERS, .said = { HYDNS_R_NOT_SERVICE, HYDNS_R_NOT_SERVICE },
					 .text = "no resolver is connected and ready: look at its log" };
	for (uint32_t i = 0; i < HYDNS_RESOLVERS && !a->error; i++) {
		if (!is_there(&a->d->resolver[i]))
			continue;
		resolvers++;
		judge(a, i);
		if (weight(&a->best) > weight(best))
			*best = a->best;
	}
	return resolvers;
}

/* -- the reply --------------------------------------------------------------------------------------------------- */
static json_t *reply(struct hydnsd *d, const struct hydnsd_verdict *v, const char *text)
{
	bool known = v->resolver < HYDNS_RESOLVERS;
	char client[HYDNSD_ADDRESS_TEXT], service[HYDNSD_SERVICE_TEXT];

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "where",
			 v->said.reason == HYDNS_R_ANSWERED ? "kernel" : "resolver",
			 "reason", hydns_reason_name(v->said.reason), "beneath", hydns_reason_name(v->said.beneath), "text", text,
			 "families_passed", hydnsd_families_json(&v->families),
			 "rule", v->handle ? hydnsd_report_rule(d, v->handle) : json_null(),
			 "resolver", known ? json_string(d->resolver[v->resolver].hello.identity) : json_null(),
			 "client", v->asked ? json_string(hydnsd_address_text(v->client, client)) : json_null(),
			 "service", v->asked ? json_string(hydnsd_service_text(&v->service, service)) : json_null());
}

/* The query of a dry run. Without a question any will do: it does not matter whether there is a rule. */
static struct hydnsd_query query_of(const struct hydnsd_asked *q)
{
	static const struct hydnsd_name hydns_invalid = { .octet = "\5hydns\7invalid", .len = 15 };

	if (q->name.len)
		return q->query;
	return (struct hydnsd_query){ .name = hydns_invalid, .qtype = htons(1) };
}

/* Also without a dry run, when there is no address to ask. */
static bool is_paused(struct hydnsd *d, const struct hydnsd_verdict *v)
{
	bool paused = v->said.reason == HYDNS_R_PAUSED;

	if (!v->asked)
		hydns_kern_paused(d->kern, &paused);
	return paused;
}

json_t *hydnsd_report_explain(struct hydnsd *d, const struct hydnsd_asked *q, const char **fault)
{
	static char why[HYDNS_WHY];
	struct asking a = { .d = d, .q = q, .query = query_of(q), .ifindex = hydnsd_interfaces_first_attached(d) };
	struct hydnsd_verdict v;
	unsigned resolvers = judge_all(&a, &v);
	char text[HYDNSD_WORDS + sizeof(d->resolver->hello.identity) + 128];

	if (a.error) {
		snprintf(why, sizeof(why), "the kernel makes no dry run of the program: %s", strerror(-a.error));
		*fault = why;
		return NULL;
	}
	if (is_paused(d, &v)) {
		v.said.reason = HYDNS_R_PAUSED;
		return reply(d, &v, "the kernel path is paused: `hydnsctl resume' ends this");
	}
	if (!a.ifindex) {
		v.said.reason = HYDNS_R_MISS;
		return reply(d, &v, "the program is attached to no interface: see `hydnsctl status'");
	}
	snprintf(text, sizeof(text), "%s%s%s%s", resolvers > 1 && v.resolver < HYDNS_RESOLVERS ?
		 d->resolver[v.resolver].hello.identity : "", resolvers > 1 && v.resolver < HYDNS_RESOLVERS ? ": " : "", v.text,
		 v.said.reason == HYDNS_R_MISS && v.resolver < HYDNS_RESOLVERS ?
		 hydnsd_forwards_words(d, v.resolver, q->name.octet, q->name.len, q->variant) : "");
	return reply(d, &v, text);
}
