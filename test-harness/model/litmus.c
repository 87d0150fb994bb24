/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks the checker (model.c) with programs of a few accesses and known outcomes: it must find an outcome that the memory
 * model of model.h allows, and must not find one that it forbids.
 */
#include <stdio.h>

#include "test-harness/model/model.h"

#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE
#define SEQ_CST __ATOMIC_SEQ_CST
#define SET(object, order)  __atomic_store_n(&(object), 1, order)
#define GET(object, order)  __atomic_load_n(&(object), order)
#define FENCE()             __atomic_thread_fence(SEQ_CST)

static int x, y, z;
static int plain_data;
static int a1, a2, b1, b2;             /* values that the threads have read */

static void begin(void)
{
	__atomic_store_n(&x, 0, RELAXED);
	__atomic_store_n(&y, 0, RELAXED);
	__atomic_store_n(&z, 0, RELAXED);
	a1 = a2 = b1 = b2 = -1;
}

#define THREAD(name, ...) static void name(void) { __VA_ARGS__; }
#define END(name, first, first_value, second, second_value) \
	static void name(bool half) \
	{ \
		model_require(half || (first) != (first_value) || (second) != (second_value), "the end is found"); \
	}
END(saw_second_not_first, b1, 1, b2, 0)
END(neither_saw, a1, 0, b1, 0)
END(each_saw, a1, 1, b1, 1)

/* -- two stores, read in reverse order ------------------------------------------------------------------------------- */
THREAD(both_relaxed, SET(x, RELAXED); SET(z, RELAXED))
THREAD(both_and_release, SET(x, RELAXED); SET(z, RELEASE))
THREAD(fence_behind, SET(x, RELAXED); SET(z, RELAXED); FENCE())
THREAD(fence_between, SET(x, RELAXED); FENCE(); SET(z, RELAXED))
THREAD(read_relaxed, b1 = GET(z, RELAXED); b2 = GET(x, RELAXED))
THREAD(read_acquire, b1 = GET(z, ACQUIRE); b2 = GET(x, RELAXED))
THREAD(read_ordered, b1 = GET(z, RELAXED); b2 = GET(x, SEQ_CST))
THREAD(read_fence, b1 = GET(z, RELAXED); FENCE(); b2 = GET(x, RELAXED))

/* -- each thread stores, and reads what the other stores ------------------------------------------------------------- */
THREAD(x_then_y, SET(x, RELAXED); a1 = GET(y, RELAXED))
THREAD(y_then_x, SET(y, RELAXED); b1 = GET(x, RELAXED))
THREAD(x_fence_y, SET(x, RELAXED); FENCE(); a1 = GET(y, RELAXED))
THREAD(y_fence_x, SET(y, RELAXED); FENCE(); b1 = GET(x, RELAXED))
THREAD(x_ordered_y, SET(x, SEQ_CST); a1 = GET(y, SEQ_CST))
THREAD(y_ordered_x, SET(y, SEQ_CST); b1 = GET(x, SEQ_CST))
/* and in reverse: load buffering, which the model leaves out */
THREAD(y_before_x, a1 = GET(y, RELAXED); SET(x, RELAXED))
THREAD(x_before_y, b1 = GET(x, RELAXED); SET(y, RELAXED))

/* -- plain accesses --------------------------------------------------------------------------------------------------- */
THREAD(plain_then_flag, plain_data = 1; SET(z, RELEASE))
THREAD(flag_then_plain, if (GET(z, ACQUIRE)) a1 = plain_data)
THREAD(relaxed_flag_then_plain, if (GET(z, RELAXED)) a1 = plain_data)
THREAD(plain_x, x = 1)
THREAD(read_x_plain, b1 = x)
THREAD(atomic_x, SET(x, RELAXED))
THREAD(read_x, a1 = GET(x, RELAXED))

static const struct litmus {
	struct model model;
	bool found;                    /* does the checker find the outcome, or a fault? */
} litmus[] = {
	{ { "message, relaxed", begin, { both_relaxed, read_relaxed }, saw_second_not_first }, true },
	{ { "message, released, read relaxed", begin, { both_and_release, read_relaxed }, saw_second_not_first }, true },
	{ { "message, released and acquired", begin, { both_and_release, read_acquire }, saw_second_not_first }, false },
	{ { "message, a fence behind both stores", begin, { fence_behind, read_ordered }, saw_second_not_first }, true },
	{ { "the same, threads in the other order", begin, { read_ordered, fence_behind }, saw_second_not_first }, true },
	{ { "message, a fence between the stores", begin, { fence_between, read_ordered }, saw_second_not_first }, false },
	{ { "message, a fence on either side", begin, { fence_between, read_fence }, saw_second_not_first }, false },
	{ { "stores and loads, relaxed", begin, { x_then_y, y_then_x }, neither_saw }, true },
	{ { "stores and loads, one fence", begin, { x_fence_y, y_then_x }, neither_saw }, true },
	{ { "stores and loads, fences", begin, { x_fence_y, y_fence_x }, neither_saw }, false },
	{ { "stores and loads, ordered", begin, { x_ordered_y, y_ordered_x }, neither_saw }, false },
	/* C11 forbids this outcome: a fence must see ordered stores. The model is weaker here, so it can only find too much. */
	{ { "stores and loads, a fence and ordered ones", begin, { x_fence_y, y_ordered_x }, neither_saw }, true },
	{ { "loads and stores", begin, { y_before_x, x_before_y }, each_saw }, false },
	{ { "plain data behind a flag", begin, { plain_then_flag, flag_then_plain }, NULL }, false },
	{ { "plain data behind a relaxed flag", begin, { plain_then_flag, relaxed_flag_then_plain }, NULL }, true },
	{ { "a plain write and an atomic read", begin, { plain_x, read_x }, NULL }, true },
	{ { "an atomic write and a plain read", begin, { atomic_x, read_x_plain }, NULL }, true },
	{ { "a plain write and an atomic one", begin, { plain_x, atomic_x }, NULL }, true },
	{ { "a plain read and an atomic one", begin, { read_x_plain, read_x }, NULL }, false },
};

int main(void)
{
	bool good = true;

	for (size_t i = 0; i < sizeof(litmus) / sizeof(litmus[0]); i++) {
		struct model_result r = model_run(&litmus[i].model, MODEL_SOUND);
		bool right = !r.cut && litmus[i].found == (r.fault != NULL);

		printf("%s %s: %lu runs, %s\n", right ? "ok  " : "FAIL", litmus[i].model.what, r.runs, r.fault ? r.fault : "no fault");
		good &= right;
	}
	return good ? 0 : 1;
}
