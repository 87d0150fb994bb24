/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/tests/peer.h"
#include "hydns/names.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FDS_MAX (HYDNS_THREADS_MAX + 1)

struct message {
	struct hydns_msg head;
	uint8_t payload[HYDNS_MSG_MAX];
	int fd[FDS_MAX];
	unsigned fds;
};

/* cmocka's assertions work in the test's own thread only. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "test peer: %s: %s\n", what, strerror(errno));
	abort();
}

void peer_nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static ssize_t take(int sock, struct message *m)
{
	union { struct cmsghdr align; char space[CMSG_SPACE(FDS_MAX * sizeof(int))]; } control;
	struct iovec part[2] = { { &m->head, sizeof(m->head) }, { m->payload, sizeof(m->payload) } };
	struct msghdr h = { .msg_iov = part, .msg_iovlen = 2, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);

	m->fds = 0;
	if (n > 0 && CMSG_FIRSTHDR(&h)) {
		m->fds = (unsigned)((CMSG_FIRSTHDR(&h)->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(m->fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), m->fds * sizeof(int));
	}
	return n;
}

static void reply(int sock, const struct message *to, uint32_t type, const void *payload, uint32_t len,
		  const int *fd, unsigned fds)
{
	struct hydns_msg head = { .type = type, .seq = to->head.seq, .len = len };
	union { struct cmsghdr align; char space[CMSG_SPACE(FDS_MAX * sizeof(int))]; } control;
	struct iovec part[2] = { { &head, sizeof(head) }, { (void *)(uintptr_t)payload, len } };
	struct msghdr h = { .msg_iov = part, .msg_iovlen = 2 };

	if (fds) {
		memset(&control, 0, sizeof(control));
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		CMSG_FIRSTHDR(&h)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&h)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&h)->cmsg_len = CMSG_LEN(fds * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fd, fds * sizeof(int));
	}
	if (sendmsg(sock, &h, MSG_NOSIGNAL) < 0)   /* the library may have closed the connection */
		return;
}

static void *map(int fd, size_t size)
{
	void *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(m != MAP_FAILED, "mmap");
	return m;
}

static void new_page(struct peer *p)
{
	struct stat st;

	if (p->page_fd >= 0)
		close(p->page_fd);
	p->page_fd = memfd_create("page", MFD_CLOEXEC);
	must(p->page_fd >= 0 && ftruncate(p->page_fd, HYDNS_PAGE_OCTETS) == 0, "page");
	must(fstat(p->page_fd, &st) == 0, "fstat");
	p->page_inode = st.st_ino;
	if (p->old_page)
		munmap(p->old_page, HYDNS_PAGE_OCTETS);
	p->old_page = p->page;
	p->page = map(p->page_fd, HYDNS_PAGE_OCTETS);
	p->first_epoch += 1U << 16;
}

static bool knows(struct peer *p, int fd)
{
	struct stat st;

	return !atomic_load(&p->forgetful) && p->page && fstat(fd, &st) == 0 && st.st_ino == p->page_inode;
}

/* The same resolver, with another configuration. */
static void reset(struct peer *p, int sock, struct message *m)
{
	memcpy(&p->hello, m->payload, sizeof(p->hello));
	p->acl_entries = p->services = 0;
	if (atomic_load(&p->behaviour) != PEER_SILENT)
		reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
	atomic_fetch_add(&p->resets, 1);
}

static void refuse_version(struct peer *p, int sock, const struct message *m)
{
	static const char why[] = "speaks ABI 1: restart the resolver";
	const struct { struct hydns_msg head; char why[sizeof(why) - 1]; } refusal __attribute__((aligned(4))) = {
		.head = { .type = HYDNS_MSG_REFUSED, .seq = m->head.seq, .len = sizeof(why) - 1, .abi = HYDNS_ABI_VERSION + 1 },
		.why = "speaks ABI 1: restart the resolver",
	};

	must(send(sock, &refusal, sizeof(refusal.head) + refusal.head.len, MSG_NOSIGNAL) > 0, "send");
	atomic_fetch_add(&p->hellos, 1);
}

static void hello(struct peer *p, int sock, struct message *m)
{
	struct hydns_welcome w = { .resolver = 0 };
	int fd[2];

	if (atomic_load(&p->behaviour) == PEER_OTHER_ABI) {
		refuse_version(p, sock, m);
		return;
	}
	memcpy(&p->hello, m->payload, sizeof(p->hello));
	atomic_store(&p->byes_before, atomic_load(&p->byes));
	for (unsigned i = 0; i < p->rings; i++)
		munmap(p->ring[i], HYDNS_RING_SIZE);
	p->rings = p->hello.threads;
	for (unsigned i = 0; i < p->rings; i++)
		p->ring[i] = map(m->fd[i], HYDNS_RING_SIZE);
	w.adopted = m->fds > p->rings && knows(p, m->fd[p->rings]);
	if (!w.adopted)
		new_page(p);
	w.epoch = p->first_epoch;
	p->acl_entries = p->services = 0;
	fd[0] = p->doorbell;
	fd[1] = p->page_fd;
	reply(sock, m, HYDNS_MSG_WELCOME, &w, sizeof(w), fd, w.adopted ? 1 : 2);
	atomic_fetch_add(&p->hellos, 1);
}

/* True: a reply was sent, or none is due. */
static bool is_occupied(struct peer *p, int sock, struct message *m, in_port_t port)
{
	static const char why[] = "another resolver has this address";

	if (atomic_load(&p->behaviour) != PEER_OCCUPIED || (p->refused_port && p->refused_port != port))
		return false;
	if (p->refused_port)
		atomic_fetch_add(&p->retries, 1);
	else
		reply(sock, m, HYDNS_MSG_REFUSED, why, sizeof(why) - 1, NULL, 0);
	p->refused_port = port;
	return true;
}

static void service(struct peer *p, int sock, struct message *m)
{
	struct sockaddr_in6 a;
	socklen_t len = sizeof(a);

	must(getsockname(m->fd[0], (struct sockaddr *)&a, &len) == 0, "getsockname");
	if (is_occupied(p, sock, m, a.sin6_port))
		return;
	must(p->services < PEER_SERVICES_MAX, "too many services");
	memcpy(p->service[p->services].addr, &a.sin6_addr, 16);
	p->service[p->services++].port = a.sin6_port;
	reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
}

static void counts(struct peer *p, int sock, struct message *m)
{
	const struct hydns_counts c = { .answered = atomic_load(&p->answered), .ipv6 = 7, .rules = 3 };

	reply(sock, m, HYDNS_MSG_COUNTS, &c, sizeof(c), NULL, 0);
}

static void note(struct peer *p, struct message *m)
{
	const struct hydns_note *n = (const struct hydns_note *)m->payload;
	char *to;

	must(m->head.len >= sizeof(*n) && n->kind < HYDNS_NOTES, "a note");
	to = p->note[n->kind];
	pthread_mutex_lock(&p->note_lock);
	if (n->anew)
		to[0] = '\0';
	if (m->head.len > sizeof(*n))
		snprintf(to + strlen(to), PEER_NOTE_MAX - strlen(to), "%.*s ", (int)(m->head.len - sizeof(*n)), n->text);
	pthread_mutex_unlock(&p->note_lock);
	atomic_fetch_add(&p->notes, 1);
}

const char *peer_note(struct peer *p, enum hydns_note_kind kind)
{
	static char copy[PEER_NOTE_MAX];

	pthread_mutex_lock(&p->note_lock);
	memcpy(copy, p->note[kind], sizeof(copy));
	pthread_mutex_unlock(&p->note_lock);
	return copy;
}

static void record_names(struct peer *p, const struct message *m)
{
	memcpy(p->last_names, m->payload, m->head.len);
	p->last_names_len = m->head.len;
	atomic_fetch_add(&p->names_withdrawn, (int)((const struct hydns_withdraw_names *)p->last_names)->count);
	atomic_fetch_add(&p->names_withdrawals, 1);
}

static void preload(struct peer *p, int sock, struct message *m)
{
	struct { struct hydns_preloaded head; uint8_t lost[sizeof(p->lost)]; } r = { .head = { 0 } };
	size_t lost = 0;

	if (atomic_load(&p->preload_news)) {
		r.head = p->preloaded;
		lost = p->lost_len;
		memcpy(r.lost, p->lost, lost);
		atomic_store(&p->preload_news, false);
	}
	r.head.names = atomic_load(&p->has_set);
	r.head.full = atomic_load(&p->preload_full);
	r.head.refused += r.head.full;
	reply(sock, m, HYDNS_MSG_PRELOADED, &r, sizeof(r.head) + lost, NULL, 0);
	atomic_fetch_add(&p->preloads, 1);
}

/* A set of names is memory, too. */
static void name_set(struct peer *p, int sock, struct message *m)
{
	const struct hydns_names_request *q = (const struct hydns_names_request *)m->payload;
	int fd = memfd_create("names", MFD_CLOEXEC);

	if (atomic_load(&p->refuses_sets) || fd < 0 || ftruncate(fd, hydns_soa_element(q->buckets - 1, q->leaves, q->zones) * (off_t)HYDNS_SOA_ELEMENT)) {
		reply(sock, m, HYDNS_MSG_REFUSED, "no set", 6, NULL, 0);
	} else {
		atomic_store(&p->has_set, true);
		reply(sock, m, HYDNS_MSG_NAME_SET, NULL, 0, &fd, 1);
	}
	if (p->set > 0)
		close(p->set);
	p->set = fd;
	atomic_fetch_add(&p->sets, 1);
}

/* False: close the connection. */
static bool withdraw(struct peer *p, int sock, struct message *m)
{
	if (m->head.type == HYDNS_MSG_WITHDRAW_NAMES) {
		record_names(p, m);
	} else {
		memcpy(&p->last_withdrawal, m->payload, sizeof(p->last_withdrawal));
		atomic_fetch_add(&p->withdrawals, 1);
	}
	if (atomic_load(&p->behaviour) == PEER_DYING)
		return false;
	m->head.seq += atomic_load(&p->behaviour) == PEER_MUDDLED;
	if (atomic_load(&p->behaviour) != PEER_SILENT)
		reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
	return true;
}

static bool emptied(struct peer *p)
{
	for (unsigned i = 0; i < p->rings; i++)
		if (__atomic_load_n(&p->ring[i]->tail, __ATOMIC_ACQUIRE) !=
		    __atomic_load_n(&p->ring[i]->head, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static bool catch_up(struct peer *p, int sock, struct message *m)
{
	struct pollfd f = { p->wake, POLLIN, 0 };

	atomic_fetch_add(&p->catch_ups, 1);
	while (!emptied(p))
		if (poll(&f, 1, 1) > 0)
			return false;          /* it is being stopped */
	reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
	return true;
}

static void cookies(struct peer *p, int sock, struct message *m)
{
	must(m->head.len == sizeof(p->cookies), "length of COOKIES");
	memcpy(&p->cookies, m->payload, sizeof(p->cookies));
	atomic_fetch_add(&p->secrets, 1);
	if (atomic_load(&p->behaviour) != PEER_SILENT)
		reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
}

static void forwards(struct peer *p, int sock, struct message *m)
{
	static const char why[] = "no port is reserved";
	const size_t servers_at = sizeof(p->forward);
	struct hydns_forwards *f = &p->forward;
	size_t zones_at;

	memcpy(f, m->payload, sizeof(*f));
	if (f->flags & HYDNS_FORWARDS_FIRST)
		p->forward_servers = p->forward_zones = 0;
	zones_at = servers_at + f->upstreams * sizeof(p->forward_server[0]);
	must(m->head.len == zones_at + f->zones * sizeof(p->forward_zone[0]), "length of FORWARDS");
	must(p->forward_servers + f->upstreams <= HYDNS_FORWARD_UPSTREAMS && p->forward_zones + f->zones <= HYDNS_FORWARD_ZONES,
	     "too many zones");
	memcpy(p->forward_server + p->forward_servers, (const uint8_t *)m->payload + servers_at, zones_at - servers_at);
	memcpy(p->forward_zone + p->forward_zones, (const uint8_t *)m->payload + zones_at, m->head.len - zones_at);
	p->forward_servers += f->upstreams;
	p->forward_zones += f->zones;
	atomic_fetch_add(&p->forwards, 1);
	if (atomic_load(&p->refuses_forwards))
		reply(sock, m, HYDNS_MSG_REFUSED, why, sizeof(why) - 1, NULL, 0);
	else if (atomic_load(&p->behaviour) != PEER_SILENT)
		reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
}

static void ready(struct peer *p, int sock, struct message *m)
{
	static const char why[] = "no room for another resolver: raise the limit";

	if (atomic_load(&p->behaviour) == PEER_REFUSING) {
		reply(sock, m, HYDNS_MSG_REFUSED, why, sizeof(why) - 1, NULL, 0);
		return;
	}
	atomic_fetch_add(&p->ready, 1);
	reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
}

/* Ports for queries to upstream, or an interface. */
static void plan(struct peer *p, int sock, struct message *m)
{
	const struct hydns_queue_plan upstream = { .parts = HYDNS_QUEUE_UPSTREAM, .first_port = PEER_PORT, .ports = PEER_PORTS };
	const struct hydns_queue_plan clients = { .parts = HYDNS_QUEUE_CLIENTS, .count = 1, .device = {
		{ .ifindex = p->lane_at, .mtu = 1500, .rx_queues = 1, .tx_queues = 1, .hops = { 64, 64 } } } };
	const int fd[2] = { eventfd(0, EFD_CLOEXEC), memfd_create("ports", MFD_CLOEXEC) };

	must(fd[0] >= 0 && fd[1] >= 0 && ftruncate(fd[1], HYDNS_PORTS * sizeof(uint64_t)) == 0, "a plan");
	reply(sock, m, HYDNS_MSG_PLAN, p->lane_at ? &clients : &upstream, sizeof(upstream), fd, p->lane_at ? 1 : 2);
	close(fd[0]);
	close(fd[1]);
}

int peer_lane_socket(void)
{
	return socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static void lane(struct peer *p, int sock, struct message *m)
{
	const struct hydns_lane_number n = { .number = (uint32_t)atomic_fetch_add(&p->lanes, 1) };
	int fd[FDS_MAX];

	for (unsigned i = 0; i < p->hello.threads; i++) {
		fd[i] = peer_lane_socket();
		must(fd[i] >= 0, "AF_XDP");
	}
	reply(sock, m, HYDNS_MSG_SOCKETS, &n, sizeof(n), fd, p->hello.threads);
	for (unsigned i = 0; i < p->hello.threads; i++)
		close(fd[i]);
}

/* False: the connection ends. */
static bool open_lane(struct peer *p, int sock, struct message *m)
{
	static const char why[] = "the lane to open is not this resolver's";

	atomic_fetch_add(&p->opens, 1);
	if (atomic_exchange(&p->dies_at_open, false))
		return false;
	if (atomic_exchange(&p->refuses_open, false))
		reply(sock, m, HYDNS_MSG_REFUSED, why, sizeof(why) - 1, NULL, 0);
	else
		reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
	return true;
}

static void strays(struct peer *p, int sock, struct message *m)
{
	const unsigned n = 2 * p->hello.threads;
	int fd[FDS_MAX];

	must(n <= FDS_MAX, "too many threads");
	for (unsigned i = 0; i < n; i++)
		fd[i] = socket(i % 2 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	atomic_fetch_add(&p->strays, 1);
	while (atomic_load(&p->strays_held))
		peer_nap();
	reply(sock, m, HYDNS_MSG_STRAY_SOCKETS, NULL, 0, fd, n);
	for (unsigned i = 0; i < n; i++)
		close(fd[i]);
}

static bool handle(struct peer *p, int sock, struct message *m)
{
	struct hydns_acl_list list;

	switch (m->head.type) {
	case HYDNS_MSG_HELLO:
		hello(p, sock, m);
		return true;
	case HYDNS_MSG_RESET:
		reset(p, sock, m);
		return true;
	case HYDNS_MSG_READY:
		ready(p, sock, m);
		return true;
	case HYDNS_MSG_WITHDRAW:
	case HYDNS_MSG_WITHDRAW_NAMES:
		return withdraw(p, sock, m);
	case HYDNS_MSG_PRELOAD:
		preload(p, sock, m);
		return true;
	case HYDNS_MSG_NAMES:
		name_set(p, sock, m);
		return true;
	case HYDNS_MSG_CATCH_UP:
		return catch_up(p, sock, m);
	case HYDNS_MSG_STATS:
		counts(p, sock, m);
		return true;
	case HYDNS_MSG_COOKIES:
		cookies(p, sock, m);
		return true;
	case HYDNS_MSG_FORWARDS:
		forwards(p, sock, m);
		return true;
	case HYDNS_MSG_SERVICE:
		service(p, sock, m);
		return true;
	case HYDNS_MSG_ACL:
		memcpy(&list, m->payload, sizeof(list));
		if (p->acl_entries && atomic_load(&p->behaviour) == PEER_NO_ACL) {
			reply(sock, m, HYDNS_MSG_REFUSED, NULL, 0, NULL, 0);
			return true;
		}
		p->acl_entries += list.count;
		break;
	case HYDNS_MSG_QUEUE:
		plan(p, sock, m);
		return true;
	case HYDNS_MSG_LANE:
		lane(p, sock, m);
		return true;
	case HYDNS_MSG_OPEN:
		return open_lane(p, sock, m);
	case HYDNS_MSG_STRAYS:
		strays(p, sock, m);
		return true;
	case HYDNS_MSG_NOTE:
		note(p, m);
		break;
	case HYDNS_MSG_BYE:
		atomic_fetch_add(&p->byes, 1);
		break;
	}
	reply(sock, m, HYDNS_MSG_ACK, NULL, 0, NULL, 0);
	return true;
}

static void say_counts(struct peer *p, int sock)
{
	struct message m = { .head = { .seq = 0 } };

	counts(p, sock, &m);
}

static void converse(struct peer *p, int sock)
{
	struct pollfd f[2] = { { sock, POLLIN, 0 }, { p->wake, POLLIN, 0 } };
	struct message m;
	bool on = true;

	while (on && poll(f, 2, -1) > 0 && !f[1].revents) {
		if (take(sock, &m) <= 0)
			break;
		on = handle(p, sock, &m);
		for (unsigned i = 0; i < m.fds; i++)
			close(m.fd[i]);
	}
	if (atomic_load(&p->last_words))
		say_counts(p, sock);
	close(sock);
}

static void *run(void *arg)
{
	struct peer *p = arg;
	struct pollfd f[2] = { { p->listener, POLLIN, 0 }, { p->wake, POLLIN, 0 } };

	while (poll(f, 2, -1) > 0 && !f[1].revents)
		converse(p, accept4(p->listener, NULL, NULL, SOCK_CLOEXEC));
	return NULL;
}

void peer_init(struct peer *p)
{
	memset(p, 0, sizeof(*p));
	strcpy(p->directory, "/tmp/hydns-publish-test-XXXXXX");
	must(mkdtemp(p->directory), "mkdtemp");
	snprintf(p->path, sizeof(p->path), "%s/socket", p->directory);
	p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->page_fd = -1;
	pthread_mutex_init(&p->note_lock, NULL);
}

void peer_start(struct peer *p)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	memcpy(at.sun_path, p->path, sizeof(p->path));
	unlink(p->path);
	p->wake = eventfd(0, EFD_CLOEXEC);
	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(bind(p->listener, (struct sockaddr *)&at, sizeof(at)) == 0, "bind");
	must(listen(p->listener, 4) == 0, "listen");
	must(pthread_create(&p->thread, NULL, run, p) == 0, "pthread_create");
}

void peer_stop(struct peer *p)
{
	eventfd_write(p->wake, 1);
	pthread_join(p->thread, NULL);
	close(p->listener);
	close(p->wake);
	unlink(p->path);
}

void peer_destroy(struct peer *p)
{
	for (unsigned i = 0; i < p->rings; i++)
		munmap(p->ring[i], HYDNS_RING_SIZE);
	if (p->page)
		munmap(p->page, HYDNS_PAGE_OCTETS);
	if (p->old_page)
		munmap(p->old_page, HYDNS_PAGE_OCTETS);
	if (p->page_fd >= 0)
		close(p->page_fd);
	close(p->doorbell);
	unlink(p->path);              /* a failed test has not stopped it */
	rmdir(p->directory);
}

const struct hydns_frame *peer_frame(struct peer *p, unsigned ring, void *room, size_t size)
{
	struct hydns_ring *r = p->ring[ring];
	const uint8_t *data = (const uint8_t *)r + HYDNS_RING_DATA;
	struct hydns_frame f;

	for (;;) {
		uint32_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE), at = r->tail % HYDNS_RING_BYTES;

		if (head == r->tail)
			return NULL;
		memcpy(&f, data + at, sizeof(f));
		must(f.len >= sizeof(f) && f.len % 8 == 0 && at + f.len <= HYDNS_RING_BYTES &&
		     f.len <= head - r->tail, "a frame's length");
		if (f.type != HYDNS_FRAME_PAD) {
			must(f.len <= size, "room for a frame");
			memcpy(room, data + at, f.len);
		}
		__atomic_store_n(&r->tail, r->tail + f.len, __ATOMIC_RELEASE);
		if (f.type != HYDNS_FRAME_PAD)
			return room;
	}
}
