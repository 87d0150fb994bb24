/* SPDX-License-Identifier: GPL-2.0-only */
/* Good queries beside a flood: how many are answered and when, and what the flood gets. */
#define _GNU_SOURCE
#include "test-harness/bench/kernel/measure.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/udp.h>
#include <net/if.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "test-harness/bench/kernel/beside.h"
#include "beside.skel.h"

#define BATCH   32            /* frames, due or not, that leave together */
#define POLL_US 1000
#define LINE    2048

struct beside {
	struct beside_bpf *skel;
	const struct options *o;
	pthread_t sender;
	atomic_bool over;         /* no more queries are to be sent, */
	atomic_bool ended;        /* and none are */
	__u64 from_ns, to_ns;     /* when it counted */
};

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void sleep_seconds(double s)
{
	struct timespec t = { .tv_sec = (time_t)s, .tv_nsec = (long)((s - (time_t)s) * 1e9) };

	nanosleep(&t, NULL);
}

/* -- frames ---------------------------------------------------------------------------------------------------- */
static bool read_hex(const char *hex, struct beside_template *t)
{
	size_t len = strlen(hex) / 2;

	if (len < 14 || len > PACE_FRAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &t->frame[i]) != 1)
			return false;
	t->len = len;
	return true;
}

/* Takes what is at an offset of the frame, if it has one. */
static bool take(const struct beside_template *t, unsigned at, void *out, size_t size)
{
	if (at + size > t->len)
		return false;
	if (at)
		memcpy(out, t->frame + at, size);
	return true;
}

/* Reads "good|flood LABEL-AT ID-AT SOURCE-AT IP-CHECK-AT UDP-CHECK-AT SOURCES STRIDE HEX". */
static bool read_frame(const char *line, bool *good, struct beside_template *t)
{
	char kind[8], hex[2 * PACE_FRAME_MAX + 2];
	__be32 source = 0;

	memset(t, 0, sizeof(*t));
	if (sscanf(line, "%7s %hu %hu %hu %hu %hu %u %u %1025s", kind, &t->label_at, &t->id_at, &t->source_at, &t->ip_check_at,
		   &t->udp_check_at, &t->sources, &t->stride, hex) != 9 || !read_hex(hex, t) ||
	    !take(t, t->source_at, &source, sizeof(source)) || !take(t, t->ip_check_at, &t->ip_check, sizeof(t->ip_check)) ||
	    !take(t, t->udp_check_at, &t->udp_check, sizeof(t->udp_check)))
		return false;
	t->source = ntohl(source);
	*good = !strcmp(kind, "good");
	return true;
}

static int read_frames(struct beside *b)
{
	struct beside_stream *streams = b->skel->bss->beside_streams;
	FILE *f = fopen(b->o->frames, "r");
	struct beside_template t;
	char line[LINE];
	__u32 count = 0;
	bool good;

	if (!f)
		return bench_fail(b->o->frames, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		struct beside_stream *s;

		if (!read_frame(line, &good, &t) || bpf_map_update_elem(bpf_map__fd(b->skel->maps.beside_frames), &count, &t, BPF_ANY)) {
			fclose(f);
			return bench_fail(b->o->frames, "a line is no frame, or there are too many");
		}
		s = &streams[good ? BESIDE_GOOD : BESIDE_FLOOD];
		if (!s->templates++)
			s->first = count;
		count++;
	}
	fclose(f);
	return streams[BESIDE_GOOD].templates ? 0 : bench_fail(b->o->frames, "it has no good query");
}

/* Source port of the good queries in a file of frames, network order; 0: none. */
static __be16 good_port(const char *path)
{
	FILE *f = fopen(path, "r");
	struct beside_template t;
	char line[LINE];
	__be16 port = 0;
	bool good;

	while (f && !port && fgets(line, sizeof(line), f))
		if (read_frame(line, &good, &t) && good)
			memcpy(&port, t.frame + t.udp_check_at - offsetof(struct udphdr, check), sizeof(port));
	if (f)
		fclose(f);
	return port;
}

/* -- one run ----------------------------------------------------------------------------------------------------- */
static void set_streams(struct beside *b)
{
	struct beside_stream *good = &b->skel->bss->beside_streams[BESIDE_GOOD], *flood = &b->skel->bss->beside_streams[BESIDE_FLOOD];

	good->gap_ns = (__u64)(1e9 / b->o->good_rate);
	good->names = flood->names = b->o->first;
	good->hot = b->o->hot;
	good->new_every = b->o->new_every;
	flood->gap_ns = b->o->rate > 0 && flood->templates ? (__u64)(1e9 / b->o->rate) : 0;
	flood->new_every = 1;
}

static int load(struct beside *b)
{
	b->skel = beside_bpf__open();
	if (!b->skel)
		return bench_fail("the load generator", strerror(errno));
	b->skel->rodata->beside_port = htons(b->o->q.port);
	b->skel->rodata->beside_good_port = good_port(b->o->frames);
	b->skel->rodata->beside_kernel_hops = b->o->kernel_hops;
	if (beside_bpf__load(b->skel))
		return bench_fail("the load generator could not be loaded", strerror(errno));
	if (read_frames(b))
		return 1;
	set_streams(b);
	return bench_attach(bpf_program__fd(b->skel->progs.beside_sink), b->o->client, "attaching to the client's end") < 0;
}

static void interrupt(int signal)
{
	(void)signal;
}

/* Counts while it says so, and then ends the test run. With normal priority: the generator may have SCHED_IDLE. */
static void *watch(void *arg)
{
	struct beside *b = arg;

	pthread_setschedparam(pthread_self(), SCHED_OTHER, &(struct sched_param){ 0 });
	sleep_seconds(b->o->settle);
	b->from_ns = now_ns();
	b->skel->bss->beside_counts = true;
	puts("{\"counts\": true}");
	fflush(stdout);
	sleep_seconds(b->o->seconds);
	b->skel->bss->beside_counts = false;
	b->to_ns = now_ns();
	puts("{\"counts\": false}");
	fflush(stdout);
	b->over = true;
	/* again and again: the test run may not have begun yet */
	for (; !b->ended; usleep(POLL_US))
		pthread_kill(b->sender, SIGUSR1);
	return NULL;
}

static int send_all(struct beside *b)
{
	static __u8 in[PACE_FRAME_MAX + 1];      /* longer than any frame, so that the program always changes the length: see generator.c */
	struct xdp_md from = { .data_end = sizeof(in), .ingress_ifindex = if_nametoindex(b->o->client) };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in, .data_size_in = sizeof(in), .ctx_in = &from, .ctx_size_in = sizeof(from),
		    .repeat = 1U << 30, .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);
	struct sigaction on_signal = { .sa_handler = interrupt };
	pthread_t watcher;
	int err;

	b->sender = pthread_self();
	sigaction(SIGUSR1, &on_signal, NULL);
	err = -pthread_create(&watcher, NULL, watch, b);
	while (!err && !b->over) {
		err = bpf_prog_test_run_opts(bpf_program__fd(b->skel->progs.beside_generate), &opts);
		err = err == -EINTR ? 0 : err;
	}
	b->ended = true;
	pthread_join(watcher, NULL);
	return err ? bench_fail("sending", strerror(-err)) : 0;
}

/* -- what came of it --------------------------------------------------------------------------------------------- */
static const struct beside_good *good_queries(struct beside *b)
{
	void *at = mmap(NULL, BESIDE_GOOD_MAX * sizeof(struct beside_good), PROT_READ, MAP_SHARED,
			bpf_map__fd(b->skel->maps.beside_queries), 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool all_replied(const volatile struct beside_good *q, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		if (!q[i].replied_ns)
			return false;
	return true;
}

/* Writes "SENT-NS LATENCY-NS ANSWERED BY-KERNEL" of each good query sent while it counted; a latency of -1: no reply. */
static int write_queries(const struct beside *b, const struct beside_good *q, __u32 n)
{
	FILE *f = fopen(b->o->replies, "w");

	if (!f)
		return bench_fail(b->o->replies, strerror(errno));
	for (__u32 i = 0; i < n; i++)
		if (q[i].sent_ns >= b->from_ns && q[i].sent_ns < b->to_ns)
			fprintf(f, "%llu %lld %u %u\n", (unsigned long long)q[i].sent_ns,
				q[i].replied_ns ? (long long)(q[i].replied_ns - q[i].sent_ns) : -1LL, q[i].answered,
				q[i].replied_ns && q[i].hops == b->o->kernel_hops);
	return fclose(f) ? bench_fail(b->o->replies, strerror(errno)) : 0;
}

static void print_tally(const struct beside *b)
{
	const struct beside_tally *t = &b->skel->bss->beside_tally;
	const struct beside_stream *s = b->skel->bss->beside_streams;

	printf("{\"seconds\": %.6f, \"sent_in_all\": %u, \"flood_sent\": %llu, \"flood_replies\": %llu, \"flood_octets\": %llu, "
	       "\"flood_truncated\": %llu, \"flood_by_kernel\": %llu}\n", (b->to_ns - b->from_ns) / 1e9,
	       s[BESIDE_GOOD].sent + s[BESIDE_FLOOD].sent, (unsigned long long)t->flood_sent, (unsigned long long)t->flood_replies,
	       (unsigned long long)t->flood_octets, (unsigned long long)t->flood_truncated,
	       (unsigned long long)t->flood_by_kernel);
}

static const char *wrong(const struct options *o)
{
	if (!o->frames || !o->replies)
		return "--frames or --replies is missing";
	if (o->good_rate <= 0 || o->good_rate * (o->settle + o->seconds) >= BESIDE_GOOD_MAX)
		return "--good-rate: more than 0, and less than 65536 queries in all";
	return NULL;
}

int bench_beside(const struct options *o)
{
	struct beside b = { .o = o };
	const struct beside_good *q;
	__u64 end;
	__u32 n;

	if (wrong(o))
		return bench_fail("options", wrong(o));
	if (load(&b) || send_all(&b))
		return 1;
	n = b.skel->bss->beside_streams[BESIDE_GOOD].sent;
	n = n < BESIDE_GOOD_MAX ? n : BESIDE_GOOD_MAX;
	q = good_queries(&b);
	if (!q)
		return bench_fail("the good queries", strerror(errno));
	for (end = b.to_ns + (__u64)(o->patience * 1e9); now_ns() < end && !all_replied(q, n); )
		usleep(POLL_US);
	print_tally(&b);
	return write_queries(&b, q, n);
}
