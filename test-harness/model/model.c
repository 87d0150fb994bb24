/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Each thread is a coroutine, so that a list of choices (which thread goes on, which store a load reads) determines a run and
 * repeats it. The checker tries all lists, depth first. Every atomic object has the list of its stores, each with what an
 * acquiring reader learns from it (a vector clock); memory itself holds the newest. A thread is switched only before an access
 * to an object that another thread uses too. Runs discover such objects: after a new one the search starts again. Of orders
 * that differ only in independent steps one is run (sleep sets: P. Godefroid, Partial-Order Methods for the Verification of
 * Concurrent Systems, 1996).
 */
#include "model.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* The linker's --wrap redirects the project's calls of these to the functions below, and not the checker's own. */
void *__real_memcpy(void *to, const void *from, size_t n);
void *__real_memset(void *to, int octet, size_t n);
int __real_memcmp(const void *a, const void *b, size_t n);

#define OBJECTS  1024          /* atomic ones in a run */
#define STORES   64            /* to one of them */
#define DEPTH    4096          /* choices in a run; a run with more is abandoned */
#define SHADOWS  (1U << 16)    /* octets that were accessed in a run */
#define STACK    (256 * 1024)
#define ALL      (MODEL_THREADS + 1)    /* the threads, and number 0, which begins and ends a run */

const char *const model_weakness_name[MODEL_WEAKNESSES] = {
	"as it is", "without release", "without acquire", "without fences", "without sequential consistency",
	"without fences and sequential consistency",
	"without grace periods", "without dependencies",
};

struct clock {
	uint32_t at[ALL];
};

struct store {
	uint64_t value;
	unsigned by;
	uint32_t at;                   /* of by's clock */
	struct clock handed_on;        /* what an acquiring reader learns */
	struct clock visible;          /* what a fence had made visible to every thread before */
	bool ordered;                  /* sequentially consistent */
};

struct object {
	uintptr_t address;
	unsigned size, stores;
	struct store store[STORES];
	/* when each thread first read or made each store: a reader that knows of that may not read an older store */
	uint32_t seen[ALL][STORES];    /* by thread and store: the thread's clock then; 0: never */
};

struct shadow {                        /* of an octet */
	uintptr_t address;
	unsigned run;
	unsigned by;
	uint32_t written;
	uint32_t read[ALL];
	uint32_t stored[ALL], loaded[ALL];      /* atomically */
};

/* A thread's next step. */
enum step_kind {
	STEP_OWN,                      /* independent of all other steps */
	STEP_READ, STEP_ORDERED_READ, STEP_WRITE,      /* of the object at this address; ordered: sequentially consistent */
	STEP_FENCE,                    /* a sequentially consistent one */
	STEP_PROGRAM,                  /* begin or end of a program */
	STEP_GRACE,                    /* a grace period: depends on all threads */
};
struct step {
	enum step_kind kind;
	uintptr_t address;
};

struct thread {
	ucontext_t context;
	struct step step;
	void (*run)(void);
	struct clock clock;
	struct clock released;         /* its clock at its last release fence */
	struct clock to_acquire;       /* what its next acquire fence learns */
	bool (*ready)(void);           /* NULL: it can go on */
	bool done;
	bool in_program;
	unsigned waits_for;            /* bits of threads whose programs its grace period waits for */
	struct clock after_grace;      /* what it learns when the grace period is over */
};

static struct {
	const struct model *model;
	enum model_weakness weakness;
	struct thread thread[ALL];
	unsigned threads;              /* without number 0 */
	unsigned now;                  /* the running thread */
	bool running;
	ucontext_t scheduler;
	struct clock fences;           /* sequentially consistent ones so far */
	struct clock grace;            /* what was known when grace periods began; programs that begin later learn it */
	struct object object[OBJECTS];
	unsigned objects;
	const char *fault;
	bool cut;
	bool moment;
	bool redundant;                /* abandoned: another run was the same */
	/* a volatile read gets an older value, which stays in memory until that thread's next access */
	uintptr_t patched;
	uint64_t patch_value;
	unsigned patch_size;
} m;

static struct shadow shadow[SHADOWS];
static unsigned run_number;
static char *stack[ALL];

/* Choices, and the objects that several threads use (they outlive runs). */
static struct {
	uint16_t choice[DEPTH], options[DEPTH];
	unsigned depth, fixed;
	uintptr_t shared[OBJECTS];
	unsigned shareds;
	bool found_shared;             /* this run has found a new one */
	unsigned users[OBJECTS];       /* bits of threads, by object of the run */
} tree;

/* -- choices --------------------------------------------------------------------------------------------------- */
static unsigned choose(unsigned options)
{
	unsigned pick = 0;

	if (options < 2)
		return 0;
	if (tree.depth == DEPTH) {
		m.cut = true;
		return 0;
	}
	if (tree.depth < tree.fixed) {
		pick = tree.choice[tree.depth];
		if (options != tree.options[tree.depth]) {
			fprintf(stderr, "model: choice %u of a run has %u options, and had %u: the model depends on more than "
				"its choices\n", tree.depth, options, tree.options[tree.depth]);
			abort();
		}
	}
	tree.choice[tree.depth] = (uint16_t)pick;
	tree.options[tree.depth++] = (uint16_t)options;
	return pick;
}

static bool next_list(void)
{
	unsigned depth = tree.depth;

	while (depth && tree.choice[depth - 1] + 1U >= tree.options[depth - 1])
		depth--;
	if (!depth)
		return false;
	tree.choice[depth - 1]++;
	tree.fixed = depth;
	return true;
}

/* -- clocks ---------------------------------------------------------------------------------------------------- */
static void learn(struct clock *to, const struct clock *from)
{
	for (unsigned i = 0; i < ALL; i++)
		if (from->at[i] > to->at[i])
			to->at[i] = from->at[i];
}

static struct thread *self(void)
{
	return &m.thread[m.now];
}

/* Advances the thread's clock before and after it is handed on, so that it covers all before and nothing after. */
static uint32_t tick(void)
{
	return ++self()->clock.at[m.now];
}

static bool knows(const struct clock *c, unsigned by, uint32_t at)
{
	return c->at[by] >= at;
}

static void fault(const char *text)
{
	if (!m.fault && m.weakness == MODEL_SOUND && getenv("MODEL_STOP"))
		abort();               /* stops a debugger at the fault */
	if (!m.fault)
		m.fault = text;
}

/* -- threads --------------------------------------------------------------------------------------------------- */
static void leave(void)
{
	swapcontext(&self()->context, &m.scheduler);
}

static void give_way(enum step_kind kind, uintptr_t address)
{
	if (!m.now)
		return;
	self()->step = (struct step){ kind, address };
	leave();
}

static void trampoline(void)
{
	self()->run();
	self()->done = true;
	leave();
}

static bool can_go_on(unsigned i)
{
	return !m.thread[i].done && (!m.thread[i].ready || m.thread[i].ready());
}

static bool accesses(const struct step *s)
{
	return s->kind == STEP_READ || s->kind == STEP_ORDERED_READ || s->kind == STEP_WRITE;
}

/* False when the two steps may be swapped without effect. A fence makes what came before it visible to ordered reads, and to
 * every thread that sees a store after it. */
static bool concerns(const struct step *a, const struct step *b)
{
	if (a->kind == STEP_GRACE || b->kind == STEP_GRACE)
		return true;
	if (accesses(a) && accesses(b))
		return a->address == b->address && (a->kind == STEP_WRITE || b->kind == STEP_WRITE);
	if (a->kind == STEP_FENCE || b->kind == STEP_FENCE) {
		enum step_kind other = a->kind == STEP_FENCE ? b->kind : a->kind;

		return other == STEP_FENCE || other == STEP_ORDERED_READ || other == STEP_WRITE;
	}
	return a->kind == b->kind && a->kind != STEP_OWN;
}

/* Threads that went on from here in former runs sleep until another thread does a step on which their next one depends:
 * otherwise the order would repeat a former one. */
static unsigned asleep_after(unsigned asleep, const unsigned *who, unsigned pick)
{
	for (unsigned i = 0; i < pick; i++)
		asleep |= 1U << who[i];
	for (unsigned i = 1; i <= m.threads; i++)
		if (concerns(&m.thread[i].step, &m.thread[who[pick]].step))
			asleep &= ~(1U << i);
	return asleep;
}

/* One run of the threads. */
static void schedule(void)
{
	unsigned asleep = 0;

	for (;;) {
		unsigned who[ALL], n = 0, pick;
		bool all_done = true, any = false;

		for (unsigned i = 1; i <= m.threads; i++) {
			all_done &= m.thread[i].done;
			if (can_go_on(i) && !(asleep & 1U << i))
				who[n++] = i;
			any |= can_go_on(i);
		}
		if (all_done || m.fault || m.cut)
			return;
		if (n == 0) {
			m.redundant = any;
			if (!any)
				fault("all threads wait for each other");
			return;
		}
		pick = choose(n);
		asleep = asleep_after(asleep, who, pick);
		m.now = who[pick];
		m.running = true;
		swapcontext(&m.scheduler, &self()->context);
		m.running = false;
		m.now = 0;
	}
}

/* -- data races ---------------------------------------------------------------------------------------------------- */
static struct shadow *shadow_of(uintptr_t address)
{
	unsigned i = (unsigned)((address * 0x9e3779b97f4a7c15ULL) >> 48) % SHADOWS;

	for (unsigned n = 0; n < SHADOWS; n++, i = (i + 1) % SHADOWS) {
		if (shadow[i].run == run_number && shadow[i].address == address)
			return &shadow[i];
		if (shadow[i].run != run_number) {
			shadow[i] = (struct shadow){ .address = address, .run = run_number };
			return &shadow[i];
		}
	}
	fprintf(stderr, "model: accesses to more than %u octets\n", SHADOWS);
	abort();
}

/* No other thread sees a coroutine's stack. */
static bool on_stack(uintptr_t address)
{
	for (unsigned i = 0; i < ALL; i++)
		if (stack[i] && address - (uintptr_t)stack[i] < STACK)
			return true;
	return false;
}

/* True when another thread has made such an access that nothing orders before this thread's. */
static bool unordered(const uint32_t at[ALL])
{
	for (unsigned t = 0; t < ALL; t++)
		if (at[t] && t != m.now && !knows(&self()->clock, t, at[t]))
			return true;
	return false;
}

static void note_octet(struct shadow *s, bool writes, bool atomic)
{
	uint32_t now = self()->clock.at[m.now];

	if (s->written && s->by != m.now && !knows(&self()->clock, s->by, s->written))
		fault("a data race: an access meets a write that nothing orders");
	if (writes && unordered(s->read))
		fault("a data race: a write meets a read that nothing orders");
	if (!atomic && (unordered(s->stored) || (writes && unordered(s->loaded))))
		fault("a data race: a plain access meets an atomic one that nothing orders");
	if (atomic) {
		(writes ? s->stored : s->loaded)[m.now] = now;
	} else if (writes) {
		s->by = m.now;
		s->written = now;
	} else {
		s->read[m.now] = now;
	}
}

static void record_access(uintptr_t address, size_t size, bool writes, bool atomic)
{
	if (!m.running || on_stack(address))
		return;
	for (size_t n = 0; n < size; n++)
		note_octet(shadow_of(address + n), writes, atomic);
}

/* -- atomic objects ---------------------------------------------------------------------------------------------- */
static uint64_t peek(uintptr_t address, unsigned size)
{
	uint64_t value = 0;

	__real_memcpy(&value, (const void *)address, size);
	return value;
}

static void poke(uintptr_t address, unsigned size, uint64_t value)
{
	__real_memcpy((void *)address, &value, size);
}

static void unpatch(void)
{
	uintptr_t at = m.patched;

	m.patched = 0;
	if (at)
		poke(at, m.patch_size, m.patch_value);
}

static struct store *append(struct object *o)
{
	if (o->stores == STORES) {
		m.cut = true;
		o->stores--;
	}
	o->store[o->stores] = (struct store){ .by = m.now };
	return &o->store[o->stores++];
}

static bool is_shared(uintptr_t address)
{
	for (unsigned i = 0; i < tree.shareds; i++)
		if (tree.shared[i] == address)
			return true;
	return false;
}

static void record_user(struct object *o)
{
	unsigned *users = &tree.users[o - m.object];

	*users |= m.now ? 1U << m.now : 0;
	if ((*users & (*users - 1)) && !is_shared(o->address) && tree.shareds < OBJECTS) {
		tree.shared[tree.shareds++] = o->address;
		tree.found_shared = true;
	}
}

static struct object *object(uintptr_t address, unsigned size)
{
	struct object *o;

	unpatch();
	for (o = m.object; o < m.object + m.objects; o++)
		if (o->address == address)
			break;
	if (o == m.object + m.objects) {
		if (m.objects == OBJECTS) {
			fprintf(stderr, "model: more than %d atomic objects\n", OBJECTS);
			abort();
		}
		m.objects++;
		o->address = address;
		o->size = size;
		o->stores = 1;
		o->store[0] = (struct store){ .value = peek(address, size) };
		__real_memset(o->seen, 0, sizeof(o->seen));
		tree.users[o - m.object] = 0;
	} else if (peek(address, size) != o->store[o->stores - 1].value) {
		append(o)->value = peek(address, size); /* a plain write, which no other thread may have seen meanwhile */
		o->store[o->stores - 1].at = self()->clock.at[m.now];
		o->store[o->stores - 1].handed_on = self()->clock;
	}
	record_user(o);
	return o;
}

/* Switches threads before an access to a shared object. */
static void at_access(uintptr_t address, enum step_kind kind)
{
	unpatch();
	if (is_shared(address))
		give_way(kind, address);
}

/* The oldest store that a load may read. A sequentially consistent one reads nothing older than what a sequentially
 * consistent store, or a fence after a store, has made visible to all (C11, 7.17.3, paragraphs 6 and 9). */
static unsigned oldest(const struct object *o, bool ordered)
{
	const struct clock *c = &self()->clock;

	for (unsigned i = o->stores; i-- > 1; ) {
		if (knows(c, o->store[i].by, o->store[i].at) || 
		    (ordered && (o->store[i].ordered || knows(&m.fences, o->store[i].by, o->store[i].at))))
			return i;
		for (unsigned t = 0; t < ALL; t++)
			if (o->seen[t][i] && knows(c, t, o->seen[t][i]))
				return i;
	}
	return 0;
}

static void see(struct object *o, unsigned i)
{
	if (!o->seen[m.now][i])
		o->seen[m.now][i] = tick();
}

/* The memory order that the weakness leaves of this one. */
static bool acquires(int order)
{
	return m.weakness != MODEL_NO_ACQUIRE && (order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME ||
						   order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST);
}

static bool releases(int order)
{
	return m.weakness != MODEL_NO_RELEASE &&
	       (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST);
}

static bool ordered(int order)
{
	return m.weakness != MODEL_NO_ORDER && m.weakness != MODEL_NEITHER && order == __ATOMIC_SEQ_CST;
}

/* Both machines are multi-copy atomic: a thread that sees another's store also sees all that was visible to all before it. A
 * thread may see its own store before others do, so that shows nothing, unless the load is sequentially consistent. */
static void take_released(const struct store *s, int order)
{
	struct clock *to = acquires(order) ? &self()->clock : &self()->to_acquire;

	learn(to, &s->handed_on);
	if (s->by != m.now || ordered(order))
		learn(to, &s->visible);
}

static void put(struct object *o, uint64_t value, int order, const struct clock *chain)
{
	struct store *s;
	uint32_t at = tick();

	s = append(o);
	s->value = value;
	s->at = at;
	s->handed_on = releases(order) ? self()->clock : self()->released;
	if (chain)
		learn(&s->handed_on, chain);
	s->ordered = ordered(order);
	s->visible = m.fences;
	o->seen[m.now][o->stores - 1] = at;
	poke(o->address, o->size, value);
	tick();
}

static uint64_t load(uintptr_t address, unsigned size, int order)
{
	struct object *o;
	unsigned first, i;

	at_access(address, ordered(order) ? STEP_ORDERED_READ : STEP_READ);
	o = object(address, size);
	record_access(address, size, false, true);
	first = oldest(o, ordered(order));
	/* the newest first: most runs are as without reordering */
	i = o->stores - 1 - choose(o->stores - first);
	see(o, i);
	take_released(&o->store[i], order);
	return o->store[i].value;
}

static void store(uintptr_t address, unsigned size, uint64_t value, int order)
{
	struct object *o;

	at_access(address, STEP_WRITE);
	o = object(address, size);
	record_access(address, size, true, true);
	put(o, value, order, NULL);
}

/* Reads the newest store, for a store after it; *was is its value. */
static struct object *modify(uintptr_t address, unsigned size, int order, uint64_t *was, struct clock *chain)
{
	struct object *o;
	struct store *s;

	at_access(address, STEP_WRITE);
	o = object(address, size);
	record_access(address, size, true, true);
	s = &o->store[o->stores - 1];
	see(o, o->stores - 1);
	take_released(s, order);
	*was = s->value;
	*chain = s->handed_on;
	return o;
}

static uint64_t mask(unsigned size)
{
	return size == 8 ? ~0ULL : (1ULL << (8 * size)) - 1;
}

#define ATOMIC(bits, type) \
	type __tsan_atomic##bits##_load(const volatile type *a, int order); \
	type __tsan_atomic##bits##_load(const volatile type *a, int order) \
	{ return (type)load((uintptr_t)a, bits / 8, order); } \
	void __tsan_atomic##bits##_store(volatile type *a, type v, int order); \
	void __tsan_atomic##bits##_store(volatile type *a, type v, int order) \
	{ store((uintptr_t)a, bits / 8, v, order); } \
	MODIFY(bits, type, exchange, v) MODIFY(bits, type, fetch_add, was + v) MODIFY(bits, type, fetch_sub, was - v) \
	MODIFY(bits, type, fetch_and, was & v) MODIFY(bits, type, fetch_or, was | v) MODIFY(bits, type, fetch_xor, was ^ v) \
	EXCHANGE(bits, type, strong) EXCHANGE(bits, type, weak) \
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *a, type e, type v, int order, int failed); \
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *a, type e, type v, int order, int failed) \
	{ __tsan_atomic##bits##_compare_exchange_strong(a, &e, v, order, failed); return e; }
#define MODIFY(bits, type, name, becomes) \
	type __tsan_atomic##bits##_##name(volatile type *a, type v, int order); \
	type __tsan_atomic##bits##_##name(volatile type *a, type v, int order) \
	{ \
		struct clock chain; \
		uint64_t was; \
		struct object *o = modify((uintptr_t)a, bits / 8, order, &was, &chain); \
		put(o, (becomes) & mask(bits / 8), order, &chain); \
		return (type)was; \
	}
#define EXCHANGE(bits, type, kind) \
	int __tsan_atomic##bits##_compare_exchange_##kind(volatile type *a, type *e, type v, int order, int failed); \
	int __tsan_atomic##bits##_compare_exchange_##kind(volatile type *a, type *e, type v, int order, int failed) \
	{ \
		struct clock chain; \
		uint64_t was; \
		struct object *o = modify((uintptr_t)a, bits / 8, order, &was, &chain); \
		(void)failed; \
		if ((type)was != *e) { \
			*e = (type)was; \
			return 0; \
		} \
		put(o, v, order, &chain); \
		return 1; \
	}
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
	struct thread *t = self();

	unpatch();
	if (m.weakness == MODEL_NO_FENCE || m.weakness == MODEL_NEITHER)
		return;
	give_way(order == __ATOMIC_SEQ_CST ? STEP_FENCE : STEP_OWN, 0);
	if (order != __ATOMIC_RELEASE)
		learn(&t->clock, &t->to_acquire);
	if (order == __ATOMIC_SEQ_CST) {
		learn(&t->clock, &m.fences);
		tick();
		learn(&m.fences, &t->clock);
	}
	if (order != __ATOMIC_ACQUIRE)
		t->released = t->clock;
	tick();
}

/* -- plain accesses ------------------------------------------------------------------------------------------------ */
static void plain(const void *at, size_t size, bool writes)
{
	unpatch();
	record_access((uintptr_t)at, size, writes, false);
}

#define PLAIN(size) \
	void __tsan_read##size(void *a); \
	void __tsan_read##size(void *a) { plain(a, size, false); } \
	void __tsan_write##size(void *a); \
	void __tsan_write##size(void *a) { plain(a, size, true); } \
	void __tsan_unaligned_read##size(void *a); \
	void __tsan_unaligned_read##size(void *a) { plain(a, size, false); } \
	void __tsan_unaligned_write##size(void *a); \
	void __tsan_unaligned_write##size(void *a) { plain(a, size, true); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *a, size_t size);
void __tsan_read_range(void *a, size_t size) { plain(a, size, false); }
void __tsan_write_range(void *a, size_t size);
void __tsan_write_range(void *a, size_t size) { plain(a, size, true); }

/* The access itself comes next: until the thread's next one, memory holds the value to read. */
static void volatile_read(const void *a, unsigned size)
{
	uint64_t value = load((uintptr_t)a, size, m.weakness == MODEL_NO_DEPENDENCY ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE);

	m.patch_value = peek((uintptr_t)a, size);
	m.patch_size = size;
	m.patched = (uintptr_t)a;
	poke((uintptr_t)a, size, value);
}

#define VOLATILE(size) \
	void __tsan_volatile_read##size(void *a); \
	void __tsan_volatile_read##size(void *a) { volatile_read(a, size); } \
	void __tsan_volatile_write##size(void *a); \
	void __tsan_volatile_write##size(void *a) { plain(a, size, true); }
VOLATILE(1)
VOLATILE(2)
VOLATILE(4)
VOLATILE(8)

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *pc);
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void *pc);
void __tsan_func_exit(void *pc) { (void)pc; }

void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n)
{
	plain(from, n, false);
	plain(to, n, true);
	return __real_memcpy(to, from, n);
}

void *__wrap_memset(void *to, int octet, size_t n);
void *__wrap_memset(void *to, int octet, size_t n)
{
	plain(to, n, true);
	return __real_memset(to, octet, n);
}

int __wrap_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n)
{
	plain(a, n, false);
	plain(b, n, false);
	return __real_memcmp(a, b, n);
}

/* -- programs and grace periods ------------------------------------------------------------------------------------ */
void model_require(bool holds, const char *text)
{
	if (!holds)
		fault(text);
}

void model_program_begin(void)
{
	struct thread *t = self();

	give_way(STEP_PROGRAM, 0);
	learn(&t->clock, &m.grace);
	t->in_program = true;
}

void model_program_end(void)
{
	struct thread *t = self();

	unpatch();
	give_way(STEP_PROGRAM, 0);
	tick();
	t->in_program = false;
	for (unsigned i = 1; i <= m.threads; i++)
		if (m.thread[i].waits_for & 1U << m.now) {
			m.thread[i].waits_for &= ~(1U << m.now);
			learn(&m.thread[i].after_grace, &t->clock);
		}
	tick();
}

static bool programs_over(unsigned who)
{
	return !m.thread[who].waits_for;
}

static bool over1(void) { return programs_over(1); }
static bool over2(void) { return programs_over(2); }
static bool over3(void) { return programs_over(3); }

void model_grace(void)
{
	static bool (*const over[ALL])(void) = { NULL, over1, over2, over3 };
	struct thread *t = self();

	unpatch();
	if (m.weakness == MODEL_NO_GRACE)
		return;
	give_way(STEP_GRACE, 0);
	tick();
	learn(&m.grace, &t->clock);
	t->after_grace = t->clock;
	t->waits_for = 0;
	for (unsigned i = 1; i <= m.threads; i++)
		if (m.thread[i].in_program) {
			t->waits_for |= 1U << i;
		} else {
			learn(&t->after_grace, &m.thread[i].clock);
			m.thread[i].clock.at[i]++;
		}
	tick();
	t->ready = over[m.now];
	give_way(STEP_PROGRAM, 0);
	t->ready = NULL;
	learn(&t->clock, &t->after_grace);
}

void model_set_moment(bool is)
{
	give_way(STEP_WRITE, (uintptr_t)&m.moment);
	m.moment = is;
}

bool model_moment(void)
{
	give_way(STEP_READ, (uintptr_t)&m.moment);
	return m.moment;
}

/* -- runs ------------------------------------------------------------------------------------------------------------ */
static void start(unsigned i)
{
	struct thread *t = &m.thread[i];

	if (!stack[i])
		stack[i] = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack[i] == MAP_FAILED) {
		perror("model: mmap");
		abort();
	}
	t->run = m.model->thread[i - 1];
	t->clock = m.thread[0].clock;
	t->clock.at[i] = 1;
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = stack[i];
	t->context.uc_stack.ss_size = STACK;
	makecontext(&t->context, trampoline, 0);
}

static void one_run(const struct model *model, enum model_weakness weakness)
{
	__real_memset(&m.thread, 0, sizeof(m.thread));
	m.model = model;
	m.weakness = weakness;
	m.objects = m.threads = m.now = 0;
	m.fault = NULL;
	m.cut = m.redundant = m.moment = false;
	m.patched = 0;
	m.fences = m.grace = (struct clock){ { 0 } };
	tree.depth = 0;
	run_number++;
	m.thread[0].clock.at[0] = 1;
	model->begin();
	while (m.threads < MODEL_THREADS && model->thread[m.threads])
		start(++m.threads);
	schedule();
	unpatch();
	for (unsigned i = 1; i <= m.threads; i++)
		learn(&m.thread[0].clock, &m.thread[i].clock);
	if (model->end)
		model->end(m.cut || m.redundant || m.fault);
}

struct model_result model_run(const struct model *model, enum model_weakness weakness)
{
	struct model_result r = { NULL, 0, 0 };

	tree.shareds = tree.fixed = 0;
	do {
		tree.found_shared = false;
		one_run(model, weakness);
		r.runs++;
		r.cut += m.cut;
		r.fault = m.fault;
		if (tree.found_shared)
			tree.fixed = 0;
	} while (!r.fault && (tree.found_shared || next_list()));
	return r;
}

static bool show(const struct model *model, enum model_weakness weakness, bool fails)
{
	struct model_result r = model_run(model, weakness);
	bool good = fails ? r.fault != NULL : !r.fault && !r.cut;

	printf("%s %s, %s: %lu runs, %s%s\n", good ? "ok  " : "FAIL", model->what, model_weakness_name[weakness], r.runs,
	       r.fault ? r.fault : "no fault", r.cut ? " (some were cut)" : "");
	fflush(stdout);
	return good;
}

int model_main(const struct model_case *cases, size_t n)
{
	bool good = true;

	for (size_t i = 0; i < n; i++) {
		good &= show(cases[i].model, MODEL_SOUND, false);
		for (unsigned k = 0; cases[i].fails[k]; k++)
			good &= show(cases[i].model, cases[i].fails[k], true);
	}
	return good ? 0 : 1;
}
