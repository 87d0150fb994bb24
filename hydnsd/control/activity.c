/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/activity.h"

#include <stdlib.h>
#include <string.h>

#include "hydns/hash.h"
#include "hydnsd/daemon/clock.h"

#define REJECTED 4096                  /* questions; power of two */
#define SAMPLES  6                     /* of the outcome counters, a second apart */

struct rejected {
	uint64_t key;
	uint64_t at_ms;
	enum hydnsd_rejection why;
};

struct sample {
	uint64_t at_ms;
	uint64_t reasons[HYDNS_REASONS];
};

struct hydnsd_activity {
	struct rejected rejected[REJECTED];
	struct sample sample[SAMPLES];
	uint32_t samples;              /* taken so far */
};

struct hydnsd_activity *hydnsd_activity_new(void)
{
	return calloc(1, sizeof(struct hydnsd_activity));
}

void hydnsd_activity_free(struct hydnsd_activity *a)
{
	free(a);
}

static uint64_t key_of(const struct hydnsd *d, uint32_t resolver, const uint8_t *name,
		       uint8_t name_len, uint16_t qtype, uint8_t variant)
{
	return hydns_key_hash(name, name_len, qtype, variant, (uint8_t)resolver,
			      hydns_kern_geometry(d->kern)->seed);
}

uint64_t hydnsd_activity_key(struct hydnsd *d, uint32_t resolver, const struct hydns_offer *o)
{
	return key_of(d, resolver, o->data, o->name_len, o->qtype, o->variant);
}

void hydnsd_activity_refused(struct hydnsd *d, uint64_t key, enum hydnsd_rejection why)
{
	d->activity->rejected[key % REJECTED] = (struct rejected){
		.key = key, .at_ms = hydnsd_now_ms(), .why = why,
	};
}

enum hydnsd_rejection hydnsd_activity_last_rejection(struct hydnsd *d, uint32_t resolver,
						   const uint8_t *name, uint8_t name_len, uint16_t qtype,
						   uint8_t variant, uint64_t *age_ms)
{
	uint64_t key = key_of(d, resolver, name, name_len, qtype, variant);
	const struct rejected *r = &d->activity->rejected[key % REJECTED];

	if (r->key != key)
		return HYDNSD_ACCEPTED;
	*age_ms = hydnsd_now_ms() - r->at_ms;
	return r->why;
}

void hydnsd_activity_tick(struct hydnsd *d)
{
	struct hydnsd_activity *a = d->activity;
	struct sample *s = &a->sample[a->samples % SAMPLES];

	if (hydns_kern_stats(d->kern, (__u64 *)s->reasons))
		return;
	s->at_ms = hydnsd_now_ms();
	a->samples++;
}

uint64_t hydnsd_activity_window(struct hydnsd *d, uint64_t *reasons)
{
	struct hydnsd_activity *a = d->activity;
	const struct sample *old = &a->sample[a->samples > SAMPLES ? a->samples % SAMPLES : 0];

	memset(reasons, 0, HYDNS_REASONS * sizeof(*reasons));
	if (!a->samples || hydns_kern_stats(d->kern, (__u64 *)reasons))
		return 0;
	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		reasons[i] -= old->reasons[i];
	return hydnsd_now_ms() - old->at_ms;
}
