/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Logged answers: the thread that writes them, and the log ring that hydnsd makes for it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "plugin/link/thread.h"
#include "plugin/log.h"

void hydns_link_start_log(struct hydns_link *l)
{
	struct hydns_plugin *p = l->p;

	if (!p->o.dnstap)
		return;
	atomic_store(&p->tap, hydns_tap_start(p->o.dnstap, &p->thread[0].ring.ring->log));
	if (!atomic_load(&p->tap))
		hydns_log(p, HYDNS_LOG_ERROR, "cannot start the thread that logs kernel answers (%s): none is given", strerror(errno));
}

int hydns_link_get_log_ring(struct hydns_link *l)
{
	const struct hydns_log_request q = { .octets = l->p->o.log_octets };
	struct hydns_tap *tap = atomic_load(&l->p->tap);
	int error, fd;

	if (!tap)
		return 0;
	error = hydns_link_fetch(l, HYDNS_MSG_LOG, &q, sizeof(q), HYDNS_MSG_LOG_RING, &fd);
	if (error == -HYDNS_EREFUSED) {
		hydns_log(l->p, HYDNS_LOG_WARNING, "hydnsd refused a log ring, so the resolver answers all queries: %s",
			  hydns_link_refusal(l));
		return 0;
	}
	if (error)
		return error;
	if (hydns_tap_ring(tap, fd))
		return 0;
	close(fd);
	hydns_log(l->p, HYDNS_LOG_WARNING, "too many log rings wait for the collector of dnstap messages: the resolver answers all queries "
		  "once the last is full, until it is connected again");
	return 0;
}
