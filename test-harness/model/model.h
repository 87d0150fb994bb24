/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A model checker for the shared memory between programs: it runs the project's own code, compiled with
 * -fsanitize=thread and linked with this in place of that sanitizer's library, on two or three threads, through all
 * interleavings of their atomic accesses and all values that a read may return. litmus.c checks the checker.
 *
 * The memory is that of C11 with two restrictions. A thread does not see stores that another one makes after its own later
 * accesses (no "load buffering"); and once somebody else's store is seen, so is all that a fence had made visible to all
 * before it (x86 and arm64 are multi-copy atomic). So a store may become visible late, and to each thread in another order,
 * unless release and acquire, a fence or a grace period orders it: all that x86 (a store after a later load) and arm64 (any
 * two accesses without dependency) do, but for load buffering. Plain accesses are not reordered; two accesses that nothing
 * orders, one a write and one of them plain, are a fault (a data race), which finds every place where their reordering could
 * be seen.
 *
 * Where it is stronger than the machines, and so finds less:
 * - A volatile read, which only the XDP program has, is an atomic one that acquires: it orders all that follows, where an
 *   address dependency orders what depends on it. That the program's accesses do depend on it is not checked.
 * - A compare_exchange that fails reads the newest value, and in the order of one that succeeds; a weak one never fails
 *   without a reason.
 * Where it is weaker than C11, and so may find what cannot be: a sequentially consistent fence tells its thread nothing of
 * sequentially consistent stores before it.
 */
#ifndef HYDNS_MODEL_H
#define HYDNS_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#define MODEL_THREADS 3

/* What is taken away, to see that the model finds it missed. */
enum model_weakness {
	MODEL_SOUND,
	MODEL_NO_RELEASE,      /* release stores are relaxed */
	MODEL_NO_ACQUIRE,      /* acquire loads are relaxed */
	MODEL_NO_FENCE,        /* fences do nothing */
	MODEL_NO_ORDER,        /* sequentially consistent accesses release or acquire, and no more */
	MODEL_NEITHER,         /* both: code that has one and the other needs one of them */
	MODEL_NO_GRACE,        /* a grace period does not wait */
	MODEL_NO_DEPENDENCY,   /* nothing is ordered by a volatile read */
	MODEL_WEAKNESSES
};
extern const char *const model_weakness_name[MODEL_WEAKNESSES];

struct model {
	const char *what;
	void (*begin)(void);                     /* by one thread, before the others */
	void (*thread[MODEL_THREADS])(void);     /* NULL: no more */
	/* By one thread, after the others; half: they have not come to their end, so there is nothing to be looked at. */
	void (*end)(bool half);
};

struct model_result {
	const char *fault;             /* the first that was found; NULL: none */
	unsigned long runs;
	unsigned long cut;             /* runs that went on for too long, and were left */
};

/* Runs all orders, to the first fault. */
struct model_result model_run(const struct model *m, enum model_weakness weakness);

/* -- for the threads of a model ------------------------------------------------------------------------------ */
/* What must hold; otherwise text is the run's fault. */
void model_require(bool holds, const char *text);
/* An XDP program's run: between them it may hold what it has found. */
void model_program_begin(void);
void model_program_end(void);
/* membarrier(MEMBARRIER_CMD_GLOBAL): returns when every program has ended that was running. */
void model_grace(void);
/* A moment that the model remembers, to tell before and after: no memory of the threads, and it orders nothing. */
void model_set_moment(bool is);
bool model_moment(void);

/* A model program's main(): each must be sound, and must fail under these weaknesses (MODEL_SOUND ends the list). */
struct model_case {
	const struct model *model;
	enum model_weakness fails[MODEL_WEAKNESSES];
};
int model_main(const struct model_case *cases, size_t n);

#endif
