/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "policy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE      64
#define HUGE_PAGE ((size_t)1 << 21)

void *hydns_table_new(size_t size)
{
	size_t align = size < HUGE_PAGE ? LINE : HUGE_PAGE, whole = (size + align - 1) / align * align;
	void *p = aligned_alloc(align, whole);

	if (!p)
		return NULL;
	if (align == HUGE_PAGE)
		madvise(p, whole, MADV_HUGEPAGE); /* without huge pages it is only slower */
	return memset(p, 0, size);
}
