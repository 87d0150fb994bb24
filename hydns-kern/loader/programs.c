/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs of the object, and where the kernel runs each. A new program is its code and a row here: the loader
 * attaches, replaces and detaches it, or puts it behind its tail call.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hydns-kern/loader/kern.h"
#include "hydns-kern/program/stages.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

struct program {
	const char *name;              /* in the object */
	enum hydns_hook hook;
	enum hydns_stage stage;        /* of a stage: its place in hydns_stages ... */
	size_t called;                 /* ... and, in the configuration, the switch that says whether it is called */
};

static const struct program programs[] = {
	{ HYDNS_PROGRAM, HYDNS_HOOK_XDP, 0, 0 },
	{ "hydns_miss", HYDNS_HOOK_STAGE, HYDNS_STAGE_MISS, offsetof(struct hydns_bpf__rodata, hydns_miss_stage) },
	{ "hydns_replay", HYDNS_HOOK_STAGE, HYDNS_STAGE_REPLAY, offsetof(struct hydns_bpf__rodata, hydns_miss_stage) },
	{ "hydns_forward_miss", HYDNS_HOOK_STAGE, HYDNS_STAGE_FORWARD, offsetof(struct hydns_bpf__rodata, hydns_forward_stage) },
	{ "hydns_forwarded", HYDNS_HOOK_STAGE, HYDNS_STAGE_FORWARDED, offsetof(struct hydns_bpf__rodata, hydns_forward_stage) },
	{ "hydns_logged", HYDNS_HOOK_STAGE, HYDNS_STAGE_LOGGED, offsetof(struct hydns_bpf__rodata, hydns_log_stage) },
	{ "hydns_refused", HYDNS_HOOK_STAGE, HYDNS_STAGE_REFUSED, offsetof(struct hydns_bpf__rodata, hydns_log_stage) },
	{ "hydns_left", HYDNS_HOOK_STAGE, HYDNS_STAGE_LEFT, offsetof(struct hydns_bpf__rodata, hydns_analysis_stage) },
#define HYDNS_ANALYSER(name, by, conditions, text)                                                               \
	{ "hydns_analyse_" #name, HYDNS_HOOK_STAGE, HYDNS_STAGE_ANALYSER_##name, offsetof(struct hydns_bpf__rodata, hydns_analysis_stage) },
#include "hydns/analysers.def"
#undef HYDNS_ANALYSER
	{ "hydns_stray", HYDNS_HOOK_SK_LOOKUP, 0, 0 },
	{ "hydns_sent", HYDNS_HOOK_RAW_TRACEPOINT, 0, 0 },
	{ "hydns_dry", HYDNS_HOOK_DRY_RUN, 0, 0 },
};

#define FOR_EACH(p) for (const struct program *p = programs; p < programs + sizeof(programs) / sizeof(*programs); p++)

static bool *called(const struct hydns_bpf *b, const struct program *p)
{
	return (bool *)((char *)b->rodata + p->called);
}

struct bpf_program *hydns_program_at(const struct hydns_bpf *b, enum hydns_hook hook)
{
	FOR_EACH(p)
		if (p->hook == hook)
			return bpf_object__find_program_by_name(b->obj, p->name);
	return NULL;
}

void hydns_programs_only(struct hydns_bpf *b, enum hydns_hook hook)
{
	FOR_EACH(p) {
		bpf_program__set_autoload(bpf_object__find_program_by_name(b->obj, p->name), p->hook == hook);
		if (p->hook == HYDNS_HOOK_STAGE)
			*called(b, p) = false;
	}
	b->rodata->hydns_may_capture = false;
}

void hydns_programs_called(struct hydns_bpf *b)
{
	FOR_EACH(p)
		if (p->hook == HYDNS_HOOK_STAGE)
			bpf_program__set_autoload(bpf_object__find_program_by_name(b->obj, p->name), *called(b, p));
}

static int put_stage(struct hydns_bpf *b, enum hydns_stage stage, const char *name)
{
	int fd = bpf_program__fd(bpf_object__find_program_by_name(b->obj, name));
	__u32 place = stage;

	return bpf_map_update_elem(bpf_map__fd(b->maps.hydns_stages), &place, &fd, BPF_ANY);
}

int hydns_stages_fill(struct hydns_bpf *b)
{
	int err = 0;

	FOR_EACH(p)
		if (!err && p->hook == HYDNS_HOOK_STAGE && *called(b, p))
			err = put_stage(b, p->stage, p->name);
	/* A stage that has made another frame of its packet begins with it anew. */
	if (!err && b->rodata->hydns_miss_stage)
		err = put_stage(b, HYDNS_STAGE_ENTRY, HYDNS_PROGRAM);
	return err;
}

int hydns_capture_let_go(const struct hydns_bpf *b)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), err = 0;

	if (null < 0 || dup3(null, bpf_map__fd(b->maps.hydns_capture), O_CLOEXEC) < 0)
		err = -errno;
	if (null >= 0)
		close(null);
	return err;
}
