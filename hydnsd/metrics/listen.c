/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/metrics/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/sockets.h"

#define UNIX    "unix:"
#define BACKLOG 64

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

const char *metrics_listen_path(const char *where)
{
	return strncmp(where, UNIX, sizeof(UNIX) - 1) ? NULL : where + sizeof(UNIX) - 1;
}

static bool read_port(const char *text, in_port_t *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*out = htons((uint16_t)n);
	return *text >= '0' && *text <= '9' && !*end && n >= 1 && n <= UINT16_MAX;
}

/* Reads an address and a port; returns the length of out, or 0. */
static socklen_t read_address(const char *text, union address *out)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN];
	bool bracket = text[0] == '[';
	size_t len = colon ? (size_t)(colon - text) - 2 * bracket : 0;

	memset(out, 0, sizeof(*out));
	if (!colon || colon < text + 2 * bracket || len >= sizeof(host) || (bracket && colon[-1] != ']'))
		return 0;
	memcpy(host, text + bracket, len);
	host[len] = 0;
	out->any.sa_family = bracket ? AF_INET6 : AF_INET;
	if (inet_pton(out->any.sa_family, host, bracket ? (void *)&out->ipv6.sin6_addr : (void *)&out->ipv4.sin_addr) != 1 ||
	    !read_port(colon + 1, bracket ? &out->ipv6.sin6_port : &out->ipv4.sin_port))
		return 0;
	return bracket ? sizeof(out->ipv6) : sizeof(out->ipv4);
}

bool metrics_listen_is_local(const char *where)
{
	union address a;

	if (metrics_listen_path(where))
		return true;
	if (!read_address(where, &a))
		return false;
	return a.any.sa_family == AF_INET ? ntohl(a.ipv4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET :
		IN6_IS_ADDR_LOOPBACK(&a.ipv6.sin6_addr);
}

static int listen_at_address(const char *option, const char *where, char *why, size_t room)
{
	union address a;
	socklen_t len = read_address(where, &a);
	int fd, err, on = 1;

	if (!len) {
		snprintf(why, room, "%s takes an address and a port, as 192.0.2.1:10953 or [2001:db8::1]:10953, or unix:PATH, not '%s'",
			 option, where);
		return -EINVAL;
	}
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    (a.any.sa_family == AF_INET || !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) &&
	    !bind(fd, &a.any, len) && !listen(fd, BACKLOG))
		return fd;
	err = errno;
	snprintf(why, room, "cannot listen at %s: %s", where, strerror(err));
	if (fd >= 0)
		close(fd);
	return -err;
}

int metrics_listen(const char *option, const char *where, const char *group, char *why, size_t room)
{
	const char *path = metrics_listen_path(where);

	if (path && *path == '/')
		return hydnsd_socket_listen(path, SOCK_STREAM, group, why, room);
	if (path) {
		snprintf(why, room, "%s takes an absolute path after unix:, not '%s'", option, path);
		return -EINVAL;
	}
	return listen_at_address(option, where, why, room);
}
