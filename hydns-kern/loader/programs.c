/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The programs of the object, and where the kernel runs each. A new program is its code and a row here: the loader
 * attaches, replaces and detaches it, or puts it behind its tail call.
 */
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
	const char *text;              /* what it is for */
};

static const struct program programs[] = {
	{ HYDNS_PROGRAM, HYDNS_HOOK_XDP, 0, 0, "every packet that comes in" },
#define HYDNS_STAGE(place, program, constant, text) \
	{ #program, HYDNS_HOOK_STAGE, HYDNS_STAGE_##place, offsetof(struct hydns_bpf__rodata, constant), text },
#include "hydns-kern/program/stages.def"
#undef HYDNS_STAGE
	{ "hydns_stray", HYDNS_HOOK_SK_LOOKUP, 0, 0, "answers that missed their packet ring" },
	{ "hydns_sent", HYDNS_HOOK_RAW_TRACEPOINT, 0, 0, "replayed answers that links refuse" },
	{ "hydns_dry", HYDNS_HOOK_DRY_RUN, 0, 0, "`hydnsctl explain'" },
};

#define FOR_EACH(p) for (const struct program *p = programs; p < programs + sizeof(programs) / sizeof(*programs); p++)

static bool *called(const struct hydns_bpf *b, const struct program *p)
{
	return (bool *)((char *)b->rodata + p->called);
}

/* Not one that stands at another hook as well: a stage that has made another frame of its packet begins with hydns_xdp anew. */
static bool is_stage_alone(const struct program *p)
{
	return p->hook == HYDNS_HOOK_STAGE && p->stage != HYDNS_STAGE_ENTRY;
}

static struct bpf_program *in_object(const struct hydns_bpf *b, const struct program *p)
{
	return bpf_object__find_program_by_name(b->obj, p->name);
}

struct bpf_program *hydns_program_at(const struct hydns_bpf *b, enum hydns_hook hook)
{
	FOR_EACH(p)
		if (p->hook == hook)
			return in_object(b, p);
	return NULL;
}

void hydns_programs_only(struct hydns_bpf *b, enum hydns_hook hook)
{
	FOR_EACH(p) {
		if (p->stage != HYDNS_STAGE_ENTRY)
			bpf_program__set_autoload(in_object(b, p), p->hook == hook);
		if (p->hook == HYDNS_HOOK_STAGE)
			*called(b, p) = false;
	}
	b->rodata->hydns_may_capture = false;
}

void hydns_programs_called(struct hydns_bpf *b)
{
	FOR_EACH(p)
		if (is_stage_alone(p))
			bpf_program__set_autoload(in_object(b, p), *called(b, p));
}

static int put_stage(struct hydns_bpf *b, const struct program *p)
{
	int fd = bpf_program__fd(in_object(b, p));
	__u32 place = p->stage;

	return bpf_map_update_elem(bpf_map__fd(b->maps.hydns_stages), &place, &fd, BPF_ANY);
}

int hydns_stages_fill(struct hydns_bpf *b)
{
	int err = 0;

	FOR_EACH(p)
		if (!err && p->hook == HYDNS_HOOK_STAGE && *called(b, p))
			err = put_stage(b, p);
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

/* -- what the kernel says of them --------------------------------------------------------------------------- */
static struct hydns_program_state state_of(const struct hydns_kern *k, const struct program *p)
{
	const struct hydns_bpf *b = p->hook == HYDNS_HOOK_DRY_RUN ? k->dry : k->skel;
	struct hydns_program_state s = { .name = p->name, .text = p->text, .stage = p->hook == HYDNS_HOOK_STAGE };
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(in_object(b, p)), &info, &len))
		return s;
	s.in = true;
	s.id = info.id;
	s.instructions = info.xlated_prog_len / sizeof(struct bpf_insn);
	s.verified = info.verified_insns;
	s.octets = info.jited_prog_len;
	return s;
}

void hydns_kern_programs_each(const struct hydns_kern *k, void (*fn)(const struct hydns_program_state *p, void *arg), void *arg)
{
	FOR_EACH(p) {
		if (p->hook != HYDNS_HOOK_STAGE || is_stage_alone(p)) {
			const struct hydns_program_state s = state_of(k, p);

			fn(&s, arg);
		}
	}
}
