/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* One thread that asks hydnsd on behalf of all HTTP requests, so that these never wait for each other, nor hydnsd for many. */
#ifndef HYDNSD_METRICS_SCRAPE_H
#define HYDNSD_METRICS_SCRAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Most often that hydnsd is asked, however many clients there are: figures younger than this are given again. */
#define METRICS_FRESH_MS 250

/* A text that several responses share. */
struct metrics_page {
	char *text;
	size_t len;
	unsigned holders;              /* under the scraper's lock */
};

struct metrics_scraper;

/* A request for figures. page: what to send, set when ready() is called; NULL then: out of memory. */
struct metrics_wish {
	void (*ready)(struct metrics_wish *);  /* called by the scraper's thread, under its lock */
	struct metrics_page *page;
	struct metrics_wish *next;
};

/* control: path of hydnsd's control socket. NULL: out of memory, threads or descriptors. */
struct metrics_scraper *metrics_scraper_start(const char *control);
enum metrics_wait {
	METRICS_HERE,                  /* w->page is set */
	METRICS_COMES,                 /* before_wait() was called; ready() will be */
	METRICS_ENDS,                  /* the program is about to end */
};
/* before_wait: called under the lock before ready() can be. */
enum metrics_wait metrics_scraper_wish(struct metrics_scraper *s, struct metrics_wish *w, void (*before_wait)(struct metrics_wish *));
/* Gives a page back. */
void metrics_scraper_release(struct metrics_scraper *s, struct metrics_page *page);
/* Ends what is under way: all ready() calls have been made when it returns, and no wish is taken any more. */
void metrics_scraper_stop(struct metrics_scraper *s);
/* After metrics_scraper_stop(), when all pages are given back. */
void metrics_scraper_free(struct metrics_scraper *s);

#endif
