/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/metrics/scrape.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/view/ask.h"

struct metrics_scraper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wished;
	struct metrics_wish *first;    /* those that wait for the next answer */
	struct metrics_page *last;     /* the latest one, or NULL */
	uint64_t last_ms;              /* when it came */
	bool stop;
	const struct metrics_kind *kind;
	struct view_source source;     /* the thread's own */
	bool down;                     /* hydnsd did not answer the last time; the thread's own */
};

/* -- pages: under the lock ----------------------------------------------------------------------------------- */
static void drop(struct metrics_page *page)
{
	if (page && !--page->holders) {
		free(page->text);
		free(page);
	}
}

static struct metrics_page *hold(struct metrics_page *page)
{
	if (page)
		page->holders++;
	return page;
}

void metrics_scraper_release(struct metrics_scraper *s, struct metrics_page *page)
{
	pthread_mutex_lock(&s->lock);
	drop(page);
	pthread_mutex_unlock(&s->lock);
}

/* -- the thread ---------------------------------------------------------------------------------------------- */
/* One line when hydnsd no longer answers, and one when it does again. */
static void tell(struct metrics_scraper *s, const char *why)
{
	if (why && !s->down)
		fprintf(stderr, "hydns-metrics: hydnsd does not answer at %s: %s\n", s->source.path, why);
	else if (!why && s->down)
		fprintf(stderr, "hydns-metrics: hydnsd answers\n");
	s->down = why != NULL;
}

/* Asks hydnsd; NULL: out of memory. */
static struct metrics_page *scrape(struct metrics_scraper *s)
{
	struct metrics_page *page = calloc(1, sizeof(*page));
	uint64_t begin = hydnsd_now_ns();
	json_t *reply[VIEW_ASK_MOST] = { NULL };
	char why[VIEW_WHY] = "";
	int rc = view_ask(&s->source, s->kind->requests, s->kind->replies, reply, why);
	size_t len = 0;
	char *text = s->kind->text(reply, why, hydnsd_now_ns() - begin, &len);

	tell(s, rc ? why : NULL);
	if (page && text) {
		*page = (struct metrics_page){ text, len, 1 };
		return page;
	}
	free(text);
	free(page);
	return NULL;
}

/* Gives the page to all who wait. */
static void give(struct metrics_scraper *s, struct metrics_page *page)
{
	drop(s->last);
	s->last = page;
	s->last_ms = hydnsd_now_ms();
	while (s->first) {
		struct metrics_wish *w = s->first;

		s->first = w->next;
		w->page = hold(page);
		w->ready(w);
	}
}

static void *run(void *arg)
{
	struct metrics_scraper *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->stop || s->first) {
		struct metrics_page *page;

		if (!s->first) {
			pthread_cond_wait(&s->wished, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		page = scrape(s);
		pthread_mutex_lock(&s->lock);
		give(s, page);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* -- for requests -------------------------------------------------------------------------------------------- */
enum metrics_wait metrics_scraper_wish(struct metrics_scraper *s, struct metrics_wish *w, void (*before_wait)(struct metrics_wish *))
{
	enum metrics_wait result = METRICS_COMES;

	pthread_mutex_lock(&s->lock);
	if (s->stop) {
		result = METRICS_ENDS;
	} else if (s->last && hydnsd_now_ms() - s->last_ms < s->kind->fresh_ms) {
		w->page = hold(s->last);
		result = METRICS_HERE;
	} else {
		before_wait(w);
		w->next = s->first;
		s->first = w;
		pthread_cond_signal(&s->wished);
	}
	pthread_mutex_unlock(&s->lock);
	return result;
}

struct metrics_scraper *metrics_scraper_start(const char *control, const struct metrics_kind *kind)
{
	struct metrics_scraper *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->kind = kind;
	s->source = (struct view_source){ .path = control, .stop = eventfd(0, EFD_CLOEXEC), .overdue = -1 };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wished, NULL);
	if (s->source.stop >= 0 && !pthread_create(&s->thread, NULL, run, s))
		return s;
	if (s->source.stop >= 0)
		close(s->source.stop);
	free(s);
	return NULL;
}

void metrics_scraper_stop(struct metrics_scraper *s)
{
	eventfd_write(s->source.stop, 1);
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wished);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
}

void metrics_scraper_free(struct metrics_scraper *s)
{
	view_source_close(&s->source);
	close(s->source.stop);
	drop(s->last);
	pthread_cond_destroy(&s->wished);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
