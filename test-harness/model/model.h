/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A model checker for the shared memory between programs. It runs the project's own code, compiled with -fsanitize=thread and
 * linked with this instead of the sanitizer's library, on two or three threads, through all interleavings of their atomic
 * accesses and all values that a read may return. litmus.c checks the checker.
 *
 * The memory model is that of C11 with two restrictions. A thread does not see stores that another one makes after its own
 * later accesses (no "load buffering"). And a thread that sees another's store also sees everything that a fence made visible
 * to all before that store (x86 and arm64 are multi-copy atomic). So a store may become visible late, and in another order to
 * each thread, unless release and acquire, a fence or a grace period orders it. That covers all reorderings of x86 (a store
 * after a later load) and arm64 (any two accesses without dependency) but load buffering. Plain accesses are not reordered.
 * Instead, two unordered accesses, of which one is a write and one is plain, are a fault (a data race): this finds every place
 * where their reordering could be seen.
 *
 * The model is stronger than the machines, and so finds less, in two points:
 * - A volatile read, which only the XDP program has, counts as an atomic acquire: it orders everything after it, where an
 *   address dependency orders only what depends on it. The model does not check that the program's accesses depend on it.
 * - A failing compare_exchange reads the newest value, with the memory order of a successful one; a weak one never fails
 *   spuriously.
 * It is weaker than C11, and so may find impossible faults, in one point: a sequentially consistent fence does not make
 * earlier sequentially consistent stores visible to its thread.
 */
#ifndef HYDNS_MODEL_H
#define HYDNS_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#define MODEL_THREADS 3

/* What a run leaves out, to show that the model notices. */
enum model_weakness {
	MODEL_SOUND,
	MODEL_NO_RELEASE,      /* release stores are relaxed */
	MODEL_NO_ACQUIRE,      /* acquire loads are relaxed */
	MODEL_NO_FENCE,        /* fences do nothing */
	MODEL_NO_ORDER,        /* sequentially consistent accesses only release or acquire */
	MODEL_NEITHER,         /* both, for code that has both and needs one of them */
	MODEL_NO_GRACE,        /* a grace period does not wait */
	MODEL_NO_DEPENDENCY,   /* a volatile read orders nothing */
	MODEL_WEAKNESSES
};
extern const char *const model_weakness_name[MODEL_WEAKNESSES];

struct model {
	const char *what;
	void (*begin)(void);                     /* by one thread, before the others */
	void (*thread[MODEL_THREADS])(void);     /* NULL: no more */
	/* By one thread, after the others. half: the others did not come to their end, so there is nothing to check. */
	void (*end)(bool half);
};

struct model_result {
	const char *fault;             /* the first fault found; NULL: none */
	unsigned long runs;
	unsigned long cut;             /* runs that were too long and were abandoned */
};

/* Runs all orders, until the first fault. */
struct model_result model_run(const struct model *m, enum model_weakness weakness);

/* -- for the threads of a model ------------------------------------------------------------------------------ */
/* Checks that something holds; otherwise text is the run's fault. */
void model_require(bool holds, const char *text);
/* Begin and end of an XDP program's run, between which it may hold a rule that it found. */
void model_program_begin(void);
void model_program_end(void);
/* membarrier(MEMBARRIER_CMD_GLOBAL): returns when every program has ended that was running. */
void model_grace(void);
/* A flag of the model itself, to distinguish before and after: it is not in the threads' memory and orders nothing. */
void model_set_moment(bool is);
bool model_moment(void);

/* main() of a model program. Each model must be sound, and must fail with these weaknesses (MODEL_SOUND ends the list). */
struct model_case {
	const struct model *model;
	enum model_weakness fails[MODEL_WEAKNESSES];
};
int model_main(const struct model_case *cases, size_t n);

#endif
