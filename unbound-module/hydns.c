/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module in the stack. It changes no answer and lets every event pass. For each query state it records the stamp
 * of the moment when the resolution began.
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include "hydns.h"
#include "iterator/iter_delegpt.h"
#include "iterator/iterator.h"
#include "services/cache/dns.h"
#include "services/mesh.h"
#include "services/modstack.h"
#include "services/outside_network.h"
#include "util/data/dname.h"
#include "util/data/msgreply.h"
#include "util/net_help.h"
#include "util/regional.h"

/* Functions that write the caches have no module_env, so the context is found by the thread. */
static __thread struct hydns_context* thread_context;
/* What is about to be stored, and the comparison with what it replaces: see hydns_entry_replaced(). */
static __thread const void* storing;
static __thread void (*compare)(const struct lruhash_entry* old);
/* The change under way: see hydns_change_begin(). */
static __thread uint8_t change_name[HYDNS_NAME_MAX];
static __thread size_t change_len;                  /* 0: nothing changes */
static __thread uint16_t change_ttl_of;             /* type of the RRset of which only the end changes; 0: data change */
static __thread enum hydns_section change_section;  /* where answers show that copy of it */
static __thread time_t change_was, change_is;       /* that end, before and after */

void hydns_thread_context(struct hydns_context* h)
{
	thread_context = h;
	storing = NULL;
	change_len = 0;
}

void* hydns_zeroed(size_t size)
{
	void* memory = malloc(size);

	if(memory)
		explicit_bzero(memory, size); /* compilers make calloc() of malloc() and memset() */
	return memory;
}

/* Counts before the resolution: after it the prefetched data would have left the CPU's cache. */
uint32_t hydns_request_sighted(struct module_qstate* qstate, const struct edns_data* edns, int others)
{
	struct hydns_context* h = qstate->env->hydns;
	uint32_t sightings;

	if(!h || !h->plain)
		return 0;
	sightings = h->sampled ? h->hooks->sighted(h) : 0;
	if(others && h->hooks->awaited(h, qstate, edns) && !sightings)
		sightings = HYDNS_FIRST_SIGHT;
	return sightings;
}

void hydns_request_not_offered(struct hydns_context* h, enum hydns_not_offered_why why)
{
	if(h && h->kept)
		h->hooks->unfit(h);
	else if(h && h->plain && h->sampled)
		h->hooks->not_offered(h, why);
}

void hydns_request_logged(struct module_env* env)
{
	if(env->hydns && !env->hydns->unlogged) {
		hydns_request_not_offered(env->hydns, HYDNS_NOT_OFFERED_LOGGED_ZONE);
		env->hydns->plain = 0;
		env->hydns->plain_no_rd = 0;
	}
}

void hydns_fresh_answer(struct module_qstate* qstate, struct mesh_reply* r, struct reply_info* rep)
{
	struct hydns_context* h = qstate->env->hydns;

	if(h)
		h->hooks->fresh(h, qstate, r, rep);
}

void hydns_resolution_done(struct module_qstate* qstate, struct reply_info* rep)
{
	struct hydns_context* h = qstate->env->hydns;

	if(h && rep)
		h->hooks->resolved(h, qstate, rep->ttl);
}

/* True when two RRsets differ at most in the order of their records. An authoritative server that rotates them sends
 * such: that is no change. */
static int same_records(const struct packed_rrset_data* a, const struct packed_rrset_data* b)
{
	size_t i, j;

	if(a->count != b->count || a->rrsig_count != b->rrsig_count)
		return 0;
	for(i = 0; i < a->count + a->rrsig_count; i++) {
		size_t from = i < a->count ? 0 : a->count;
		size_t to = i < a->count ? a->count : a->count + a->rrsig_count;

		for(j = from; j < to; j++)
			if(a->rr_len[i] == b->rr_len[j] &&
				memcmp(a->rr_data[i], b->rr_data[j], a->rr_len[i]) == 0)
				break;
		if(j == to)
			return 0;
	}
	return 1;
}

static void begin_change(const uint8_t* name, size_t len, uint16_t ttl_of)
{
	if(!thread_context || len > sizeof(change_name))
		return;
	memcpy(change_name, name, len);
	change_len = len;
	change_ttl_of = ttl_of;
}

void hydns_change_begin(const uint8_t* name, size_t len)
{
	begin_change(name, len, 0);
}

/* Two copies of a SOA RRset are cached. The one that came in an authority section ends earlier (RFC 2308, section 5),
 * and only negative answers show it. */
static enum hydns_section section_of(const struct packed_rrset_key* key)
{
	if(key->type != htons(LDNS_RR_TYPE_SOA))
		return HYDNS_SECTION_ANYWHERE;
	return (key->flags & PACKED_RRSET_SOA_NEG) ? HYDNS_SECTION_AUTHORITY : HYDNS_SECTION_ANSWER;
}

void hydns_rrset_end_begin(const struct ub_packed_rrset_key* key, time_t was, time_t is)
{
	if(was == is)
		return;
	change_section = section_of(&key->rk);
	change_was = was;
	change_is = is;
	begin_change(key->rk.dname, key->rk.dname_len, ntohs(key->rk.type));
}

static void compare_rrset(const struct lruhash_entry* old)
{
	const struct ub_packed_rrset_key* key = (const struct ub_packed_rrset_key*)old->key;
	const struct packed_rrset_data* old_data = (const struct packed_rrset_data*)old->data;
	const struct packed_rrset_data* new_data = (const struct packed_rrset_data*)storing;

	if(same_records(new_data, old_data))
		hydns_rrset_end_begin(key, old_data->ttl, new_data->ttl);
	else
		hydns_change_begin(key->rk.dname, key->rk.dname_len);
}

static void store_begin(const void* data, void (*how)(const struct lruhash_entry* old))
{
	storing = thread_context ? data : NULL;
	compare = how;
}

void hydns_rrset_begin(const struct packed_rrset_data* data)
{
	store_begin(data, compare_rrset);
}

void hydns_entry_replaced(const struct lruhash_entry* old, const void* data)
{
	if(storing && data == storing)
		compare(old);
}

void hydns_change_end(void)
{
	storing = NULL;
	if(change_len == 0)
		return;
	if(change_ttl_of)
		thread_context->hooks->ttl_update(thread_context, change_name, change_len, change_ttl_of, change_section,
			change_was, change_is);
	else
		thread_context->hooks->changed(thread_context, change_name, change_len);
	change_len = 0;
}

/* Every resolution stores its message first as unchecked, then with the validator's result. Neither step is a change, unless one
 * of them is bogus: everybody is told of a failure then. */
static int same_security(enum sec_status old, enum sec_status new)
{
	if(old == sec_status_bogus || new == sec_status_bogus)
		return old == new;
	return old == new || new == sec_status_unchecked || old == sec_status_unchecked;
}

/* Two cached messages say the same when they have the same RRsets in the same order, the same response code and the
 * same security. Changes within an RRset are seen where it is stored. The references (ref) are sorted by address, for
 * locking; the keys (rrsets) stand in the message's order. */
static int same_message(const struct reply_info* a, const struct reply_info* b)
{
	size_t i;

	if(FLAGS_GET_RCODE(a->flags) != FLAGS_GET_RCODE(b->flags) || !same_security(a->security, b->security) ||
		a->an_numrrsets != b->an_numrrsets || a->ns_numrrsets != b->ns_numrrsets ||
		a->ar_numrrsets != b->ar_numrrsets)
		return 0;
	for(i = 0; i < a->rrset_count; i++)
		if(a->ref[i].key != b->ref[i].key || a->ref[i].id != b->ref[i].id ||
			a->rrsets[i] != b->rrsets[i])
			return 0;
	return 1;
}

static void compare_message(const struct lruhash_entry* old)
{
	const struct query_info* q = &((const struct msgreply_entry*)old->key)->key;

	if(!same_message((const struct reply_info*)old->data, (const struct reply_info*)storing))
		hydns_change_begin(q->qname, q->qname_len);
}

void hydns_message_begin(const struct reply_info* rep)
{
	store_begin(rep, compare_message);
}

void hydns_zone_answer(struct module_env* env, const struct query_info* qinfo, const struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns)
{
	if(env->hydns)
		env->hydns->hooks->zone_answer(env->hydns, qinfo, rep, pkt, udp_size, edns, *env->now);
}

void hydns_zone_changing(struct module_env* env, const uint8_t* name, size_t len)
{
	if(env->hydns)
		env->hydns->hooks->zone_changing(env->hydns, name, len);
}

void hydns_zone_changed(struct module_env* env, const uint8_t* name, size_t len)
{
	if(env->hydns)
		env->hydns->hooks->zone_changed(env->hydns, name, len);
}

int hydns_queue_ready(struct comm_point* c, void* arg, int error, struct comm_reply* repinfo)
{
	struct hydns_context* h = (struct hydns_context*)arg;

	(void)c;
	(void)error;
	(void)repinfo;
	h->hooks->queue_ready(h);
	return 0;
}

int hydns_queue_reply(struct comm_reply* repinfo, struct sldns_buffer* pkt)
{
	return thread_context && thread_context->hooks->queue_reply(thread_context, repinfo, pkt);
}

int hydns_queue_query(struct pending* pend, struct sldns_buffer* pkt)
{
	return thread_context && thread_context->hooks->queue_query(thread_context, pend, pkt);
}

int hydns_logs_message(int reply, struct sockaddr_storage* client, struct sockaddr_storage* service, struct sldns_buffer* msg,
	const struct timeval* at)
{
	return thread_context && thread_context->hooks->logs_message(thread_context, reply, client, service, msg, at);
}

void hydns_rate_counted(const struct sockaddr_storage* addr, socklen_t addrlen, time_t now, int* second, int* before, int* after)
{
	if(thread_context)
		thread_context->hooks->charge(thread_context, addr, addrlen, now, second, before, after);
}

int hydns_rate_now(const struct sockaddr_storage* addr, socklen_t addrlen, time_t now, int own)
{
	return thread_context ? thread_context->hooks->spent(thread_context, addr, addrlen, now, own) : own;
}

/* Without a context the worker has ended, and all its ports with it. */
void hydns_queue_port_end(struct outside_network* outnet, struct port_comm* pc)
{
	if(thread_context)
		thread_context->hooks->queue_port_end(thread_context, pc->number);
	pc->index = 0;
	pc->next = outnet->unused_fds;
	outnet->unused_fds = pc;
}

int hydns_init(struct module_env* env, int id)
{
	env->modinfo[id] = NULL;
	return 1;
}

void hydns_deinit(struct module_env* env, int id)
{
	env->modinfo[id] = NULL;
}

/* The stamp of the request under way is older than the client's own look-up of local data. */
static void record_stamp(struct module_qstate* qstate, int id)
{
	struct hydns_resolution* res;

	if(!qstate->env->hydns)
		return;
	res = (struct hydns_resolution*)regional_alloc_zero(qstate->region, sizeof(*res));
	if(res)
	{
		res->begun = qstate->env->hydns->stamp;
		res->since = *qstate->env->now_tv;
	}
	qstate->minfo[id] = res;
}

void hydns_operate(struct module_qstate* qstate, enum module_ev event, int id,
	struct outbound_entry* outbound)
{
	(void)outbound;
	if(event == module_event_new || event == module_event_pass) {
		if(!qstate->minfo[id])
			record_stamp(qstate, id);
		qstate->ext_state[id] = module_wait_module;
		return;
	}
	if(qstate->env->hydns && qstate->minfo[id])
		qstate->env->hydns->hooks->finishing(qstate->env->hydns, &qstate->qinfo,
			(struct hydns_resolution*)qstate->minfo[id]);
	qstate->ext_state[id] = module_finished;
}

void hydns_inform_super(struct module_qstate* qstate, int id, struct module_qstate* super)
{
	(void)qstate;
	(void)id;
	(void)super;
}

/* The zone whose servers the iterator asks, or knows to be silent; NULL: none. The iterator's state is cleared after the module's, which
 * comes before it in the stack. */
static const struct delegpt* zone_of(struct module_qstate* qstate)
{
	int iterator = modstack_find(&qstate->env->mesh->mods, "iterator");
	const struct iter_qstate* iq = iterator < 0 ? NULL : (const struct iter_qstate*)qstate->minfo[iterator];

	return iq ? iq->dp : NULL;
}

/* A bogus answer is none: the servers have answered. */
static int has_failed(const struct module_qstate* qstate, int id)
{
	const struct dns_msg* msg = qstate->return_msg;

	if(qstate->ext_state[id] != module_finished)
		return 1;
	return !msg || !msg->rep || (FLAGS_GET_RCODE(msg->rep->flags) == LDNS_RCODE_SERVFAIL && msg->rep->security != sec_status_bogus);
}

static void tell_end(struct module_qstate* qstate, const struct hydns_resolution* res, int id)
{
	const struct delegpt* dp = zone_of(qstate);
	struct timeval took;

	timersub(qstate->env->now_tv, &res->since, &took);
	if(dp && took.tv_sec >= 0)
		thread_context->hooks->ended(thread_context, dp->name, dp->namelen, has_failed(qstate, id),
			(uint64_t)took.tv_sec * 1000 + (uint64_t)took.tv_usec / 1000);
}

/* However the resolution ends: its clients have their replies, or were dropped. The worker's own context may have gone. */
void hydns_clear(struct module_qstate* qstate, int id)
{
	const struct hydns_resolution* res = (const struct hydns_resolution*)qstate->minfo[id];

	if(res && thread_context) {
		tell_end(qstate, res, id);
		thread_context->hooks->over(thread_context, res);
	}
	qstate->minfo[id] = NULL;
}

size_t hydns_get_mem(struct module_env* env, int id)
{
	(void)env;
	(void)id;
	return 0;
}

struct module_func_block* hydns_get_funcblock(void)
{
	static struct module_func_block block = {
		.name = "hydns",
		.init = &hydns_init,
		.deinit = &hydns_deinit,
		.operate = &hydns_operate,
		.inform_super = &hydns_inform_super,
		.clear = &hydns_clear,
		.get_mem = &hydns_get_mem,
	};
	return &block;
}
