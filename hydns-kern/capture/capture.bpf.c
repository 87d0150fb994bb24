/* SPDX-License-Identifier: GPL-2.0-only */
/* The build of the XDP program that says of each packet what became of it. */
#define HYDNS_WATCHING
#include "hydns-kern/program/hydns.bpf.c"
