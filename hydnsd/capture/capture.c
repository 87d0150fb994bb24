/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsctl capture: writes what the program does with packets to a file. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hydns-kern/capture/capture.h"
#include "hydnsd/capture/comment.h"
#include "hydnsd/capture/options.h"
#include "hydnsd/capture/pcapng.h"

#define WAIT_MS    20
#define FOLLOW_MS  500                 /* how often programs are looked for */
#define LINKS      64                  /* interfaces in a file */
#define STATISTICS (LINKS * 64ULL)     /* room that the end of a file may take */

struct link {
	unsigned ifindex;
	char name[IF_NAMESIZE + 16];
	uint64_t packets;
};

struct session {
	const struct ctl *ctl;
	struct hydns_capture_filter filter;
	struct capture_bounds bounds;
	struct pcapng file;
	struct link link[LINKS];
	unsigned links;
	uint64_t captured;             /* packets, a reply not counted */
	uint64_t wall_ns;              /* to add to monotonic times */
	const char *end;               /* why it ends; NULL: not yet */
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * HYDNS_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* -- interfaces ------------------------------------------------------------------------------------------------ */
static void on_link(const char *ifname, unsigned ifindex, void *arg)
{
	struct link *l = arg;

	if (ifindex == l->ifindex)
		snprintf(l->name, sizeof(l->name), "%s", ifname);
}

/* Number of the interface in the file. The pins know names in hydnsd's network namespace. */
static unsigned link_of(struct session *s, unsigned ifindex)
{
	struct link *l;

	for (unsigned i = 0; i < s->links; i++)
		if (s->link[i].ifindex == ifindex)
			return i;
	if (s->links == LINKS)
		return LINKS - 1;
	l = &s->link[s->links];
	*l = (struct link){.ifindex = ifindex};
	ctl_pins_links(s->ctl, on_link, l);
	if (!l->name[0] && !if_indextoname(ifindex, l->name))
		snprintf(l->name, sizeof(l->name), "interface %u", ifindex);
	pcapng_interface(&s->file, l->name, s->filter.most);
	return s->links++;
}

/* -- packets --------------------------------------------------------------------------------------------------- */
static struct pcapng_packet packet_of(struct session *s, const struct hydns_captured *c, const uint8_t *octets, const char *comment,
				      enum hydns_capture_way way)
{
	return (struct pcapng_packet){
		.interface = link_of(s, c->ifindex[way]), .at_ns = c->at_ns[way] + s->wall_ns,
		.octets = octets + (way == HYDNS_CAPTURE_OUT ? c->octets[HYDNS_CAPTURE_IN] : 0), .len = c->octets[way],
		.whole = c->whole[way], .direction = way == HYDNS_CAPTURE_OUT ? PCAPNG_OUTBOUND : PCAPNG_INBOUND, .comment = comment,
	};
}

/* Query and reply, or neither. */
static void on_packet(const struct hydns_captured *c, const __u8 *octets, void *arg)
{
	struct session *s = arg;
	struct pcapng_packet packet[HYDNS_CAPTURE_WAYS];
	unsigned n = c->octets[HYDNS_CAPTURE_OUT] ? 2 : 1;
	char comment[PCAPNG_COMMENT];
	uint64_t size = 0;

	if (s->end)
		return;
	capture_comment(c, octets, comment, sizeof(comment));
	for (unsigned i = 0; i < n; i++) {
		packet[i] = packet_of(s, c, octets, comment, i);
		size += pcapng_packet_size(&packet[i]);
	}
	if (s->file.written + size + STATISTICS > s->bounds.octets) {
		s->end = "the file has the size that --size allows";
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		pcapng_packet(&s->file, &packet[i]);
		s->link[packet[i].interface].packets++;
	}
	if (++s->captured == s->bounds.packets)
		s->end = "the packets of --count are there";
}

/* -- the file -------------------------------------------------------------------------------------------------- */
/* Others may not read what clients ask. */
static FILE *open_file(const char *path)
{
	int fd = strcmp(path, "-") ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : dup(STDOUT_FILENO);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f)
		ctl_error("can't write %s: %s", path, strerror(errno));
	if (!f && fd >= 0)
		close(fd);
	return f;
}

static bool flush(struct session *s, const char *path)
{
	if (!fflush(s->file.out) && !s->file.failed)
		return true;
	ctl_error("can't write %s: %s", path, strerror(errno));
	return false;
}

static void end_file(struct session *s, const struct hydns_capture *c)
{
	for (unsigned i = 0; i < s->links; i++)
		pcapng_statistics(&s->file, i, clock_ns(CLOCK_REALTIME), s->link[i].packets, hydns_capture_lost(c, s->link[i].ifindex));
}

/* -- capturing ------------------------------------------------------------------------------------------------- */
static int open_map(const char *name, void *arg)
{
	return ctl_pins_open(arg, name);
}

/* Looks for programs; false: there are none, or they can't be watched. */
static bool follow(struct hydns_capture *c, bool first)
{
	char why[HYDNS_CAPTURE_WHY];
	int n = hydns_capture_follow(c, why);

	if (n > 0 || (n == 0 && !first))
		return true;
	if (n == 0)
		ctl_error("no program that can capture is attached: hydnsctl status says what is; with libxdp's dispatcher, xdpdump captures");
	else if (n != -ENOENT || first)
		ctl_error("%s", why);
	return n == -ENOENT && !first;         /* hydnsd may make its maps anew */
}

static bool read_some(struct session *s, struct hydns_capture *c, int timeout_ms, const char *path)
{
	int err;

	s->wall_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	err = hydns_capture_read(c, timeout_ms);
	if (err)
		ctl_error("can't read what is captured: %s", strerror(-err));
	return !err && flush(s, path);
}

static bool capture_until_end(struct session *s, struct hydns_capture *c, const char *path)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), now = begin, looked = begin;
	bool ok = true;

	while (ok && !stopped && !s->end) {
		ok = read_some(s, c, WAIT_MS, path);
		now = clock_ns(CLOCK_MONOTONIC);
		if (s->bounds.seconds && now - begin >= s->bounds.seconds * HYDNS_NS_PER_S)
			s->end = "the time of --seconds is over";
		if (ok && now - looked >= FOLLOW_MS * HYDNS_NS_PER_MS) {
			ok = follow(c, false);
			looked = now;
		}
	}
	hydns_capture_stop(c);
	return ok && read_some(s, c, 0, path);
}

static void handle_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void summarize(const struct session *s, const struct hydns_capture *c)
{
	fprintf(stderr, "%" PRIu64 " packets captured, %" PRIu64 " lost for want of room%s%s\n", s->captured,
		(uint64_t)hydns_capture_lost(c, 0), s->end ? "; " : "", s->end ? s->end : "");
}

static int capture(struct session *s, const char *path)
{
	const struct hydns_capture_options o = {.filter = s->filter, .fn = on_packet, .arg = s, .open_map = open_map,
						.map_arg = (void *)(uintptr_t)s->ctl};
	char why[HYDNS_CAPTURE_WHY];
	struct hydns_capture *c;
	FILE *out;
	bool ok;

	if (hydns_capture_open(&o, &c, why)) {
		ctl_error("%s", why);
		return CTL_ERROR;
	}
	out = follow(c, true) ? open_file(path) : NULL;
	if (!out) {
		hydns_capture_close(c);
		return CTL_ERROR;
	}
	handle_signals();
	pcapng_begin(&s->file, out, "hydnsctl " PACKAGE_VERSION_TEXT);
	ok = capture_until_end(s, c, path);
	end_file(s, c);
	if (ok)
		ok = flush(s, path);
	fclose(out);
	if (ok)
		summarize(s, c);
	hydns_capture_close(c);
	return ok ? CTL_OK : CTL_ERROR;
}

int ctl_cmd_capture(const struct ctl *c, int argc, char **argv)
{
	struct session *s = calloc(1, sizeof(*s));
	char why[CTL_WHY];
	bool paused;
	int rc = CTL_ERROR;

	(void)argc;
	if (!s)
		return CTL_ERROR;
	s->ctl = c;
	if (!capture_options(c, &s->filter, &s->bounds))
		rc = CTL_USAGE;
	else if (ctl_pins_paused(c, &paused, why))
		ctl_error("%s", why);
	else
		rc = capture(s, argv[0]);
	free(s);
	return rc;
}
