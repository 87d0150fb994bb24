/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/other_abi.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "hydns/abi.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/resolvers/requests.h"
#include "hydnsd/resolvers/session_internal.h"

/* Plugins of former releases do not keep the connection, but come again each second. */
#define COMES_AGAIN_MS 5000

static uint32_t version_of(const struct hydnsd_request *m)
{
	return ((const struct hydns_hello *)m->payload)->abi_version;
}

bool hydnsd_other_abi_is(const struct hydnsd_request *m)
{
	return m->head.type == HYDNS_MSG_HELLO && m->head.len >= sizeof(uint32_t) && version_of(m) && version_of(m) != hydns_abi_version();
}

/* -- who they are -------------------------------------------------------------------------------------------- */
static bool is_connected(const struct hydnsd *d, const struct hydnsd_other_abi *o)
{
	for (const struct hydnsd_session *s = d->sessions->first; s; s = s->next)
		if (!s->dead && s->pid == o->pid && s->other_abi == o->version)
			return true;
	return false;
}

static bool is_there(const struct hydnsd *d, const struct hydnsd_other_abi *o)
{
	if (!o->pid)
		return false;
	return is_connected(d, o) || (hydnsd_now_ms() - o->last_ms < COMES_AGAIN_MS && (!kill(o->pid, 0) || errno == EPERM));
}

const struct hydnsd_other_abi *hydnsd_other_abi_next(const struct hydnsd *d, uint32_t *at)
{
	while (d->sessions && *at < HYDNSD_OTHER_ABI_MOST) {
		const struct hydnsd_other_abi *o = &d->sessions->other_abi[(*at)++];

		if (is_there(d, o))
			return o;
	}
	return NULL;
}

/* Empty where hydnsd may not see other users' processes, as by its unit (ProtectProc=). */
static void read_name(pid_t pid, char name[HYDNSD_PROCESS_NAME])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (!f || !fgets(name, HYDNSD_PROCESS_NAME, f))
		name[0] = 0;
	if (f)
		fclose(f);
	name[strcspn(name, "\n")] = 0;
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* The entry of this process; *news: it was not there. */
static struct hydnsd_other_abi *remember(struct hydnsd *d, pid_t pid, uint32_t version, bool *news)
{
	struct hydnsd_other_abi *all = d->sessions->other_abi, *out = &all[0];

	*news = false;
	for (uint32_t i = 0; i < HYDNSD_OTHER_ABI_MOST; i++) {
		if (is_there(d, &all[i]) && all[i].pid == pid && all[i].version == version)
			return &all[i];
		if (!is_there(d, &all[i]) || (is_there(d, out) && all[i].last_ms < out->last_ms))
			out = &all[i];
	}
	*news = true;
	*out = (struct hydnsd_other_abi){ .pid = pid, .version = version };
	read_name(pid, out->process);
	return out;
}

/* -- what they are told -------------------------------------------------------------------------------------- */
static void explain(const struct hydnsd_other_abi *o, char why[HYDNS_WHY])
{
	char who[HYDNSD_PROCESS_NAME + 32];

	snprintf(who, sizeof(who), o->process[0] ? "process %d (%s)" : "process %d", (int)o->pid, o->process);
	if (o->version < hydns_abi_version())
		snprintf(why, HYDNS_WHY, "the plugin in %s speaks ABI %u, hydnsd %u: restart the resolver", who, o->version,
			 hydns_abi_version());
	else
		snprintf(why, HYDNS_WHY, "the plugin in %s speaks ABI %u, hydnsd %u: restart hydnsd, or, if you went back to ABI %u, the "
			 "resolver", who, o->version, hydns_abi_version(), hydns_abi_version());
}

bool hydnsd_other_abi_refuse(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	struct hydnsd_other_abi *o;
	char why[HYDNS_WHY];
	bool news;

	o = remember(s->daemon, s->pid, version_of(m), &news);
	o->last_ms = hydnsd_now_ms();
	s->other_abi = o->version;
	explain(o, why);
	if (news)
		hydnsd_log_client(HYDNSD_LOG_WARNING, "refused: %s", why);
	return hydnsd_session_send_refusal(s, m->head.seq, why);
}
