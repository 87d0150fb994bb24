/* SPDX-License-Identifier: GPL-2.0-only */
/* Loading the programs, and closing them. */
#ifndef HYDNS_KERN_LOADER_OPEN_H
#define HYDNS_KERN_LOADER_OPEN_H

#include <stdbool.h>
#include <sys/types.h>
#include <linux/types.h>

#define HYDNS_WHY 256                  /* octets of the line that says why a call has failed */

struct hydns_kern;                     /* the loaded programs with their maps */

/* The guard's limits (hydns/guard.h). */
struct hydns_loader_guard {
	__u32 mode;                    /* enum hydns_guard_mode; without it the rest means nothing */
	__u32 queries, action, slip, exempt;   /* as in struct hydns_guard_config */
	__u32 ipv4_prefix, ipv6_prefix;        /* bits of an address that are its network's */
};

/* What the program consists of besides what it always has. */
struct hydns_composition {
#define HYDNS_PART(name, constant, text) bool name;
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	struct hydns_loader_guard limits;      /* of the part "guard"; without it all 0 */
};
enum hydns_part {
#define HYDNS_PART(name, constant, text) HYDNS_PART_##name,
#include "hydns-kern/loader/composition.def"
#undef HYDNS_PART
	HYDNS_PARTS
};

struct hydns_loader_options {
	const char *pin_dir;           /* a directory in a bpffs; made if missing */
	uid_t uid;                     /* who may own it besides root and this process: the user that hydnsd becomes */
	__u32 capacity;                /* rules */
	struct hydns_composition with; /* forwarding needs parking */
};

/*
 * Loads the programs. Maps that a hydnsd with the same ABI version and geometry pinned in pin_dir are adopted: *adopted is set,
 * and their rules go on being served. Otherwise new maps are made, with fresh secrets, which hydns_kern_publish() pins. Needs CAP_BPF,
 * CAP_NET_ADMIN and CAP_PERFMON, without which the verifier refuses arithmetic on packet pointers; all else here needs the first two.
 */
int hydns_kern_open(const struct hydns_loader_options *o, struct hydns_kern **out, bool *adopted,
		    char why[HYDNS_WHY]);
/*
 * Pins new maps, in place of a former set of whatever version. To be called when the program is attached: until then the former program
 * answers, and the next hydnsd can adopt its maps, should this one end. Nothing is left to do when maps were adopted.
 */
int hydns_kern_publish(struct hydns_kern *k, char why[HYDNS_WHY]);
/* Whether a hydnsd has pinned maps there, of whatever version and sizes. */
bool hydns_kern_pinned(const char *pin_dir);
/* Closes descriptors and mappings. Attachments and pins stay: the program goes on answering. */
void hydns_kern_close(struct hydns_kern *k);

int hydns_kern_prog_fd(const struct hydns_kern *k);             /* of the XDP program, for BPF_PROG_TEST_RUN */
int hydns_kern_memory(struct hydns_kern *k, __u64 *bytes);      /* of all maps, as the kernel accounts for them */

#endif
