/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include "rings.h"

const struct hydns_lane_key rings_here = { .ifindex = 1, .queue = 0 };
const struct kernel_options rings_kernel = { .queue = true, .miss_stage = true, .verbose = true };

static int xsk(void)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

void rings_set(struct rings *r, const char *map, const void *key, const void *value)
{
	assert_int_equal(bpf_map_update_elem(kernel_map(r->k, map), key, value, BPF_ANY), 0);
}

struct hydns_lane rings_lane(unsigned threads)
{
	return (struct hydns_lane){ .number = LANE, .frame_max = 1792, .threads = (__u8)threads, .resolver = RESOLVER,
				    .device = DEVICE, .place = PLACE };
}

volatile struct hydns_backlog *rings_backlog(struct rings *r, unsigned thread)
{
	return (volatile struct hydns_backlog *)(kernel_page(r->k) + HYDNS_PAGE_BACKLOGS + PLACE) + thread;
}

void rings_set_lane(struct rings *r, const struct hydns_lane *lane)
{
	rings_set(r, "hydns_lanes", &rings_here, lane);
}

void rings_open_ring(struct rings *r, unsigned thread)
{
	__u32 key = HYDNS_RING(LANE, thread);

	r->ring[thread] = xsk();
	rings_set(r, "hydns_rings", &key, &r->ring[thread]);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void rings_close_ring(struct rings *r, unsigned thread)
{
	close_fd(&r->ring[thread]);
}

void rings_close_gate(struct rings *r)
{
	close_fd(&r->gate);
}

void rings_open(struct rings *r, struct kernel *k, unsigned threads)
{
	const struct hydns_lane lane = rings_lane(threads);
	const __u32 resolver = RESOLVER;

	kernel_anew(k);
	*r = (struct rings){ .k = k, .gate = xsk(), .ring = { -1, -1, -1, -1 } };
	rings_set(r, "hydns_gates", &resolver, &r->gate);
	rings_set_lane(r, &lane);
	rings_open_ring(r, 0);
	for (unsigned i = 0; i < THREADS; i++)
		rings_backlog(r, i)->room = 1024;
	kernel_page(r->k)->queue = HYDNS_QUEUE_CLIENTS | HYDNS_QUEUE_UPSTREAM;
}

void rings_close(struct rings *r)
{
	for (unsigned i = 0; i < THREADS; i++)
		rings_close_ring(r, i);
	rings_close_gate(r);
}

int rings_action(struct rings *r, const struct frame *f, int reason)
{
	struct frame after = *f;
	int counted, action = kernel_run(r->k, &after, &counted);

	assert_int_equal(counted, reason);
	assert_int_equal(after.len, f->len);
	assert_memory_equal(after.data, f->data, f->len);
	return action;
}

struct hydns_queue_count rings_counts(struct rings *r)
{
	struct hydns_queue_count n;

	kernel_sum(r->k, "hydns_queued", RESOLVER, sizeof(n) / sizeof(__u64), (__u64 *)&n);
	return n;
}
