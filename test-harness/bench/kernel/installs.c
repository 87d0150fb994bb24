/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include "test-harness/bench/kernel/installs.h"

struct batch {
	struct kernel *k;
	const struct questions *q;
	struct hydns_rule_parts parts;
	struct answer answer;
	__u8 name[HYDNS_NAME_MAX];
	__u32 *handles;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Waits for a grace period and frees slots, as hydnsd does when slots run short, but in the same thread. */
static void grace(struct hydns_store *s)
{
	__u64 ticket = hydns_store_grace_begin(s);

	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	hydns_store_grace_end(s, ticket);
}

static bool publish(struct batch *b, unsigned number, __u32 *handle)
{
	__u64 label = pace_label(number);
	__u32 replaced;
	int err;

	memcpy(b->name + 1, &label, PACE_LABEL);
	err = hydns_store_publish(kernel_store(b->k), &b->parts, handle, &replaced);
	if (err == -ENOSPC && hydns_store_grace_needed(kernel_store(b->k))) {
		grace(kernel_store(b->k));
		err = hydns_store_publish(kernel_store(b->k), &b->parts, handle, &replaced);
	}
	return !err;
}

/* Rules published a second; 0: the store had no room. */
static double publish_all(struct batch *b, unsigned first, unsigned count)
{
	double begun = now();

	for (unsigned i = 0; i < count; i++)
		if (!publish(b, first + i, &b->handles[i]))
			return 0;
	return count / (now() - begun);
}

static double remove_all(struct batch *b, unsigned count)
{
	double begun = now();

	for (unsigned i = 0; i < count; i++)
		hydns_store_remove(kernel_store(b->k), b->handles[i]);
	grace(kernel_store(b->k));
	return count / (now() - begun);
}

bool installs_run(struct kernel *k, const struct questions *a, unsigned first, unsigned count, struct installs *out)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return false;
	b->k = k;
	b->q = a;
	b->handles = calloc(count, sizeof(*b->handles));
	rule_parts(k, a, &b->answer, b->name, &b->parts);
	out->installed = b->handles ? publish_all(b, first, count) : 0;
	out->replaced = out->installed ? publish_all(b, first, count) : 0;
	out->removed = out->replaced ? remove_all(b, count) : 0;
	free(b->handles);
	free(b);
	return out->removed > 0;
}
