/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef PLUGIN_TESTS_PATH_BACK_H
#define PLUGIN_TESTS_PATH_BACK_H

#include <string.h>
#include "plugin/queue/frame.h"

/* The path as the other end has it: Ethernet addresses and ends exchanged. */
static inline struct hydns_path path_back(const struct hydns_path *p)
{
	struct hydns_path back = *p;

	memcpy(back.l2, p->l2 + 6, 6);
	memcpy(back.l2 + 6, p->l2, 6);
	memcpy(back.local, p->remote, 16);
	memcpy(back.remote, p->local, 16);
	back.local_port = p->remote_port;
	back.remote_port = p->local_port;
	return back;
}

#endif
