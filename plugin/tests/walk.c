/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/tests/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "plugin/tests/seams.h"

#define DEPTH_MAX 64
#define PATH_MAX_LEN 2048
#define PAUSE_NS  20000        /* asleep, so that the parties it waits for have the CPU */
#define LATE_MS   200          /* after which a party that was held in the order before is given up */

struct path {
	unsigned choice[DEPTH_MAX], options[DEPTH_MAX];
	unsigned depth;
	char text[PATH_MAX_LEN];
};

static bool all_quiet(uint32_t *visits)
{
	*visits = 0;
	for (unsigned i = 0; i < SEAM_PARTIES; i++) {
		*visits += atomic_load(&seams->party[i].visits);
		if (!seam_is_quiet((enum seam_party)i))
			return false;
	}
	return true;
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* A party that was asleep may have been woken by one examined after it, or sleep for a lock or a page of memory alone. So
 * all are examined twice, a little apart. */
static bool all_rest(const struct walk *w)
{
	int64_t began = now_ms();
	uint32_t first, second;

	do {
		if (!(w->busy && w->busy(w->arg)) && all_quiet(&first)) {
			pause_a_little();
			if (all_quiet(&second) && first == second && !(w->busy && w->busy(w->arg)))
				return true;
		}
		pause_a_little();
	} while (now_ms() - began < SEAM_LIMIT_MS);
	return false;
}

static unsigned held(enum seam_party *who)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SEAM_PARTIES; i++)
		if (atomic_load(&seams->party[i].held))
			who[n++] = (enum seam_party)i;
	return n;
}

/* As held(). An order that repeats the first choices of the one before must find as many parties held there: a party that is
 * late, asleep for a reason of its own, would take all orders that begin with it along. */
static unsigned held_again(const struct walk *w, enum seam_party *who, unsigned before)
{
	int64_t began = now_ms();
	unsigned n;

	while ((n = held(who)) < before && now_ms() - began < LATE_MS) {
		pause_a_little();
		(void)all_rest(w);
	}
	return n;
}

static void note(struct path *p, enum seam_party who)
{
	size_t len = strlen(p->text);

	snprintf(p->text + len, sizeof(p->text) - len, " %d:%s", (int)who, seams->party[who].at);
}

static void fail_at(const struct walk *w, const struct path *p, const char *fault)
{
	seams_open();
	fail_msg("%s: %s, in this order:%s", w->what, fault, p->text);
}

/* One order: the first `fixed` choices are made already. */
static void go(const struct walk *w, struct path *p, unsigned fixed)
{
	const char *fault;

	p->text[0] = '\0';
	w->begin(w->arg);
	for (p->depth = 0; ; p->depth++) {
		enum seam_party who[SEAM_PARTIES];
		unsigned n, pick = p->depth < fixed ? p->choice[p->depth] : 0;

		if (!all_rest(w))
			fail_at(w, p, "it does not come to rest");
		n = held_again(w, who, p->depth < fixed ? p->options[p->depth] : 0);
		fault = w->fault(w->arg);
		if (fault)
			fail_at(w, p, fault);
		if (n == 0)
			break;
		if (p->depth == DEPTH_MAX)
			fail_at(w, p, "it goes on and on");
		if (p->depth >= fixed) {
			p->choice[p->depth] = pick;
			p->options[p->depth] = n;
		} else if (pick >= n) {
			pick = n - 1;          /* too late; the order counts as the one that was to be */
		}
		note(p, who[pick]);
		seam_go(who[pick]);
	}
	fault = w->end(w->arg);
	if (fault)
		fail_at(w, p, fault);
}

unsigned walk_all(const struct walk *w)
{
	static struct path p;          /* large */
	unsigned orders = 0, depth = 0;

	do {
		go(w, &p, depth);
		orders++;
		depth = p.depth;
		while (depth && p.choice[depth - 1] + 1 >= p.options[depth - 1])
			depth--;
		if (depth)
			p.choice[depth - 1]++;
	} while (depth);
	seams_open();
	printf("%s: %u orders\n", w->what, orders);
	return orders;
}
