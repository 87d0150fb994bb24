/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/queue/xsk.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SOL_XDP
#define SOL_XDP 283
#endif

static int size_ring(int fd, int ring, unsigned entries)
{
	return setsockopt(fd, SOL_XDP, ring, &entries, sizeof(entries)) ? -errno : 0;
}

static int map_ring(int fd, struct hydns_mapping *m, size_t len, off_t which)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, which);

	if (at == MAP_FAILED)
		return -errno;
	m->at = at;
	m->len = len;
	return 0;
}

static void unmap(struct hydns_mapping *m)
{
	if (m->at)
		munmap(m->at, m->len);
	m->at = NULL;
}

static int map_producer(int fd, struct hydns_mapping *m, struct xsk_ring_prod *r, const struct xdp_ring_offset *o,
			unsigned entries, size_t entry, off_t which)
{
	int err = map_ring(fd, m, o->desc + entries * entry, which);
	char *at = m->at;

	if (err)
		return err;
	*r = (struct xsk_ring_prod){
		.cached_cons = entries, .mask = entries - 1, .size = entries, .producer = (__u32 *)(at + o->producer),
		.consumer = (__u32 *)(at + o->consumer), .flags = (__u32 *)(at + o->flags), .ring = at + o->desc,
	};
	return 0;
}

static int map_consumer(int fd, struct hydns_mapping *m, struct xsk_ring_cons *r, const struct xdp_ring_offset *o,
			unsigned entries, size_t entry, off_t which)
{
	int err = map_ring(fd, m, o->desc + entries * entry, which);
	char *at = m->at;

	if (err)
		return err;
	*r = (struct xsk_ring_cons){
		.mask = entries - 1, .size = entries, .producer = (__u32 *)(at + o->producer),
		.consumer = (__u32 *)(at + o->consumer), .flags = (__u32 *)(at + o->flags), .ring = at + o->desc,
	};
	return 0;
}

static int offsets(int fd, struct xdp_mmap_offsets *o)
{
	socklen_t len = sizeof(*o);

	if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, o, &len))
		return -errno;
	return len == sizeof(*o) ? 0 : -EPROTO;     /* before Linux 5.4 they had no flags */
}

/* The receive and the send ring. Before bind: Linux 6.1 maps no ring of a bound socket. */
static int map_own(struct hydns_xsk *r, const struct hydns_pool_size *size)
{
	struct xdp_mmap_offsets o;
	int err = size_ring(r->fd, XDP_RX_RING, size->receive);

	if (!err)
		err = size_ring(r->fd, XDP_TX_RING, size->send);
	if (!err)
		err = offsets(r->fd, &o);
	if (!err)
		err = map_consumer(r->fd, &r->rx_map, &r->rx, &o.rx, size->receive, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING);
	if (!err)
		err = map_producer(r->fd, &r->tx_map, &r->tx, &o.tx, size->send, sizeof(struct xdp_desc), XDP_PGOFF_TX_RING);
	return err;
}

static unsigned power_of_2(unsigned n)
{
	unsigned p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static int map_pool(struct hydns_pool *p, int fd, const struct hydns_pool_size *size)
{
	const unsigned receive = power_of_2(size->receive * size->sockets), send = power_of_2(size->send * size->sockets);
	struct xdp_umem_reg reg = { .addr = (uintptr_t)p->area, .len = p->area_len, .chunk_size = HYDNS_FRAME_ROOM };
	struct xdp_mmap_offsets o;
	int err = setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof(reg)) ? -errno : 0;

	if (!err)
		err = size_ring(fd, XDP_UMEM_FILL_RING, receive);
	if (!err)
		err = size_ring(fd, XDP_UMEM_COMPLETION_RING, send);
	if (!err)
		err = offsets(fd, &o);
	if (!err)
		err = map_producer(fd, &p->fill_map, &p->fill, &o.fr, receive, sizeof(__u64), XDP_UMEM_PGOFF_FILL_RING);
	if (!err)
		err = map_consumer(fd, &p->completion_map, &p->completion, &o.cr, send, sizeof(__u64),
				   XDP_UMEM_PGOFF_COMPLETION_RING);
	return err;
}

static int bind_ring(int fd, const struct hydns_queue_id *id, unsigned flags, int shared_with)
{
	struct sockaddr_xdp a = {
		.sxdp_family = AF_XDP, .sxdp_flags = (__u16)flags, .sxdp_ifindex = id->ifindex, .sxdp_queue_id = id->queue,
		.sxdp_shared_umem_fd = (__u32)shared_with,
	};

	return bind(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
}

int hydns_pool_open(struct hydns_pool *p, struct hydns_xsk *first, int fd, const struct hydns_queue_id *id,
		    const struct hydns_pool_size *size)
{
	int err;

	memset(p, 0, sizeof(*p));
	*first = (struct hydns_xsk){ .fd = fd };
	p->area_len = (size_t)(size->receive + size->send) * size->sockets * HYDNS_FRAME_ROOM;
	p->area = mmap(NULL, p->area_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p->area == MAP_FAILED) {
		p->area = NULL;
		err = -ENOMEM;
	} else
		err = map_pool(p, fd, size);
	if (!err)
		err = map_own(first, size);
	if (!err)
		err = bind_ring(fd, id, XDP_USE_NEED_WAKEUP | (id->zero_copy ? XDP_ZEROCOPY : XDP_COPY), -1);
	if (err) {
		hydns_xsk_close(first);
		hydns_pool_close(p);
	}
	return err;
}

int hydns_xsk_join(struct hydns_xsk *r, int fd, const struct hydns_xsk *first, const struct hydns_queue_id *id,
		    const struct hydns_pool_size *size)
{
	int err;

	*r = (struct hydns_xsk){ .fd = fd };
	err = map_own(r, size);
	if (!err)
		err = bind_ring(fd, id, XDP_SHARED_UMEM, first->fd);
	if (err)
		hydns_xsk_close(r);
	return err;
}

static uint32_t between(const __u32 *consumer, const __u32 *producer)
{
	const uint32_t from = __atomic_load_n(consumer, __ATOMIC_ACQUIRE);

	return __atomic_load_n(producer, __ATOMIC_ACQUIRE) - from;
}

uint32_t hydns_xsk_unread(const struct hydns_xsk *r)
{
	return between(r->rx.consumer, r->rx.producer);
}

uint32_t hydns_xsk_taken(const struct hydns_xsk *r)
{
	return __atomic_load_n(r->rx.consumer, __ATOMIC_ACQUIRE);
}

uint32_t hydns_xsk_unsent(const struct hydns_xsk *r)
{
	return between(r->tx.consumer, r->tx.producer);
}

uint32_t hydns_pool_unused(const struct hydns_pool *p)
{
	return between(p->fill.consumer, p->fill.producer);
}

uint64_t hydns_xsk_dropped(const struct hydns_xsk *r)
{
	struct xdp_statistics s = { 0 };
	socklen_t len = sizeof(s);

	if (getsockopt(r->fd, SOL_XDP, XDP_STATISTICS, &s, &len))
		return 0;
	return s.rx_dropped + s.rx_ring_full;
}

void hydns_xsk_close(struct hydns_xsk *r)
{
	unmap(&r->rx_map);
	unmap(&r->tx_map);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

void hydns_pool_close(struct hydns_pool *p)
{
	unmap(&p->fill_map);
	unmap(&p->completion_map);
	if (p->area)
		munmap(p->area, p->area_len);
	p->area = NULL;
}
