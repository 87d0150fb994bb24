/* SPDX-License-Identifier: GPL-2.0-only */
/* Attaching the programs to interfaces, and removing what was attached and pinned. */
#ifndef HYDNS_KERN_LOADER_ATTACH_H
#define HYDNS_KERN_LOADER_ATTACH_H

#include "hydns-kern/loader/open.h"

enum hydns_attach_mode { HYDNS_ATTACH_NATIVE, HYDNS_ATTACH_GENERIC, HYDNS_ATTACH_DISPATCHER };

/*
 * Attaches to an interface, or replaces the programs of a pinned attachment atomically (bpf_link update). The mode is that of
 * XDP. The attachment is pinned as <pin_dir>/link_<ifname> ('.' in a name as ':', because a bpffs takes no dots) and
 * outlives the process. Mode dispatcher needs CAP_SYS_ADMIN, also to detach.
 */
int hydns_kern_attach(struct hydns_kern *k, const char *ifname, enum hydns_attach_mode mode,
		      char why[HYDNS_WHY]);
int hydns_kern_detach(struct hydns_kern *k, const char *ifname, char why[HYDNS_WHY]);

/* Calls fn once for each interface that has a pinned attachment, of a former hydnsd too; fn may detach. */
int hydns_kern_attached_each(struct hydns_kern *k, void (*fn)(const char *ifname, void *arg), void *arg);

/* Removes every attachment and pin below pin_dir, also those of a hydnsd that crashed, without a loaded program. */
int hydns_kern_clean(const char *pin_dir, char why[HYDNS_WHY]);
/* The same for the pin directory of loaded programs, by the user that owns it; close them afterwards. */
int hydns_kern_remove(struct hydns_kern *k, char why[HYDNS_WHY]);

#endif
