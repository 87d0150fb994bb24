/* SPDX-License-Identifier: GPL-2.0-only */
#include "hydns-kern/loader/cpus.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int hydns_cpus_online(cpu_set_t *out)
{
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	unsigned first, last, count = 0;

	if (!f)
		return -errno;
	CPU_ZERO(out);
	/* "0-3,8-11" */
	for (int n; (n = fscanf(f, "%u-%u", &first, &last)) > 0; ) {
		if (n == 1)
			last = first;
		for (unsigned cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
			CPU_SET(cpu, out);
		count = last + 1;
		if (fgetc(f) != ',')
			break;
	}
	fclose(f);
	return count > CPU_SETSIZE ? -E2BIG : count ? 0 : -EINVAL;
}

static int visit(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	/* It returns when this thread runs there. */
	if (sched_setaffinity(0, sizeof(one), &one))
		return -errno;
	return sched_getcpu() == cpu ? 0 : -EAGAIN;
}

int hydns_cpus_tour(void)
{
	cpu_set_t online, before;
	int rc;

	if (!access("/sys/kernel/realtime", F_OK))
		return -EOPNOTSUPP;
	rc = hydns_cpus_online(&online);
	if (rc)
		return rc;
	if (sched_getaffinity(0, sizeof(before), &before))
		return -errno;
	for (int cpu = 0; !rc && cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &online))
			rc = visit(cpu);
	sched_setaffinity(0, sizeof(before), &before);
	return rc;
}
