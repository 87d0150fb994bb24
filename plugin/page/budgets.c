/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The budgets of clients (hydns/budgets.h): the resolver's part of what it and the program count together. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "plugin/page/page.h"

#define OCTETS (HYDNS_BUDGET_BUCKETS * sizeof(struct hydns_budget_bucket))

void hydns_budgets_close(struct hydns_budgets *b)
{
	struct hydns_budget_bucket *at = atomic_load(&b->bucket);

	if (at)
		munmap(at, OCTETS);
}

static bool copy(const void *from, int map_fd)
{
	void *to = mmap(NULL, OCTETS, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);

	if (to == MAP_FAILED)
		return false;
	memcpy(to, from, OCTETS);
	munmap(to, OCTETS);
	return true;
}

/* A second map takes the first one's place at the same address, where threads may be reading. */
int hydns_budgets_use(struct hydns_budgets *b, int map_fd, bool keep)
{
	struct hydns_budget_bucket *at = atomic_load(&b->bucket);
	bool kept = !keep || !at || copy(at, map_fd);
	void *now = !kept ? MAP_FAILED : mmap(at, OCTETS, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), map_fd, 0);
	int error = now == MAP_FAILED ? -errno : 0;

	close(map_fd);
	if (!error)
		atomic_store(&b->bucket, now);
	return error;
}

static struct hydns_budget *find(struct hydns_budgets *b, const struct hydns_resolver_page *page, const uint8_t addr[16], bool make,
				 uint32_t second)
{
	struct hydns_budget_bucket *bucket = atomic_load_explicit(&b->bucket, memory_order_acquire);
	struct hydns_budget *cell;
	__u64 hash, words[2];

	if (!bucket)
		return NULL;
	memcpy(words, addr, sizeof(words));
	hash = hydns_budget_hash(words, page->budget_seed);
	bucket += HYDNS_BUDGET_BUCKET(hash);
	cell = hydns_budget_find(bucket, HYDNS_BUDGET_TAG(hash));
	if (!cell && make)
		cell = hydns_budget_new(bucket, HYDNS_BUDGET_TAG(hash), second,
					__atomic_load_n(&page->limits.queries, __ATOMIC_RELAXED));
	return cell;
}

static bool take_unit(__u32 *passed, uint32_t unit)
{
	uint32_t was = __atomic_load_n(passed, __ATOMIC_RELAXED), among = unit == HYDNS_BUDGET_CROSSED ? ~(unit - 1) : HYDNS_BUDGET_CROSSED - 1;

	while (was & among)
		if (__atomic_compare_exchange_n(passed, &was, was - unit, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* A query that the program has counted, in this second or the one before. */
static bool take(struct hydns_budget *cell, uint32_t second, uint32_t unit)
{
	for (int i = 0; i < 2; i++) {
		uint32_t age = second - hydns_budget_second(__atomic_load_n(&cell->used[i], __ATOMIC_RELAXED));

		/* its clock may be ahead of the resolver's */
		if (age + 1 <= HYDNS_BUDGET_WINDOW && take_unit(&cell->passed[i], unit))
			return true;
	}
	return false;
}

enum hydns_charge hydns_budgets_charge(struct hydns_budgets *b, struct hydns_pages *g, const uint8_t addr[16], uint32_t second,
				       struct hydns_spent *spent)
{
	const struct hydns_resolver_page *page = hydns_pages_shared(g);
	struct hydns_budget *cell = page ? find(b, page, addr, true, second) : NULL;
	uint32_t backoff;

	if (!cell)
		return HYDNS_CHARGE_NONE;
	if (take(cell, second, HYDNS_BUDGET_ALLOWED))
		return HYDNS_CHARGE_ALLOWED;
	if (take(cell, second, HYDNS_BUDGET_CROSSED))
		return HYDNS_CHARGE_CROSSED;
	backoff = __atomic_load_n(&page->limits.backoff, __ATOMIC_RELAXED);
	spent->before = hydns_budget_spent(cell, second, backoff);
	spent->in_second = hydns_budget_add(cell, second);
	spent->after = spent->in_second > spent->before ? spent->in_second : spent->before;
	return HYDNS_CHARGE_COUNTED;
}

bool hydns_budgets_spent(struct hydns_budgets *b, struct hydns_pages *g, const uint8_t addr[16], uint32_t second, uint32_t *spent)
{
	const struct hydns_resolver_page *page = hydns_pages_shared(g);
	const struct hydns_budget *cell = page ? find(b, page, addr, false, second) : NULL;

	if (!cell)
		return false;
	*spent = hydns_budget_spent(cell, second, __atomic_load_n(&page->limits.backoff, __ATOMIC_RELAXED));
	return true;
}
