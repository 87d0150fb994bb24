/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of programs over the same maps: loading another one, and exchanging the one that runs for it. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

struct hydns_set {
	struct hydns_bpf *skel, *dry;
	int sent_fd;                   /* attachment of hydns_sent; -1: none */
};

/* -- composition ------------------------------------------------------------------------------------------ */
/* What the parts' constants entail: other constants, programs and maps. */
static void follow_parts(struct hydns_bpf *b)
{
	b->rodata->hydns_forward_stage = b->rodata->hydns_forward_stage && b->rodata->hydns_miss_stage;
	b->rodata->hydns_analysis_stage = b->rodata->hydns_monitor;
	b->rodata->hydns_refused_stage = b->rodata->hydns_log_stage || b->rodata->hydns_names_stage;
	b->rodata->hydns_left_stage = b->rodata->hydns_monitor || b->rodata->hydns_guard_stage;
	bpf_program__set_autoload(hydns_program_at(b, HYDNS_HOOK_SK_LOOKUP), b->rodata->hydns_queue);
	bpf_program__set_autoload(hydns_program_at(b, HYDNS_HOOK_RAW_TRACEPOINT), b->rodata->hydns_miss_stage);
	hydns_programs_called(b);
	hydns_analysers_make(b, b->rodata->hydns_monitor);
}

int hydns_composition_set(struct hydns_bpf *b, const struct hydns_composition *with, char why[HYDNS_WHY])
{
	int err = hydns_parts_size(b, with);

	if (err)
		return hydns_fail(why, err, "can't size the maps of parts: %s", strerror(-err));
#define HYDNS_PART(name, constant, text) b->rodata->constant = with->name;
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	b->rodata->hydns_may_capture = true;
	err = hydns_guard_configure(b, &with->limits);
	follow_parts(b);
	return err ? hydns_fail(why, err, "no random numbers for the guard's secret: %s", strerror(-err)) : 0;
}

static bool *constant_of(struct hydns_bpf *b, enum hydns_part part)
{
	static const size_t at[HYDNS_PARTS] = {
#define HYDNS_PART(name, constant, text) offsetof(struct hydns_bpf__rodata, constant),
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	};

	return (bool *)((char *)b->rodata + at[part]);
}

bool hydns_composition_has(struct hydns_bpf *b, enum hydns_part part)
{
	return *constant_of(b, part);
}

void hydns_composition_leave_out(struct hydns_bpf *b, __u32 parts)
{
	for (unsigned part = 0; part < HYDNS_PARTS; part++)
		if (parts >> part & 1)
			*constant_of(b, part) = false;
	if (!b->rodata->hydns_guard_stage)
		memset((void *)&b->rodata->hydns_guard, 0, sizeof(b->rodata->hydns_guard));
	follow_parts(b);
}

struct hydns_composition hydns_kern_composition(const struct hydns_kern *k)
{
	return (struct hydns_composition){
#define HYDNS_PART(name, constant, text) .name = k->skel->rodata->constant,
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	};
}

/* -- loading ---------------------------------------------------------------------------------------------- */
/* What analysers have found so far stays, if both sets have some. */
static int share_analysers(struct hydns_bpf *fresh, const struct hydns_bpf *of)
{
	struct bpf_map *map, *from;
	int err = 0;

	bpf_object__for_each_map(map, fresh->obj) {
		from = bpf_object__find_map_by_name(of->obj, bpf_map__name(map));
		if (!err && hydns_map_is_of_analysers(map) && bpf_map__autocreate(map) && bpf_map__fd(from) >= 0)
			err = bpf_map__reuse_fd(map, bpf_map__fd(from));
	}
	return err;
}

int hydns_set_share(struct hydns_bpf *fresh, const struct hydns_bpf *of)
{
	int err = hydns_maps_share(fresh, of, false);

	return err ? err : share_analysers(fresh, of);
}

static int load(struct hydns_set *s, const struct hydns_kern *k, const struct hydns_composition *with, char why[HYDNS_WHY])
{
	int err;

	s->skel = hydns_bpf__open();
	if (!s->skel)
		return hydns_fail(why, -ENOMEM, "can't open the XDP program: %s", strerror(errno));
	*s->skel->rodata = *k->skel->rodata;
	err = hydns_composition_set(s->skel, with, why);
	if (err)
		return err;
	err = hydns_set_share(s->skel, k->skel);
	if (err)
		return hydns_fail(why, err, "can't take the maps over: %s", strerror(-err));
	err = hydns_bpf__load(s->skel);
	if (err)
		return hydns_explain_load(err, why);
	err = hydns_stages_fill(s->skel);
	if (!err)
		err = hydns_capture_let_go(s->skel);
	if (err)
		return hydns_fail(why, err, "can't prepare the programs: %s", strerror(-err));
	err = hydns_dry_open(s->skel, hydns_kern_geometry(k), &s->dry);
	return err ? hydns_explain_load(err, why) : 0;
}

int hydns_set_load(const struct hydns_kern *k, const struct hydns_composition *with, struct hydns_set **out, char why[HYDNS_WHY])
{
	struct hydns_set *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return hydns_fail(why, err, "no memory");
	s->sent_fd = -1;
	err = load(s, k, with, why);
	if (err)
		hydns_set_close(s);
	else
		*out = s;
	return err;
}

void hydns_set_close(struct hydns_set *s)
{
	if (!s)
		return;
	if (s->sent_fd >= 0)
		close(s->sent_fd);
	hydns_bpf__destroy(s->dry);
	hydns_bpf__destroy(s->skel);
	free(s);
}

/* -- exchanging ------------------------------------------------------------------------------------------- */
struct exchanging {
	struct hydns_kern *k;
	int err;                       /* of the first interface that refuses; from then on none is touched */
	char *why;
};

static void exchange_one(const char *ifname, void *arg)
{
	struct exchanging *e = arg;

	if (!e->err)
		e->err = hydns_attachment_exchange(e->k, ifname, e->why);
}

static void swap(struct hydns_kern *k, struct hydns_set *s)
{
	const struct hydns_set former = { k->skel, k->dry, k->sent_fd };

	k->skel = s->skel;
	k->dry = s->dry;
	k->sent_fd = s->sent_fd;
	*s = former;
}

/* Every interface gets the programs of k->skel, and whoever reads their maps gets these. */
static int exchange_all(struct hydns_kern *k, char why[HYDNS_WHY])
{
	struct exchanging e = { .k = k, .why = why };
	int err = hydns_kern_attached_each(k, exchange_one, &e);

	if (err)
		return hydns_fail(why, err, "can't read the pins: %s", strerror(-err));
	if (!e.err)
		e.err = hydns_stray_exchange(k, why);
	if (!e.err)
		e.err = hydns_pins_publish_parts(k, why);
	err = e.err ? 0 : hydns_parts_follow(k);
	return err ? hydns_fail(why, err, "can't read the maps of parts: %s", strerror(-err)) : e.err;
}

int hydns_kern_exchange(struct hydns_kern *k, struct hydns_set *set, char why[HYDNS_WHY])
{
	char back[HYDNS_WHY];
	int err = 0;

	if (set->skel->rodata->hydns_miss_stage && set->sent_fd < 0)
		set->sent_fd = err = hydns_sent_attach(set->skel);
	if (err < 0)
		return hydns_fail(why, err, "can't watch what links refuse: %s", strerror(-err));
	swap(k, set);
	err = exchange_all(k, why);
	if (!err)
		return 0;
	swap(k, set);
	if (exchange_all(k, back))     /* what stays there works as well: it is over the same maps */
		strncat(why, "; and some keep the new program", HYDNS_WHY - 1 - strlen(why));
	return err;
}
