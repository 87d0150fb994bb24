/* SPDX-License-Identifier: GPL-2.0-only */
/* Resolver pages, by resolver index. */
#ifndef HYDNS_KERN_LOADER_PAGES_H
#define HYDNS_KERN_LOADER_PAGES_H

#include "hydns/resolver.h"
#include "hydns-kern/loader/open.h"

/* Makes a new page for resolver i, pins it as page_<i>, and maps it read-only. A former page has no effect any more.
 * *map_fd: descriptor of its map, for the plugin; the caller closes it. */
int hydns_kern_page_new(struct hydns_kern *k, __u32 i, __u32 epoch, int *map_fd, char why[HYDNS_WHY]);
/* The resolver index whose page this descriptor is, or -ENOENT. */
int hydns_kern_page_find(struct hydns_kern *k, int map_fd);
/* Kernel id of the page that this descriptor is; 0: it is not a page. */
__u32 hydns_kern_page_id(int map_fd);
/* True when no process can write to the page any more: its resolver has ended, however fresh its heartbeat is. */
bool hydns_kern_page_abandoned(struct hydns_kern *k, __u32 i);
int hydns_kern_page_delete(struct hydns_kern *k, __u32 i);
const volatile struct hydns_resolver_page *hydns_kern_page(struct hydns_kern *k, __u32 i); /* NULL: none */

#endif
