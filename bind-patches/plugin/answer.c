/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a query to an offer: the hooks follow each sampled query, and its response, as named sends it, goes to hydnsd if
 * it is the same for everybody (response.c).
 */
#include <time.h>
#include <isc/util.h>
#include <dns/message.h>
#include <dns/name.h>
#include <dns/result.h>
#include <dns/zone.h>
#include <ns/client.h>
#include <ns/query.h>
#include "compat.h"
#include "plugin.h"
#include "plugin/clock.h"

/* Places for sampled queries under way on one loop. Of two queries with the same place the later one takes it, and the
 * other is not offered. */
#define SAMPLES 256

static __thread struct sample {
	const ns_client_t *client;
	struct hydns_stamp stamp;    /* when the query began, before anything was looked up */
	uint64_t key;                /* of its question, when there is an answer; 0: not yet known */
	bool kept;                   /* the preloader's query: its answer is to stay, if it is not demanded by clients */
	uint32_t parked;             /* sightings, if its resolution is over and queries are parked for it; else 0 */
	struct hydns_sources sources;
} samples[SAMPLES];

/* The response between the last query hook and its rendering, which follow each other at once on the same loop. */
static __thread struct {
	const ns_client_t *client;   /* NULL: not to be offered */
	struct hydns_stamp stamp;
	uint64_t key;
	struct hydns_question q;
	time_t expires;
	bool secure;
} pending;

uint8_t hydns_variant_of(const ns_client_t *client)
{
	return ((client->extflags & DNS_MESSAGEEXTFLAG_DO) != 0 ? HYDNS_VARIANT_DO : 0) |
	       ((client->message->flags & DNS_MESSAGEFLAG_RD) == 0 ? HYDNS_VARIANT_NO_RD : 0);
}

static struct hydns_question question_of(const isc_region_t *name, const ns_client_t *client)
{
	return (struct hydns_question){ .name = name->base, .name_len = (uint16_t)name->length,
		.qtype = client->query.qtype, .variant = hydns_variant_of(client) };
}

static struct sample *sample_of(const ns_client_t *client)
{
	return &samples[((uintptr_t)client >> 8) * 2654435761U % SAMPLES];
}

/* Whether this query is one of those that are counted. */
static bool is_sampled(struct hydns_plugin *p, const ns_client_t *client)
{
	return hydns_tid() < hydns_tid_count() &&
	       hydns_plugin_sample(hydns_plugin_thread(p, hydns_tid()), (time_t)client->now);
}

ns_hookresult_t hydns_on_setup(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	struct sample *s = sample_of(qctx->client);

	UNUSED(result);
	s->client = NULL;
	if (p != NULL && hydns_plugin_is_preload(p, &qctx->client->peeraddr.type.sa))
		*s = (struct sample){ .client = qctx->client, .stamp = hydns_plugin_stamp(p), .kept = true };
	else if (p != NULL && is_sampled(p, qctx->client))
		*s = (struct sample){ .client = qctx->client, .stamp = hydns_plugin_stamp(p) };
	return NS_HOOK_CONTINUE;
}

/* Prefetches the counters while named makes the response. A query that needs a recursion is not counted. */
ns_hookresult_t hydns_on_answer(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	struct sample *s = sample_of(qctx->client);
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	struct hydns_question q;
	isc_region_t r;

	if (p == NULL || s->client != qctx->client || s->key != 0 || qctx->client->query.origqname == NULL ||
	    (!qctx->is_zone && (*result == ISC_R_NOTFOUND || *result == DNS_R_DELEGATION)))
		return NS_HOOK_CONTINUE;
	dns_name_toregion(qctx->client->query.origqname, &r);
	q = question_of(&r, qctx->client);
	s->key = hydns_plugin_prefetch(hydns_plugin_thread(p, hydns_tid()), &q);
	return NS_HOOK_CONTINUE;
}

/* The fetch that this query has joined may have begun before it, so before a flush. The next query may be offered. But where queries
 * are parked, each question would have to wait for one that passes: then this response is looked at more closely. */
ns_hookresult_t hydns_on_resume(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct sample *s = sample_of(qctx->client);
	uint64_t key;
	uint32_t parked = hydns_parked_for(qctx, &key);

	UNUSED(data);
	UNUSED(result);
	if (parked != 0)
		*s = (struct sample){ .client = qctx->client, .key = key, .parked = parked };
	else if (s->client == qctx->client)
		s->client = NULL;
	return NS_HOOK_CONTINUE;
}

ns_hookresult_t hydns_on_lookup(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct sample *s = sample_of(qctx->client);

	UNUSED(result);
	if (s->client != qctx->client)
		return NS_HOOK_CONTINUE;
	if (!qctx->is_zone || !hydns_zone_is_authoritative(qctx))
		s->sources.cache = true;
	else if (hydns_zone_is_fit(data, qctx))
		s->sources.zone = true;
	else
		s->sources.unfit = true;
	return NS_HOOK_CONTINUE;
}

/* Seconds. Never below hydns-min-ttl, which is meant for TTLs that count down: a shorter life would be refused. */
static uint32_t fixed_life(const struct hydns_instance *inst)
{
	return inst->o.min_ttl > HYDNS_FIXED_LIFE ? inst->o.min_ttl : HYDNS_FIXED_LIFE;
}

static void not_offered(struct hydns_plugin *p, uint64_t key, enum hydns_not_offered_why why, uint32_t value)
{
	hydns_plugin_not_offered(hydns_plugin_thread(p, hydns_tid()), key, why, value);
}

/* Nothing was looked up: the stamp is older than the look into named's memory all the same. */
static void offer_failure(const struct hydns_instance *inst, struct hydns_plugin *p, const query_ctx_t *qctx,
			  const struct hydns_question *q, uint64_t key, time_t end)
{
	const struct sample *s = sample_of(qctx->client);

	if (s->client != qctx->client ||
	    !hydns_plugin_hot(hydns_plugin_thread(p, hydns_tid()), key, false, end, hydns_mono_coarse_ms()))
		return;
	pending.key = key;
	pending.q = *q;
	pending.q.failure = true;
	pending.q.account = hydns_failure_account(inst, qctx->client);
	pending.expires = end;
	pending.secure = false;
	pending.stamp = s->stamp;
	pending.client = qctx->client;
}

/* A question that named can't answer: no other query hook sees its response. */
static void on_failure(struct hydns_instance *inst, struct hydns_plugin *p, const query_ctx_t *qctx)
{
	enum hydns_not_offered_why why = HYDNS_NOT_OFFERED_ERROR;
	struct hydns_question q;
	isc_region_t r;
	uint64_t key;
	time_t end;

	dns_name_toregion(qctx->client->query.origqname, &r);
	q = question_of(&r, qctx->client);
	key = hydns_plugin_key(hydns_plugin_thread(p, hydns_tid()), &q);
	if (atomic_load(&inst->open) && hydns_failure_is_remembered(qctx, &end))
		why = hydns_why_failure_not_offered(qctx, &r);
	if (why == HYDNS_NOT_OFFERED_NONE)
		offer_failure(inst, p, qctx, &q, key, end);
	else
		not_offered(p, key, why, dns_result_torcode(qctx->result));
}

ns_hookresult_t hydns_on_done(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	const ns_client_t *client = qctx->client;
	struct hydns_plugin *p = qctx->result != ISC_R_SUCCESS ? atomic_load(&inst->plugin) : NULL;

	UNUSED(result);
	pending.client = NULL;
	if (p == NULL || qctx->want_restart || qctx->result == DNS_R_DUPLICATE || qctx->result == DNS_R_DROP ||
	    hydns_tid() >= hydns_tid_count() || client->query.origqname == NULL || !hydns_query_is_plain(client))
		return NS_HOOK_CONTINUE;
	on_failure(inst, p, qctx);
	return NS_HOOK_CONTINUE;
}

/* Why the response of a sampled query is not offered. One that ends a resolution gets a stamp of now, and must be what the cache
 * gives after that. */
static enum hydns_not_offered_why why_not(const query_ctx_t *qctx, struct hydns_plugin *p, struct sample *s, const isc_region_t *name,
					  struct hydns_response *response)
{
	enum hydns_not_offered_why why;

	if (s->parked != 0)
		s->stamp = hydns_plugin_stamp(p);
	why = hydns_why_not_offered(qctx, &s->sources, name, response);
	if (why == HYDNS_NOT_OFFERED_NONE && s->parked != 0 && (response->fixed || !hydns_cache_gives(qctx)))
		why = HYDNS_NOT_OFFERED_CHANGED;
	return why;
}

static bool is_denial(const dns_message_t *m)
{
	return m->rcode == dns_rcode_nxdomain ||
	       (ISC_LIST_EMPTY(m->sections[DNS_SECTION_ANSWER]) && (m->flags & DNS_MESSAGEFLAG_AA) != 0);
}

/* What a zone has data for, and what lies below a delegation; and what is answered for all names and types that do not exist. */
static bool is_to_keep(const ns_client_t *client, const isc_region_t *name, const struct hydns_response *response)
{
	const dns_message_t *m = client->message;

	if (!response->fixed || (m->rcode != dns_rcode_noerror && m->rcode != dns_rcode_nxdomain))
		return false;
	return !is_denial(m) || hydns_preload_is_of_template(name->base, name->length, client->query.qtype);
}

/* Whether the preloader asks it for a client that was denied something. */
static bool is_demanded(const ns_client_t *client, const struct hydns_question *q)
{
	dns_zone_t *zone = client->query.authzone;

	return is_denial(client->message) && zone != NULL &&
	       hydns_preload_is_demanded(q, dns_zone_getorigin(zone)->length);
}

/* The denial of a signed zone: the kernel could have given it. */
static void demand(struct hydns_plugin *p, const query_ctx_t *qctx, const struct hydns_question *q)
{
	if ((q->variant & HYDNS_VARIANT_DO) != 0 && is_denial(qctx->client->message))
		hydns_plugin_demand(p, q);
}

static bool is_due(struct hydns_thread *t, const struct sample *s)
{
	if (s->kept)
		return true;
	return s->parked != 0 ?
		hydns_plugin_due(t, &pending.q, s->parked, pending.expires, hydns_mono_coarse_ms()) :
		hydns_plugin_hot(t, s->key, pending.q.fixed, pending.expires, hydns_mono_coarse_ms());
}

ns_hookresult_t hydns_on_send(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	ns_client_t *client = qctx->client;
	struct sample *s = sample_of(client);
	struct hydns_plugin *p;
	enum hydns_not_offered_why why;
	struct hydns_response response;
	isc_region_t r;

	UNUSED(result);
	pending.client = NULL;
	if (!atomic_load(&inst->started))
		hydns_start(inst, &(struct hydns_start){ .view = client->view, .server = client->manager->sctx,
							 .env = client->manager->aclenv,
							 .port = isc_sockaddr_getport(&client->destsockaddr) });
	p = atomic_load(&inst->plugin);
	if (p == NULL || s->client != client || s->key == 0 || !atomic_load(&inst->open) ||
	    !hydns_query_is_plain(client) || client->query.origqname == NULL)
		return NS_HOOK_CONTINUE;
	dns_name_toregion(client->query.origqname, &r);
	why = why_not(qctx, p, s, &r, &response);
	if (s->kept && (why != HYDNS_NOT_OFFERED_NONE || !is_to_keep(client, &r, &response))) {
		hydns_plugin_preload_unfit(p);
		return NS_HOOK_CONTINUE;
	}
	if (why != HYDNS_NOT_OFFERED_NONE) {
		not_offered(p, s->key, why, 0);
		return NS_HOOK_CONTINUE;
	}
	pending.key = s->key;
	pending.q = question_of(&r, client);
	pending.q.fixed = response.fixed;
	pending.q.demanded = s->kept && is_demanded(client, &pending.q);
	pending.q.kept = s->kept && !pending.q.demanded;
	pending.q.account = hydns_account_of(client);
	pending.expires = (time_t)client->now + (pending.q.kept ? HYDNS_KEPT_LIFE : response.fixed ? fixed_life(inst) : response.ttl);
	if (!s->kept && response.fixed)
		demand(p, qctx, &pending.q);
	pending.secure = response.secure;
	pending.stamp = s->stamp;
	if (is_due(hydns_plugin_thread(p, hydns_tid()), s))
		pending.client = client;
	return NS_HOOK_CONTINUE;
}

bool hydns_is_wanted(const ns_client_t *client)
{
	return pending.client == client;
}

void hydns_rendered(struct hydns_instance *inst, const ns_client_t *client, const uint8_t *wire, size_t len)
{
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	bool wanted = hydns_is_wanted(client);
	enum hydns_not_offered_why why;
	struct hydns_thread *t;

	pending.client = NULL;
	if (p == NULL || !wanted)
		return;
	t = hydns_plugin_thread(p, hydns_tid());
	why = hydns_why_rendered_not_offered(client, wire, len, pending.q.fixed, pending.secure);
	if (why != HYDNS_NOT_OFFERED_NONE) {
		if (pending.q.kept)
			hydns_plugin_preload_unfit(p);
		not_offered(p, pending.key, why, 0);
		return;
	}
	hydns_zone_tell(p, client);
	if (pending.q.fixed)
		hydns_zone_dependencies(t, client);
	if (pending.q.failure) {
		hydns_failure_depends(t);
		atomic_store(&inst->has_failures, true);
	}
	(void)hydns_plugin_offer(t, &pending.q, wire, len, (time_t)client->now,
				  pending.expires, pending.secure, pending.stamp);
}
