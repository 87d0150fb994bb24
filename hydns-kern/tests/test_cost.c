/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the program cost: which of them are measured, by copies that do their work, and that the running program's maps
 * stay as they are. How long anything takes is the machine's business. Exits 77 (skipped) without root.
 */
#include <arpa/inet.h>
#include "hydns-kern/cost/cost.h"
#include "hydns-kern/tests/frame.h"
#include "hydns-kern/tests/sandbox.h"

#define LONG_ENOUGH 600                /* seconds: also on an emulated machine */

static struct hydns_composition all = {
	.ipv6 = true, .vlan = true, .fib = true, .partial_checksum = true, .queue = true, .parking = true, .forwarding = true,
	.logs = true, .names = true, .monitor = true, .guard = true, .limits = { .mode = HYDNS_GUARD_ENFORCE, .queries = 1 },
}, few = { .ipv6 = true, .vlan = true, .fib = true }, none;

static unsigned said;                  /* how often progress was reported */

static void progress(unsigned loaded, unsigned of, void *arg)
{
	(void)arg;
	CHECK(loaded == ++said + 1 && loaded < of);
}

static void ask(struct hydns_again_frame *out, const char *name)
{
	struct frame f;

	frame_query(&f, &(struct query){ .name = name, .qtype = 1 });
	CHECK(f.len <= sizeof(out->octets));
	memcpy(out->octets, f.data, f.len);
	out->len = (__u32)f.len;
}

static int measure(const struct hydns_kern *k, unsigned seconds, struct hydns_costs *out)
{
	__u8 name[HYDNS_NAME_MAX];
	struct hydns_cost_setup s = {
		.prog_fd = hydns_kern_prog_fd(k), .service = { .addr = { [10] = 0xff, [11] = 0xff }, .port = htons(SERVICE_PORT) },
		.name = name, .name_len = (__u8)name_wire("a.example", name), .egress = if_nametoindex("hka"), .seconds = seconds,
		.progress = progress,
	};

	memcpy(s.service.addr + 12, service4, 4);
	ask(&s.query[HYDNS_COST_ANSWERED], "a.example");
	ask(&s.query[HYDNS_COST_NO_RULE], "b.example");
	said = 0;
	return hydns_costs_measure(&s, out, why);
}

static struct hydns_kern *open_composed(const struct hydns_composition *with)
{
	struct hydns_kern *k = NULL;
	bool adopted;

	CHECK(hydns_kern_open(&(struct hydns_loader_options){ .pin_dir = pin_dir, .capacity = CAPACITY, .with = *with }, &k, &adopted, why) == 0);
	return k;
}

static unsigned measured(const struct hydns_costs *c)
{
	unsigned n = 0;

	for (unsigned part = 0; part < HYDNS_PARTS; part++) {
		n += c->part[part].measured;
		CHECK(!c->part[part].measured || c->part[part].instructions > 0);
	}
	CHECK(c->whole.measured && c->whole.instructions > 0);
	CHECK(c->whole.ns[HYDNS_COST_ANSWERED] > 0 && c->whole.ns[HYDNS_COST_NO_RULE] > 0);
	return n;
}

static void nothing_counted(struct hydns_kern *k)
{
	__u64 reasons[HYDNS_REASONS] = { 0 };

	CHECK(hydns_kern_stats(k, reasons) == 0);
	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		CHECK(!reasons[i]);
}

/* Replies have no neighbour to go to. */
static void no_neighbour(void)
{
	struct hydns_kern *k = open_composed(&few);
	struct hydns_costs c;

	CHECK(measure(k, LONG_ENOUGH, &c) == 0);
	CHECK(measured(&c) == 2 && said == 2 && !c.part[HYDNS_PART_fib].measured);
	hydns_kern_close(k);
}

static void every_part(void)
{
	struct hydns_kern *k = open_composed(&all);
	struct hydns_costs c;

	run("echo 1 >/proc/sys/net/ipv4/conf/lo/forwarding");
	run("ip address add 192.0.2.1/24 dev hka && ip neighbour add 192.0.2.7 lladdr 02:00:00:00:00:07 dev hka");
	CHECK(measure(k, LONG_ENOUGH, &c) == 0);
	CHECK(measured(&c) == (is_emulated() ? 2 : HYDNS_PARTS - 1) && said == measured(&c));
	CHECK(!c.part[HYDNS_PART_logs].measured && c.part[HYDNS_PART_fib].measured);
	nothing_counted(k);
	hydns_kern_close(k);
}

static void the_time_is_bounded(void)
{
	struct hydns_kern *k = open_composed(&few);
	struct hydns_costs c;

	CHECK(measure(k, 0, &c) == 0);
	CHECK(measured(&c) == 0 && said == 0);
	hydns_kern_close(k);
}

static void no_part(void)
{
	struct hydns_kern *k = open_composed(&none);
	struct hydns_costs c;

	CHECK(measure(k, LONG_ENOUGH, &c) == 0);
	CHECK(measured(&c) == 0);
	hydns_kern_close(k);
}

/* Of a program that has no configuration of ours. */
static void another_program(void)
{
	const struct bpf_insn pass[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS },
					 { .code = BPF_JMP | BPF_EXIT } };
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "pass", "GPL", pass, 2, NULL);
	struct hydns_cost_setup s = { .prog_fd = fd, .progress = progress };
	struct hydns_costs c;

	CHECK(fd >= 0 && hydns_costs_measure(&s, &c, why) == -EPROTO && strstr(why, "another version"));
	close(fd);
}

int main(void)
{
	if (geteuid()) {
		puts("skipped: needs root");
		return SKIP;
	}
	if (is_emulated())             /* each part is a program of its own to verify */
		all = (struct hydns_composition){ .ipv6 = true, .fib = true };
	atexit(tear_down);
	set_up();
	if (!is_emulated())
		no_neighbour();
	every_part();
	the_time_is_bounded();
	no_part();
	another_program();
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
	puts("test_cost: all passed");
	return 0;
}
