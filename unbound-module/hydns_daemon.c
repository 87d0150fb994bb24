/* SPDX-License-Identifier: BSD-3-Clause */
/* Which answers are offered, with what stamp, and when an entry is renewed and its successor offered. */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "hydns_daemon.h"
#include "plugin/clock.h"
#include "daemon/acl_list.h"
#include "daemon/daemon.h"
#include "services/cache/rrset.h"
#include "services/listen_dnsport.h"
#include "services/mesh.h"
#include "services/modstack.h"
#include "sldns/pkthdr.h"
#include "sldns/rrdef.h"
#include "sldns/sbuffer.h"
#include "util/config_file.h"
#include "util/data/msgencode.h"
#include "util/data/msgparse.h"
#include "util/data/msgreply.h"
#include "util/data/packed_rrset.h"
#include "util/log.h"
#include "util/net_help.h"
#include "util/storage/slabhash.h"

#ifdef THREADS_DISABLED
#error "hydns needs threads: a flush in one process can't reach the offers of another"
#endif

/* --- requests -------------------------------------------------------------------------------------- */
static struct hydns_question question_of(const uint8_t* name, const struct query_info* qinfo,
	const struct edns_data* edns)
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

	h->stamp = hydns_plugin_stamp(h->daemon->plugin);
	h->renew = 0;
	/* an entry of the socket, not of the client's address, says nothing about other sockets */
	h->plain = c->type == comm_udp && !repinfo->is_proxied &&
		qinfo->qclass == LDNS_RR_CLASS_IN && qinfo->qtype != LDNS_RR_TYPE_ANY &&
		(flags & (BIT_RD|BIT_CD)) == BIT_RD &&
		LDNS_OPCODE_WIRE(sldns_buffer_begin(c->buffer)) == LDNS_PACKET_QUERY &&
		acl && !(c->socket && acl == c->socket->acl) && hydns_acl_is_plain(acl);
	h->picked = h->plain && hydns_plugin_sample(h->thread, now);
	if(h->picked) {
		q = question_of(qinfo->qname, qinfo, edns);
		h->key = hydns_plugin_prefetch(h->thread, &q);
	}
}

int hydns_refresh_due(const struct hydns_context* h)
{
	return h->renew;
}

/* --- is this answer everybody's? --------------------------------------------------------------------- */
static int rcode_of(const struct reply_info* rep)
{
	return (int)FLAGS_GET_RCODE(rep->flags);
}

static int rcode_is_general(const struct reply_info* rep)
{
	return rcode_of(rep) == LDNS_RCODE_NOERROR || rcode_of(rep) == LDNS_RCODE_NXDOMAIN;
}

static int security_is_general(const struct reply_info* rep, int must_validate)
{
	if(rep->security == sec_status_bogus || rep->security == sec_status_secure_sentinel_fail)
		return 0;
	return rep->security != sec_status_unchecked || !must_validate;
}

/* These stand beside a CNAME: whether Unbound answers with them or follows the alias depends on what its cache was
 * asked before, and changes without a change of the answer's data. */
static int type_is_general(uint16_t qtype)
{
	return qtype != LDNS_RR_TYPE_RRSIG && qtype != LDNS_RR_TYPE_NSEC && qtype != LDNS_RR_TYPE_NSEC3;
}

/* The OPT record that the kernel path writes has no options but the client's own cookie. */
static int edns_is_general(const struct edns_data* edns)
{
	const struct edns_option* o = edns->opt_list_out;

	if(!edns->edns_present)
		return 1;
	return (!o || (o->opt_code == LDNS_EDNS_COOKIE && !o->next)) && !edns->opt_list_inplace_cb_out;
}

/* Upper bound of the octets that RRset number i takes in a message. */
static size_t rrset_bound(const struct reply_info* rep, size_t i)
{
	const struct packed_rrset_data* d = (const struct packed_rrset_data*)rep->rrsets[i]->entry.data;
	size_t j, octets = 0;

	for(j = 0; j < d->count + d->rrsig_count; j++)
		octets += rep->rrsets[i]->rk.dname_len + 8 + d->rr_len[j];
	return octets;
}

/*
 * Additional data that a client's buffer has no room for are left out without notice. The answer is
 * everybody's when none is missing: all are there, or there was room for them all.
 */
static int nothing_left_out(const struct reply_info* rep, struct sldns_buffer* pkt, uint16_t udp_size,
	const struct edns_data* edns)
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

/* Why an answer to a question of this type with these options is not everybody's; NONE: it is. */
static enum hydns_not_offered_why why_kept(const struct query_info* qinfo, const struct reply_info* rep,
	const struct edns_data* edns, int must_validate)
{
	if(qinfo->local_alias)
		return HYDNS_NOT_OFFERED_LOCAL_ALIAS;
	if(!type_is_general(qinfo->qtype))
		return HYDNS_NOT_OFFERED_BY_TYPE;
	if(!rcode_is_general(rep))
		return HYDNS_NOT_OFFERED_ERROR;
	if(!edns_is_general(edns))
		return HYDNS_NOT_OFFERED_EDNS_OPTION;
	if(!security_is_general(rep, must_validate))
		return HYDNS_NOT_OFFERED_UNVALIDATED;
	return HYDNS_NOT_OFFERED_NONE;
}

static void note_kept(struct hydns_context* h, const struct hydns_question* q, enum hydns_not_offered_why why, uint32_t value)
{
	hydns_plugin_not_offered(h->thread, hydns_plugin_key(h->thread, q), why, value);
}

/* An answer that everybody gets, as encoded for a client with room for udp_size octets. */
static void offer_reply(struct hydns_context* h, const struct hydns_question* q, const struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns, time_t expires, time_t now,
	int secure, struct hydns_stamp stamp)
{
	size_t i;

	if(expires - now < h->daemon->daemon->cfg->hydns_min_ttl) {
		note_kept(h, q, HYDNS_NOT_OFFERED_SHORT_TTL, expires > now ? (uint32_t)(expires - now) : 0);
		return;
	}
	if(!nothing_left_out(rep, pkt, udp_size, edns)) {
		note_kept(h, q, HYDNS_NOT_OFFERED_LEFT_OUT, 0);
		return;
	}
	/* without one of its RRsets, shown or not, the message is no longer answered from */
	for(i = 0; i < rep->rrset_count; i++)
		hydns_plugin_depends_on(h->thread, rep->rrsets[i]->rk.dname, rep->rrsets[i]->rk.dname_len);
	(void)hydns_plugin_offer(h->thread, q, sldns_buffer_begin(pkt), sldns_buffer_limit(pkt), now, expires,
		secure, stamp);
}

/* --- answers from the cache ---------------------------------------------------------------------------- */
/* Seconds between the storing of a message, as its newest RRset tells, and its end. */
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
	/* no RRset tells: prefetch_ttl is a tenth of the lifetime before the end */
	return (rep->ttl - rep->prefetch_ttl) * 10;
}

void hydns_cache_answer(struct hydns_context* h, struct query_info* qinfo, struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, struct edns_data* edns, int secure, time_t now)
{
	struct hydns_question q;
	enum hydns_not_offered_why why;

	if(!h->plain || !atomic_load_explicit(&h->daemon->open, memory_order_relaxed))
		return;
	why = why_kept(qinfo, rep, edns, h->daemon->daemon->env->need_to_validate);
	if(why) {
		if(h->picked)
			hydns_plugin_not_offered(h->thread, h->key, why, (uint32_t)rcode_of(rep));
		return;
	}
	/* the reply's own question: qinfo may point into a buffer that was overwritten */
	q = question_of(sldns_buffer_begin(pkt) + LDNS_HEADER_SIZE, qinfo, edns);
	/* first, for an offer that is refused would end the renewals */
	h->renew = hydns_plugin_refresh_due(h->thread, &q, rep->ttl, lifetime_of(rep), now);
	if(h->picked && hydns_plugin_hot(h->thread, h->key, false, rep->ttl, hydns_mono_coarse_ms()))
		offer_reply(h, &q, rep, pkt, udp_size, edns, rep->ttl, now, secure, h->stamp);
}

/* --- fresh answers ----------------------------------------------------------------------------------- */
static uint32_t sighted(struct hydns_context* h)
{
	return hydns_plugin_sighted(h->thread, h->key, hydns_mono_coarse_ms());
}

/* What is not cached, or not as it was sent, would not be answered so again. */
static int resolution_is_general(const struct module_qstate* qstate)
{
	return qstate->return_rcode == LDNS_RCODE_NOERROR && !qstate->no_cache_store &&
		!qstate->is_cachedb_answer && !qstate->edns_opts_front_out;
}

/* --- renewed answers --------------------------------------------------------------------------------- */
/* Whether the cached message, whose RRsets are locked, would be sent to a plain client as it is. */
static int cache_would_answer(const struct module_env* env, struct query_info* qinfo, struct reply_info* rep)
{
	return rcode_is_general(rep) && security_is_general(rep, env->need_to_validate) &&
		(rep->security != sec_status_secure || !env->need_to_validate || reply_all_rrsets_secure(rep)) &&
		reply_check_cname_chain(qinfo, rep);
}

/* Encodes as for the plain client that has most room. */
static void offer_locked(struct hydns_context* h, struct module_env* env, struct query_info* qinfo,
	struct reply_info* rep, const struct hydns_question* q, struct hydns_stamp stamp)
{
	struct sldns_buffer* pkt = env->scratch_buffer;
	int secure = rep->security == sec_status_secure && reply_all_rrsets_secure(rep);
	uint16_t udp_size = (uint16_t)env->cfg->max_udp_size;
	struct edns_data edns;

	memset(&edns, 0, sizeof(edns));
	edns.edns_present = 1;
	edns.edns_version = EDNS_ADVERTISED_VERSION;
	edns.udp_size = EDNS_ADVERTISED_SIZE;
	edns.bits = q->variant == HYDNS_VARIANT_DO ? EDNS_DO : 0;
	if(cache_would_answer(env, qinfo, rep) &&
		reply_info_answer_encode(qinfo, rep, 0, BIT_RD, pkt, *env->now, 1, env->scratch, udp_size, &edns,
			(int)(edns.bits & EDNS_DO), secure))
		offer_reply(h, q, rep, pkt, udp_size, &edns, rep->ttl, *env->now, secure, stamp);
}

/* What a plain client would be answered from the cache at this moment, with the TTLs that it has there:
 * those of the resolution's own message may be others. */
static void offer_cached(struct hydns_context* h, struct module_env* env, struct query_info* qinfo,
	const struct hydns_question* q, struct hydns_stamp stamp)
{
	struct lruhash_entry* e = slabhash_lookup(env->msg_cache, query_info_hash(qinfo, BIT_RD), qinfo, 0);
	struct reply_info* rep;

	if(!e)
		return;
	rep = (struct reply_info*)e->data;
	if(rep->ttl > *env->now && rrset_array_lock(rep->ref, rep->rrset_count, *env->now)) {
		offer_locked(h, env, qinfo, rep, q, stamp);
		rrset_array_unlock(rep->ref, rep->rrset_count);
	}
	lock_rw_unlock(&e->lock);
}

/* Why a resolution's answer is not everybody's. */
static enum hydns_not_offered_why why_resolution_kept(const struct module_qstate* qstate, const struct mesh_reply* r,
	const struct reply_info* rep)
{
	if(!rep || qstate->return_rcode != LDNS_RCODE_NOERROR)
		return HYDNS_NOT_OFFERED_ERROR;
	if(r->local_alias)
		return HYDNS_NOT_OFFERED_LOCAL_ALIAS;
	if(!type_is_general(qstate->qinfo.qtype))
		return HYDNS_NOT_OFFERED_BY_TYPE;
	if(rep->ttl <= 0)
		return HYDNS_NOT_OFFERED_ZERO_TTL;
	if(!resolution_is_general(qstate))
		return HYDNS_NOT_OFFERED_NOT_CACHED;
	return edns_is_general(&r->edns) ? HYDNS_NOT_OFFERED_NONE : HYDNS_NOT_OFFERED_EDNS_OPTION;
}

/* The cache's message, not the resolution's own: of an RRset that the cache held already it keeps the sooner end. */
static void fresh_answer(struct hydns_context* h, struct module_qstate* qstate, struct mesh_reply* r,
	struct reply_info* rep)
{
	const struct hydns_stamp* stamp = (const struct hydns_stamp*)qstate->minfo[h->module];
	struct query_info qinfo = qstate->qinfo;
	enum hydns_not_offered_why why = why_resolution_kept(qstate, r, rep);
	struct hydns_question q;

	qinfo.local_alias = NULL;
	if(!stamp || !atomic_load_explicit(&h->daemon->open, memory_order_relaxed))
		return;
	q = question_of(qinfo.qname, &qinfo, &r->edns);
	if(why) {
		note_kept(h, &q, why, qstate->return_rcode ? (uint32_t)qstate->return_rcode :
			rep ? (uint32_t)rcode_of(rep) : LDNS_RCODE_SERVFAIL);
		return;
	}
	if(hydns_plugin_due(h->thread, &q, r->hydns_sightings, *qstate->env->now + rep->ttl, hydns_mono_coarse_ms()))
		offer_cached(h, qstate->env, &qinfo, &q, *stamp);
}

/* The kernel counts the former answer's TTLs down: it gets the new one of each variant that it has. */
static void renewed(struct hydns_context* h, struct module_qstate* qstate, time_t ttl)
{
	static const uint8_t variants[] = { 0, HYDNS_VARIANT_DO };
	const struct hydns_stamp* begun = (const struct hydns_stamp*)qstate->minfo[h->module];
	struct hydns_stamp stamp = hydns_plugin_stamp(h->daemon->plugin);
	struct query_info qinfo = qstate->qinfo;
	struct hydns_question q = {
		.name = qinfo.qname, .name_len = (uint16_t)qinfo.qname_len, .qtype = qinfo.qtype,
	};
	time_t now = *qstate->env->now;
	size_t i;

	if(!begun || qinfo.qclass != LDNS_RR_CLASS_IN || !resolution_is_general(qstate) ||
		!atomic_load_explicit(&h->daemon->open, memory_order_relaxed))
		return;
	qinfo.local_alias = NULL;
	for(i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		q.variant = variants[i];
		if(hydns_plugin_offered(h->thread, &q, now + ttl, now, *begun))
			offer_cached(h, qstate->env, &qinfo, &q, stamp);
	}
}

static int watches(const struct hydns_context* h)
{
	return hydns_plugin_watches(h->daemon->plugin);
}

static void name_changed(struct hydns_context* h, const uint8_t* name, size_t len)
{
	hydns_plugin_changed(h->thread, name, len);
}

static void end_moved(struct hydns_context* h, const uint8_t* name, size_t len, uint16_t rrtype,
	enum hydns_section section, time_t was, time_t is)
{
	hydns_plugin_ttl_update(h->thread, name, len, rrtype, section, was, is);
}

static void zone_changed(struct hydns_context* h)
{
	hydns_plugin_withdraw_all(h->daemon->plugin);
}

static void kept(struct hydns_context* h, enum hydns_not_offered_why why)
{
	hydns_plugin_not_offered(h->thread, h->key, why, 0);
}

/* --- life ------------------------------------------------------------------------------------------ */
static void log_text(enum hydns_log_level level, const char* text)
{
	switch(level) {
	case HYDNS_LOG_ERROR:
		log_err("hydns: %s", text);
		break;
	case HYDNS_LOG_WARNING:
		log_warn("hydns: %s", text);
		break;
	case HYDNS_LOG_INFO:
		log_info("hydns: %s", text);
		break;
	case HYDNS_LOG_DEBUG:
		verbose(VERB_ALGO, "hydns: %s", text);
		break;
	}
}

static struct hydns_plugin* new_plugin(struct daemon* daemon, struct hydns_manner manner,
	struct hydns_plugin* former)
{
	struct config_file* cfg = daemon->cfg;
	struct hydns_plugin_options o;

	memset(&o, 0, sizeof(o));
	o.socket = cfg->hydns_socket;
	o.identity = PACKAGE_NAME;
	o.version = PACKAGE_VERSION;
	o.threads = (uint32_t)daemon->num;
	o.capacity = (uint32_t)cfg->hydns_capacity;
	o.admission = (uint32_t)cfg->hydns_admission;
	o.window_ms = (uint32_t)cfg->hydns_window * 1000;
	o.min_ttl = (uint32_t)cfg->hydns_min_ttl;
	o.max_ttl = (uint32_t)cfg->hydns_max_ttl;
	if(o.max_ttl != 0 && o.min_ttl > o.max_ttl)
		o.min_ttl = o.max_ttl; /* an obstacle, which hydnsd can show only if it takes this */
	o.refresh_percent = (uint32_t)cfg->hydns_refresh;
	o.flush_timeout_ms = (uint32_t)cfg->hydns_flush_timeout;
	o.flags = manner.flags;
	o.edns_size = manner.edns_size;
	o.max_udp = manner.max_udp;
	o.log = log_text;
	return hydns_plugin_take_over(&o, former);
}

static int make_contexts(struct hydns_daemon* d)
{
	static const struct hydns_hooks hooks = { sighted, fresh_answer, renewed, watches, name_changed, end_moved,
		zone_changed, kept };
	int i;

	d->contexts = (struct hydns_context*)calloc((size_t)d->threads, sizeof(*d->contexts));
	if(!d->contexts)
		return 0;
	for(i = 0; i < d->threads; i++) {
		d->contexts[i].hooks = &hooks;
		d->contexts[i].daemon = d;
		d->contexts[i].thread = hydns_plugin_thread(d->plugin, (uint32_t)i);
		d->contexts[i].module = modstack_find(&d->daemon->mods, "hydns");
		d->contexts[i].unlogged = d->daemon->cfg->hydns_allow_unlogged;
	}
	return 1;
}

/* Obstacles leave the link up, so that hydnsd can show them; but then nothing is offered or served. */
static int open_for_offers(struct hydns_daemon* d)
{
	const char* reasons[HYDNS_OBSTACLES_MAX];
	size_t i, n = hydns_config_obstacles(d->daemon, reasons);

	for(i = 0; i < n; i++) {
		log_warn("hydns: no answer is offered to the kernel: %s", reasons[i]);
		(void)hydns_plugin_add_note(d->plugin, HYDNS_NOTE_OBSTACLE, reasons[i]);
	}
	if(n == 0) {
		if(!hydns_config_export(d->daemon, d->plugin))
			return 0;
		d->exported = 1;
		atomic_store(&d->open, 1);
	}
	return 1;
}

/* Frees d and what hangs on it. */
static void stop(struct hydns_daemon* d)
{
	if(!d)
		return;
	hydns_plugin_stop(d->plugin);
	free(d->contexts);
	free(d);
}

/* With what the former can leave it, which is then no longer the former's. */
static struct hydns_daemon* prepare(struct daemon* daemon, struct hydns_daemon* former)
{
	struct hydns_daemon* d;

	if(modstack_find(&daemon->mods, "hydns") < 0) {
		if(daemon->cfg->has_hydns && daemon->cfg->hydns_enable)
			log_warn("hydns: there is a hydns: clause, but module-config: \"%s\" has no hydns: no answer is "
				"offered to the kernel; begin it with hydns", daemon->cfg->module_conf);
		return NULL;
	}
	if(!daemon->cfg->hydns_enable) {
		log_info("hydns: hydns-enable is no: no answer is offered to the kernel");
		return NULL;
	}
	if(daemon->num > HYDNS_THREADS_MAX) {
		log_warn("hydns: no answer is offered to the kernel: num-threads is %d, at most %d are served",
			daemon->num, HYDNS_THREADS_MAX);
		return NULL;
	}
	d = (struct hydns_daemon*)calloc(1, sizeof(*d));
	if(!d) {
		log_err("hydns: out of memory: no answer is offered to the kernel");
		return NULL;
	}
	d->daemon = daemon;
	d->threads = daemon->num;
	d->manner = hydns_config_manner(daemon);
	d->plugin = new_plugin(daemon, d->manner, former ? former->plugin : NULL);
	if(d->plugin && former)
		former->plugin = NULL;
	if(!d->plugin || !make_contexts(d) || !open_for_offers(d)) {
		log_err("hydns: could not start: no answer is offered to the kernel");
		stop(d);
		return NULL;
	}
	return d;
}

/* The grace period comes last, for all else goes on beside it. What the former has to say to hydnsd is left to the successor's
 * link thread. */
struct hydns_daemon* hydns_daemon_start(struct daemon* daemon, struct hydns_daemon* former)
{
	struct hydns_daemon* d = prepare(daemon, former);

	stop(former);
	if(d)
		hydns_plugin_wait_former(d->plugin);
	return d;
}

void hydns_daemon_run(struct hydns_daemon* d)
{
	if(d)
		(void)hydns_plugin_start(d->plugin); /* logs what is wrong; then nothing is offered */
}

void hydns_daemon_leave(struct hydns_daemon* d, void (*gone)(void* arg), void* arg)
{
	d->closing = 1;
	atomic_store(&d->open, 0);
	hydns_plugin_leave(d->plugin, gone, arg);
}

struct hydns_daemon* hydns_daemon_cleanup(struct hydns_daemon* d, int ends)
{
	if(!d)
		return NULL;
	hydns_thread_context(NULL);
	hydns_daemon_leave(d, NULL, NULL);     /* after a signal nobody has */
	if(!ends)
		return d;
	stop(d);
	return NULL;
}

struct hydns_context* hydns_daemon_context(struct hydns_daemon* d, int thread)
{
	struct hydns_context* h = d && thread < d->threads ? &d->contexts[thread] : NULL;

	hydns_thread_context(h);
	return h;
}
