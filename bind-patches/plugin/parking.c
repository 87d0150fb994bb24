/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which questions several clients wait for, so that further queries may be parked (hydns/parking.h). named joins fetches in its
 * resolver, where no plugin looks, and each waiting client has a query context that ends when the fetch begins and one that
 * begins when the fetch is over. So clients are counted there, by question.
 */
#include <isc/hash.h>
#include <isc/quota.h>
#include <isc/util.h>
#include <dns/name.h>
#include <dns/resolver.h>
#include <dns/view.h>
#include <ns/client.h>
#include <ns/query.h>
#include <ns/server.h>
#include "compat.h"
#include "plugin.h"
#include "plugin/clock.h"

/* So many clients wait that the next question is taken for one that more ask. To begin a fetch costs named 50 to 100 us: the second
 * client of a question, which is behind all these in the socket, is read some 10 ms after the first. */
#define CROWD 128

static bool is_recursing(const ns_client_t *client)
{
	return (client->query.attributes & NS_QUERYATTR_RECURSING) != 0;
}

static struct hydns_question question_of(const ns_client_t *client, isc_region_t *name)
{
	dns_name_toregion(client->query.origqname, name);
	return (struct hydns_question){ .name = name->base, .name_len = (uint16_t)name->length, .qtype = client->query.qtype,
					.variant = hydns_variant_of(client) };
}

/*
 * How many clients wait for a question of this place, the same before and after a reload of the plugin's options. Questions that
 * share a place are counted together: then one may be taken for crowded that only one client waits for, which parks the next
 * queries for it.
 */
static atomic_uint *count_of(struct hydns_instance *inst, const ns_client_t *client)
{
	uint32_t hash = dns_name_hash(client->query.origqname);

	hash = (hash ^ client->query.qtype) * 2654435761U ^ hydns_variant_of(client);
	return &inst->waiting[hash % HYDNS_WAITING_PLACES];
}

static bool is_counted(const ns_client_t *client)
{
	return client->query.origqname != NULL && client->message != NULL && client->message->rdclass == dns_rdataclass_in &&
	       hydns_tid() < hydns_tid_count();
}

/* The thread's part of the plugin, and the key of the client's question. NULL: there is no plugin. */
static struct hydns_thread *thread_and_key(struct hydns_instance *inst, const ns_client_t *client, uint64_t *key)
{
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	struct hydns_question q;
	struct hydns_thread *t;
	isc_region_t name;

	if (p == NULL)
		return NULL;
	t = hydns_plugin_thread(p, hydns_tid());
	q = question_of(client, &name);
	*key = hydns_plugin_key(t, &q);
	return t;
}

/* The fetch that ended with the query context that this thread is at, until that context ends as well. */
static __thread struct {
	const query_ctx_t *context;       /* NULL: none */
	uint64_t key;                     /* of the client's question */
	uint32_t parked;                  /* sightings in queries that are parked for it */
} ended;

/* After the response, if it is one: hydnsd gets its offer first. */
static void say_over(struct hydns_instance *inst, const query_ctx_t *qctx)
{
	struct hydns_plugin *p = atomic_load(&inst->plugin);

	if (ended.context != qctx)
		return;
	ended.context = NULL;
	if (p != NULL)
		hydns_plugin_over(hydns_plugin_thread(p, hydns_tid()), ended.key);
}

/* If the client waits, another fetch begins: each is followed by one of hydns_on_context(), also when it is cancelled. The first one
 * for its question parks nobody, unless many wait: then named is so late that others have asked before it reads the second. */
static void look_who_waits(struct hydns_instance *inst, const ns_client_t *client)
{
	struct hydns_thread *t;
	bool alone, crowded;
	uint64_t key;

	if (!is_recursing(client) || !is_counted(client))
		return;
	alone = atomic_fetch_add(count_of(inst, client), 1) == 0;
	crowded = atomic_fetch_add(&inst->all_waiting, 1) >= CROWD;
	if ((alone && !crowded) || !atomic_load(&inst->open) || !hydns_query_is_plain(client))
		return;
	t = thread_and_key(inst, client, &key);
	if (t != NULL)
		(void)hydns_plugin_under_way(t, key);
}

/* The end of a query context. */
ns_hookresult_t hydns_on_context_end(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;

	UNUSED(result);
	say_over(data, qctx);
	/* Else the response was sent, and the client may be gone. A client that waits is never detached. */
	if (!qctx->detach_client)
		look_who_waits(data, qctx->client);
	return NS_HOOK_CONTINUE;
}

/*
 * The fetch of a client is over, whatever it has brought: named's cache has the answer, or remembers the failure. Where the
 * response that follows is what the cache has, it is offered (answer.c). Else the first parked query that comes back is answered from
 * the cache and offered. The others are answered by that rule.
 */
ns_hookresult_t hydns_on_context(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	const ns_client_t *client = qctx->client;
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	struct hydns_thread *t;

	UNUSED(result);
	if (qctx->fresp != NULL && p != NULL)
		hydns_fetch_ended(p, qctx);
	if (qctx->fresp == NULL || !is_counted(client))
		return NS_HOOK_CONTINUE;
	atomic_fetch_sub(count_of(inst, client), 1);
	atomic_fetch_sub(&inst->all_waiting, 1);
	t = thread_and_key(inst, client, &ended.key);
	ended.context = t != NULL ? qctx : NULL;
	if (t != NULL)
		ended.parked = hydns_plugin_parked_sighted(t, ended.key, hydns_mono_coarse_ms());
	return NS_HOOK_CONTINUE;
}

uint32_t hydns_parked_for(const query_ctx_t *qctx, uint64_t *key)
{
	*key = ended.key;
	return ended.context == qctx ? ended.parked : 0;
}

/* named gives up a client that has waited longer. */
uint32_t hydns_park_ms(const dns_view_t *view)
{
	return view->resolver != NULL && view->recursion ? dns_resolver_gettimeout(view->resolver) : 0;
}

/* named's own values, between which it finds the limit by itself. */
#define CLIENTS_PER_QUERY     10
#define MAX_CLIENTS_PER_QUERY 100

/* 0: no limit. */
bool hydns_waiting_is_limited(const dns_view_t *view)
{
	uint32_t least = 0, most = 0;

	if (view->resolver == NULL)
		return false;
	dns_resolver_getclientsperquery(view->resolver, NULL, &least, &most);
	return (least != 0 && least != CLIENTS_PER_QUERY) || (most != 0 && most != MAX_CLIENTS_PER_QUERY);
}

uint32_t hydns_pending(const struct hydns_instance *inst, const dns_view_t *view, uint32_t wanted)
{
	if (hydns_waiting_is_limited(view))
		return 0;
	return wanted != HYDNS_PENDING_AUTO ? wanted : hydns_plugin_pending_auto(isc_quota_getmax(&inst->server->recursionquota));
}
