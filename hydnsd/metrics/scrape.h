/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* One thread that asks hydnsd on behalf of all HTTP requests, so that these never wait for each other, nor hydnsd for many. */
#ifndef HYDNSD_METRICS_SCRAPE_H
#define HYDNSD_METRICS_SCRAPE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* What it asks for, and the text that it makes of the replies. */
struct metrics_kind {
	const char *requests;          /* as view_ask() takes them */
	unsigned replies;              /* VIEW_ASK_MOST at most */
	unsigned fresh_ms;             /* how seldom hydnsd is asked, however many clients there are: younger texts are given again */
	/* Takes the references; all NULL: hydnsd does not answer, and why. NULL: out of memory. */
	char *(*text)(json_t *const reply[], const char *why, uint64_t took_ns, size_t *len);
};

/* A text that several responses share. */
struct metrics_page {
	char *text;
	size_t len;
	unsigned holders;              /* under the scraper's lock */
};

struct metrics_scraper;

/* A request for a text. page: what to send, set when ready() is called; NULL then: out of memory. */
struct metrics_wish {
	void (*ready)(struct metrics_wish *);  /* called by the scraper's thread, under its lock */
	struct metrics_page *page;
	struct metrics_wish *next;
};

/* control: path of hydnsd's control socket. NULL: out of memory, threads or descriptors. */
struct metrics_scraper *metrics_scraper_start(const char *control, const struct metrics_kind *kind);
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
