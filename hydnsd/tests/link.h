/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The resolver's host and its client, for tests with queries from a link:
 *
 *     v0, 198.51.100.53  <-- veth pair -->  v1, the client, 192.0.2.7
 */
#ifndef HYDNSD_TESTS_LINK_H
#define HYDNSD_TESTS_LINK_H

/* Makes the link, without the client's addresses. Whoever deletes v0 deletes both ends. */
void make_link(void);
/* A socket at service4 and SERVICE_PORT of frame.h. The caller closes it. */
int listen_to_queries(void);

#endif
