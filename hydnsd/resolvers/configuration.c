/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/configuration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/daemon/log.h"

/* Without any, the program need not read packets while the store is empty. */
static void tell_of_limits(struct hydnsd *d)
{
	bool any = false;

	for (uint32_t n = 0; n < HYDNS_RESOLVERS; n++)
		any |= d->resolver[n].live && (d->resolver[n].config.flags & HYDNS_RESOLVER_LIMITS);
	hydns_kern_limits_exist(d->kern, any);
}

void hydnsd_configuration_write(struct hydnsd *d, uint32_t i, bool live)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	int rc;

	r->live = live;
	r->config.flags = live ? r->config.flags | HYDNS_RESOLVER_READY :
				 r->config.flags & (uint16_t)~HYDNS_RESOLVER_READY;
	rc = hydns_kern_resolver_config(d->kern, i, &r->config);
	if (rc)
		hydnsd_log(HYDNSD_LOG_ERROR, "cannot write the configuration of resolver %u: %s", i, strerror(-rc));
	tell_of_limits(d);
}

void hydnsd_configuration_forget(struct hydnsd_resolver *r)
{
	free(r->acl);
	free(r->sockets);
	free(r->refusals);
	for (uint32_t i = 0; i < r->note_count; i++)
		free(r->note[i].text);
	r->acl_stale = false;
	r->acl = NULL;
	r->sockets = NULL;
	r->refusals = NULL;
	r->acl_count = r->socket_count = r->refusal_count = r->note_count = 0;
}

/* -- notes -------------------------------------------------------------------------------------------- */
static void drop_notes(struct hydnsd_resolver *r, enum hydns_note_kind kind)
{
	uint32_t left = 0;

	for (uint32_t n = 0; n < r->note_count; n++)
		if (r->note[n].kind == kind)
			free(r->note[n].text);
		else
			r->note[left++] = r->note[n];
	r->note_count = left;
}

int hydnsd_configuration_add_note(struct hydnsd *d, uint32_t i, const struct hydns_note *n, size_t len)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	char *copy;

	if (n->anew)
		drop_notes(r, n->kind);
	if (!len)
		return 0;
	if (r->note_count == HYDNSD_NOTES_MAX)
		return -ENOSPC;
	copy = strndup(n->text, len);
	if (!copy)
		return -ENOMEM;
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	r->note[r->note_count++] = (struct hydnsd_note){ .kind = n->kind, .text = copy };
	return 0;
}
