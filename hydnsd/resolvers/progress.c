/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/progress.h"

uint32_t hydnsd_begun_add(struct hydnsd_begun *b)
{
	b->done[b->next % HYDNSD_BEGUN_MAX] = false;
	return b->next++;
}

void hydnsd_begun_done(struct hydnsd_begun *b, uint32_t number)
{
	b->done[number % HYDNSD_BEGUN_MAX] = true;
	while (b->oldest != b->next && b->done[b->oldest % HYDNSD_BEGUN_MAX])
		b->oldest++;
}

static bool done_before(const struct hydnsd_begun *b, uint32_t number)
{
	return (int32_t)(b->oldest - number) >= 0;
}

void hydnsd_progress_start(struct hydnsd_progress *p, uint32_t position, const struct hydnsd_begun *b)
{
	*p = (struct hydnsd_progress){ .given = position, .mark = position, .mark_next = b->next };
}

/* One mark is enough: while it waits, later frames gather for the next one. */
bool hydnsd_progress_advance(struct hydnsd_progress *p, uint32_t taken, const struct hydnsd_begun *b)
{
	uint32_t before = p->given;

	while (p->given != taken && done_before(b, p->mark_next)) {
		p->given = p->mark;
		p->mark = taken;
		p->mark_next = b->next;
	}
	return p->given != before;
}
