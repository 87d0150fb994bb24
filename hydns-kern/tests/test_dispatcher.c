/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program beside another one on the same interface, through libxdp's dispatcher. Exits 77 (skipped) without root, without
 * libxdp, and where the kernel refuses the extension programs that a dispatcher needs. In the last case it still checks that
 * the loader's error names the mend and that nothing stays attached.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "hydns-kern/tests/sandbox.h"

#ifdef HAVE_LIBXDP
#include <xdp/libxdp.h>

#define FOREIGN "xdp_pass"      /* comes with libxdp, passes everything */

static int quiet(enum libxdp_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

/* How many programs of this name the dispatcher on hka calls. */
static unsigned called(const char *name)
{
	struct xdp_multiprog *all = xdp_multiprog__get_from_ifindex((int)if_nametoindex("hka"));
	struct xdp_program *p = NULL;
	unsigned n = 0;

	if (libxdp_get_error(all))
		return 0;
	while ((p = xdp_multiprog__next_prog(p, all)))
		n += !strcmp(xdp_program__name(p), name);
	xdp_multiprog__close(all);
	return n;
}

static struct xdp_program *foreign_attach(void)
{
	DECLARE_LIBXDP_OPTS(xdp_program_opts, opts, .find_filename = "xdp-dispatcher.o",
			    .prog_name = FOREIGN);
	struct xdp_program *p = xdp_program__create(&opts);

	CHECK(!libxdp_get_error(p));
	CHECK(!xdp_program__attach(p, (int)if_nametoindex("hka"), XDP_MODE_NATIVE, 0));
	return p;
}

static void shared_with_another(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	struct xdp_program *foreign = foreign_attach();

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_DISPATCHER, why) == 0);
	CHECK(called("hydns_xdp") == 1 && called(FOREIGN) == 1 && pinned("shared_hka"));
	hydns_kern_close(k);
	CHECK(called("hydns_xdp") == 1);             /* stays attached without a hydnsd */
	k = open_kern(CAPACITY, true);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_DISPATCHER, why) == 0);
	CHECK(called("hydns_xdp") == 1 && called(FOREIGN) == 1);
	CHECK(hydns_kern_detach(k, "hka", why) == 0 && hydns_kern_detach(k, "hka", why) == 0);
	CHECK(called("hydns_xdp") == 0 && called(FOREIGN) == 1 && !pinned("shared_hka"));
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_DISPATCHER, why) == 0);
	hydns_kern_close(k);
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
	CHECK(called("hydns_xdp") == 0 && called(FOREIGN) == 1);
	CHECK(!xdp_program__detach(foreign, (int)if_nametoindex("hka"), XDP_MODE_NATIVE, 0));
	xdp_program__close(foreign);
	CHECK(attached("hka", NULL) == 0);
}

/* From a plain attachment to the dispatcher and back. */
static void mode_can_change(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, false);

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_DISPATCHER, why) == 0);
	CHECK(called("hydns_xdp") == 1 && !pinned("link_hka"));
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	CHECK(attached("hka", NULL) == prog_id(k) && !pinned("shared_hka"));
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
	hydns_kern_close(k);
}

/* The dispatcher calls a copy of the new program, and none of the former one. */
static void a_program_is_exchanged(void)
{
	const struct hydns_composition with = { .ipv6 = true, .vlan = true };
	struct hydns_kern *k = open_kern(CAPACITY, true);
	struct hydns_composition now;
	struct hydns_set *set = NULL;
	__u32 dispatcher;

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_DISPATCHER, why) == 0);
	dispatcher = attached("hka", NULL);
	CHECK(hydns_set_load(k, &with, &set, why) == 0 && hydns_kern_exchange(k, set, why) == 0);
	hydns_set_close(set);
	now = hydns_kern_composition(k);
	CHECK(!memcmp(&now, &with, sizeof(now)));
	CHECK(called("hydns_xdp") == 1 && attached("hka", NULL) != dispatcher);
	CHECK(hydns_kern_detach(k, "hka", why) == 0 && called("hydns_xdp") == 0);
	hydns_kern_close(k);
}

static int dispatcher_works(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, false);
	int err = hydns_kern_attach(k, "hka", HYDNS_ATTACH_DISPATCHER, why);

	if (err == -EOPNOTSUPP) {
		CHECK(strstr(why, "mode native or generic"));
		CHECK(attached("hka", NULL) == 0 && !pinned("shared_hka"));
	} else {
		CHECK(err == 0 && called("hydns_xdp") == 1);
		CHECK(hydns_kern_detach(k, "hka", why) == 0 && attached("hka", NULL) == 0);
	}
	hydns_kern_close(k);
	return err;
}

int main(void)
{
	if (geteuid()) {
		puts("skipped: loading BPF programs and making namespaces needs root");
		return SKIP;
	}
	libxdp_set_print(quiet);
	set_up();
	atexit(tear_down);
	if (dispatcher_works()) {
		printf("skipped: %s\n", why);
		return SKIP;
	}
	shared_with_another();
	mode_can_change();
	a_program_is_exchanged();
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
	puts("ok");
	return 0;
}

#else

int main(void)
{
	puts("skipped: built without libxdp");
	return SKIP;
}

#endif
