/* SPDX-License-Identifier: BSD-3-Clause */
/* Which answers are offered, with what stamp, and when an entry is due for refresh and its new answer offered. */
#include "config.h"
#include <string.h>
#include <time.h>
#include "hydns_compat.h"
#include "hydns_daemon.h"
#include "daemon/daemon.h"
#include "services/cache/rrset.h"
#include "services/listen_dnsport.h"
#include "services/mesh.h"
#include "sldns/pkthdr.h"
#include "sldns/rrdef.h"
#include "sldns/sbuffer.h"
#include "util/config_file.h"
#include "util/data/msgencode.h"
#include "util/data/msgparse.h"
#include "util/data/msgreply.h"
#include "util/data/packed_rrset.h"
#include "util/net_help.h"
#include "util/storage/slabhash.h"
#include "plugin/clock.h"

/* --- requests -------------------------------------------------------------------------------------- */
struct hydns_question hydns_question_of(const uint8_t* name, const struct query_info* qinfo, const struct edns_data* edns)
{
	return (struct hydns_question){
		.name = name, .name_len = (uint16_t)qinfo->qname_len, .qtype = qinfo->qtype,
		.variant = edns->edns_present && (edns->bits & EDNS_DO) ? HYDNS_VARIANT_DO : 0,
	};
}

void hydns_request_begin(struct hydns_context* h, struct comm_reply* repinfo, struct acl_addr* acl,
	struct query_info* qinfo, struct edns_data* edns, time_t now)
{
	struct comm_point* c = repinfo->c;
	uint16_t flags = sldns_buffer_read_u16_at(c->buffer, 2);
	struct hydns_question q;
	int plain;

	h->stamp = hydns_plugin_stamp(h->daemon->plugin);
	h->refresh = 0;
	/* an entry of the socket says nothing about the client's queries at other sockets */
	plain = c->type == comm_udp && !repinfo->is_proxied &&
		qinfo->qclass == LDNS_RR_CLASS_IN && qinfo->qtype != LDNS_RR_TYPE_ANY && !(flags & BIT_CD) &&
		LDNS_OPCODE_WIRE(sldns_buffer_begin(c->buffer)) == LDNS_PACKET_QUERY &&
		acl && !(c->socket && acl == c->socket->acl) && hydns_acl_is_plain(acl);
	h->plain = plain && (flags & BIT_RD);
	h->plain_no_rd = plain && !(flags & BIT_RD);
	h->kept = hydns_plugin_is_preload(h->daemon->plugin, (struct sockaddr*)&repinfo->client_addr);
	h->sampled = h->plain && !h->kept && hydns_plugin_sample(h->thread, now);
	if(h->sampled) {
		q = hydns_question_of(qinfo->qname, qinfo, edns);
		h->key = hydns_plugin_prefetch_known(h->thread, &q);
	}
}

int hydns_refresh_due(const struct hydns_context* h)
{
	return h->refresh;
}

/* --- is this answer the same for everybody? ------------------------------------------------------------ */
static int rcode_of(const struct reply_info* rep)
{
	return (int)FLAGS_GET_RCODE(rep->flags);
}

static int rcode_is_general(const struct reply_info* rep)
{
	return rcode_of(rep) == LDNS_RCODE_NOERROR || rcode_of(rep) == LDNS_RCODE_NXDOMAIN;
}

/* A failed resolution that Unbound remembers for some seconds, so that nobody asks dead authoritative servers again and again
 * (RFC 9520). The validator never sees it: see error_response_cache(). */
static int is_failure(const struct reply_info* rep)
{
	return rcode_of(rep) == LDNS_RCODE_SERVFAIL && rep->rrset_count == 0 && rep->security == sec_status_indeterminate;
}

/* An answer that has not passed validation: as long as Unbound remembers it, plain clients get a failure in its place. */
static int is_bogus(const struct module_env* env, const struct reply_info* rep)
{
	return rep->security == sec_status_bogus && env->need_to_validate;
}

/* Unbound validates again when one of the RRsets ends, although nobody sees them, and with prefetch some time before. */
static time_t end_of_bogus(const struct module_env* env, const struct reply_info* rep)
{
	time_t end = rep->ttl;
	size_t i;

	for(i = 0; i < rep->rrset_count; i++) {
		const struct packed_rrset_data* d =
			(const struct packed_rrset_data*)rep->rrsets[i]->entry.data;

		if(d->ttl < end)
			end = d->ttl;
	}
	end += HYDNS_LAST_SECOND;
	return env->cfg->prefetch && rep->prefetch_ttl < end ? rep->prefetch_ttl : end;
}

/* From when on Unbound does not answer with it; its RRsets are locked. In the second of its end records have TTL 0: the kernel
 * never sends that. */
static time_t end_of(const struct module_env* env, const struct reply_info* rep)
{
	if(is_bogus(env, rep))
		return end_of_bogus(env, rep);
	return is_failure(rep) ? rep->ttl + HYDNS_LAST_SECOND : rep->ttl;
}

static int security_is_general(const struct reply_info* rep, int must_validate)
{
	if(rep->security == sec_status_bogus || rep->security == sec_status_secure_sentinel_fail)
		return 0;
	return rep->security != sec_status_unchecked || !must_validate;
}

/* False for types that stand beside a CNAME: whether Unbound answers with them or follows the alias depends on earlier
 * queries, and changes without a change of the answer's data. */
static int type_is_general(uint16_t qtype)
{
	return qtype != LDNS_RR_TYPE_RRSIG && qtype != LDNS_RR_TYPE_NSEC && qtype != LDNS_RR_TYPE_NSEC3;
}

/* The program writes OPT records with a cookie at most, and those of failures with extended errors, which the cache has. */
int hydns_edns_is_general(const struct edns_data* edns, int bogus)
{
	const struct edns_option* o = edns->opt_list_out;

	if(!edns->edns_present)
		return 1;
	if(o && o->opt_code == LDNS_EDNS_COOKIE)
		o = o->next;
	while(bogus && o && o->opt_code == LDNS_EDNS_EDE)
		o = o->next;
	return !o && !edns->opt_list_inplace_cb_out;
}

/* Upper bound of the octets that RRset i takes in a message. */
static size_t rrset_bound(const struct reply_info* rep, size_t i)
{
	const struct packed_rrset_data* d = (const struct packed_rrset_data*)rep->rrsets[i]->entry.data;
	size_t j, octets = 0;

	for(j = 0; j < d->count + d->rrsig_count; j++)
		octets += rep->rrsets[i]->rk.dname_len + 8 + d->rr_len[j];
	return octets;
}

/*
 * Unbound leaves out additional data that do not fit into the client's buffer, without TC. The answer is the same for
 * everybody when none is missing: all are there, or there was room for all.
 */
int hydns_nothing_left_out(const struct reply_info* rep, struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns)
{
	size_t i, bound = sldns_buffer_limit(pkt), records = 0;
	size_t first = rep->an_numrrsets + rep->ns_numrrsets;
	size_t sent = LDNS_ARCOUNT(sldns_buffer_begin(pkt));

	if(edns->edns_present && sent > 0)
		sent--;
	for(i = first; i < rep->rrset_count; i++) {
		const struct packed_rrset_data* d =
			(const struct packed_rrset_data*)rep->rrsets[i]->entry.data;

		records += d->count + ((edns->bits & EDNS_DO) ? d->rrsig_count : 0);
		bound += rrset_bound(rep, i);
	}
	return sent == records || bound <= udp_size;
}

/* Why an answer to a question of this type with these options is not the same for everybody; NONE: it is. */
static enum hydns_not_offered_why why_not_offered(const struct query_info* qinfo, const struct reply_info* rep,
	const struct edns_data* edns, const struct module_env* env)
{
	int bogus = is_bogus(env, rep);

	if(qinfo->local_alias)
		return HYDNS_NOT_OFFERED_LOCAL_ALIAS;
	if(!type_is_general(qinfo->qtype))
		return HYDNS_NOT_OFFERED_BY_TYPE;
	if(!rcode_is_general(rep) && !is_failure(rep) && !bogus)
		return HYDNS_NOT_OFFERED_ERROR;
	if(!hydns_edns_is_general(edns, bogus))
		return HYDNS_NOT_OFFERED_EDNS_OPTION;
	if(!bogus && !security_is_general(rep, env->need_to_validate))
		return HYDNS_NOT_OFFERED_UNVALIDATED;
	return HYDNS_NOT_OFFERED_NONE;
}

static void not_offered(struct hydns_context* h, const struct hydns_question* q, enum hydns_not_offered_why why, uint32_t value)
{
	hydns_plugin_not_offered(h->thread, hydns_plugin_key(h->thread, q), why, value);
}

/* Offers an answer that everybody gets, as encoded for a client with room for udp_size octets. */
static void offer_reply(struct hydns_context* h, const struct hydns_question* q, const struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns, time_t expires, time_t now,
	int secure, struct hydns_stamp stamp)
{
	size_t i;

	if(!q->failure && expires - now < h->daemon->daemon->cfg->hydns_min_ttl) {
		not_offered(h, q, HYDNS_NOT_OFFERED_SHORT_TTL, expires > now ? (uint32_t)(expires - now) : 0);
		return;
	}
	if(!q->failure && !hydns_nothing_left_out(rep, pkt, udp_size, edns)) {
		not_offered(h, q, HYDNS_NOT_OFFERED_LEFT_OUT, 0);
		return;
	}
	/* Unbound no longer answers from the message when one of its RRsets goes, shown or not */
	for(i = 0; i < rep->rrset_count; i++)
		hydns_plugin_depends_on(h->thread, rep->rrsets[i]->rk.dname, rep->rrsets[i]->rk.dname_len);
	(void)hydns_plugin_offer(h->thread, q, sldns_buffer_begin(pkt), sldns_buffer_limit(pkt), now, expires,
		secure, stamp);
}

/* --- answers from the cache ---------------------------------------------------------------------------- */
/* Seconds from the storing of a message, taken from its newest RRset, to its end. */
static time_t lifetime_of(const struct reply_info* rep)
{
	time_t begun = 0;
	size_t i;

	for(i = 0; i < rep->rrset_count; i++) {
		const struct packed_rrset_data* d =
			(const struct packed_rrset_data*)rep->rrsets[i]->entry.data;

		if(d->ttl_add > begun)
			begun = d->ttl_add;
	}
	if(begun > 0 && begun < rep->ttl)
		return rep->ttl - begun;
	/* no RRset says when: prefetch_ttl is a tenth of the lifetime before the end */
	return (rep->ttl - rep->prefetch_ttl) * 10;
}

/* Whether the answer to the request under way may be offered; if not, notes why. */
static int may_be_offered(struct hydns_context* h, const struct query_info* qinfo, const struct reply_info* rep,
	const struct edns_data* edns)
{
	enum hydns_not_offered_why why;

	if(!h->plain || !atomic_load_explicit(&h->daemon->open, memory_order_relaxed))
		return 0;
	why = why_not_offered(qinfo, rep, edns, h->daemon->daemon->env);
	if(why && h->sampled)
		hydns_plugin_not_offered(h->thread, h->key, why, (uint32_t)rcode_of(rep));
	return !why;
}

/* What a plain client with EDNS gets as its OPT. */
static struct edns_data plain_edns(const struct hydns_question* q)
{
	struct edns_data edns;

	memset(&edns, 0, sizeof(edns));
	edns.edns_present = 1;
	edns.edns_version = EDNS_ADVERTISED_VERSION;
	edns.udp_size = EDNS_ADVERTISED_SIZE;
	edns.bits = q->variant == HYDNS_VARIANT_DO ? EDNS_DO : 0;
	return edns;
}

/* Offers the failure in place of an answer that has not passed validation, whose RRsets are locked. Encodes as answer_from_cache()
 * does for clients with EDNS: only they get its extended error. */
static void offer_bogus(struct hydns_context* h, struct module_env* env, struct query_info* qinfo, const struct reply_info* rep,
	const struct hydns_question* asked, struct hydns_stamp stamp)
{
	struct edns_data edns = plain_edns(asked);
	struct hydns_question q = *asked;

	q.failure = q.bogus = 1;
	if(env->cfg->ede && rep->reason_bogus != LDNS_EDE_NONE && !edns_opt_list_append_ede(&edns.opt_list_out, env->scratch,
		rep->reason_bogus, rep->reason_bogus_str))
		return;
	error_encode(env->scratch_buffer, LDNS_RCODE_SERVFAIL, qinfo, 0, BIT_RD, &edns);
	offer_reply(h, &q, rep, env->scratch_buffer, 0, &edns, end_of(env, rep), *env->now, 0, stamp);
}

void hydns_cache_bogus(struct module_env* env, struct query_info* qinfo, struct reply_info* rep, struct sldns_buffer* pkt,
	struct edns_data* edns)
{
	struct hydns_context* h = env->hydns;
	struct query_info asked = *qinfo;
	struct hydns_question q;

	if(!may_be_offered(h, qinfo, rep, edns))
		return;
	/* as below */
	asked.qname = sldns_buffer_begin(pkt) + LDNS_HEADER_SIZE;
	q = hydns_question_of(asked.qname, &asked, edns);
	if(h->sampled && hydns_plugin_hot(h->thread, h->key, false, end_of(env, rep), hydns_mono_coarse_ms()))
		offer_bogus(h, env, &asked, rep, &q, h->stamp);
}

void hydns_cache_answer(struct hydns_context* h, struct query_info* qinfo, struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, struct edns_data* edns, int secure, time_t now)
{
	const struct module_env* env = h->daemon->daemon->env;
	struct hydns_question q;

	if(!may_be_offered(h, qinfo, rep, edns))
		return;
	/* the reply's own question: qinfo may point into a buffer that was overwritten */
	q = hydns_question_of(sldns_buffer_begin(pkt) + LDNS_HEADER_SIZE, qinfo, edns);
	q.failure = is_failure(rep);
	/* Before the offer: a refused one would end the refreshes. A failure has none: the resolver tries again when it is asked. */
	h->refresh = !q.failure && hydns_plugin_refresh_due(h->thread, &q, rep->ttl, lifetime_of(rep), now);
	if(h->sampled && hydns_plugin_hot(h->thread, h->key, false, end_of(env, rep), hydns_mono_coarse_ms()))
		offer_reply(h, &q, rep, pkt, udp_size, edns, end_of(env, rep), now, secure, h->stamp);
}

/* --- fresh answers ----------------------------------------------------------------------------------- */
/* Most questions that need a resolution never come again. So the first sight of one must cost next to nothing: no counter
 * is read, nothing encoded, nothing offered. Another client that waits for the same answer is the second one. */
static uint32_t sighted(struct hydns_context* h)
{
	if(hydns_plugin_first_sight(h->thread, h->key))
		return HYDNS_FIRST_SIGHT;
	return hydns_plugin_sighted(h->thread, h->key, hydns_mono_coarse_ms());
}

/* Also of requests that are not sampled: of a crowd that asks many questions each may have few that are. */
static int awaited(struct hydns_context* h, struct module_qstate* qstate, const struct edns_data* edns)
{
	struct hydns_resolution* res = (struct hydns_resolution*)qstate->minfo[h->module];
	struct hydns_question q = hydns_question_of(qstate->qinfo.qname, &qstate->qinfo, edns);
	uint64_t* key = res ? &res->awaited[q.variant == HYDNS_VARIANT_DO] : NULL;
	uint64_t own;

	if(!key || *key || !atomic_load_explicit(&h->daemon->open, memory_order_relaxed))
		return key && *key;
	if(hydns_config_gives_stale(qstate->env->cfg))
		return 0;
	own = h->sampled ? h->key : hydns_plugin_key(h->thread, &q);
	if(hydns_plugin_under_way(h->thread, own))
		*key = own;
	return *key != 0;
}

static void ended(struct hydns_context* h, const uint8_t* zone, size_t len, int failed, uint64_t took_ms)
{
	hydns_plugin_resolution(h->daemon->plugin, zone, len, failed, took_ms);
}

static void over(struct hydns_context* h, const struct hydns_resolution* res)
{
	size_t i;

	for(i = 0; i < HYDNS_QUESTIONS; i++)
		if(res->awaited[i])
			hydns_plugin_over(h->thread, res->awaited[i]);
}

/* How often the question was asked; parked queries count, once. They make an answer worth an offer, whatever is known of the
 * question else. HYDNS_FIRST_SIGHT: it is not worth one. */
static uint32_t sightings_of(struct hydns_context* h, struct hydns_resolution* res, int question, const struct mesh_reply* r)
{
	uint32_t parked = 0;

	if(res->awaited[question] && !res->counted[question]) {
		res->counted[question] = 1;
		parked = hydns_plugin_parked_sighted(h->thread, res->awaited[question], hydns_mono_coarse_ms());
	}
	return parked ? parked : r->hydns_sightings;
}

/* False when the answer was not cached, or not as it was sent: the next one may be different. */
static int resolution_is_general(const struct module_qstate* qstate)
{
	return qstate->return_rcode == LDNS_RCODE_NOERROR && !qstate->no_cache_store &&
		!qstate->is_cachedb_answer && !qstate->edns_opts_front_out;
}

/* Whether Unbound would send the cached message, whose RRsets are locked, to a plain client as it is. */
static int cache_would_answer(const struct module_env* env, struct query_info* qinfo, struct reply_info* rep)
{
	if(is_failure(rep))
		return 1;
	return rcode_is_general(rep) && security_is_general(rep, env->need_to_validate) &&
		(rep->security != sec_status_secure || !env->need_to_validate || reply_all_rrsets_secure(rep)) &&
		reply_check_cname_chain(qinfo, rep);
}

/* Encodes as for the plain client with most room. */
static void offer_locked(struct hydns_context* h, struct module_env* env, struct query_info* qinfo,
	struct reply_info* rep, const struct hydns_question* q, struct hydns_stamp stamp)
{
	struct sldns_buffer* pkt = env->scratch_buffer;
	int secure = rep->security == sec_status_secure && reply_all_rrsets_secure(rep);
	uint16_t udp_size = (uint16_t)env->cfg->max_udp_size;
	struct edns_data edns = plain_edns(q);

	if(is_bogus(env, rep))
		offer_bogus(h, env, qinfo, rep, q, stamp);
	else if(cache_would_answer(env, qinfo, rep) &&
		reply_info_answer_encode(qinfo, rep, 0, BIT_RD, pkt, *env->now, 1, env->scratch, udp_size, &edns,
			(int)(edns.bits & EDNS_DO), secure))
		offer_reply(h, q, rep, pkt, udp_size, &edns, end_of(env, rep), *env->now, secure, stamp);
}

/* Offers what a plain client would get from the cache at this moment. The TTLs of the resolution's own message may
 * differ: of an RRset that the cache held already it keeps the sooner end. */
static void offer_cached(struct hydns_context* h, struct module_env* env, struct query_info* qinfo,
	const struct hydns_question* q, struct hydns_stamp stamp)
{
	struct lruhash_entry* e = slabhash_lookup(env->msg_cache, query_info_hash(qinfo, BIT_RD), qinfo, 0);
	struct reply_info* rep;

	if(!e)
		return;
	rep = (struct reply_info*)e->data;
	if(rep->ttl + HYDNS_LAST_SECOND > *env->now && rrset_array_lock(rep->ref, rep->rrset_count, *env->now)) {
		offer_locked(h, env, qinfo, rep, q, stamp);
		rrset_array_unlock(rep->ref, rep->rrset_count);
	}
	lock_rw_unlock(&e->lock);
}

/* Why a resolution's answer is not the same for everybody; NONE: it is. */
static enum hydns_not_offered_why why_resolution_not_offered(const struct module_qstate* qstate, const struct mesh_reply* r,
	const struct reply_info* rep)
{
	int bogus = rep && is_bogus(qstate->env, rep);

	if(!rep || qstate->return_rcode != LDNS_RCODE_NOERROR)
		return HYDNS_NOT_OFFERED_ERROR;
	if(r->local_alias)
		return HYDNS_NOT_OFFERED_LOCAL_ALIAS;
	if(!type_is_general(qstate->qinfo.qtype))
		return HYDNS_NOT_OFFERED_BY_TYPE;
	if(rep->ttl <= 0)
		return HYDNS_NOT_OFFERED_ZERO_TTL;
	if(rep->ttl < qstate->env->cfg->hydns_min_ttl && !bogus)
		return HYDNS_NOT_OFFERED_SHORT_TTL;
	if(!resolution_is_general(qstate))
		return HYDNS_NOT_OFFERED_NOT_CACHED;
	return hydns_edns_is_general(&r->edns, bogus) ? HYDNS_NOT_OFFERED_NONE : HYDNS_NOT_OFFERED_EDNS_OPTION;
}

/* The number in the reason's text. */
static uint32_t value_of(enum hydns_not_offered_why why, const struct module_qstate* qstate, const struct reply_info* rep)
{
	if(why == HYDNS_NOT_OFFERED_SHORT_TTL)
		return (uint32_t)rep->ttl;
	if(qstate->return_rcode)
		return (uint32_t)qstate->return_rcode;
	return rep ? (uint32_t)rcode_of(rep) : LDNS_RCODE_SERVFAIL;
}

/* Queries that were parked find the failure that Unbound now remembers, instead of asking it one by one. */
static void offer_failure(struct hydns_context* h, struct module_qstate* qstate, const struct mesh_reply* r,
	struct query_info* qinfo, struct hydns_question* q)
{
	const struct hydns_resolution* res = (const struct hydns_resolution*)qstate->minfo[h->module];

	q->failure = 1;
	if(hydns_edns_is_general(&r->edns, 0))
		offer_cached(h, qstate->env, qinfo, q, res->begun);
}

static void fresh_answer(struct hydns_context* h, struct module_qstate* qstate, struct mesh_reply* r,
	struct reply_info* rep)
{
	struct hydns_resolution* res = (struct hydns_resolution*)qstate->minfo[h->module];
	struct query_info qinfo = qstate->qinfo;
	enum hydns_not_offered_why why = why_resolution_not_offered(qstate, r, rep);
	struct hydns_question q;
	uint32_t sightings;

	qinfo.local_alias = NULL;
	if(!res || !atomic_load_explicit(&h->daemon->open, memory_order_relaxed))
		return;
	q = hydns_question_of(qinfo.qname, &qinfo, &r->edns);
	sightings = sightings_of(h, res, q.variant == HYDNS_VARIANT_DO, r);
	if(why) {
		not_offered(h, &q, why, value_of(why, qstate, rep));
		if(why == HYDNS_NOT_OFFERED_ERROR && res->counted[q.variant == HYDNS_VARIANT_DO])
			offer_failure(h, qstate, r, &qinfo, &q);
		return;
	}
	if(sightings != HYDNS_FIRST_SIGHT &&
		hydns_plugin_due(h->thread, &q, sightings, *qstate->env->now + rep->ttl, hydns_mono_coarse_ms()))
		offer_cached(h, qstate->env, &qinfo, &q, res->begun);
}

static const uint8_t variants[HYDNS_QUESTIONS] = { 0, HYDNS_VARIANT_DO };

static void finishing(struct hydns_context* h, const struct query_info* qinfo, struct hydns_resolution* res)
{
	struct hydns_question q = {
		.name = qinfo->qname, .name_len = (uint16_t)qinfo->qname_len, .qtype = qinfo->qtype,
	};
	size_t i;

	for(i = 0; i < HYDNS_QUESTIONS; i++) {
		q.variant = variants[i];
		res->key[i] = hydns_plugin_prefetch_known(h->thread, &q);
	}
}

/* The rules of the former answer count its TTLs down: offers the new answer for each variant that was offered. */
static void resolved(struct hydns_context* h, struct module_qstate* qstate, time_t ttl)
{
	const struct hydns_resolution* res = (const struct hydns_resolution*)qstate->minfo[h->module];
	struct hydns_stamp stamp = hydns_plugin_stamp(h->daemon->plugin);
	struct query_info qinfo = qstate->qinfo;
	struct hydns_question q = {
		.name = qinfo.qname, .name_len = (uint16_t)qinfo.qname_len, .qtype = qinfo.qtype,
	};
	time_t now = *qstate->env->now;
	size_t i;

	if(!res || qinfo.qclass != LDNS_RR_CLASS_IN || !resolution_is_general(qstate) ||
		!atomic_load_explicit(&h->daemon->open, memory_order_relaxed))
		return;
	qinfo.local_alias = NULL;
	for(i = 0; i < HYDNS_QUESTIONS; i++) {
		q.variant = variants[i];
		/* Unbound resolves such a question for its own use: what was offered is the zone's answer */
		if(hydns_plugin_offered(h->thread, res->key[i], now + ttl, now, res->begun) &&
			!hydns_zones_answer(qstate->env, &qinfo))
			offer_cached(h, qstate->env, &qinfo, &q, stamp);
	}
}

static void name_changed(struct hydns_context* h, const uint8_t* name, size_t len)
{
	hydns_plugin_changed(h->thread, name, len);
}

static void ttl_update(struct hydns_context* h, const uint8_t* name, size_t len, uint16_t rrtype,
	enum hydns_section section, time_t was, time_t is)
{
	hydns_plugin_ttl_update(h->thread, name, len, rrtype, section, was, is);
}

static void zone_changing(struct hydns_context* h, const uint8_t* name, size_t len)
{
	hydns_zones_changing(h->daemon, name, len);
}

static void zone_changed(struct hydns_context* h, const uint8_t* name, size_t len)
{
	hydns_zones_changed(h->daemon, name, len);
}

static void unfit(struct hydns_context* h)
{
	h->kept = 0;
	hydns_plugin_preload_unfit(h->daemon->plugin);
}

static void sample_not_offered(struct hydns_context* h, enum hydns_not_offered_why why)
{
	hydns_plugin_not_offered(h->thread, h->key, why, 0);
}

const struct hydns_hooks hydns_offer_hooks = {
	.sighted = sighted, .awaited = awaited, .ended = ended, .over = over, .fresh = fresh_answer, .finishing = finishing,
	.resolved = resolved, .changed = name_changed,
	.ttl_update = ttl_update, .zone_answer = hydns_zones_offer, .zone_changing = zone_changing, .zone_changed = zone_changed,
	.not_offered = sample_not_offered, .unfit = unfit,
	.queue_ready = hydns_queue_receive, .queue_reply = hydns_queue_send,
	.queue_query = hydns_upstream_query, .queue_port_end = hydns_upstream_port_end,
	.logs_message = hydns_dnstap_takes, .charge = hydns_limits_charge, .spent = hydns_limits_spent,
};
