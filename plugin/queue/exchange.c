/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Lanes, used by the resolver's threads: frames in and out. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "plugin/clock.h"
#include "plugin/queue/lanes_internal.h"

#define BATCH        64U              /* frames that are given back to the kernel at once */
#define SENT_AT_ONCE 32U              /* frames that the kernel sends in one call in copy mode */
#define WAITING_PAIR 2U               /* frames that came together, and whose replies leave together */
#define WAITING_MOST 8U               /* frames that may wait for others: the first client shall not wait for the last, ... */
#define WAITING_PART 4U               /* ... nor for more than this part of those that were received with it */
#define RETRY_MIN_MS 1U
#define RETRY_MAX_MS 256U

uint32_t hydns_lanes_now_us(void)
{
	return (uint32_t)(hydns_mono_ns() / HYDNS_NS_PER_US);
}

int hydns_lanes_fd(const struct hydns_lane_thread *t)
{
	return t->events;
}

struct hydns_queue_counts *hydns_lanes_counts(struct hydns_lane_thread *t)
{
	return t->counts;
}

/* Sequentially consistent, as the table's loads and stores are: either this thread sees that a lane has gone, or the one
 * that closes it sees that this thread is busy. */
static void enter(struct hydns_lane_thread *t)
{
	if (t->depth++ == 0)
		atomic_store(&t->busy, atomic_load_explicit(&t->busy, memory_order_relaxed) + 1);
}

/* --- sending -------------------------------------------------------------------------------------------- */
/* Frames that the kernel has sent, ready to be used again. The caller has the lock. */
static void take_completed(struct hydns_plugin_lane *lane)
{
	uint32_t at, n = xsk_ring_cons__peek(&lane->pool.completion, BATCH, &at);

	for (uint32_t i = 0; i < n; i++)
		lane->free[lane->frees++] = *xsk_ring_cons__comp_addr(&lane->pool.completion, at + i);
	xsk_ring_cons__release(&lane->pool.completion, n);
}

static bool take_frame(struct hydns_plugin_lane *lane, uint64_t *frame)
{
	bool taken;

	pthread_mutex_lock(&lane->lock);
	take_completed(lane);
	taken = lane->frees;
	if (taken)
		*frame = lane->free[--lane->frees];
	pthread_mutex_unlock(&lane->lock);
	return taken;
}

static void put_frame(struct hydns_plugin_lane *lane, uint64_t frame)
{
	pthread_mutex_lock(&lane->lock);
	lane->free[lane->frees++] = frame;
	pthread_mutex_unlock(&lane->lock);
}

/* Has the kernel send what is in the ring. In copy mode a call sends a part of it, and says EAGAIN if there is more, or if the
 * interface takes none now; Linux 6.1 lets the ring show only that all has left. True: nothing is left. */
static bool flush_ring(struct hydns_lane_thread *t, struct hydns_plugin_lane *lane)
{
	struct hydns_xsk *r = &lane->ring[t->index];
	uint32_t left = hydns_xsk_unsent(r);

	for (uint32_t calls = left / SENT_AT_ONCE + 1; left && calls; calls--) {
		if (!xsk_ring_prod__needs_wakeup(&r->tx))
			break;
		t->counts->wakeups++;
		if (sendto(r->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN)
			break;
		left = hydns_xsk_unsent(r);
	}
	return hydns_xsk_unsent(r) == 0;
}

static void set_timer(struct hydns_lane_thread *t, uint32_t ms)
{
	struct itimerspec once = { .it_value.tv_nsec = (long)(ms * HYDNS_NS_PER_MS) };

	t->timer_runs = timerfd_settime(t->timer, 0, &once, NULL) == 0;
	t->retry_ms = ms;
}

/* What an interface does not take now is tried again, ever more rarely: it may be down for long. Meanwhile nothing is added
 * to it. */
static void flush(struct hydns_lane_thread *t, uint64_t places)
{
	t->waiting = 0;
	for (uint64_t bits = places; bits; bits &= bits - 1) {
		const unsigned place = (unsigned)__builtin_ctzll(bits);
		struct hydns_plugin_lane *lane = atomic_load(&t->all->lane[place]);

		t->unsent &= ~(1ULL << place);
		t->stuck &= ~(1ULL << place);
		if (lane && !flush_ring(t, lane))
			t->stuck |= 1ULL << place;
	}
	if (!t->stuck)
		t->retry_ms = 0;
	else if (!t->timer_runs)
		set_timer(t, t->retry_ms == 0 ? RETRY_MIN_MS : t->retry_ms < RETRY_MAX_MS ? t->retry_ms * 2 : RETRY_MAX_MS);
}

static void leave(struct hydns_lane_thread *t)
{
	if (t->depth == 1) {
		if (t->unsent && !t->corked)
			flush(t, t->unsent);
		atomic_store_explicit(&t->busy, atomic_load_explicit(&t->busy, memory_order_relaxed) + 1, memory_order_release);
	}
	t->depth--;
}

/* xorshift (Marsaglia, "Xorshift RNGs", 2003): identifications need not be secret, only differ (RFC 6864). */
static uint16_t next_identification(struct hydns_lane_thread *t)
{
	uint32_t x = t->random | 1;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	t->random = x;
	return (uint16_t)(x >> 8);
}

/* The lane of this interface that this thread sends by: another for each thread, as far as there are others. */
static struct hydns_plugin_lane *sender(struct hydns_lane_thread *t, uint32_t ifindex, unsigned *place)
{
	struct hydns_plugin_lane *found[HYDNS_LANES_MOST];
	uint8_t at[HYDNS_LANES_MOST];
	unsigned n = 0;

	for (unsigned i = 0; i < atomic_load(&t->all->places); i++) {
		struct hydns_plugin_lane *lane = atomic_load(&t->all->lane[i]);

		if (lane && lane->setup.id.ifindex == ifindex && lane->setup.sends) {
			found[n] = lane;
			at[n++] = (uint8_t)i;
		}
	}
	if (n == 0)
		return NULL;
	*place = at[t->index % n];
	return found[t->index % n];
}

bool hydns_lanes_sender(struct hydns_lane_thread *t, uint32_t ifindex, struct hydns_way *way)
{
	struct hydns_plugin_lane *lane;
	unsigned place = 0;

	enter(t);
	lane = sender(t, ifindex, &place);
	if (lane) {
		way->lane = (uint16_t)(place + 1);
		way->device = lane->setup.device;
		way->made = lane->made;
		way->ifindex = ifindex;
	}
	leave(t);
	return lane;
}

/* The lane of a way, or NULL if it has gone. */
static struct hydns_plugin_lane *lane_of(struct hydns_lane_thread *t, const struct hydns_way *way, unsigned *place)
{
	struct hydns_plugin_lane *lane;

	if (way->lane < 1 || way->lane > HYDNS_LANES_MOST)
		return NULL;
	*place = way->lane - 1U;
	lane = atomic_load(&t->all->lane[*place]);
	if (!lane || lane->made != way->made)
		return NULL;
	return lane->setup.sends ? lane : sender(t, lane->setup.id.ifindex, place);
}

/* 0, or why not: HYDNS_DETOUR_ plus 1. */
static unsigned put(struct hydns_lane_thread *t, struct hydns_plugin_lane *lane, const struct hydns_path *path, uint8_t dscp,
		    const uint8_t *payload, size_t len)
{
	const struct hydns_ip_options o = {
		.dscp = dscp, .hops = lane->setup.hops[path->ipv6], .id = next_identification(t),
		.mtu = (uint16_t)(lane->setup.mtu < UINT16_MAX ? lane->setup.mtu : UINT16_MAX),
	};
	struct xsk_ring_prod *tx = &lane->ring[t->index].tx;
	uint64_t frame;
	uint32_t at;
	size_t n;

	if (!take_frame(lane, &frame))
		return 1 + HYDNS_DETOUR_RING_FULL;
	n = hydns_frame_write(lane->pool.area + frame, HYDNS_FRAME_ROOM, path, &o, payload, len);
	if (n == 0 || xsk_ring_prod__reserve(tx, 1, &at) != 1) {
		put_frame(lane, frame);
		return 1 + (n == 0 ? HYDNS_DETOUR_TOO_LONG : HYDNS_DETOUR_RING_FULL);
	}
	*xsk_ring_prod__tx_desc(tx, at) = (struct xdp_desc){ .addr = frame, .len = (uint32_t)n };
	xsk_ring_prod__submit(tx, 1);
	return 0;
}

bool hydns_lanes_send(struct hydns_lane_thread *t, const struct hydns_way *way, uint8_t dscp, const uint8_t *payload, size_t len)
{
	unsigned place = 0, why = 1 + HYDNS_DETOUR_LANE_GONE;
	struct hydns_plugin_lane *lane;

	enter(t);
	lane = lane_of(t, way, &place);
	if (lane && t->stuck >> place & 1)
		why = 1 + HYDNS_DETOUR_STUCK;
	else if (lane)
		why = put(t, lane, &way->path, dscp, payload, len);
	if (why == 0) {
		t->unsent |= 1ULL << place;
		t->counts->sent++;
		if (++t->waiting >= t->waiting_most)
			flush(t, t->unsent);
	} else
		t->counts->detour[why - 1]++;
	leave(t);
	return why == 0;
}

void hydns_lanes_cork(struct hydns_lane_thread *t)
{
	t->corked = true;
}

void hydns_lanes_uncork(struct hydns_lane_thread *t)
{
	t->corked = false;
	enter(t);
	leave(t);
}

/* --- receiving ------------------------------------------------------------------------------------------- */
/* Lets the kernel receive into these frames again. The fill ring has an entry for each frame there is. */
static void give_back(struct hydns_plugin_lane *lane, const uint64_t *frame, uint32_t n, int fd)
{
	uint32_t at = 0;
	bool wake;

	pthread_mutex_lock(&lane->lock);
	xsk_ring_prod__reserve(&lane->pool.fill, n, &at);
	for (uint32_t i = 0; i < n; i++)
		*xsk_ring_prod__fill_addr(&lane->pool.fill, at + i) = frame[i];
	xsk_ring_prod__submit(&lane->pool.fill, n);
	wake = xsk_ring_prod__needs_wakeup(&lane->pool.fill);
	pthread_mutex_unlock(&lane->lock);
	if (wake)      /* a zero-copy driver that has run out of frames; an error has nobody to go to */
		(void)!recvfrom(fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

static void take_one(struct hydns_lane_thread *t, struct hydns_plugin_lane *lane, unsigned place, const struct xdp_desc *desc,
		     hydns_lanes_take *take, void *arg)
{
	struct hydns_way way = { .lane = (uint16_t)(place + 1), .device = lane->setup.device, .made = lane->made,
				 .ifindex = lane->setup.id.ifindex, .came_us = t->came_us };
	struct hydns_datagram d;

	if (desc->addr >= lane->pool.area_len || desc->len > lane->pool.area_len - desc->addr ||
	    !hydns_frame_read(&d, lane->pool.area + desc->addr, desc->len, lane->setup.unfinished)) {
		t->counts->bad++;
		return;
	}
	t->counts->received++;
	way.path = d.path;
	take(arg, &d, &way);
}

/* The frames go back first: so there is one for each free place in the ring. */
static void release(struct hydns_lane_thread *t, struct hydns_plugin_lane *lane, const uint64_t *frame, uint32_t n)
{
	struct hydns_xsk *r = &lane->ring[t->index];
	struct hydns_backlog *of_thread = atomic_load(&lane->backlog);

	give_back(lane, frame, n, r->fd);
	xsk_ring_cons__release(&r->rx, n);
	if (of_thread)
		__atomic_store_n(&of_thread[t->index].taken, hydns_xsk_taken(r), __ATOMIC_RELEASE);
}

/* How many replies to n frames that were received together. Two that leave together come together again, for half the wake-ups. */
static unsigned may_wait(uint32_t n)
{
	const uint32_t part = n / WAITING_PART;

	if (n == WAITING_PAIR)
		return n;
	return part < 1 ? 1 : part > WAITING_MOST ? WAITING_MOST : part;
}

static unsigned receive_batch(struct hydns_lane_thread *t, struct hydns_plugin_lane *lane, unsigned place, unsigned most,
			      hydns_lanes_take *take, void *arg)
{
	struct hydns_xsk *r = &lane->ring[t->index];
	uint64_t frame[BATCH];
	uint32_t at, n = xsk_ring_cons__peek(&r->rx, most < BATCH ? most : BATCH, &at);

	if (n == 0)
		return 0;
	t->waiting_most = may_wait(n);
	t->came_us = hydns_lanes_now_us();
	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc desc = *xsk_ring_cons__rx_desc(&r->rx, at + i);

		take_one(t, lane, place, &desc, take, arg);
		frame[i] = desc.addr & ~(uint64_t)(HYDNS_FRAME_ROOM - 1);
	}
	release(t, lane, frame, n);
	return n;
}

static void read_timer(struct hydns_lane_thread *t)
{
	uint64_t times;

	if (t->timer_runs && read(t->timer, &times, sizeof(times)) == (ssize_t)sizeof(times)) {
		t->timer_runs = false;
		flush(t, t->stuck);
	}
}

unsigned hydns_lanes_receive(struct hydns_lane_thread *t, unsigned budget, hydns_lanes_take *take, void *arg)
{
	unsigned n = 0, got, places = atomic_load(&t->all->places);

	enter(t);
	read_timer(t);
	for (unsigned i = 0; i < places && n < budget; i++) {
		const unsigned place = (t->first + i) % places;
		struct hydns_plugin_lane *lane = atomic_load(&t->all->lane[place]);

		do {
			got = lane ? receive_batch(t, lane, place, budget - n, take, arg) : 0;
			n += got;
		} while (got == BATCH && n < budget);
	}
	if (n >= budget)
		t->first++;     /* the others first, the next time */
	leave(t);
	return n;
}
