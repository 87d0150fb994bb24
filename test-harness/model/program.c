/* SPDX-License-Identifier: GPL-2.0-only */
/* The XDP program's look-up (hydns-kern/program/rule/lookup.bpf.h), compiled for userspace, on a store of the model's. */
#include <string.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
/* The program's settings are constants to it, which the loader sets; here program_set() does. */
#define const
#include "hydns-kern/program/maps.bpf.h"
#undef const
#include "hydns-kern/program/hydns.bpf.c"
#include "test-harness/model/program.h"

static struct hydns_query cpu[PROGRAM_CPUS];
static const struct hydns_store_memory *memory;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	__u32 i = *(const __u32 *)key;

	if (map == (void *)&hydns_index)
		return &memory->index[i];
	if (map == (void *)&hydns_slots)
		return memory->slots + (size_t)i * HYDNS_CHUNK;
	return NULL;
}

static __u64 bpf_ktime_get_coarse_ns(void)
{
	return 0;
}

static __u64 bpf_jiffies64(void)
{
	return 0;
}

void program_set(const struct hydns_store_memory *m)
{
	memory = m;
	hydns_geometry.buckets = m->geometry->buckets;
	hydns_geometry.seed[0] = m->geometry->seed[0];
	hydns_geometry.seed[1] = m->geometry->seed[1];
}

const struct hydns_rule *program_find(unsigned on, const __u8 *name, __u8 len, __u16 qtype)
{
	struct hydns_question *q = &cpu[on].question;
	const struct hydns_rule *rule;

	q->name_len = len;
	q->qtype = qtype;
	q->variant = 0;
	q->resolver = 0;
	memcpy(q->message + HYDNS_DNS_HEADER, name, len);
	hydns_key(q);
	return hydns_find(q, &rule) ? NULL : rule;
}
