/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/strays.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/resolvers/session_internal.h"

/* How long answers to queries that left under a former hydnsd with other maps may take: a resolver has asked again by then. They
 * stay while a refused plugin is there: one of a former release goes on asking by its rings. */
#define FORMER_NS (5 * HYDNS_NS_PER_S)

struct sockets {
	int fd[2 * HYDNS_THREADS_MAX];  /* for each thread IPv4, then IPv6 */
	unsigned count;
};

static void close_all(struct sockets *s)
{
	while (s->count)
		close(s->fd[--s->count]);
}

static bool set_option(int fd, int level, int option)
{
	const int on = 1;

	return setsockopt(fd, level, option, &on, sizeof(on)) == 0;
}

/* The address that a packet was sent to says which port's answer it is, and an ICMP error comes with the query in it. */
static bool prepare(int fd, bool ipv6)
{
	const union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} here = { .any = { .sa_family = ipv6 ? AF_INET6 : AF_INET } };

	if (ipv6 ? !set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) || !set_option(fd, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR) ||
			   !set_option(fd, IPPROTO_IPV6, IPV6_RECVERR) :
		   !set_option(fd, IPPROTO_IP, IP_RECVORIGDSTADDR) || !set_option(fd, IPPROTO_IP, IP_RECVERR))
		return false;
	return bind(fd, &here.any, ipv6 ? sizeof(here.v6) : sizeof(here.v4)) == 0;
}

/* Adds the socket of a thread and family. A host without IPv6 gives an IPv4 socket in its place, which gets nothing. */
static int add(struct hydnsd *d, uint32_t i, uint32_t thread, bool ipv6, struct sockets *s)
{
	int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const bool absent = fd < 0 && ipv6 && errno == EAFNOSUPPORT;

	if (absent)
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	s->fd[s->count++] = fd;
	if (absent)
		return 0;
	if (!prepare(fd, ipv6))
		return -errno;
	return hydns_kern_stray_set(d->kern, i, thread, ipv6, fd);
}

/* All sockets of a resolver, known to the program. 0, or a negative errno and a line in why: then there are none. */
static int make(struct hydnsd *d, uint32_t i, uint32_t threads, struct sockets *s, char why[HYDNS_WHY])
{
	int rc = 0;

	s->count = 0;
	for (uint32_t n = 0; n < 2 * threads && !rc; n++)
		rc = add(d, i, n / 2, n % 2, s);
	if (rc)
		snprintf(why, HYDNS_WHY, "cannot make a socket for stray answers: %s", strerror(-rc));
	else
		rc = hydns_kern_stray_attach(d->kern, why);
	if (rc) {
		hydns_kern_stray_clear(d->kern, i);
		close_all(s);
	}
	return rc;
}

bool hydnsd_strays_request(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	struct sockets made;
	char why[HYDNS_WHY];
	bool sent;

	if (make(s->daemon, (uint32_t)s->resolver, s->rings, &made, why))
		return hydnsd_session_refuse(s, m->head.seq, why);
	sent = hydnsd_session_send(s, HYDNS_MSG_STRAY_SOCKETS, m->head.seq, NULL, 0, made.fd, made.count);
	close_all(&made);
	return sent;
}

void hydnsd_strays_release(struct hydnsd *d, uint32_t i)
{
	hydns_kern_stray_clear(d->kern, i);
	hydns_kern_ports_clear(d->kern, i);
}

void hydnsd_strays_tick(struct hydnsd *d)
{
	char why[HYDNS_WHY];
	uint32_t at = 0;

	if (hydnsd_now_ns() - d->started_ns >= FORMER_NS && !hydnsd_other_abi_next(d, &at))
		hydns_kern_stray_former_end(d->kern);
	if (!hydns_kern_strays_used(d->kern) && hydns_kern_stray_detach(d->kern, why))
		hydnsd_log(HYDNSD_LOG_WARNING, "%s", why);
}
