/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The plugin library's seams: wrappers (ld's --wrap, see Makefile.am) around functions that one of its files calls in
 * another.
 */
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "plugin/internal.h"
#include "plugin/tests/seams.h"

static __thread bool first_name;       /* of the offer under way */

/* -- the grace period ------------------------------------------------------------------------------------------ */
static __thread bool is_link;         /* this is the link thread: it has connected */

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number != SYS_membarrier || a != MEMBARRIER_CMD_GLOBAL || !seams)
		return __real_syscall(number, a, b, c, d, e, f);
	atomic_fetch_add(&seams->barriers, 1);
	seam(is_link ? SEAM_LINK : SEAM_NOBODY, "barrier");
	return atomic_load(&seams->no_barrier) ? 0 : __real_syscall(number, a, b, c, d, e, f);
}

/* -- an offer ---------------------------------------------------------------------------------------------------- */
/* Generation and epoch have been read. */
uint64_t __real_hydns_names_changes(const struct hydns_names *t);
uint64_t __wrap_hydns_names_changes(const struct hydns_names *t);
uint64_t __wrap_hydns_names_changes(const struct hydns_names *t)
{
	seam(SEAM_NOBODY, "stamp");
	return __real_hydns_names_changes(t);
}

enum hydns_not_offered_why __real_hydns_wire_dissect(const uint8_t *wire, size_t len, const struct hydns_question *q,
					      struct hydns_wire_answer *out, uint32_t *value);
enum hydns_not_offered_why __wrap_hydns_wire_dissect(const uint8_t *wire, size_t len, const struct hydns_question *q,
					      struct hydns_wire_answer *out, uint32_t *value);
enum hydns_not_offered_why __wrap_hydns_wire_dissect(const uint8_t *wire, size_t len, const struct hydns_question *q,
					      struct hydns_wire_answer *out, uint32_t *value)
{
	seam(SEAM_NOBODY, "encode");
	first_name = true;
	return __real_hydns_wire_dissect(wire, len, q, out, value);
}

bool __real_hydns_names_offer(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what, uint64_t until_ms,
			      uint64_t changes);
bool __wrap_hydns_names_offer(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what, uint64_t until_ms,
			      uint64_t changes);
bool __wrap_hydns_names_offer(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what, uint64_t until_ms,
			      uint64_t changes)
{
	if (first_name)
		seam(SEAM_NOBODY, "names");
	first_name = false;
	return __real_hydns_names_offer(t, name, len, what, until_ms, changes);
}

void *__real_hydns_producer_reserve(struct hydns_producer *r, uint32_t len, uint32_t spare);
void *__wrap_hydns_producer_reserve(struct hydns_producer *r, uint32_t len, uint32_t spare);
void *__wrap_hydns_producer_reserve(struct hydns_producer *r, uint32_t len, uint32_t spare)
{
	seam(SEAM_NOBODY, "reserve");
	return __real_hydns_producer_reserve(r, len, spare);
}

bool __real_hydns_producer_commit(struct hydns_producer *r, uint32_t len);
bool __wrap_hydns_producer_commit(struct hydns_producer *r, uint32_t len);
bool __wrap_hydns_producer_commit(struct hydns_producer *r, uint32_t len)
{
	bool wake;

	seam(SEAM_NOBODY, "offer");
	wake = __real_hydns_producer_commit(r, len);
	seam(SEAM_NOBODY, "offered");
	return wake;
}

/* -- a change, a withdrawal -------------------------------------------------------------------------------------- */
bool __real_hydns_names_change(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what, uint64_t now_ms);
bool __wrap_hydns_names_change(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what, uint64_t now_ms);
bool __wrap_hydns_names_change(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what, uint64_t now_ms)
{
	seam(SEAM_NOBODY, "note");
	return __real_hydns_names_change(t, name, len, what, now_ms);
}

uint64_t __real_hydns_pages_advance_generation(struct hydns_pages *g);
uint64_t __wrap_hydns_pages_advance_generation(struct hydns_pages *g);
uint64_t __wrap_hydns_pages_advance_generation(struct hydns_pages *g)
{
	uint64_t generation;

	seam(SEAM_NOBODY, "advance");
	generation = __real_hydns_pages_advance_generation(g);
	seam(SEAM_NOBODY, "advanced");
	return generation;
}

bool __real_hydns_requests_ask(struct hydns_requests *r, struct hydns_request *q, uint32_t timeout_ms);
bool __wrap_hydns_requests_ask(struct hydns_requests *r, struct hydns_request *q, uint32_t timeout_ms);
bool __wrap_hydns_requests_ask(struct hydns_requests *r, struct hydns_request *q, uint32_t timeout_ms)
{
	seam(SEAM_NOBODY, "ask");
	return __real_hydns_requests_ask(r, q, timeout_ms);
}

bool __real_hydns_pending_add(struct hydns_pending *o, struct hydns_pages *g, const struct hydns_withdraw *w, uint32_t place,
			   struct hydns_suspension *in);
bool __wrap_hydns_pending_add(struct hydns_pending *o, struct hydns_pages *g, const struct hydns_withdraw *w, uint32_t place,
			   struct hydns_suspension *in);
bool __wrap_hydns_pending_add(struct hydns_pending *o, struct hydns_pages *g, const struct hydns_withdraw *w, uint32_t place,
			   struct hydns_suspension *in)
{
	bool room;

	seam(SEAM_NOBODY, "owe");
	room = __real_hydns_pending_add(o, g, w, place, in);
	seam(SEAM_NOBODY, "pending");
	return room;
}

void __real_hydns_pages_advance_epoch(struct hydns_pages *g);
void __wrap_hydns_pages_advance_epoch(struct hydns_pages *g);
void __wrap_hydns_pages_advance_epoch(struct hydns_pages *g)
{
	seam(SEAM_NOBODY, "kill");
	__real_hydns_pages_advance_epoch(g);
}

/* -- the link thread ---------------------------------------------------------------------------------------------- */
int __real_hydns_channel_connect(const char *path);
int __wrap_hydns_channel_connect(const char *path);
int __wrap_hydns_channel_connect(const char *path)
{
	is_link = true;
	seam(SEAM_LINK, "connect");
	return __real_hydns_channel_connect(path);
}

/* A reply, or the end of the connection. */
int __real_hydns_channel_receive(int sock, struct hydns_channel_message *m);
int __wrap_hydns_channel_receive(int sock, struct hydns_channel_message *m);
int __wrap_hydns_channel_receive(int sock, struct hydns_channel_message *m)
{
	seam(SEAM_LINK, "hear");
	return __real_hydns_channel_receive(sock, m);
}

int __real_hydns_pages_switch(struct hydns_pages *g, int map_fd, uint32_t epoch, uint64_t mono_ns);
int __wrap_hydns_pages_switch(struct hydns_pages *g, int map_fd, uint32_t epoch, uint64_t mono_ns);
int __wrap_hydns_pages_switch(struct hydns_pages *g, int map_fd, uint32_t epoch, uint64_t mono_ns)
{
	int error;

	seam(SEAM_LINK, "adopt");
	error = __real_hydns_pages_switch(g, map_fd, epoch, mono_ns);
	seam(SEAM_LINK, "adopted");
	return error;
}

/* Only the order protects these and `ready`. */
void __real_hydns_requests_accept(struct hydns_requests *r, bool accepting);
void __wrap_hydns_requests_accept(struct hydns_requests *r, bool accepting);
void __wrap_hydns_requests_accept(struct hydns_requests *r, bool accepting)
{
	seam(SEAM_LINK, accepting ? "accept" : "close");
	__real_hydns_requests_accept(r, accepting);
	seam(SEAM_LINK, accepting ? "accepted" : "closed");
}

bool __real_hydns_pending_resume(struct hydns_pending *o, struct hydns_pages *g);
bool __wrap_hydns_pending_resume(struct hydns_pending *o, struct hydns_pages *g);
bool __wrap_hydns_pending_resume(struct hydns_pending *o, struct hydns_pages *g)
{
	seam(SEAM_LINK, "resume");
	return __real_hydns_pending_resume(o, g);
}
