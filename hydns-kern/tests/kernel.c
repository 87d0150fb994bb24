/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _GNU_SOURCE                    /* bench/pace has it from here */
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/if_link.h>
#include <bpf/bpf.h>
#include "hydns-kern/loader/kern.h"
#include "hydns-kern/loader/switch.h"
#include "hydns/queue.h"
#include "kernel.h"

#define CAPACITY     64
#define LANES        8                 /* that tests may use */
#define LOG_BYTES    65536
#define PROGRAMS_MOST 32
#define LIFE_MS      3600000U

struct mapping {
	void *p;
	size_t len;
};
enum { MAP_SLOTS, MAP_INDEX, MAP_HITS, MAP_CLAIMS, MAP_PAGE, MAP_BUDGETS, MAP_GUARD, MAP_NAMES, MAPS };

struct kernel {
	struct hydns_bpf *skel;
	struct hydns_bpf *dry;   /* opened by the first kernel_dry() */
	struct hydns_store *store;
	struct hydns_geometry geometry;
	struct mapping map[MAPS];
	int page_fd, acl_fd;
	__u64 before[HYDNS_REASONS], after[HYDNS_REASONS];
	int cpus, cpu;       /* number of possible CPUs; the one on which all runs */
	unsigned verified;
	__u64 serial;        /* of the services */
	bool real_clock, guarded;
	int sent_fd;         /* attachment of hydns_sent; -1: none */
	__u32 ifindex;       /* where test runs come from; 0: the loopback interface */
	__u64 now_ns;
	__u16 place[HYDNS_RULE_PLACES_MAX]; /* of rules published from now on */
	__u8 places;
};

static struct bpf_map *store_map(struct hydns_bpf *s, int i)
{
	struct bpf_map *map[] = {
		s->maps.hydns_slots, s->maps.hydns_index, s->maps.hydns_hits, s->maps.hydns_claims,
	};
	return map[i];
}

static int set_sizes(struct kernel *k)
{
	const struct hydns_geometry *g = &k->geometry;
	int err = 0;

	err |= bpf_map__set_max_entries(k->skel->maps.hydns_slots, hydns_geometry_chunks(g));
	err |= bpf_map__set_max_entries(k->skel->maps.hydns_index, g->buckets);
	err |= bpf_map__set_max_entries(k->skel->maps.hydns_hits, g->lines * hydns_geometry_hit_rows(g));
	err |= bpf_map__set_max_entries(k->skel->maps.hydns_claims, g->lines);
	/* sockets, which kernel_anew() removes one by one */
	err |= bpf_map__set_max_entries(k->skel->maps.hydns_rings, HYDNS_RING(LANES, 0));
	err |= bpf_map__set_max_entries(k->skel->maps.hydns_strays, 1);
	return err;
}

/* Prints the last line of the verifier's log, with its counts. */
static void take_counts(struct kernel *k, const struct bpf_program *p, const char *log)
{
	const char *line = strstr(log, "processed ");
	unsigned processed;

	if (!line || sscanf(line, "processed %u", &processed) != 1)
		return;
	printf("# verifier: %s: %s", bpf_program__name(p), line);
	if (processed > k->verified)
		k->verified = processed;
}

static int load(struct kernel *k, bool verbose)
{
	char *log = calloc(PROGRAMS_MOST, LOG_BYTES);
	struct bpf_program *p;
	unsigned i = 0;
	int err;

	if (!log)
		return -ENOMEM;
	bpf_object__for_each_program(p, k->skel->obj)
		if (verbose && i < PROGRAMS_MOST) {
			bpf_program__set_log_buf(p, log + i++ * LOG_BYTES, LOG_BYTES);
			bpf_program__set_log_level(p, 4);
		}
	hydns_programs_called(k->skel);
	err = hydns_bpf__load(k->skel);
	i = 0;
	bpf_object__for_each_program(p, k->skel->obj)
		if (verbose && i < PROGRAMS_MOST)
			take_counts(k, p, log + i++ * LOG_BYTES);
	free(log);
	return err ? err : hydns_capture_let_go(k->skel);
}

static int map_memory(struct kernel *k, int i, int fd, __u32 entries, size_t size)
{
	size_t page = 4096;

	k->map[i].len = (entries * size + page - 1) / page * page;
	k->map[i].p = mmap(NULL, k->map[i].len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (k->map[i].p != MAP_FAILED)
		return 0;
	k->map[i].p = NULL;
	return -errno;
}

static int open_store(struct kernel *k)
{
	struct hydns_store_memory m = { .geometry = &k->geometry };

	for (int i = 0; i < MAP_PAGE; i++) {
		struct bpf_map *map = store_map(k->skel, i);

		if (map_memory(k, i, bpf_map__fd(map), bpf_map__max_entries(map), bpf_map__value_size(map)))
			return -1;
	}
	m.slots = k->map[MAP_SLOTS].p;
	m.index = k->map[MAP_INDEX].p;
	m.hits = k->map[MAP_HITS].p;
	m.claims = k->map[MAP_CLAIMS].p;
	k->store = hydns_store_open(&m);
	return k->store ? 0 : -1;
}

static int open_resolver(struct kernel *k)
{
	LIBBPF_OPTS(bpf_map_create_opts, page_opts, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, acl_opts, .map_flags = BPF_F_NO_PREALLOC);
	__u32 index = RESOLVER, acl_index = RESOLVER * 2 + 1;

	k->page_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hydns_page", sizeof(__u32),
				    sizeof(struct hydns_resolver_page), HYDNS_PAGE_ELEMENTS, &page_opts);
	k->acl_fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "hydns_acl", sizeof(struct hydns_acl_key),
				   sizeof(__u32), HYDNS_ACL_ENTRIES, &acl_opts);
	if (k->page_fd < 0 || k->acl_fd < 0 ||
	    map_memory(k, MAP_PAGE, k->page_fd, HYDNS_PAGE_ELEMENTS, sizeof(struct hydns_resolver_page)))
		return -1;
	if (bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_pages), &index, &k->page_fd, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_acls), &acl_index, &k->acl_fd, BPF_ANY))
		return -1;
	kernel_page(k)->epoch = EPOCH;
	kernel_page(k)->heartbeat_ns = k->now_ns;
	kernel_page(k)->tai_offset = TAI_OFFSET;
	kernel_config(k, NULL);
	return 0;
}

static void set_service(struct kernel *k, const __u8 addr[16], bool on)
{
	struct hydns_service_key key = { .port = htons(SERVICE_PORT) };
	struct hydns_service value = { .resolver = RESOLVER };
	int fd = bpf_map__fd(k->skel->maps.hydns_services);

	memcpy(key.addr, addr, 16);
	if (on)
		bpf_map_update_elem(fd, &key, &value, BPF_ANY);
	else
		bpf_map_delete_elem(fd, &key);
}

void kernel_serve(struct kernel *k, bool on)
{
	__u8 mapped[16] = { [10] = 0xff, [11] = 0xff };
	int fd = bpf_map__fd(k->skel->maps.hydns_svcserial);
	__u32 zero = 0;

	memcpy(mapped + 12, service4, 4);
	set_service(k, mapped, on);
	set_service(k, service6, on);
	k->serial++;
	bpf_map_update_elem(fd, &zero, &k->serial, BPF_ANY);
}

static __u64 monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Pins this process to its CPU, because some counters are read of that CPU alone. Returns the CPU. */
static int stay_on_this_cpu(void)
{
	int cpu = sched_getcpu();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	return cpu;
}

/* Writes what is in the maps before a test does anything. */
static int fill(struct kernel *k)
{
	const __u8 any[16] = { 0 };

	k->now_ns = k->real_clock ? monotonic_ns() : NOW_NS;
	if (hydns_stages_fill(k->skel) || hydns_scratch_prepare(bpf_map__fd(k->skel->maps.hydns_scratch), &k->geometry) ||
	    open_store(k) || open_resolver(k))
		return -1;
	if (k->guarded && map_memory(k, MAP_GUARD, kernel_map(k, "hydns_gd_cells"), HYDNS_GUARD_BUCKETS, sizeof(struct hydns_guard_bucket)))
		return -1;
	kernel_acl(k, any, 0, HYDNS_ACL_ALLOW);
	kernel_serve(k, true);
	return 0;
}

struct kernel *kernel_open(const struct kernel_options *o, const char **why)
{
	struct kernel *k = calloc(1, sizeof(*k));
	struct rlimit memlock = { RLIM_INFINITY, RLIM_INFINITY };

	*why = "out of memory";
	if (!k)
		return NULL;
	k->page_fd = k->acl_fd = k->sent_fd = -1;
	k->cpus = libbpf_num_possible_cpus();
	k->cpu = stay_on_this_cpu();
	setrlimit(RLIMIT_MEMLOCK, &memlock);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	k->skel = hydns_bpf__open();
	if (!k->skel)
		goto fail;
	hydns_geometry_for(o->capacity ? o->capacity : CAPACITY, k->cpus, k->cpus, &k->geometry);
	k->geometry.seed[0] = 0x0123456789abcdefULL;
	k->geometry.seed[1] = 0xfedcba9876543210ULL;
	k->geometry.tag_seed[0] = 0x0f1e2d3c4b5a6978ULL;
	k->geometry.tag_seed[1] = 0x8796a5b4c3d2e1f0ULL;
	memcpy((void *)&k->skel->rodata->hydns_geometry, &k->geometry, sizeof(k->geometry));
	k->skel->rodata->hydns_ipv6 = !o->no_ipv6;
	k->skel->rodata->hydns_vlan = o->vlan;
	k->skel->rodata->hydns_fib = o->fib;
	k->skel->rodata->hydns_miss_stage = o->miss_stage;
	k->skel->rodata->hydns_forward_stage = o->forward;
	k->skel->rodata->hydns_log_stage = o->logs;
	k->skel->rodata->hydns_names_stage = o->names;
	k->skel->rodata->hydns_refused_stage = o->logs || o->names;
	k->skel->rodata->hydns_queue = o->queue;
	k->skel->rodata->hydns_monitor = k->skel->rodata->hydns_analysis_stage = o->monitor;
	k->skel->rodata->hydns_left_stage = o->monitor || o->guard.mode;
	k->skel->rodata->hydns_may_capture = !o->no_capture;
	k->skel->rodata->hydns_partial_checksum = o->partial_checksum;
	k->skel->rodata->hydns_fixed_now_ns = o->real_clock ? 0 : NOW_NS;
	k->skel->rodata->hydns_fixed_tai_ns = o->real_clock ? 0 : (WALL_S + TAI_OFFSET) * 1000000000ULL;
	*why = "the BPF program could not be loaded: run as root with CAP_BPF and CAP_NET_ADMIN";
	if (hydns_guard_configure(k->skel, &o->guard) || set_sizes(k) || load(k, o->verbose))
		goto fail;
	k->real_clock = o->real_clock;
	k->guarded = o->guard.mode;
	/* Both programs are loaded first, which takes long. */
	if (o->real_clock && hydns_dry_open(k->skel, &k->geometry, &k->dry))
		goto fail;
	*why = "the maps could not be set up";
	if (fill(k))
		goto fail;
	return k;
fail:
	kernel_close(k);
	/* Load once more without a log buffer: libbpf then prints the verifier's log. */
	return o->verbose ? kernel_open(&(struct kernel_options){ 0 }, why) : NULL;
}

unsigned kernel_verified(const struct kernel *k)
{
	return k->verified;
}

unsigned kernel_instructions(const struct kernel *k, __u8 code, __s32 imm)
{
	const struct bpf_insn *i = bpf_program__insns(k->skel->progs.hydns_xdp);
	size_t n = bpf_program__insn_cnt(k->skel->progs.hydns_xdp);
	unsigned found = 0;

	while (n--)
		found += i[n].code == code && i[n].imm == imm;
	return found;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Gives up what fill() and tests have opened. */
static void leave(struct kernel *k)
{
	hydns_store_close(k->store);
	k->store = NULL;
	for (int i = 0; i < MAPS; i++)
		if (k->map[i].p)
			munmap(k->map[i].p, k->map[i].len);
	memset(k->map, 0, sizeof(k->map));
	close_fd(&k->page_fd);
	close_fd(&k->acl_fd);
	close_fd(&k->sent_fd);
}

void kernel_close(struct kernel *k)
{
	if (!k)
		return;
	leave(k);
	hydns_bpf__destroy(k->dry);
	hydns_bpf__destroy(k->skel);
	free(k);
}

/* --- as if opened anew ----------------------------------------------------------------------------------- */
/* Maps are cleared by their types, so a new one needs no line here. */
static void zero_elements(const struct bpf_map *map, int cpus)
{
	__u32 n = bpf_map__max_entries(map), *key = calloc(n, sizeof(*key));
	bool per_cpu = bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY;
	size_t size = (bpf_map__value_size(map) + 7) / 8 * 8 * (per_cpu ? (size_t)cpus : 1);
	void *value = calloc(n, size);
	LIBBPF_OPTS(bpf_map_batch_opts, opts);

	for (__u32 i = 0; key && i < n; i++)
		key[i] = i;
	if (!key || !value || bpf_map_update_batch(bpf_map__fd(map), key, value, &n, &opts))
		abort();
	free(key);
	free(value);
}

static void remove_places(const struct bpf_map *map)
{
	for (__u32 i = 0; i < bpf_map__max_entries(map); i++)
		bpf_map_delete_elem(bpf_map__fd(map), &i);
}

static void remove_keys(const struct bpf_map *map)
{
	__u8 key[64];

	if (bpf_map__key_size(map) > sizeof(key))
		abort();
	while (!bpf_map_get_next_key(bpf_map__fd(map), NULL, key))
		if (bpf_map_delete_elem(bpf_map__fd(map), key))
			abort();
}

static int take_no_notice(void *ctx, void *data, size_t len)
{
	(void)ctx, (void)data, (void)len;
	return 0;
}

static void drain(const struct bpf_map *map)
{
	struct ring_buffer *ring = ring_buffer__new(bpf_map__fd(map), take_no_notice, NULL, NULL);

	if (!ring || ring_buffer__consume(ring) < 0)
		abort();
	ring_buffer__free(ring);
}

static void clear(const struct bpf_map *map, int cpus)
{
	switch (bpf_map__type(map)) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		zero_elements(map, cpus);
		break;
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_DEVMAP_HASH:
		remove_keys(map);
		break;
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
	case BPF_MAP_TYPE_XSKMAP:
	case BPF_MAP_TYPE_SOCKMAP:
		remove_places(map);
		break;
	case BPF_MAP_TYPE_RINGBUF:
		drain(map);
		break;
	case BPF_MAP_TYPE_PROG_ARRAY:  /* fill() writes the stages, and captures clear what they have written */
		break;
	default:
		abort();
	}
}

static bool is_constant(const struct bpf_map *map)
{
	return bpf_map__is_internal(map) && bpf_map__map_flags(map) & BPF_F_RDONLY_PROG;
}

void kernel_anew(struct kernel *k)
{
	struct bpf_map *map;

	leave(k);
	bpf_object__for_each_map(map, k->skel->obj)
		if (!is_constant(map))
			clear(map, k->cpus);
	if (k->dry) {
		clear(k->dry->maps.hydns_scratch, k->cpus);
		hydns_scratch_prepare(bpf_map__fd(k->dry->maps.hydns_scratch), &k->geometry);
	}
	k->serial = 0;
	k->ifindex = 0;
	k->places = 0;
	if (fill(k))
		abort();
}

int kernel_map(const struct kernel *k, const char *name)
{
	return bpf_object__find_map_fd_by_name(k->skel->obj, name);
}

void kernel_sum(struct kernel *k, const char *map, __u32 key, unsigned words, __u64 *sum)
{
	memset(sum, 0, words * sizeof(*sum));
	hydns_percpu_sum(kernel_map(k, map), (__u32)k->cpus, key, words, sum);
}

void kernel_reasons(struct kernel *k, __u64 reasons[HYDNS_REASONS])
{
	for (__u32 r = 0; r < HYDNS_REASONS; r++)
		kernel_sum(k, "hydns_stats", r, 1, &reasons[r]);
}

void kernel_window(struct kernel *k, __u32 window)
{
	k->skel->bss->hydns_window_now = window;
}

void kernel_window_take(struct kernel *k, __u32 window, struct hydns_window *sum)
{
	hydns_window_take(kernel_map(k, "hydns_windows"), (__u32)k->cpus, window, sum);
}

struct hydns_guard_bucket *kernel_guard_cells(struct kernel *k)
{
	return k->map[MAP_GUARD].p;
}

void kernel_guard_labels(struct kernel *k, __u32 labels)
{
	k->skel->bss->hydns_guard_labels = labels;
}

void kernel_analyse(struct kernel *k, __u32 analysers)
{
	k->skel->bss->hydns_analysing = analysers;
}

void *kernel_analysis(struct kernel *k, enum hydns_analysis_map which)
{
	static struct hydns_suffix_set largest[HYDNS_HEAVY_SETS * 64];

	if (k->cpus > 64 || hydns_analysis_take(k->skel, (__u32)k->cpus, which, largest))
		return NULL;
	return largest;
}

unsigned kernel_cpus(const struct kernel *k)
{
	return (unsigned)k->cpus;
}

static int reason_counted(struct kernel *k)
{
	int reason = -1;

	kernel_reasons(k, k->after);
	for (int r = 0; r < HYDNS_REASONS; r++) {
		__u64 n = k->after[r] - k->before[r];

		if (!n)
			continue;
		if (n != 1 || reason >= 0)
			return -1;
		reason = r;
	}
	memcpy(k->before, k->after, sizeof(k->before));
	return reason;
}

int kernel_shoot(struct kernel *k, struct frame *f)
{
	static __u8 out[FRAME_MAX];
	struct xdp_md from = { .data_end = f->len, .ingress_ifindex = k->ifindex };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f->data, .data_size_in = f->len, .data_out = out,
		    .data_size_out = sizeof(out), .repeat = 1, .ctx_in = k->ifindex ? &from : NULL,
		    .ctx_size_in = k->ifindex ? sizeof(from) : 0);
	int err = bpf_prog_test_run_opts(bpf_program__fd(k->skel->progs.hydns_xdp), &opts);

	if (err)
		return err;
	memcpy(f->data, out, opts.data_size_out);
	f->len = opts.data_size_out;
	return opts.retval;
}

int kernel_run(struct kernel *k, struct frame *f, int *reason)
{
	int action;

	kernel_reasons(k, k->before);
	action = kernel_shoot(k, f);
	*reason = reason_counted(k);
	return action;
}

/* --- dry runs ------------------------------------------------------------------------------------------- */
static void give_up(const char *what, int err)
{
	fprintf(stderr, "dry run: %s (%s)\n", what, strerror(-err));
	abort();
}

/* Copies all memory that the program writes to; returns its octets. to NULL: only counts them. */
static size_t snapshot(struct kernel *k, __u8 *to)
{
	const struct { const struct bpf_map *map; __u32 entries; } per_cpu[] = {
		{ k->skel->maps.hydns_stats, HYDNS_REASONS }, { k->skel->maps.hydns_answers, HYDNS_RESOLVERS },
		{ k->skel->maps.hydns_scratch, 1 }, { k->skel->maps.hydns_windows, HYDNS_WINDOWS },
		{ k->skel->maps.hydns_gd_counts, HYDNS_RESOLVERS },
	};
	size_t at = 0;

	for (int i = 0; i < MAPS; i++) {
		if (to && k->map[i].p)
			memcpy(to + at, k->map[i].p, k->map[i].len);
		at += k->map[i].len;
	}
	for (unsigned i = 0; i < sizeof(per_cpu) / sizeof(*per_cpu); i++)
		for (__u32 key = 0; key < per_cpu[i].entries; key++) {
			if (to)
				bpf_map_lookup_elem(bpf_map__fd(per_cpu[i].map), &key, to + at);
			at += k->cpus * ((bpf_map__value_size(per_cpu[i].map) + 7) / 8 * 8);
		}
	return at;
}

struct hydns_outcome kernel_dry(struct kernel *k, const struct frame *f)
{
	size_t len = snapshot(k, NULL);
	__u8 *before = malloc(len), *after = malloc(len);
	struct hydns_outcome out;
	int err = !before || !after ? -ENOMEM : k->dry ? 0 : hydns_dry_open(k->skel, &k->geometry, &k->dry);

	if (err)
		give_up("not loaded", err);
	snapshot(k, before);
	err = hydns_dry_run(k->dry, f->data, f->len, k->ifindex, &out);
	snapshot(k, after);
	if (err || memcmp(before, after, len))
		give_up(err ? "the kernel refuses it" : "it has changed a map", err);
	free(before);
	free(after);
	return out;
}

unsigned kernel_dry_verified(const struct kernel *k)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(k->dry->progs.hydns_dry), &info, &len))
		return 0;
	printf("# verifier: hydns_dry: processed %u insns\n", info.verified_insns);
	return info.verified_insns;
}

/* --- time ------------------------------------------------------------------------------------------------ */
static __u64 run_time(struct kernel *k)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	bpf_obj_get_info_by_fd(bpf_program__fd(k->skel->progs.hydns_xdp), &info, &len);
	return info.run_time_ns;
}

__u32 kernel_time(struct kernel *k, const struct frame *f, unsigned runs)
{
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	__u64 begun = run_time(k);

	for (unsigned i = 0; i < runs; i++) {
		struct frame g = *f;

		kernel_shoot(k, &g);
	}
	begun = run_time(k) - begun;
	if (stats >= 0)
		close(stats);
	return begun / runs;
}

__u32 kernel_publish(struct kernel *k, const struct query *q, const struct answer *a, __u64 age_ns,
		     void (*edit)(struct hydns_rule *))
{
	__u8 name[HYDNS_NAME_MAX + 1];
	struct hydns_rule_parts p = { .name = name, .answer = a->data, .ttl = a->ttl };
	struct hydns_rule *r = &p.head;
	__u32 handle = 0, replaced;

	r->name_len = name_wire(q->name, name);
	for (unsigned i = 0; i < r->name_len; i++)
		if (name[i] >= 'A' && name[i] <= 'Z')
			name[i] += 'a' - 'A';
	r->base_ns = k->now_ns - age_ns;
	r->expire_ms = r->refresh_ms = LIFE_MS;
	r->epoch = EPOCH;
	r->reply_flags = htons(a->flags);
	r->ancount = a->count[ANSWER];
	r->nscount = a->count[AUTHORITY];
	r->arcount = a->count[ADDITIONAL];
	r->answer_len = a->len;
	r->answer_sum = hydns_answer_sum(a->data, a->len, a->ttl, a->ttls);
	r->variant = (q->want_do ? HYDNS_VARIANT_DO : 0) | (q->norec ? HYDNS_VARIANT_NO_RD : 0) | (a->pointer ? HYDNS_VARIANT_TEMPLATE : 0);
	r->resolver = RESOLVER;
	r->flags = (a->secure ? HYDNS_RULE_SECURE : 0) | (a->static_ttl ? HYDNS_RULE_STATIC_TTL : 0) |
		   (a->errors_len ? HYDNS_RULE_ERRORS : 0) | (a->account ? HYDNS_RULE_COUNTED : 0) |
		   (a->pointer ? HYDNS_RULE_TEMPLATE : 0);
	p.pointer = a->pointer;
	p.pointer_count = a->pointers;
	p.gap = a->gap;
	p.account = a->account;
	p.errors = a->errors;
	p.errors_len = a->errors_len;
	r->ttl_count = a->ttls;
	r->rotation_count = a->rotations;
	r->qtype = htons(q->qtype);
	memcpy(p.rotation, a->rotation, sizeof(p.rotation));
	r->place_count = k->places;
	memcpy(p.place, k->place, sizeof(p.place));
	if (edit)
		edit(r);
	return hydns_store_publish(k->store, &p, &handle, &replaced) ? 0 : handle;
}

void kernel_depends_on(struct kernel *k, const __u16 *place, unsigned count)
{
	k->places = count;
	for (unsigned i = 0; i < count; i++)
		k->place[i] = place[i];
}

void kernel_remove(struct kernel *k, __u32 handle)
{
	hydns_store_remove(k->store, handle);
	/* No program runs between two test runs, so the grace period is over. */
	hydns_store_grace_end(k->store, hydns_store_grace_begin(k->store));
}

__u32 kernel_rotation(struct kernel *k, __u32 handle)
{
	const struct hydns_rule *rule = hydns_store_rule(k->store, handle);
	const struct hydns_line *lines = k->map[MAP_HITS].p;
	__u32 o = hydns_store_ordinal(k->store, handle);

	if ((__s16)(rule->hits_end - rule->hits) > 0)
		return rule->hits;
	return lines[k->cpu * k->geometry.lines + o / HYDNS_LINE_WORDS].word[o % HYDNS_LINE_WORDS];
}

int kernel_share_hits(struct kernel *k, bool on)
{
	struct hydns_geometry g = k->geometry;

	g.own_hits = on ? 0 : g.cpus;
	g.lines = on ? 0 : g.lines;       /* 0: all rows begin with the same line */
	return hydns_scratch_prepare(bpf_map__fd(k->skel->maps.hydns_scratch), &g);
}

struct hydns_store *kernel_store(struct kernel *k)
{
	return k->store;
}

struct hydns_bucket *kernel_index(struct kernel *k)
{
	return k->map[MAP_INDEX].p;
}

const struct hydns_geometry *kernel_geometry(const struct kernel *k)
{
	return &k->geometry;
}

volatile struct hydns_resolver_page *kernel_page(struct kernel *k)
{
	return k->map[MAP_PAGE].p;
}

void kernel_beat(struct kernel *k)
{
	kernel_page(k)->heartbeat_ns = k->real_clock ? monotonic_ns() : NOW_NS;
}

int kernel_prog_fd(const struct kernel *k)
{
	return bpf_program__fd(k->skel->progs.hydns_xdp);
}

int kernel_attach(struct kernel *k, const char *device)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = XDP_FLAGS_DRV_MODE);

	return bpf_link_create(kernel_prog_fd(k), (int)if_nametoindex(device), BPF_XDP, &opts);
}

bool kernel_watch_sent(struct kernel *k)
{
	k->sent_fd = hydns_sent_attach(k->skel);
	return k->sent_fd >= 0;
}

void kernel_set_ingress(struct kernel *k, unsigned ifindex)
{
	k->ifindex = ifindex;
}

void kernel_allow_egress(struct kernel *k, unsigned ifindex, bool allow)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_out);

	if (allow)
		bpf_map_update_elem(fd, &ifindex, &ifindex, BPF_ANY);
	else
		bpf_map_delete_elem(fd, &ifindex);
}

void kernel_pause(struct kernel *k, bool on)
{
	hydns_switch_pause(bpf_map__fd(k->skel->maps.hydns_switch), on);
}

static void set_meta(struct kernel *k, bool empty, bool lanes)
{
	struct hydns_geometry g = k->geometry;
	__u32 key = 0;

	g.limits = k->map[MAP_BUDGETS].p != NULL;
	g.empty = empty;
	g.lanes = lanes;
	bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_meta), &key, &g, BPF_ANY);
}

void kernel_empty(struct kernel *k, bool on)
{
	set_meta(k, on, false);
}

void kernel_lanes(struct kernel *k, bool on)
{
	set_meta(k, true, on);
}

void kernel_upstream(struct kernel *k, __u32 first, __u32 ports)
{
	k->skel->bss->hydns_upstream = HYDNS_PORT_RANGE(first, ports);
}

void kernel_config(struct kernel *k, const struct hydns_resolver_config *c)
{
	const struct hydns_resolver_config usual = {
		.flags = HYDNS_RESOLVER_READY | HYDNS_RESOLVER_IGNORES_COOKIE,
		.edns_size = EDNS_SIZE,
		.max_udp = 4096,
		.acl_half = 1,
	};
	__u32 key = RESOLVER;

	bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_resolver), &key, c ? c : &usual, BPF_ANY);
}

void kernel_acl(struct kernel *k, const __u8 addr[16], unsigned prefixlen, int action)
{
	struct hydns_acl_key key = { .prefixlen = prefixlen };
	__u32 value = action;

	memcpy(key.addr, addr, 16);
	if (action < 0)
		bpf_map_delete_elem(k->acl_fd, &key);
	else
		bpf_map_update_elem(k->acl_fd, &key, &value, BPF_ANY);
}

void kernel_own(struct kernel *k, const __u8 addr[16], bool on)
{
	__u64 half[2], *word;
	__u32 bit;

	memcpy(half, addr, sizeof(half));
	bit = hydns_own_bit(half[0], half[1]);
	word = &k->skel->bss->hydns_own[bit / 64];
	*word = on ? *word | 1ULL << bit % 64 : *word & ~(1ULL << bit % 64);
}

void kernel_cookies(struct kernel *k, __u32 set, const struct hydns_cookies *c)
{
	__u32 key = HYDNS_COOKIES_INDEX(RESOLVER, set);

	bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_cookies), &key, c, BPF_ANY);
}

static struct hydns_budget_bucket *give_budgets(struct kernel *k, int outer)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);
	struct mapping *m = &k->map[MAP_BUDGETS];
	__u32 key = RESOLVER;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "test_budget", sizeof(key), sizeof(struct hydns_budget_bucket),
				HYDNS_BUDGET_BUCKETS, &o);

	m->len = HYDNS_BUDGET_BUCKETS * sizeof(struct hydns_budget_bucket);
	m->p = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m->p == MAP_FAILED || bpf_map_update_elem(outer, &key, &fd, BPF_ANY))
		abort();
	close(fd);
	return m->p;
}

/* New budgets, or none, for a resolver with this flag, or without it. */
static struct hydns_budget_bucket *account(struct kernel *k, __u16 flag, bool on)
{
	int configs = bpf_map__fd(k->skel->maps.hydns_resolver), outer = bpf_map__fd(k->skel->maps.hydns_budgets);
	struct hydns_resolver_config c;
	__u32 key = RESOLVER;

	if (k->map[MAP_BUDGETS].p)
		munmap(k->map[MAP_BUDGETS].p, k->map[MAP_BUDGETS].len);
	k->map[MAP_BUDGETS] = (struct mapping){ NULL, 0 };
	bpf_map_delete_elem(outer, &key);
	if (bpf_map_lookup_elem(configs, &key, &c))
		abort();
	c.flags = on ? c.flags | flag : c.flags & (__u16)~flag;
	for (unsigned i = 0; i < HYDNS_BUDGET_SEEDS; i++)
		kernel_page(k)->budget_seed[i] = k->geometry.seed[i % 2] + i;
	kernel_page(k)->wall_ns = (__s64)(WALL_S * HYDNS_NS_PER_S) - (k->real_clock ? 0 : (__s64)NOW_NS);
	kernel_config(k, &c);
	return on ? give_budgets(k, outer) : NULL;
}

static __u32 soa_element(void)
{
	return hydns_soa_element(HYDNS_NAMES_BUCKETS_LEAST - 1, HYDNS_LEAVES_MOST(HYDNS_NAMES_BUCKETS_LEAST), 0);
}

/* A set of the least size with the kernel's seed, open, an empty table of children, and room for one present SOA. */
static struct hydns_names_bucket *give_names(struct kernel *k)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	const __u32 elements = soa_element() + HYDNS_SOA_ELEMENTS, key = RESOLVER;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "test_names", sizeof(key), sizeof(struct hydns_names_bucket), elements, &o);
	struct hydns_names_head *head;

	if (map_memory(k, MAP_NAMES, fd, elements, sizeof(struct hydns_names_bucket)) ||
	    bpf_map_update_elem(kernel_map(k, "hydns_names"), &key, &fd, BPF_ANY))
		abort();
	close(fd);
	head = k->map[MAP_NAMES].p;
	*head = (struct hydns_names_head){ .seed = { 3, 5 }, .mask = HYDNS_NAMES_BUCKETS_LEAST - 1, .open = 1 };
	return k->map[MAP_NAMES].p;
}

struct hydns_names_bucket *kernel_names(struct kernel *k)
{
	return k->map[MAP_NAMES].p ? k->map[MAP_NAMES].p : give_names(k);
}

struct hydns_soa_now *kernel_soa(struct kernel *k, struct hydns_gap *gap)
{
	const __u32 element = soa_element();

	gap->element[0] = (__u16)element;
	gap->element[1] = (__u16)(element >> 16);
	return (struct hydns_soa_now *)(kernel_names(k) + element);
}

struct hydns_names_entry *kernel_name(struct kernel *k, const char *name, const char *template)
{
	struct hydns_names_bucket *b = kernel_names(k);
	const struct hydns_names_head *head = (void *)b;
	__u8 wire[HYDNS_NAME_MAX + 1];
	struct hydns_names_hash h = hydns_names_hash(wire, name_wire(name, wire), head->seed);

	b += hydns_names_bucket(h.tag, head->mask, 0);
	for (unsigned i = 0; i < HYDNS_NAMES_ENTRIES; i++)
		if (!b->entry[i].tag || b->entry[i].tag == h.tag) {
			b->entry[i].what = HYDNS_NAMES_WHAT(h.check, template ? name_wire(template, wire) : 0);
			b->entry[i].tag = h.tag;
			return &b->entry[i];
		}
	abort();
}

static void put_child(struct kernel *k, struct hydns_child c)
{
	struct hydns_names_head *head = (void *)kernel_names(k);
	struct hydns_leaf *leaf = (void *)(kernel_names(k) + hydns_leaf_element(head->mask, 0));

	for (__u32 i = 0; i <= head->leaves; i++) {
		if (i == head->leaves)
			memset(&leaf[head->leaves++], 0xff, sizeof(*leaf));
		for (unsigned n = 0; n < HYDNS_LEAF_CHILDREN; n++) {
			const struct hydns_child next = leaf[i].child[n];

			if (!hydns_child_is_behind(&next, &c))
				continue;
			leaf[i].child[n] = c;
			c = next;
			if (c.parent == UINT64_MAX)
				return;
		}
	}
}

void kernel_child(struct kernel *k, const char *name)
{
	const struct hydns_names_head *head = (void *)kernel_names(k);
	__u8 wire[HYDNS_NAME_MAX + 1];
	const __u32 len = name_wire(name, wire), label = 1 + wire[0];

	put_child(k, hydns_child_of(hydns_names_hash(wire + label, len - label, head->seed).tag, wire));
}

void kernel_hash(struct kernel *k, const char *origin, const __u8 hash[HYDNS_SHA1_OCTETS])
{
	const struct hydns_names_head *head = (void *)kernel_names(k);
	__u8 wire[HYDNS_NAME_MAX + 1];
	const __u32 len = name_wire(origin, wire);

	put_child(k, hydns_child_of_hash(hydns_names_hash(wire, len, head->seed).tag, hash));
}

void kernel_no_children(struct kernel *k)
{
	((struct hydns_names_head *)kernel_names(k))->leaves = 0;
}

struct hydns_budget_bucket *kernel_limit(struct kernel *k, const struct hydns_limits *l)
{
	if (l)
		memcpy((void *)&kernel_page(k)->limits, l, sizeof(*l));
	return account(k, HYDNS_RESOLVER_LIMITS, l != NULL);
}

struct hydns_rate_bucket *kernel_rate(struct kernel *k, const struct hydns_rates *r)
{
	if (r)
		memcpy((void *)&kernel_page(k)->rates, r, sizeof(*r));
	return (struct hydns_rate_bucket *)account(k, HYDNS_RESOLVER_RATES, r != NULL);
}

void kernel_log_rated(struct hydns_rate_bucket *buckets, __u32 second)
{
	for (__u32 i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		for (unsigned j = 0; j < HYDNS_RATE_CELLS; j++)
			if (buckets[i].cell[j].tag)
				buckets[i].cell[j].logged = second;
}

void kernel_counts(struct kernel *k, struct hydns_resolver_count *sum)
{
	kernel_sum(k, "hydns_answers", RESOLVER, sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}
