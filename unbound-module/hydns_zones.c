/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Auth-zones (for-downstream: yes): which of their answers are offered, and what happens when a zone changes. Their TTLs are sent as
 * they stand, and clients without RD are answered, too. A zone's answers go before its content changes.
 */
#include "config.h"
#include "hydns_daemon.h"
#include "daemon/daemon.h"
#include "services/authzone.h"
#include "sldns/pkthdr.h"
#include "sldns/rrdef.h"
#include "sldns/sbuffer.h"
#include "util/config_file.h"
#include "util/data/dname.h"
#include "util/data/msgparse.h"
#include "util/data/msgreply.h"
#include "util/net_help.h"
#include "plugin/clock.h"

/* --- answers ------------------------------------------------------------------------------------------- */
/* False: its CNAME begins with labels of the question, in the letters of the client that asked. */
static int alias_is_general(const struct query_info* qinfo, const struct reply_info* rep)
{
	return rep->an_numrrsets == 0 || qinfo->qtype == LDNS_RR_TYPE_DNAME ||
		ntohs(rep->rrsets[0]->rk.type) != LDNS_RR_TYPE_DNAME;
}

/* As for cached answers. */
static enum hydns_not_offered_why why_not_offered(const struct query_info* qinfo, const struct reply_info* rep, struct sldns_buffer* pkt,
	uint16_t udp_size, const struct edns_data* edns)
{
	int rcode = (int)FLAGS_GET_RCODE(rep->flags);

	if(qinfo->local_alias)
		return HYDNS_NOT_OFFERED_LOCAL_ALIAS;
	if(rcode != LDNS_RCODE_NOERROR && rcode != LDNS_RCODE_NXDOMAIN)
		return HYDNS_NOT_OFFERED_AUTH_ZONE;
	if(!alias_is_general(qinfo, rep))
		return HYDNS_NOT_OFFERED_AUTH_ZONE;
	if(!hydns_edns_is_general(edns, 0))
		return HYDNS_NOT_OFFERED_EDNS_OPTION;
	if(!hydns_nothing_left_out(rep, pkt, udp_size, edns))
		return HYDNS_NOT_OFFERED_LEFT_OUT;
	return HYDNS_NOT_OFFERED_NONE;
}

/* Whether the query counts, or stands for those that do. One without RD was not sampled when it came: most are refused. */
static int is_sampled(struct hydns_context* h, const struct hydns_question* q, time_t now)
{
	if(h->plain)
		return h->sampled;
	if(!h->plain_no_rd || !hydns_plugin_sample(h->thread, now))
		return 0;
	h->key = hydns_plugin_prefetch(h->thread, q);
	return 1;
}

/* Seconds. Never below hydns-min-ttl, which is meant for TTLs that count down: a shorter life would be refused. */
static time_t fixed_life(const struct config_file* cfg)
{
	return cfg->hydns_min_ttl > HYDNS_FIXED_LIFE ? cfg->hydns_min_ttl : HYDNS_FIXED_LIFE;
}

static void offer(struct hydns_context* h, const struct hydns_question* q, struct sldns_buffer* pkt, time_t now, time_t life)
{
	/* as worker_handle_request() will, for whoever may be answered by the kernel */
	if(h->plain)
		LDNS_RA_SET(sldns_buffer_begin(pkt));
	(void)hydns_plugin_offer(h->thread, q, sldns_buffer_begin(pkt), sldns_buffer_limit(pkt), now, now + life, 0, h->stamp);
}

/* Only what the zone has data for is preloaded, what lies below a delegation, and the denials that are so for other questions, too. */
static int is_denial(const struct reply_info* rep)
{
	return FLAGS_GET_RCODE(rep->flags) == LDNS_RCODE_NXDOMAIN || (rep->an_numrrsets == 0 && (rep->flags & BIT_AA));
}

/* Octets of its zone's name: a denial shows the SOA first. */
static size_t origin_len_of(const struct reply_info* rep)
{
	return rep->an_numrrsets == 0 && rep->ns_numrrsets > 0 ? rep->rrsets[0]->rk.dname_len : 0;
}

/* Of the preloading thread's query, whose answer is to stay, but for those that clients have demanded; why: not to be offered. */
static void offer_kept(struct hydns_context* h, struct hydns_question* q, const struct reply_info* rep, struct sldns_buffer* pkt,
	time_t now, enum hydns_not_offered_why why)
{
	q->demanded = is_denial(rep) && hydns_preload_is_demanded(q, origin_len_of(rep));
	q->kept = !q->demanded;
	if(why || !(h->plain || h->plain_no_rd) || (is_denial(rep) && !hydns_preload_is_of_template(q->name, q->name_len, q->qtype)))
		h->hooks->unfit(h);
	else
		offer(h, q, pkt, now, q->kept ? HYDNS_KEPT_LIFE : fixed_life(h->daemon->daemon->cfg));
}

static void offer_hot(struct hydns_context* h, const struct hydns_question* q, struct sldns_buffer* pkt, time_t now,
	enum hydns_not_offered_why why)
{
	time_t life = fixed_life(h->daemon->daemon->cfg);

	if(why)
		hydns_plugin_not_offered(h->thread, h->key, why, 0);
	else if(hydns_plugin_hot(h->thread, h->key, true, now + life, hydns_mono_coarse_ms()))
		offer(h, q, pkt, now, life);
}

void hydns_zones_offer(struct hydns_context* h, const struct query_info* qinfo, const struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns, time_t now)
{
	struct hydns_question q = hydns_question_of(sldns_buffer_begin(pkt) + LDNS_HEADER_SIZE, qinfo, edns);
	enum hydns_not_offered_why why;

	q.fixed = 1;
	if(!h->plain)
		q.variant |= HYDNS_VARIANT_NO_RD;
	if(!atomic_load_explicit(&h->daemon->open, memory_order_relaxed) || !(h->kept || is_sampled(h, &q, now)))
		return;
	why = why_not_offered(qinfo, rep, pkt, udp_size, edns);
	if(h->kept)
		offer_kept(h, &q, rep, pkt, now, why);
	else {
		if(!why && is_denial(rep))
			hydns_plugin_demand(h->daemon->plugin, &q);
		offer_hot(h, &q, pkt, now, why);
	}
}

int hydns_zones_answer(const struct module_env* env, const struct query_info* qinfo)
{
	struct auth_zones* az = env->auth_zones;
	uint8_t* name = qinfo->qname;
	size_t len = qinfo->qname_len;
	struct auth_zone* z;
	int found = 0;

	if(!az)
		return 0;
	if(qinfo->qtype == LDNS_RR_TYPE_DS)
		dname_remove_label(&name, &len);
	lock_rw_rdlock(&az->lock);
	z = az->have_downstream ? auth_zones_find_zone(az, name, len, qinfo->qclass) : NULL;
	if(z) {
		lock_rw_rdlock(&z->lock);
		found = z->for_downstream;
		lock_rw_unlock(&z->lock);
	}
	lock_rw_unlock(&az->lock);
	return found;
}

/* --- changes ------------------------------------------------------------------------------------------- */
int hydns_zones_exist(struct daemon* daemon)
{
	struct auth_zones* az = daemon->env->auth_zones;
	int any;

	if(!az)
		return 0;
	lock_rw_rdlock(&az->lock);
	any = az->ztree.count > 0;
	lock_rw_unlock(&az->lock);
	return any;
}

static void begin_whole(struct hydns_zone_version* v, const uint8_t* name, size_t len)
{
	hydns_zone_version_begin(v, name, len);
	v->whole = 1;
}

void hydns_zones_changing(struct hydns_daemon* d, const uint8_t* name, size_t len)
{
	struct hydns_zone_version v;

	begin_whole(&v, name, len);
	hydns_zone_version_mark(&v);
	hydns_plugin_zone_version(d->plugin, &v);
	hydns_zone_version_end(&v);
}

void hydns_zones_changed(struct hydns_daemon* d, const uint8_t* name, size_t len)
{
	struct hydns_zone_version v;

	begin_whole(&v, name, len);
	hydns_plugin_zone_changed(d->plugin);
	hydns_zone_version_unmark(&v);
	hydns_plugin_zone_settled(d->plugin, &v);        /* what is asked for now may be offered */
	hydns_zone_version_end(&v);
}
