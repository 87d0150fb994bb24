/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/tests/link.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "hydns-kern/tests/frame.h"
#include "hydnsd/tests/running.h"

void make_link(void)
{
	assert_int_equal(system("ip link add v0 address 02:00:00:00:00:53 type veth peer name v1 address 02:00:00:00:00:07 &&"
				"ip address add 198.51.100.53/24 dev v0 && ip link set v0 up && ip link set v1 up &&"
				"ip route add 192.0.2.0/24 dev v0"), 0);
}

int listen_to_queries(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(SERVICE_PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memcpy(&a.sin_addr, service4, sizeof(service4));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}
