/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Templates of signed zones that queries with DO would have been answered from. There are as many as names and pairs of neighbours, so
 * only those are asked for that anybody has missed. hydnsd may refuse one, or evict it: then the same question waits, longer each time.
 * With each version of the zone the waiting begins anew; what the version makes wrong it withdraws.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include "hydns/names.h"
#include "plugin/clock.h"
#include "plugin/preload/state.h"

#define WAIT_MS      1000
#define WAIT_MOST_MS 60000

bool hydns_demand_is_due(struct hydns_demand *d, uint64_t key, uint32_t version, uint32_t now_ms)
{
	struct hydns_demanded *e = &d->lately[key % HYDNS_DEMAND_PLACES];
	const uint32_t tag = (uint32_t)(key >> 32) | 1;
	bool again = e->tag == tag && e->version == version;

	if (d->count >= HYDNS_DEMAND_MOST || (again && now_ms - e->when_ms < e->wait_ms))
		return false;
	*e = (struct hydns_demanded){
		.tag = tag, .version = version, .when_ms = now_ms,
		.wait_ms = !again ? WAIT_MS : e->wait_ms < WAIT_MOST_MS / 2 ? e->wait_ms * 2 : WAIT_MOST_MS,
	};
	return true;
}

/* The template's question. False: there is none; nor for types that rate-limiting counts by names (offer.c). */
static bool question_of(struct hydns_preload *l, const struct hydns_question *q, struct hydns_name_template *t, uint32_t *version)
{
	uint8_t lower[HYDNS_NAME_MAX];
	const struct hydns_preload_zone *z;

	hydns_name_lower(lower, q->name, q->name_len);
	if (!hydns_name_set_template(l->set, lower, q->name_len, q->qtype, t) || t->zone >= l->o.zones)
		return false;
	z = &l->zone[t->zone];
	*version = atomic_load(&z->versions);
	if (t->qtype == HYDNS_NODATA_TYPE)
		return !q->account;
	return t->qtype == HYDNS_HASHED_TYPE || !hydns_is_probe(t->name) || atomic_load(&z->proofs) == HYDNS_PROOFS_NSEC;
}

static void demand(struct hydns_preload *l, const struct hydns_question *q)
{
	struct hydns_name_template t;
	struct hydns_question asked;
	uint32_t version;
	bool first = false;

	if (!question_of(l, q, &t, &version))
		return;
	asked = (struct hydns_question){ .name = t.name, .name_len = (uint16_t)t.len, .qtype = t.qtype, .variant = q->variant };
	pthread_mutex_lock(&l->lock);
	if (hydns_demand_is_due(&l->demand, hydns_question_key(&asked, l->p->seed), version, (uint32_t)hydns_mono_coarse_ms()) &&
	    hydns_preload_list_append(&l->demand.wanted, t.asked, t.len, t.asked_qtype, (uint8_t)(1U << q->variant)))
		first = !l->demand.count++;
	pthread_mutex_unlock(&l->lock);
	if (first && eventfd_write(l->wake_fd, 1))
		return;                /* it is awake */
}

void hydns_plugin_demand(struct hydns_plugin *p, const struct hydns_question *q)
{
	struct hydns_preload *l;

	if (!(q->variant & HYDNS_VARIANT_DO) || !atomic_load_explicit(&p->preload, memory_order_relaxed) || q->name_len > HYDNS_NAME_MAX)
		return;
	pthread_rwlock_rdlock(&p->preload_lock);
	l = atomic_load(&p->preload);
	if (l)
		demand(l, q);
	pthread_rwlock_unlock(&p->preload_lock);
}

bool hydns_preload_is_demanded(const struct hydns_question *q, size_t origin_len)
{
	if (!(q->variant & HYDNS_VARIANT_DO))
		return false;
	if (q->qtype == HYDNS_NODATA_TYPE)
		return q->name_len != origin_len;
	return q->qtype == HYDNS_BELOW_TYPE && (hydns_is_probe(q->name) || q->name_len != HYDNS_BELOW_LABEL_LEN + origin_len);
}

/* Once: whoever misses an answer asks for it again. */
bool hydns_preload_ask_demanded(struct hydns_preload *l)
{
	struct hydns_preload_asked asked;
	struct hydns_preload_list wanted;
	bool more;

	pthread_mutex_lock(&l->lock);
	wanted = l->demand.wanted;
	l->demand.wanted = (struct hydns_preload_list){ 0 };
	l->demand.count = 0;
	pthread_mutex_unlock(&l->lock);
	l->asker.at_once = 0;
	more = !wanted.len || hydns_preload_ask(&l->asker, &wanted, 0, wanted.len, &asked);
	hydns_preload_list_free(&wanted);
	return more;
}
