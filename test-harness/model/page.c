/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The resolver page (plugin/page/page.c), as the XDP program reads it: a thread advances generation or epoch, or suspends
 * rules, while the link thread changes pages.
 */
#include "plugin/page/page.c"

#include <string.h>
#include "test-harness/model/model.h"

#define FIRST_EPOCH  10
#define SECOND_EPOCH 1000
#define BEAT         5

static struct hydns_pages *pages;
static struct hydns_resolver_page *first;
static int page_fd[2];

static int new_page(void)
{
	int fd = memfd_create("page", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, HYDNS_PAGE_OCTETS))
		abort();
	return fd;
}

static void begin(void)
{
	pages = hydns_pages_new();
	page_fd[0] = new_page();
	page_fd[1] = new_page();
	if (!pages || hydns_pages_switch(pages, page_fd[0], FIRST_EPOCH, BEAT))
		abort();
	first = atomic_load(&pages->page);
}

static void end(bool half)
{
	(void)half;
	hydns_pages_free(pages);
}

/* True when the program, begun now, answers from a rule with this epoch of this page. Copies two checks of the program in their
 * order: of the heartbeat, in hydns_admit_resolver() (hydns-kern/program/rule/admit.bpf.h), and of the epoch, at the end of
 * hydns_core() in hydns.bpf.c; without the check of marks. */
static bool counts(const struct hydns_resolver_page *page, uint32_t epoch)
{
	uint32_t is;
	uint64_t beat;

	model_program_begin();
	beat = *(const volatile uint64_t *)&page->heartbeat_ns;
	is = *(const volatile uint32_t *)&page->epoch;
	model_program_end();
	return is == epoch && beat;
}

static void change_pages(void)
{
	if (hydns_pages_switch(pages, page_fd[1], SECOND_EPOCH, BEAT))
		abort();
}

/* -- epoch: rules from before it do not count after it ---------------------------------------------------------------- */
static void kill_rules(void)
{
	struct hydns_resolver_page *page = atomic_load(&pages->page);
	uint32_t epoch = page == first ? FIRST_EPOCH : SECOND_EPOCH;

	hydns_pages_advance_epoch(pages);
	model_grace();
	model_require(!counts(page, epoch), "a rule from before the advanced epoch counts");
	model_require(!counts(first, FIRST_EPOCH), "a rule of the former page counts again");
}

static const struct model epoch = { "an advanced epoch while pages change", begin, { kill_rules, change_pages }, end };

/* -- suspending ---------------------------------------------------------------------------------------------------------- */
static void suspend_rules(void)
{
	struct hydns_resolver_page *page = atomic_load(&pages->page);
	uint32_t epoch = page == first ? FIRST_EPOCH : SECOND_EPOCH;

	hydns_pages_suspend(pages);
	model_grace();
	model_require(!counts(page, epoch), "a suspended rule counts");
	model_require(!counts(first, FIRST_EPOCH), "a suspended rule of the former page counts");
}

static const struct model suspension = { "rules suspended while pages change", begin, { suspend_rules, change_pages }, end };
/* -- generation: the page that the next hydnsd reads has it ---------------------------------------------------------------- */
static void advance_generation(void)
{
	hydns_pages_advance_generation(pages);
}

static void generations_agree(bool half)
{
	model_require(half || atomic_load(&pages->page)->generation == hydns_pages_generation(pages),
		      "a page with another generation than the process's");
	end(half);
}

static const struct model generation = { "an advanced generation while pages change", begin,
					 { advance_generation, change_pages }, generations_agree };
static const struct model generations = { "two of them", begin,
					  { advance_generation, advance_generation, change_pages }, generations_agree };

int main(void)
{
	static const struct model_case cases[] = {
		{ &epoch, { MODEL_SOUND } }, { &suspension, { MODEL_SOUND } },
		{ &generation, { MODEL_NO_ORDER } }, { &generations, { MODEL_NO_ORDER } },
	};

	return model_main(cases, sizeof(cases) / sizeof(cases[0]));
}
