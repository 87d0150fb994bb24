/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The resolver page: what this resolver says to the XDP program without help of hydnsd. Until hydnsd gives a page that the
 * program reads, a page in this process takes its place.
 *
 * The generation is counted in this process and copied to the page, so that it goes on when pages are switched. The epoch
 * is in the page, and hydnsd gives its first value. A thread that advances either looks afterwards whether the page is still
 * the current one; a thread that switches pages kills the old page first. So whatever the order, no rule stays alive under a
 * page that is not advanced. Two bits of the epoch suspend rules: one all of them, one those with marked places. When the
 * bits are cleared, the rules count as before.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "plugin/page/page.h"

/* Far longer than an XDP program runs (microseconds), and than the NAPI poll around it (milliseconds). */
#define GRACE_WITHOUT_KERNEL_NS (250 * 1000000L)

struct old_page {
	struct old_page *next;
	struct hydns_resolver_page *page;
};

struct hydns_pages {
	_Atomic uint64_t generation;
	_Atomic(struct hydns_resolver_page *) page;
	_Atomic int fd;
	_Atomic bool gone;
	struct old_page *mapped;         /* unmapped only at the end: a resolver thread may read any of them */
	struct hydns_resolver_page own; /* before hydnsd */
};

struct hydns_pages *hydns_pages_new(void)
{
	struct hydns_pages *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	atomic_store(&g->page, &g->own);
	atomic_store(&g->fd, -1);
	return g;
}

void hydns_pages_free(struct hydns_pages *g)
{
	if (!g)
		return;
	while (g->mapped) {
		struct old_page *m = g->mapped;

		g->mapped = m->next;
		munmap(m->page, HYDNS_PAGE_OCTETS);
		free(m);
	}
	if (atomic_load(&g->fd) >= 0)
		close(atomic_load(&g->fd));
	free(g);
}

uint64_t hydns_pages_generation(const struct hydns_pages *g)
{
	return atomic_load(&g->generation);
}

uint32_t hydns_pages_epoch(const struct hydns_pages *g)
{
	return __atomic_load_n(&atomic_load(&g->page)->epoch, __ATOMIC_SEQ_CST) & ~HYDNS_EPOCH_FLAGS;
}

bool hydns_pages_suspended(const struct hydns_pages *g)
{
	return __atomic_load_n(&atomic_load(&g->page)->epoch, __ATOMIC_SEQ_CST) & HYDNS_EPOCH_FLAGS;
}

struct hydns_resolver_page *hydns_pages_shared(struct hydns_pages *g)
{
	struct hydns_resolver_page *page = atomic_load_explicit(&g->page, memory_order_acquire);

	return page == &g->own ? NULL : page;
}

struct hydns_backlog *hydns_pages_backlogs(struct hydns_pages *g, int place)
{
	struct hydns_resolver_page *page = hydns_pages_shared(g);

	return page ? (struct hydns_backlog *)(page + HYDNS_PAGE_BACKLOGS + place) : NULL;
}

int hydns_pages_fd(const struct hydns_pages *g)
{
	return atomic_load(&g->fd);
}

static void copy_generation(struct hydns_resolver_page *page, uint64_t generation)
{
	__u64 old = __atomic_load_n(&page->generation, __ATOMIC_SEQ_CST);

	while (old < generation &&
	       !__atomic_compare_exchange_n(&page->generation, &old, generation, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
}

uint64_t hydns_pages_advance_generation(struct hydns_pages *g)
{
	uint64_t generation = atomic_fetch_add(&g->generation, 1) + 1;
	struct hydns_resolver_page *page;

	do {
		page = atomic_load(&g->page);
		copy_generation(page, generation);
	} while (page != atomic_load(&g->page));
	return generation;
}

/* Leaves the flags as they are. */
static void advance(struct hydns_resolver_page *page)
{
	__u32 old = __atomic_load_n(&page->epoch, __ATOMIC_SEQ_CST), next;

	do {
		next = ((old + 1) & ~HYDNS_EPOCH_FLAGS) | (old & HYDNS_EPOCH_FLAGS);
	} while (!__atomic_compare_exchange_n(&page->epoch, &old, next, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

void hydns_pages_advance_epoch(struct hydns_pages *g)
{
	struct hydns_resolver_page *page;

	do {
		page = atomic_load(&g->page);
		advance(page);
	} while (page != atomic_load(&g->page));
}

bool hydns_pages_suspend(struct hydns_pages *g)
{
	struct hydns_resolver_page *page;
	__u32 old;

	do {
		page = atomic_load(&g->page);
		old = __atomic_fetch_or(&page->epoch, HYDNS_EPOCH_SUSPENDED, __ATOMIC_SEQ_CST);
	} while (page != atomic_load(&g->page));
	return !(old & HYDNS_EPOCH_FLAGS);
}

/* The mark first, so that a program that sees the flag sees the mark. Mostly the flag is set already. */
bool hydns_pages_mark(struct hydns_pages *g, uint32_t place)
{
	struct hydns_resolver_page *page;
	__u32 old;

	do {
		page = atomic_load(&g->page);
		__atomic_fetch_or(&page->marks[place / 64], 1ULL << place % 64, __ATOMIC_SEQ_CST);
		old = __atomic_load_n(&page->epoch, __ATOMIC_SEQ_CST);
		if (!(old & HYDNS_EPOCH_MARKED))
			old = __atomic_fetch_or(&page->epoch, HYDNS_EPOCH_MARKED, __ATOMIC_SEQ_CST);
	} while (page != atomic_load(&g->page));
	return !(old & HYDNS_EPOCH_FLAGS);
}

/*
 * The flags are cleared first. Clearing the marks under a flag would be right as well, but rules would begin to count one by
 * one. A mark that another thread makes meanwhile may be lost, or its flag be left: either the name's change was in the ring
 * before hydnsd was asked to catch up, or hydnsd is there and acts upon it (see link/serve.c).
 */
void hydns_pages_resume(struct hydns_pages *g)
{
	struct hydns_resolver_page *page = atomic_load(&g->page);

	__atomic_fetch_and(&page->epoch, ~HYDNS_EPOCH_FLAGS, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < HYDNS_MARK_WORDS; i++)
		if (__atomic_load_n(&page->marks[i], __ATOMIC_SEQ_CST))
			__atomic_store_n(&page->marks[i], 0, __ATOMIC_SEQ_CST);
}

void hydns_pages_beat(struct hydns_pages *g, uint64_t mono_ns)
{
	struct hydns_resolver_page *page;

	if (mono_ns == 0)
		atomic_store(&g->gone, true);
	page = atomic_load(&g->page);
	__atomic_store_n(&page->heartbeat_ns, atomic_load(&g->gone) ? 0 : mono_ns, __ATOMIC_SEQ_CST);
}

void hydns_pages_set_queue(struct hydns_pages *g, uint32_t parts)
{
	__atomic_store_n(&atomic_load(&g->page)->queue, parts, __ATOMIC_SEQ_CST);
}

void hydns_pages_set_forward(struct hydns_pages *g, uint32_t number)
{
	__atomic_store_n(&atomic_load(&g->page)->forward, number, __ATOMIC_SEQ_CST);
}

void hydns_pages_set_clocks(struct hydns_pages *g, int64_t wall_ns, int32_t tai_offset)
{
	struct hydns_resolver_page *page = atomic_load(&g->page);

	__atomic_store_n(&page->wall_ns, wall_ns, __ATOMIC_SEQ_CST);
	__atomic_store_n(&page->tai_offset, tai_offset, __ATOMIC_SEQ_CST);
}

static void copy_seed(struct hydns_resolver_page *page, const __u64 seed[HYDNS_BUDGET_SEEDS])
{
	for (int i = 0; i < HYDNS_BUDGET_SEEDS; i++)
		__atomic_store_n(&page->budget_seed[i], seed[i], __ATOMIC_SEQ_CST);
}

static void copy_limits(struct hydns_resolver_page *page, const struct hydns_limits *l)
{
	__atomic_store_n(&page->limits.with_cookie, l->with_cookie, __ATOMIC_SEQ_CST);
	__atomic_store_n(&page->limits.slip, l->slip, __ATOMIC_SEQ_CST);
	__atomic_store_n(&page->limits.backoff, l->backoff, __ATOMIC_SEQ_CST);
	__atomic_store_n(&page->limits.queries, l->queries, __ATOMIC_SEQ_CST);
}

void hydns_pages_set_limits(struct hydns_pages *g, const struct hydns_limits *l, const uint64_t seed[HYDNS_BUDGET_SEEDS])
{
	const __u64 copy[HYDNS_BUDGET_SEEDS] = { seed[0], seed[1], seed[2], seed[3] };
	struct hydns_resolver_page *page;

	do {
		page = atomic_load(&g->page);
		copy_seed(page, copy);
		copy_limits(page, l);
	} while (page != atomic_load(&g->page));
}

/* The program reads them when the resolver is ready, and not before. */
void hydns_pages_set_rates(struct hydns_pages *g, const struct hydns_rates *r, const uint64_t seed[HYDNS_BUDGET_SEEDS])
{
	const __u64 copy[HYDNS_BUDGET_SEEDS] = { seed[0], seed[1], seed[2], seed[3] };
	struct hydns_resolver_page *page = atomic_load(&g->page);

	copy_seed(page, copy);
	page->rates = *r;
}

void hydns_pages_set_cookies(struct hydns_pages *g, uint32_t set)
{
	__atomic_store_n(&atomic_load(&g->page)->cookies, set, __ATOMIC_SEQ_CST);
}

int hydns_pages_switch(struct hydns_pages *g, int map_fd, uint32_t epoch, uint64_t mono_ns)
{
	struct hydns_resolver_page *page, *old = atomic_load(&g->page);
	struct old_page *m = malloc(sizeof(*m));
	int error = ENOMEM;

	page = mmap(NULL, HYDNS_PAGE_OCTETS, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (page == MAP_FAILED)
		error = errno;
	if (!m || page == MAP_FAILED) {
		if (page != MAP_FAILED)
			munmap(page, HYDNS_PAGE_OCTETS);
		free(m);
		close(map_fd);
		return -error;
	}
	*m = (struct old_page){ .next = g->mapped, .page = page };
	g->mapped = m;

	/* Kill the old page before the new one can be seen: a thread that sees the new one need not care for it. */
	advance(old);
	__atomic_store_n(&old->heartbeat_ns, 0, __ATOMIC_SEQ_CST);

	__atomic_store_n(&page->epoch, epoch, __ATOMIC_SEQ_CST);
	copy_generation(page, atomic_load(&g->generation));
	copy_seed(page, old->budget_seed);
	copy_limits(page, &old->limits);
	page->rates = old->rates;
	__atomic_store_n(&page->heartbeat_ns, mono_ns, __ATOMIC_SEQ_CST);
	atomic_store(&g->page, page);
	copy_generation(page, atomic_load(&g->generation));   /* it may have been advanced on the old page meanwhile */

	map_fd = atomic_exchange(&g->fd, map_fd);
	if (map_fd >= 0)
		close(map_fd);
	return 0;
}

bool hydns_grace(void)
{
	struct timespec left = { .tv_nsec = GRACE_WITHOUT_KERNEL_NS };

	/* membarrier() waits for an RCU grace period, and XDP programs run in RCU read-side critical sections. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0)
		return true;
	while (nanosleep(&left, &left) && errno == EINTR)
		;
	return false;
}
