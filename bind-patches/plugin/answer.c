/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which answers are offered. A response is everybody's when it came from the cache alone or from zones alone, for a
 * plain query, and nothing in it depends on who asked; then its octets, as named sends them, go to hydnsd.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <isc/stdtime.h>
#include <isc/util.h>
#include <dns/message.h>
#include <dns/name.h>
#include <dns/rdataset.h>
#include <dns/result.h>
#include <dns/view.h>
#include <ns/client.h>
#include <ns/query.h>
#include <ns/server.h>
#include "plugin/clock.h"
#include "compat.h"
#include "plugin.h"

/* Seconds for which an answer from a zone is given before named is asked again, though nothing has changed. */
#define FIXED_LIFE 300

/* Counted queries under way on one loop, whose stamp is remembered; one that is pushed out is not offered. */
#define NOTED 256

static __thread struct note {
	const ns_client_t *client;
	struct hydns_stamp stamp;    /* when the query began, before anything was looked up */
	uint64_t key;                /* of its question, when there is an answer; 0: not yet known */
	bool cache, zone;            /* what was looked into: each of them for a chain of aliases */
	bool unfit;                  /* a zone that has something of its own */
} notes[NOTED];

/* The response between the last query hook and its rendering, which follow each other without a break. */
static __thread struct {
	const ns_client_t *client;   /* NULL: not to be offered */
	struct hydns_stamp stamp;
	uint64_t key;
	struct hydns_question q;
	time_t expires;
	bool secure;
} pending;

static uint8_t variant_of(const ns_client_t *client)
{
	return ((client->extflags & DNS_MESSAGEEXTFLAG_DO) != 0 ? HYDNS_VARIANT_DO : 0) |
	       ((client->message->flags & DNS_MESSAGEFLAG_RD) == 0 ? HYDNS_VARIANT_NO_RD : 0);
}

static struct hydns_question question_of(const isc_region_t *name, const ns_client_t *client)
{
	return (struct hydns_question){ .name = name->base, .name_len = (uint16_t)name->length,
		.qtype = client->query.qtype, .variant = variant_of(client) };
}

static struct note *place_of(const ns_client_t *client)
{
	return &notes[((uintptr_t)client >> 8) * 2654435761U % NOTED];
}

/* Whether this query is one of those that are counted. */
static bool is_picked(struct hydns_plugin *p, const ns_client_t *client)
{
	return hydns_tid() < hydns_tid_count() &&
	       hydns_plugin_sample(hydns_plugin_thread(p, hydns_tid()), (time_t)client->now);
}

ns_hookresult_t hydns_on_setup(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	struct note *n = place_of(qctx->client);

	UNUSED(result);
	n->client = NULL;
	if (p != NULL && is_picked(p, qctx->client))
		*n = (struct note){ .client = qctx->client, .stamp = hydns_plugin_stamp(p) };
	return NS_HOOK_CONTINUE;
}

/* What counting the query will look at is fetched while its response is made, unless it goes on to ask elsewhere: then it
 * is not counted. */
ns_hookresult_t hydns_on_answer(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	struct note *n = place_of(qctx->client);
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	struct hydns_question q;
	isc_region_t r;

	if (p == NULL || n->client != qctx->client || n->key != 0 || qctx->client->query.origqname == NULL ||
	    (!qctx->is_zone && (*result == ISC_R_NOTFOUND || *result == DNS_R_DELEGATION)))
		return NS_HOOK_CONTINUE;
	dns_name_toregion(qctx->client->query.origqname, &r);
	q = question_of(&r, qctx->client);
	n->key = hydns_plugin_prefetch(hydns_plugin_thread(p, hydns_tid()), &q);
	return NS_HOOK_CONTINUE;
}

/* A fetch that this query joined may have begun before it, so before a flush: its next query is offered. */
ns_hookresult_t hydns_on_resume(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct note *n = place_of(qctx->client);

	UNUSED(data);
	UNUSED(result);
	if (n->client == qctx->client)
		n->client = NULL;
	return NS_HOOK_CONTINUE;
}

ns_hookresult_t hydns_on_lookup(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct note *n = place_of(qctx->client);

	UNUSED(result);
	if (n->client != qctx->client)
		return NS_HOOK_CONTINUE;
	if (!qctx->is_zone || !hydns_zone_is_authoritative(qctx))
		n->cache = true;
	else if (hydns_zone_is_fit(data, qctx))
		n->zone = true;
	else
		n->unfit = true;
	return NS_HOOK_CONTINUE;
}

/* Signatures asked for by their type are those that happen to be cached, of any type. */
static bool type_is_plain(dns_rdatatype_t type)
{
	return type != dns_rdatatype_any && type != dns_rdatatype_rrsig && type != dns_rdatatype_sig;
}

/* Who is given mapped addresses, and for which, dns64 says by client. */
static bool is_by_client(const query_ctx_t *qctx)
{
	return qctx->client->query.qtype == dns_rdatatype_aaaa && !ISC_LIST_EMPTY(qctx->view->dns64);
}

/* Extended errors (RFC 8914), which clients with EDNS get: one without has the same rule. */
static bool says_more(const ns_client_t *client)
{
	return hydns_has_extended_error(client);
}

/* Of the shape that the kernel answers, whatever is asked. */
static bool query_is_plain(const ns_client_t *client)
{
	const dns_message_t *m = client->message;
	const unsigned int special = NS_CLIENTATTR_TCP | NS_CLIENTATTR_MULTICAST | NS_CLIENTATTR_WANTNSID |
		NS_CLIENTATTR_WANTEXPIRE | NS_CLIENTATTR_HAVEECS | NS_CLIENTATTR_WANTPAD;

	return (client->attributes & special) == 0 && m->opcode == dns_opcode_query &&
	       m->rdclass == dns_rdataclass_in && m->tsigkey == NULL && client->signer == NULL &&
	       (m->flags & (DNS_MESSAGEFLAG_CD | DNS_MESSAGEFLAG_TC)) == 0 && client->ednsversion <= 0;
}

/* Why the answer to a plain query is not everybody's, as far as its way to here tells; NONE: it is. */
static enum hydns_not_offered_why why_way_kept(const query_ctx_t *qctx)
{
	const ns_client_t *client = qctx->client;

	if (!type_is_plain(client->query.qtype))
		return HYDNS_NOT_OFFERED_BY_TYPE;
	if (is_by_client(qctx) || qctx->dns64)
		return HYDNS_NOT_OFFERED_DNS64;
	if (qctx->rpz || qctx->nxrewrite || qctx->redirected ||
	    (client->query.attributes & NS_QUERYATTR_SYNTHESIZED) != 0)
		return HYDNS_NOT_OFFERED_SYNTHESIZED;
	return says_more(client) ? HYDNS_NOT_OFFERED_EXTENDED_ERROR : HYDNS_NOT_OFFERED_NONE;
}

/* With auth-nxdomain that a name does not exist is said with AA from the cache, too. */
static bool aa_is_of_cache(const query_ctx_t *qctx)
{
	const dns_message_t *m = qctx->client->message;

	return (m->flags & DNS_MESSAGEFLAG_AA) == 0 || (m->rcode == dns_rcode_nxdomain && qctx->view->auth_nxdomain);
}

/* Clients that do not ask for recursion, or may not, get something else from the cache. */
static bool is_from_cache(const query_ctx_t *qctx, const struct note *n)
{
	const ns_client_t *client = qctx->client;

	return !n->unfit && (client->attributes & NS_CLIENTATTR_RA) != 0 && !qctx->authoritative && aa_is_of_cache(qctx) &&
	       (client->message->flags & DNS_MESSAGEFLAG_RD) != 0;
}

/* Who takes by EDNS no more than what everybody takes gets minimal responses; the program passes such queries. */
static bool gets_less(const ns_client_t *client)
{
	return client->ednsversion >= 0 && client->udpsize <= HYDNS_PLAIN_UDP_SIZE;
}

/* All clients to whom the kernel gives answers may recurse if the view does recursion at all: RA is the same. */
static bool is_from_zones(const query_ctx_t *qctx, const struct note *n)
{
	const ns_client_t *client = qctx->client;

	return !gets_less(client) && n->zone && !n->unfit && !n->cache &&
	       ((client->attributes & NS_CLIENTATTR_RA) != 0) == qctx->view->recursion;
}

/* Why it is neither. */
static enum hydns_not_offered_why why_source_kept(const query_ctx_t *qctx, const struct note *n)
{
	const ns_client_t *client = qctx->client;

	if (n->unfit)
		return HYDNS_NOT_OFFERED_ZONE_OWN;
	if (n->zone && n->cache)
		return HYDNS_NOT_OFFERED_MIXED;
	if (n->zone && gets_less(client))
		return HYDNS_NOT_OFFERED_SMALL_SIZE;
	if ((client->attributes & NS_CLIENTATTR_RA) == 0 || (client->message->flags & DNS_MESSAGEFLAG_RD) == 0)
		return HYDNS_NOT_OFFERED_NO_RECURSION;
	return HYDNS_NOT_OFFERED_MIXED;
}

/* Zone data in the middle of a chain of aliases, and what is not validated yet, are not the cache's. */
static enum hydns_not_offered_why why_not_of_cache(const dns_rdataset_t *r)
{
	if ((r->attributes & (DNS_RDATASETATTR_STALE | DNS_RDATASETATTR_STALE_WINDOW | DNS_RDATASETATTR_ANCIENT)) != 0)
		return HYDNS_NOT_OFFERED_STALE;
	if (DNS_TRUST_PENDING(r->trust))
		return HYDNS_NOT_OFFERED_UNVALIDATED;
	return r->trust == dns_trust_ultimate ? HYDNS_NOT_OFFERED_MIXED : HYDNS_NOT_OFFERED_NONE;
}

/* In the additional section there are addresses from below a zone cut, too. */
static enum hydns_not_offered_why why_not_of_zone(const dns_rdataset_t *r)
{
	return r->trust == dns_trust_ultimate || r->trust == dns_trust_glue ? HYDNS_NOT_OFFERED_NONE : HYDNS_NOT_OFFERED_MIXED;
}

/* rrset-order random: the kernel path rotates. Any other order it can't keep, for the store rotates all of a
 * resolver's RRsets or none; and cyclic says which record is next after named's last answer, which CPUs that answer
 * by themselves do not know. */
static bool order_is_general(dns_rdataset_t *r)
{
	return r->type == dns_rdatatype_rrsig || (r->attributes & DNS_RDATASETATTR_NEGATIVE) != 0 ||
	       dns_rdataset_count(r) < 2 ||
	       (r->attributes & DNS_RDATASETATTR_RANDOMIZE) != 0;
}

static isc_result_t note_addition(void *arg, const dns_name_t *name, dns_rdatatype_t type,
				  dns_rdataset_t *found DNS__DB_FLARG)
{
	UNUSED(name);
	UNUSED(type);
	UNUSED(found);
	*(bool *)arg = true;
	return ISC_R_SUCCESS;
}

/* Addresses of what the records name are added when they happen to be cached: that changes unnoticed. For HTTPS and
 * SVCB the owner itself may be named. */
static bool wants_addition(const query_ctx_t *qctx, const dns_name_t *owner, dns_rdataset_t *r)
{
	bool any = false;

	if ((qctx->view->minimalresponses == dns_minimal_yes && qctx->qtype != dns_rdatatype_ns) ||
	    (r->attributes & DNS_RDATASETATTR_NEGATIVE) != 0)
		return false;
	(void)dns_rdataset_additionaldata(r, owner, note_addition, &any, 0);
	return any;
}

/* What a response says of its records together. */
struct look {
	bool fixed;                  /* they must be of zones, else of the cache */
	bool secure;
	uint32_t ttl;
};

static enum hydns_not_offered_why look_at_record(const query_ctx_t *qctx, const dns_name_t *owner, dns_rdataset_t *r,
					  struct look *l)
{
	enum hydns_not_offered_why why = l->fixed ? why_not_of_zone(r) : why_not_of_cache(r);

	if (why != HYDNS_NOT_OFFERED_NONE)
		return why;
	if (!order_is_general(r))
		return HYDNS_NOT_OFFERED_ORDER;
	/* without recursion additional records are the zone's own, and they are all looked at */
	if ((!l->fixed || qctx->view->recursion) && wants_addition(qctx, owner, r))
		return HYDNS_NOT_OFFERED_ADDITION;
	if (r->trust != dns_trust_secure || (r->attributes & DNS_RDATASETATTR_OPTOUT) != 0)
		l->secure = false;
	if (r->ttl < l->ttl)
		l->ttl = r->ttl;
	return HYDNS_NOT_OFFERED_NONE;
}

/* NONE: all of them may be offered, and there are some. */
static enum hydns_not_offered_why look_at_records(const query_ctx_t *qctx, struct look *l)
{
	dns_message_t *m = qctx->client->message;
	static const dns_section_t sections[] = { DNS_SECTION_ANSWER, DNS_SECTION_AUTHORITY, DNS_SECTION_ADDITIONAL };
	const size_t n = l->fixed ? 3 : 2;
	bool any = false;

	l->ttl = UINT32_MAX;
	l->secure = true;
	for (size_t i = 0; i < n; i++)
		for (dns_name_t *name = ISC_LIST_HEAD(m->sections[sections[i]]); name != NULL;
		     name = ISC_LIST_NEXT(name, link))
			for (dns_rdataset_t *r = ISC_LIST_HEAD(name->list); r != NULL; r = ISC_LIST_NEXT(r, link)) {
				enum hydns_not_offered_why why = look_at_record(qctx, name, r, l);

				if (why != HYDNS_NOT_OFFERED_NONE)
					return why;
				any = true;
			}
	if (!any)
		return HYDNS_NOT_OFFERED_NO_RECORD;
	return l->fixed || l->ttl > 0 ? HYDNS_NOT_OFFERED_NONE : HYDNS_NOT_OFFERED_ZERO_TTL;
}

static void log_obstacles(const char *const *reasons, size_t n)
{
	char text[512];

	for (size_t i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "no answer is offered to the kernel: %s", reasons[i]);
		hydns_say(HYDNS_LOG_WARNING, text);
	}
}

void hydns_reconsider(struct hydns_instance *inst, struct hydns_plugin *p)
{
	const char *reasons[HYDNS_OBSTACLES_MAX];
	size_t n = hydns_obstacles(inst, reasons);
	bool was = atomic_load(&inst->open);

	if (!inst->exported && n == 0)
		reasons[n++] = "what kept answers from the kernel at the start no longer holds: rndc reconfig to go on";
	log_obstacles(reasons, n);
	if (n == 0 && !was)
		hydns_say(HYDNS_LOG_INFO, "answers are offered to the kernel again");
	atomic_store(&inst->open, n == 0);
	if (n > 0)
		hydns_plugin_withdraw(p, HYDNS_SCOPE_ALL, NULL, 0);
	if (n > 0 || !was)
		hydns_plugin_set_notes(p, HYDNS_NOTE_OBSTACLE, reasons, n);
}

/* True: there is none. */
static bool note_obstacles(const struct hydns_instance *inst, struct hydns_plugin *p)
{
	const char *reasons[HYDNS_OBSTACLES_MAX];
	size_t n = hydns_obstacles(inst, reasons);

	log_obstacles(reasons, n);
	for (size_t i = 0; i < n; i++)
		(void)hydns_plugin_add_note(p, HYDNS_NOTE_OBSTACLE, reasons[i]);
	return n == 0;
}

/* What is sent without valid cookie, which no client of the kernel path has, is limited once more. Less than
 * 512 is an obstacle, which hydnsd can show only if it takes what it is told. */
static uint16_t max_udp(const dns_view_t *view)
{
	uint16_t most = view->nocookieudp < view->maxudp ? view->nocookieudp : view->maxudp;

	return most < HYDNS_PLAIN_UDP_SIZE ? HYDNS_PLAIN_UDP_SIZE : most;
}

static struct hydns_plugin *new_plugin(struct hydns_instance *inst, const ns_client_t *client)
{
	struct hydns_plugin *former = hydns_take_former(inst), *p;
	char identity[HYDNS_IDENTITY_LEN] = "named";

	if (strcmp(client->view->name, "_default") != 0)
		snprintf(identity, sizeof(identity), "named, view %s", client->view->name);
	const struct hydns_plugin_options o = {
		.socket = inst->o.socket, .identity = identity, .version = PACKAGE_VERSION,
		.threads = hydns_tid_count(), .capacity = inst->o.capacity, .admission = inst->o.admission,
		.window_ms = inst->o.window * 1000, .min_ttl = inst->o.min_ttl, .max_ttl = inst->o.max_ttl,
		.refresh_percent = inst->o.refresh, .flush_timeout_ms = inst->o.flush_timeout,
		.flags = HYDNS_RESOLVER_ROTATES | HYDNS_RESOLVER_SHUFFLES | HYDNS_RESOLVER_KEEPS_CASE |
			 HYDNS_RESOLVER_STRICT_EDNS | HYDNS_RESOLVER_OWN_PROOFS,
		.edns_size = hydns_edns_size(client->view),
		.max_udp = max_udp(client->view), .zones = true, .log = hydns_say,
	};

	p = hydns_plugin_take_over(&o, former);
	if (p == NULL)
		hydns_plugin_stop(former);
	return p;
}

/* Once, by the first response. The link goes up even with obstacles, so that hydnsd can show them. */
static void start(struct hydns_instance *inst, const ns_client_t *client)
{
	struct hydns_plugin *p;
	bool free_way;

	pthread_mutex_lock(&inst->starting);
	if (!atomic_load(&inst->started)) {
		inst->view = client->view;
		inst->port = isc_sockaddr_getport(&client->destsockaddr);
		if (inst->server == NULL) {
			ns_server_attach(client->manager->sctx, &inst->server);
			dns_aclenv_attach(client->manager->aclenv, &inst->env);
		}
		p = new_plugin(inst, client);
		free_way = p != NULL && note_obstacles(inst, p);
		if (p != NULL && ((free_way && !hydns_export(inst, client, p)) || hydns_plugin_start(p) != 0)) {
			hydns_plugin_stop(p);
			p = NULL;
		}
		inst->exported = p != NULL && free_way;
		atomic_store(&inst->open, p != NULL && free_way);
		atomic_store(&inst->plugin, p);
		atomic_store(&inst->started, true);
	}
	pthread_mutex_unlock(&inst->starting);
}

/* Names are sent with the letters they were first received with: to a question in small letters the same to
 * everybody. Lengths of labels are below 'A'. */
static bool has_capitals(const isc_region_t *name)
{
	for (unsigned int i = 0; i < name->length; i++)
		if (name->base[i] >= 'A' && name->base[i] <= 'Z')
			return true;
	return false;
}

/* hydns-min-ttl is meant for what is counted down. */
static uint32_t fixed_life(const struct hydns_instance *inst)
{
	return inst->o.min_ttl > FIXED_LIFE ? inst->o.min_ttl : FIXED_LIFE;
}

/* Whether the response may be offered: fills *look. */
static enum hydns_not_offered_why why_kept(const query_ctx_t *qctx, const struct note *n, const isc_region_t *name,
				    struct look *look)
{
	enum hydns_not_offered_why why = why_way_kept(qctx);

	if (why != HYDNS_NOT_OFFERED_NONE)
		return why;
	look->fixed = is_from_zones(qctx, n);
	if (!look->fixed && !is_from_cache(qctx, n))
		return why_source_kept(qctx, n);
	why = look_at_records(qctx, look);
	if (why != HYDNS_NOT_OFFERED_NONE)
		return why;
	return has_capitals(name) ? HYDNS_NOT_OFFERED_CAPITALS : HYDNS_NOT_OFFERED_NONE;
}

static void kept(struct hydns_plugin *p, uint64_t key, enum hydns_not_offered_why why, uint32_t value)
{
	hydns_plugin_not_offered(hydns_plugin_thread(p, hydns_tid()), key, why, value);
}

/* A question that named can't answer: no hook sees the response. */
ns_hookresult_t hydns_on_done(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	const ns_client_t *client = qctx->client;
	struct hydns_plugin *p = qctx->result != ISC_R_SUCCESS ? atomic_load(&inst->plugin) : NULL;
	struct hydns_question q;
	isc_region_t r;

	UNUSED(result);
	if (p == NULL || qctx->want_restart || qctx->result == DNS_R_DUPLICATE || qctx->result == DNS_R_DROP ||
	    hydns_tid() >= hydns_tid_count() || client->query.origqname == NULL || !query_is_plain(client))
		return NS_HOOK_CONTINUE;
	dns_name_toregion(client->query.origqname, &r);
	q = question_of(&r, client);
	kept(p, hydns_plugin_key(hydns_plugin_thread(p, hydns_tid()), &q), HYDNS_NOT_OFFERED_ERROR,
	     dns_result_torcode(qctx->result));
	return NS_HOOK_CONTINUE;
}

ns_hookresult_t hydns_on_send(void *arg, void *data, isc_result_t *result)
{
	const query_ctx_t *qctx = arg;
	struct hydns_instance *inst = data;
	ns_client_t *client = qctx->client;
	struct note *n = place_of(client);
	struct hydns_plugin *p;
	enum hydns_not_offered_why why;
	struct look look;
	isc_region_t r;

	UNUSED(result);
	pending.client = NULL;
	if (!atomic_load(&inst->started))
		start(inst, client);
	p = atomic_load(&inst->plugin);
	if (p == NULL || n->client != client || n->key == 0 || !atomic_load(&inst->open) || !query_is_plain(client) ||
	    client->query.origqname == NULL)
		return NS_HOOK_CONTINUE;
	dns_name_toregion(client->query.origqname, &r);
	why = why_kept(qctx, n, &r, &look);
	if (why != HYDNS_NOT_OFFERED_NONE) {
		kept(p, n->key, why, 0);
		return NS_HOOK_CONTINUE;
	}
	pending.key = n->key;
	pending.q = question_of(&r, client);
	pending.q.fixed = look.fixed;
	pending.expires = (time_t)client->now + (look.fixed ? fixed_life(inst) : look.ttl);
	pending.secure = look.secure;
	pending.stamp = n->stamp;
	if (hydns_plugin_hot(hydns_plugin_thread(p, hydns_tid()), n->key, look.fixed, pending.expires, hydns_mono_coarse_ms()))
		pending.client = client;
	return NS_HOOK_CONTINUE;
}

/* What the cache had to add may change unnoticed. The OPT is counted with the additional records. */
static bool has_additional(const ns_client_t *client, const uint8_t *wire)
{
	return (wire[10] << 8 | wire[11]) != ((client->attributes & NS_CLIENTATTR_WANTOPT) != 0);
}

/* True when the AD bit of the response is what its records' trust made us expect. */
static bool ad_is_as_expected(const ns_client_t *client, const uint8_t *wire)
{
	bool asked = (client->attributes & (NS_CLIENTATTR_WANTAD | NS_CLIENTATTR_WANTDNSSEC)) != 0;

	return ((wire[3] & 0x20) != 0) == (asked && pending.secure);
}

bool hydns_is_wanted(const ns_client_t *client)
{
	return pending.client == client;
}

/* Why the response is not everybody's as it was rendered. */
static enum hydns_not_offered_why why_rendered_kept(const ns_client_t *client, const uint8_t *wire, size_t len)
{
	if (len < 12 || (wire[2] & 0x02) != 0)
		return HYDNS_NOT_OFFERED_TRUNCATED;
	if (!ad_is_as_expected(client, wire))
		return HYDNS_NOT_OFFERED_UNVALIDATED;
	if (pending.q.fixed)
		return hydns_why_incomplete(client);
	return has_additional(client, wire) ? HYDNS_NOT_OFFERED_ADDITION : HYDNS_NOT_OFFERED_NONE;
}

void hydns_rendered(struct hydns_instance *inst, const ns_client_t *client, const uint8_t *wire, size_t len)
{
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	bool wanted = hydns_is_wanted(client);
	enum hydns_not_offered_why why;

	pending.client = NULL;
	if (p == NULL || !wanted)
		return;
	why = why_rendered_kept(client, wire, len);
	/* After the stamp was taken, and before the offer is counted. */
	if (why == HYDNS_NOT_OFFERED_NONE && hydns_zones_are_changing())
		why = HYDNS_NOT_OFFERED_ZONE_CHANGING;
	if (why != HYDNS_NOT_OFFERED_NONE) {
		kept(p, pending.key, why, 0);
		return;
	}
	(void)hydns_plugin_offer(hydns_plugin_thread(p, hydns_tid()), &pending.q, wire, len, (time_t)client->now,
				  pending.expires, pending.secure, pending.stamp);
}
