/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Plugins of another ABI version than this hydnsd's: refused, and remembered for the operator while they are there. */
#ifndef HYDNSD_RESOLVERS_OTHER_ABI_H
#define HYDNSD_RESOLVERS_OTHER_ABI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hydnsd;
struct hydnsd_session;
struct hydnsd_request;

#define HYDNSD_OTHER_ABI_MOST 16       /* processes; of more the one that was refused last is remembered in place of the first */
#define HYDNSD_PROCESS_NAME   16       /* octets of a process's name, as the kernel has it */
struct hydnsd_other_abi {
	pid_t pid;                     /* 0: this entry is free */
	uint32_t version;
	uint64_t last_ms;              /* when it said HELLO last */
	char process[HYDNSD_PROCESS_NAME];
};

/* Whether the message is a HELLO of another version, of whatever length and with whatever descriptors. */
bool hydnsd_other_abi_is(const struct hydnsd_request *m);
/* Refuses it. */
bool hydnsd_other_abi_refuse(struct hydnsd_session *s, const struct hydnsd_request *m);
/* Those that are there now, one after the other from *at = 0; NULL: no more. */
const struct hydnsd_other_abi *hydnsd_other_abi_next(const struct hydnsd *d, uint32_t *at);

#endif
