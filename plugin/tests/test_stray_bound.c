/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydns_upstream_read_strays() keeps its bound when an ICMP error comes while it reads answers. Only recvmsg() is scripted: the
 * kernel's order can't be had otherwise. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/errqueue.h>       /* needs time.h */
#include <cmocka.h>
#include "plugin/queue/upstream.h"

#define PORT 20000

static unsigned answers_first;       /* that IPv4's socket gives before an error; IPv6's gives answers without end */
static unsigned given[2], calls;
static const uint8_t id[2] = { 7, 7 };

static void put(struct msghdr *m, int type, const void *data, size_t len)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);

	*c = (struct cmsghdr){ .cmsg_level = IPPROTO_IP, .cmsg_type = type, .cmsg_len = CMSG_LEN(len) };
	memcpy(CMSG_DATA(c), data, len);
	m->msg_controllen = CMSG_SPACE(len);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	const struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(0xc0000201) };
	const struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(0xc0000202) };
	const struct sock_extended_err refused = { .ee_errno = ECONNREFUSED, .ee_origin = SO_EE_ORIGIN_ICMP };
	int domain = 0;
	socklen_t len = sizeof(domain);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	memcpy(m->msg_name, &server, sizeof(server));
	memcpy(m->msg_iov->iov_base, id, sizeof(id));
	if (flags & MSG_ERRQUEUE) {
		put(m, IP_RECVERR, &refused, sizeof(refused));
		return sizeof(id);
	}
	if (domain == AF_INET && given[0] == answers_first) {
		errno = ECONNREFUSED;
		return -1;
	}
	given[domain == AF_INET6]++;
	put(m, IP_ORIGDSTADDR, &own, sizeof(own));
	return sizeof(id);
}

static void take(void *arg, void *owner, const struct hydns_datagram *d)
{
	(void)arg, (void)owner, (void)d;
	calls++;
}

static void fail_query(void *arg, const struct hydns_path *path, int error)
{
	(void)arg, (void)path, (void)error;
	calls++;
}

static uint32_t first(void *arg, uint32_t n)
{
	(void)arg, (void)n;
	return 0;
}

static void claim(struct hydns_upstream *u, int words)
{
	const struct hydns_port_range range = { .first = PORT, .count = 1, .seed = { 1, 2 } };
	const struct hydns_path path = { .local_port = PORT, .remote_port = 53, .remote = { 192, 0, 2, 1 }, .local = { 192, 0, 2, 2 } };
	struct hydns_port_thread *t = hydns_ports_thread(hydns_upstream_ports(u), 0);

	assert_int_equal(ftruncate(words, HYDNS_PORTS * sizeof(uint64_t)), 0);
	assert_int_equal(hydns_ports_use(hydns_upstream_ports(u), words, &range), 0);
	assert_int_equal(hydns_port_claim(t, &path, 0, u, first, NULL), PORT);
	hydns_port_set_id(t, PORT, id);
}

static void errors_get_what_answers_left(void **state)
{
	struct hydns_lanes *lanes = hydns_lanes_new(1, HYDNS_LANE_FRAMES_MIN);
	struct hydns_upstream *u = hydns_upstream_new(lanes, NULL, 1);
	const int words = memfd_create("words", MFD_CLOEXEC);
	const int fd[2] = { socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0) };

	(void)state;
	claim(u, words);
	assert_int_equal(hydns_upstream_use_strays(u, fd), 0);
	for (answers_first = 0; answers_first <= HYDNS_UPSTREAM_STRAYS; answers_first++) {
		given[0] = given[1] = calls = 0;
		hydns_upstream_read_strays(hydns_upstream_thread(u, 0), 0, 1000 + answers_first, take, fail_query, NULL);
		assert_in_range(calls, HYDNS_UPSTREAM_STRAYS / 2 + 1, HYDNS_UPSTREAM_STRAYS);
	}
	hydns_upstream_free(u);
	hydns_lanes_free(lanes);
	close(words);
}

int main(void)
{
	const struct CMUnitTest test[] = { cmocka_unit_test(errors_get_what_answers_left) };

	return cmocka_run_group_tests(test, NULL, NULL);
}
