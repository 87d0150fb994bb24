/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers that come to the stack instead of a ring, with real sockets over the loopback interface, whose MTU is 1,500:
 *
 *     server at 127.0.0.2 or 2001:db8::2  -->  127.0.0.1 or 2001:db8::1, a port of the range, where no socket is
 *
 * Two threads of one resolver have sockets for stray answers. Exits 77 (skipped) without root.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <linux/errqueue.h>
#include "hydns-kern/tests/sandbox.h"
#include "hydns/hash.h"

#define RESOLVER    5
#define THREADS     2
#define FIRST       20000
#define PORTS       1000
#define SERVER_PORT 5353
#define WAIT_MS     5000       /* for what must come; what must not is followed by something that must */
#define LONG        4096       /* octets of an answer in fragments */

enum family { V4, V6, FAMILIES };
static const char *const here[] = { "127.0.0.1", "2001:db8::1" }, *const server[] = { "127.0.0.2", "2001:db8::2" },
			*const stranger[] = { "127.0.0.3", "2001:db8::3" };
static const int domain[] = { AF_INET, AF_INET6 };

/* -- addresses and sockets ----------------------------------------------------------------------------------- */
union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static union address address(enum family f, const char *text, unsigned port)
{
	union address a = { .any = { .sa_family = (sa_family_t)domain[f] } };

	a.v4.sin_port = htons((uint16_t)port);         /* the port has the same place in both */
	CHECK(inet_pton(domain[f], text, f == V4 ? (void *)&a.v4.sin_addr : (void *)&a.v6.sin6_addr) == 1);
	return a;
}

static socklen_t length(enum family f)
{
	return f == V4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static bool same(enum family f, const union address *a, const union address *b)
{
	return a->v4.sin_port == b->v4.sin_port &&
	       (f == V4 ? a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr : !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 16));
}

static int udp_at(enum family f, const char *text, unsigned port)
{
	union address a = address(f, text, port);
	int fd = socket(domain[f], SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	CHECK(fd >= 0 && !bind(fd, &a.any, length(f)));
	return fd;
}

/* As hydnsd makes them. */
static int stray_socket(enum family f)
{
	int on = 1, fd = socket(domain[f], SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	union address any = { .any = { .sa_family = (sa_family_t)domain[f] } };

	CHECK(fd >= 0);
	if (f == V6)
		CHECK(!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)));
	CHECK(!setsockopt(fd, f == V4 ? IPPROTO_IP : IPPROTO_IPV6, f == V4 ? IP_RECVORIGDSTADDR : IPV6_RECVORIGDSTADDR, &on,
			  sizeof(on)));
	CHECK(!setsockopt(fd, f == V4 ? IPPROTO_IP : IPPROTO_IPV6, f == V4 ? IP_RECVERR : IPV6_RECVERR, &on, sizeof(on)));
	CHECK(!bind(fd, &any.any, length(f)));
	return fd;
}

/* -- the resolver's side ---------------------------------------------------------------------------------------- */
struct resolver {
	struct hydns_kern *k;
	int socket[THREADS][FAMILIES];
	__u64 *words;                  /* mapped through a copy of the descriptor, as a plugin does */
	__u64 seed[2];
};

static void open_resolver(struct resolver *r, struct hydns_kern *k)
{
	int copy = fcntl(hydns_kern_ports_fd(k), F_DUPFD_CLOEXEC, 0);

	r->k = k;
	hydns_kern_ports_seed(k, r->seed);
	r->words = mmap(NULL, HYDNS_PORTS * sizeof(__u64), PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
	CHECK(copy >= 0 && r->words != MAP_FAILED);
	close(copy);
	for (__u32 t = 0; t < THREADS; t++)
		for (int f = 0; f < FAMILIES; f++) {
			r->socket[t][f] = stray_socket((enum family)f);
			CHECK(!hydns_kern_stray_set(k, RESOLVER, t, f == V6, r->socket[t][f]));
		}
}

static void close_resolver(struct resolver *r)
{
	for (int i = 0; i < THREADS * FAMILIES; i++)
		close(r->socket[i / FAMILIES][i % FAMILIES]);
	munmap(r->words, HYDNS_PORTS * sizeof(__u64));
}

static __u64 word_for(const struct resolver *r, enum family f, const char *remote, unsigned remote_port, unsigned thread)
{
	union address a = address(f, remote, remote_port);
	__u8 octets[16] = { [10] = 0xff, [11] = 0xff };
	__u64 half[2];

	if (f == V4)
		memcpy(octets + 12, &a.v4.sin_addr, 4);
	else
		memcpy(octets, &a.v6.sin6_addr, 16);
	memcpy(half, octets, 16);
	return HYDNS_PORT_WORD(thread, RESOLVER, 0, hydns_remote_tag(half, a.v4.sin_port, r->seed));
}

/* This thread has asked the server from this port. */
static void claim(struct resolver *r, enum family f, unsigned port, unsigned thread)
{
	__atomic_store_n(&r->words[port], word_for(r, f, server[f], SERVER_PORT, thread), __ATOMIC_RELEASE);
}

/* -- what arrives ------------------------------------------------------------------------------------------------- */
struct arrival {
	ssize_t len;                   /* -1: nothing came */
	__u8 data[LONG + 1];
	union address from, to;        /* to: the port that the sender has addressed */
	bool has_error;
	struct sock_extended_err error;
	union address offender;
};

static void take_control(struct arrival *a, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		bool v4 = c->cmsg_level == IPPROTO_IP;

		if (c->cmsg_type == (v4 ? IP_RECVERR : IPV6_RECVERR)) {
			memcpy(&a->error, CMSG_DATA(c), sizeof(a->error));
			a->has_error = true;
		} else if (c->cmsg_type == (v4 ? IP_ORIGDSTADDR : IPV6_ORIGDSTADDR)) {
			memcpy(&a->to, CMSG_DATA(c), v4 ? sizeof(a->to.v4) : sizeof(a->to.v6));
		}
	}
}

static struct arrival receive(int fd, int flags)
{
	char control[512] __attribute__((aligned(8)));
	struct arrival a = { .len = -1 };
	struct iovec part = { a.data, sizeof(a.data) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_name = &a.from, .msg_namelen = sizeof(a.from),
			    .msg_control = control, .msg_controllen = sizeof(control) };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, WAIT_MS) == 1 && !!(p.revents & POLLERR) == !!(flags & MSG_ERRQUEUE))
		a.len = recvmsg(fd, &m, flags | MSG_DONTWAIT);
	if (a.len >= 0)
		take_control(&a, &m);
	return a;
}

static void send_to(enum family f, int from, unsigned port, const void *data, size_t len)
{
	union address to = address(f, here[f], port);

	CHECK(sendto(from, data, len, 0, &to.any, length(f)) == (ssize_t)len);
}

/* The next datagram of a thread is this one, from the server, addressed to this port. */
static void expect_arrival(struct resolver *r, enum family f, unsigned thread, unsigned port, const void *data, size_t len)
{
	struct arrival a = receive(r->socket[thread][f], 0);
	union address from = address(f, server[f], SERVER_PORT), to = address(f, here[f], port);

	CHECK(a.len == (ssize_t)len && !memcmp(a.data, data, len));
	CHECK(same(f, &a.from, &from) && same(f, &a.to, &to));
}

/* Nothing else has come to the thread before this datagram, which must come. */
static void expect_nothing_before(struct resolver *r, enum family f, int from, unsigned thread)
{
	const unsigned port = FIRST + PORTS - 1;

	claim(r, f, port, thread);
	send_to(f, from, port, "end", 3);
	expect_arrival(r, f, thread, port, "end", 3);
}

/* -- answers -------------------------------------------------------------------------------------------------------- */
static void answers_come_to_their_threads_socket(struct resolver *r)
{
	for (int f = 0; f < FAMILIES; f++) {
		int fd = udp_at((enum family)f, server[f], SERVER_PORT);

		for (unsigned t = 0; t < THREADS; t++) {
			claim(r, (enum family)f, FIRST + t, t);
			send_to((enum family)f, fd, FIRST + t, "answer", 6);
			expect_arrival(r, (enum family)f, t, FIRST + t, "answer", 6);
		}
		close(fd);
	}
}

static void long_answers_come_in_one_piece(struct resolver *r)
{
	static __u8 message[LONG];

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (__u8)(i * 7 >> 3);
	for (int f = 0; f < FAMILIES; f++) {
		int fd = udp_at((enum family)f, server[f], SERVER_PORT);

		claim(r, (enum family)f, FIRST, 1);
		send_to((enum family)f, fd, FIRST, message, sizeof(message));
		expect_arrival(r, (enum family)f, 1, FIRST, message, sizeof(message));
		close(fd);
	}
}

static void nothing_of_others_comes(struct resolver *r)
{
	for (int i = 0; i < FAMILIES; i++) {
		const enum family f = (enum family)i;
		int asked = udp_at(f, server[f], SERVER_PORT), port = udp_at(f, server[f], SERVER_PORT + 1),
		    host = udp_at(f, stranger[f], SERVER_PORT);

		claim(r, f, FIRST, 0);
		claim(r, f, FIRST - 1, 0);
		r->words[FIRST + 1] = 0;
		send_to(f, port, FIRST, "another port of the server", 26);
		send_to(f, host, FIRST, "another server", 14);
		send_to(f, asked, FIRST - 1, "a port out of the range", 23);
		send_to(f, asked, FIRST + 1, "a free word", 11);
		expect_nothing_before(r, f, asked, 0);
		r->words[FIRST - 1] = 0;
		close(asked);
		close(port);
		close(host);
	}
}

/* A socket that has asked the same server itself keeps its answers. */
static void connected_sockets_keep_theirs(struct resolver *r)
{
	for (int i = 0; i < FAMILIES; i++) {
		const enum family f = (enum family)i;
		int asked = udp_at(f, server[f], SERVER_PORT), own = udp_at(f, here[f], FIRST + 2);
		union address to = address(f, server[f], SERVER_PORT);

		claim(r, f, FIRST + 2, 0);
		CHECK(!connect(own, &to.any, length(f)));
		send_to(f, asked, FIRST + 2, "answer", 6);
		CHECK(receive(own, 0).len == 6);
		expect_nothing_before(r, f, asked, 0);
		close(own);
		close(asked);
	}
}

/* -- ICMP ------------------------------------------------------------------------------------------------------------- */
/* Sends a datagram as a ring does: no socket has its port. */
static void send_raw(enum family f, unsigned from, const char *to_host, unsigned to_port, const void *data, size_t len)
{
	union address source = address(f, here[f], 0), to = address(f, to_host, 0);
	__u16 head[4] = { htons((uint16_t)from), htons((uint16_t)to_port), htons((uint16_t)(8 + len)), 0 };
	struct iovec part[] = { { head, sizeof(head) }, { (void *)data, len } };
	struct msghdr m = { .msg_iov = part, .msg_iovlen = 2, .msg_name = &to, .msg_namelen = length(f) };
	int fd = socket(domain[f], SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP), at = 6;

	CHECK(fd >= 0 && !bind(fd, &source.any, length(f)));
	if (f == V6)
		CHECK(!setsockopt(fd, IPPROTO_IPV6, IPV6_CHECKSUM, &at, sizeof(at)));
	CHECK(sendmsg(fd, &m, 0) == (ssize_t)(8 + len));
	close(fd);
}

/* Nobody listens there: the error has the query, by which the thread finds out whose it is. */
static void icmp_errors_come_with_the_query(struct resolver *r)
{
	static const char query[] = "\x47\x11 a query";

	for (int i = 0; i < FAMILIES; i++) {
		const enum family f = (enum family)i;
		union address to = address(f, server[f], SERVER_PORT);
		struct arrival a;

		claim(r, f, FIRST + 3, 1);
		send_raw(f, FIRST + 3, server[f], SERVER_PORT, query, sizeof(query));
		a = receive(r->socket[1][f], MSG_ERRQUEUE);
		CHECK(a.len == sizeof(query) && !memcmp(a.data, query, sizeof(query)));
		CHECK(a.has_error && a.error.ee_errno == ECONNREFUSED && same(f, &a.from, &to));
		CHECK(f == V4 ? a.error.ee_origin == SO_EE_ORIGIN_ICMP && a.error.ee_code == ICMP_PORT_UNREACH :
				a.error.ee_origin == SO_EE_ORIGIN_ICMP6 && a.error.ee_code == ICMP6_DST_UNREACH_NOPORT);
	}
}

/* -- words and range ----------------------------------------------------------------------------------------------------- */
static void words_of_one_resolver_are_cleared(struct resolver *r)
{
	const __u64 other = HYDNS_PORT_WORD(0, RESOLVER + 1, 0, 1);

	claim(r, V4, 0, 0);
	claim(r, V4, HYDNS_PORTS - 1, 63);
	r->words[FIRST] = other;
	hydns_kern_ports_clear(r->k, RESOLVER);
	CHECK(!r->words[0] && !r->words[HYDNS_PORTS - 1] && r->words[FIRST] == other);
	hydns_kern_ports_clear(r->k, RESOLVER + 1);
	CHECK(!r->words[FIRST]);
}

static void ranges_end_with_the_last_port(struct resolver *r)
{
	CHECK(hydns_kern_ports_range(r->k, HYDNS_PORTS - 1, 1) == 0);
	CHECK(hydns_kern_ports_range(r->k, HYDNS_PORTS - 1, 2) == -EINVAL);
	CHECK(hydns_kern_ports_range(r->k, HYDNS_PORTS, 0) == -EINVAL);
	CHECK(hydns_kern_ports_range(r->k, 0, HYDNS_PORTS) == -EINVAL);
	CHECK(hydns_kern_ports_range(r->k, FIRST, PORTS) == 0);
	CHECK(hydns_kern_stray_set(r->k, HYDNS_RESOLVERS, 0, false, 0) == -EINVAL);
	CHECK(hydns_kern_stray_set(r->k, 0, HYDNS_THREADS_MAX, false, 0) == -EINVAL);
}

/* -- the attachment ---------------------------------------------------------------------------------------------------- */
static void expect_caught(struct resolver *r, bool caught)
{
	int fd = udp_at(V4, server[V4], SERVER_PORT);
	struct arrival a;

	claim(r, V4, FIRST + 4, 0);
	send_to(V4, fd, FIRST + 4, "answer", 6);
	if (caught) {
		expect_arrival(r, V4, 0, FIRST + 4, "answer", 6);
	} else {
		/* what is sent to itself goes through the stack at once */
		CHECK(recv(r->socket[0][V4], a.data, sizeof(a.data), MSG_DONTWAIT) == -1 && errno == EAGAIN);
	}
	close(fd);
}

static void caught_only_while_attached(struct resolver *r)
{
	expect_caught(r, true);
	CHECK(hydns_kern_stray_detach(r->k, why) == 0 && !pinned("stray_link"));
	expect_caught(r, false);
	CHECK(hydns_kern_stray_detach(r->k, why) == 0);
	CHECK(hydns_kern_stray_attach(r->k, why) == 0 && pinned("stray_link"));
	CHECK(hydns_kern_stray_attach(r->k, why) == 0);
	expect_caught(r, true);
}

/* hydnsd ends without a word, and comes again: sockets, words, range and seed stay, and its program takes over. */
static void all_goes_on_without_hydnsd(struct resolver *r)
{
	__u64 seed[2];

	hydns_kern_close(r->k);
	expect_caught(r, true);
	r->k = open_kern(CAPACITY, true);
	hydns_kern_ports_seed(r->k, seed);
	CHECK(seed[0] && !memcmp(seed, r->seed, sizeof(seed)));
	CHECK(hydns_kern_strays_used(r->k));
	expect_caught(r, true);
	CHECK(hydns_kern_ports_range(r->k, FIRST, 4) == 0);
	expect_caught(r, false);               /* so the program that runs is the one of this hydnsd */
	CHECK(hydns_kern_ports_range(r->k, FIRST, PORTS) == 0);
	expect_caught(r, true);
}

/* A new hydnsd with other maps: for a while the former maps' sockets get what is for them, beside the new ones'. */
static void former_maps_go_on_for_a_while(struct resolver *r)
{
	struct resolver anew;

	hydns_kern_close(r->k);
	open_resolver(&anew, open_kern(CAPACITY * 2, false));
	CHECK(hydns_kern_ports_range(anew.k, FIRST, PORTS) == 0);
	expect_caught(r, true);
	CHECK(hydns_kern_stray_attach(anew.k, why) == 0);
	r->words[FIRST + 4] = 0;
	expect_caught(&anew, true);
	anew.words[FIRST + 4] = 0;
	expect_caught(r, true);
	hydns_kern_stray_former_end(anew.k);
	expect_caught(r, false);
	expect_caught(&anew, true);
	CHECK(pinned("stray_link"));
	close_resolver(r);
	*r = anew;
}

static void sockets_go_with_their_resolver(struct resolver *r)
{
	int fd = stray_socket(V4);

	CHECK(hydns_kern_strays_used(r->k));
	hydns_kern_stray_clear(r->k, RESOLVER + 1);
	expect_caught(r, true);
	hydns_kern_stray_clear(r->k, RESOLVER);
	expect_caught(r, false);
	CHECK(!hydns_kern_strays_used(r->k));
	CHECK(!hydns_kern_stray_set(r->k, RESOLVER, 0, false, fd) && hydns_kern_strays_used(r->k));
	close(fd);                             /* the last descriptor */
	CHECK(!hydns_kern_strays_used(r->k));
	CHECK(!hydns_kern_stray_set(r->k, RESOLVER, 0, false, r->socket[0][V4]));
	expect_caught(r, true);
}

static void no_rings_no_attachment(struct resolver *r)
{
	struct hydns_loader_options o = { .pin_dir = pin_dir, .capacity = CAPACITY * 2, .with.ipv6 = true };
	bool adopted;

	hydns_kern_close(r->k);
	CHECK(hydns_kern_open(&o, &r->k, &adopted, why) == 0 && adopted && !pinned("stray_link"));
	expect_caught(r, false);
	hydns_kern_close(r->k);
	r->k = open_kern(CAPACITY * 2, true);
	CHECK(hydns_kern_stray_attach(r->k, why) == 0);
	expect_caught(r, true);
}

/* Not even what another process (bpftool, say) has a descriptor of. */
static void clean_leaves_nothing(struct resolver *r)
{
	char path[256];
	int held;

	snprintf(path, sizeof(path), "%s/stray_link", pin_dir);
	held = bpf_obj_get(path);
	CHECK(held >= 0);
	hydns_kern_close(r->k);
	expect_caught(r, true);
	CHECK(hydns_kern_clean(pin_dir, why) == 0 && access(pin_dir, F_OK));
	expect_caught(r, false);
	close(held);
}

/* ------------------------------------------------------------------------------------------------------------------------ */
static void bring_up_loopback(void)
{
	run("ip link set lo mtu 1500 up");
	for (int i = 1; i <= 3; i++) {
		char command[64];

		snprintf(command, sizeof(command), "ip addr add 2001:db8::%d/128 dev lo", i);
		run(command);
	}
}

int main(void)
{
	struct resolver r;

	if (geteuid() != 0) {
		fprintf(stderr, "skipped: needs root\n");
		return SKIP;
	}
	set_up();
	bring_up_loopback();
	open_resolver(&r, open_kern(CAPACITY, false));
	CHECK(hydns_kern_stray_attach(r.k, why) == 0);
	ranges_end_with_the_last_port(&r);
	answers_come_to_their_threads_socket(&r);
	long_answers_come_in_one_piece(&r);
	nothing_of_others_comes(&r);
	connected_sockets_keep_theirs(&r);
	icmp_errors_come_with_the_query(&r);
	words_of_one_resolver_are_cleared(&r);
	caught_only_while_attached(&r);
	all_goes_on_without_hydnsd(&r);
	former_maps_go_on_for_a_while(&r);
	sockets_go_with_their_resolver(&r);
	no_rings_no_attachment(&r);
	clean_leaves_nothing(&r);
	close_resolver(&r);
	tear_down();
	puts("ok");
	return 0;
}
