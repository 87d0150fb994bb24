/* SPDX-License-Identifier: GPL-2.0-only */
/* The kill switch, by a descriptor of hydns_switch. */
#ifndef HYDNS_KERN_LOADER_SWITCH_H
#define HYDNS_KERN_LOADER_SWITCH_H

#include <stdbool.h>
#include <bpf/bpf.h>
#include "hydns/switch.h"

/* Leaves the other switch as it was a moment ago: if that has changed meanwhile, whoever captures, or the program, sets it right. */
static inline int hydns_switch_pause(int fd, bool on)
{
	struct hydns_switch s;
	__u32 zero = 0;
	int err = bpf_map_lookup_elem(fd, &zero, &s);

	s.paused = on;
	return err ? err : bpf_map_update_elem(fd, &zero, &s, BPF_ANY);
}

static inline int hydns_switch_paused(int fd, bool *on)
{
	struct hydns_switch s;
	__u32 zero = 0;
	int err = bpf_map_lookup_elem(fd, &zero, &s);

	if (!err)
		*on = s.paused != 0;
	return err;
}

#endif
