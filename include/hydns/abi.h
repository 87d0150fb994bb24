/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The ABI version as a program says it: read from a place in its file that has a mark, so that tests can make a program of another
 * version from it without compiling (test-harness/lab/versions.py).
 */
#ifndef HYDNS_ABI_H
#define HYDNS_ABI_H

#include "hydns/common.h"

struct hydns_abi {
	char  mark[12];
	__u32 version;
};
static const volatile struct hydns_abi hydns_abi = { "hyDNS ABI: ", HYDNS_ABI_VERSION };

static inline __u32 hydns_abi_version(void)
{
	return hydns_abi.version;
}

#endif
