/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Resolver pages: one mmapable map for each registration of a resolver. A new registration gets a new map: a former plugin
 * that still has the old one writes where the program no longer looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

static int outer(const struct hydns_kern *k)
{
	return bpf_map__fd(k->skel->maps.hydns_pages);
}

static void page_name(char name[16], __u32 i)
{
	snprintf(name, 16, "%u", i);
}

static void page_unpin(const struct hydns_kern *k, __u32 i)
{
	char name[16], path[PATH_MAX];

	page_name(name, i);
	if (!hydns_pin_path(path, k->pin_dir, HYDNS_PIN_PAGE, name))
		unlink(path);
}

static void page_close(struct hydns_page *p)
{
	hydns_unmap_memory(&p->mapping);
	if (p->map_fd >= 0)
		close(p->map_fd);
	*p = (struct hydns_page){ .map_fd = -1 };
}

/* A page that is pinned but not in use, or in use but not pinned (a crash between the two), is not adopted: the
 * resolver gets a new one when it connects. */
static bool page_adopt(struct hydns_kern *k, __u32 i)
{
	struct hydns_page *p = &k->page[i];
	char name[16], path[PATH_MAX];
	__u32 id;

	page_name(name, i);
	if (bpf_map_lookup_elem(outer(k), &i, &id) ||
	    hydns_pin_path(path, k->pin_dir, HYDNS_PIN_PAGE, name))
		return false;
	p->map_fd = bpf_obj_get(path);
	if (p->map_fd < 0)
		return false;
	p->map_id = hydns_map_id(p->map_fd);
	if (p->map_id == id && !hydns_map_memory(p->map_fd, false, &p->mapping))
		return true;
	page_close(p);
	return false;
}

void hydns_pages_open(struct hydns_kern *k)
{
	for (__u32 i = 0; i < HYDNS_RESOLVERS; i++)
		if (!page_adopt(k, i))
			hydns_kern_page_delete(k, i);
}

void hydns_pages_close(struct hydns_kern *k)
{
	for (int i = 0; i < HYDNS_RESOLVERS; i++)
		page_close(&k->page[i]);
}

/* Makes a map of a page, with its first epoch, and its buckets. The heartbeat is 0, so that nothing is answered yet. */
static int page_make(__u32 epoch, struct hydns_page *p)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct hydns_resolver_page content = { .epoch = epoch };
	__u32 key = 0;
	int err;

	p->map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hydns_page", sizeof(key), sizeof(content), HYDNS_PAGE_ELEMENTS,
				  &opts);
	if (p->map_fd < 0)
		return p->map_fd;
	p->map_id = hydns_map_id(p->map_fd);
	err = bpf_map_update_elem(p->map_fd, &key, &content, BPF_ANY);
	if (!err)
		err = hydns_map_memory(p->map_fd, false, &p->mapping);
	return err;
}

int hydns_kern_page_new(struct hydns_kern *k, __u32 i, __u32 epoch, int *map_fd, char why[HYDNS_WHY])
{
	struct hydns_page page = { .map_fd = -1 };
	char name[16];
	int err, copy_fd = -1;

	if (i >= HYDNS_RESOLVERS)
		return hydns_fail(why, -EINVAL, "there are %d resolvers at most", HYDNS_RESOLVERS);
	page_name(name, i);
	err = page_make(epoch, &page);
	if (!err && (copy_fd = fcntl(page.map_fd, F_DUPFD_CLOEXEC, 0)) < 0)
		err = -errno;
	if (!err)
		err = hydns_pin_replace(page.map_fd, k->pin_dir, HYDNS_PIN_PAGE, name);
	if (!err)
		err = bpf_map_update_elem(outer(k), &i, &page.map_fd, BPF_ANY);
	if (err) {
		page_close(&page);
		if (copy_fd >= 0)
			close(copy_fd);
		return hydns_fail(why, err, "can't make a resolver page: %s", strerror(-err));
	}
	page_close(&k->page[i]);
	k->page[i] = page;
	*map_fd = copy_fd;
	return 0;
}

__u32 hydns_kern_page_id(int map_fd)
{
	union {
		struct bpf_map_info map;
		__u8 any[512];                 /* info of other kinds of objects is larger */
	} info = { 0 };
	struct hydns_resolver_page content;
	__u32 len = sizeof(info), key = 0;

	if (bpf_obj_get_info_by_fd(map_fd, &info, &len) || info.map.value_size != sizeof(content) ||
	    info.map.max_entries != HYDNS_PAGE_ELEMENTS)
		return 0;
	/* Only a map can be looked up: ids of programs and links may be the same numbers. */
	return bpf_map_lookup_elem(map_fd, &key, &content) ? 0 : info.map.id;
}

int hydns_kern_page_find(struct hydns_kern *k, int map_fd)
{
	__u32 id = hydns_kern_page_id(map_fd);

	for (int i = 0; id && i < HYDNS_RESOLVERS; i++)
		if (k->page[i].map_fd >= 0 && k->page[i].map_id == id)
			return i;
	return -ENOENT;
}

/*
 * The kernel refuses to freeze a map that is mapped for writing. So freezing fails while the resolver lives; after
 * its end the frozen page can't be mapped for writing again, and its heartbeat stays.
 */
bool hydns_kern_page_abandoned(struct hydns_kern *k, __u32 i)
{
	struct hydns_page *p = i < HYDNS_RESOLVERS ? &k->page[i] : NULL;

	if (!p || p->map_fd < 0)
		return true;
	p->abandoned = p->abandoned || !bpf_map_freeze(p->map_fd);
	return p->abandoned;
}

int hydns_kern_page_delete(struct hydns_kern *k, __u32 i)
{
	int err;

	if (i >= HYDNS_RESOLVERS)
		return -EINVAL;
	err = bpf_map_delete_elem(outer(k), &i);
	page_close(&k->page[i]);
	page_unpin(k, i);
	return err == -ENOENT ? 0 : err;
}

const volatile struct hydns_resolver_page *hydns_kern_page(struct hydns_kern *k, __u32 i)
{
	return i < HYDNS_RESOLVERS ? k->page[i].mapping.at : NULL;
}
