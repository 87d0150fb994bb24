/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The set of names that the program reads (hydns/names.h). Entries are written before their tags, so the program finds a whole one or
 * none; what it may find while an entry is being replaced is a name that is not there, which only a name that is not served yet is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include "plugin/preload/children.h"
#include "plugin/preload/preload.h"
#include "plugin/preload/soa.h"
#include "hydns/names.h"

/* What the set knows of an entry besides. */
struct note {
	uint32_t changed;              /* number of the change that last concerned the name */
	uint16_t zone;
	uint8_t  load;                 /* of that zone, in which the name was last found */
	bool     foreign;              /* another zone begins there */
	bool     stays;                /* as long as the set: an answer shows the name */
};

struct hydns_name_set {
	pthread_mutex_t lock;
	struct hydns_names_bucket *map; /* the head, then the buckets; NULL: there is none */
	struct note (*note)[HYDNS_NAMES_ENTRIES];
	uint32_t buckets;
	struct hydns_children children; /* behind the buckets */
	struct hydns_soas soas;         /* behind the leaves */
	uint32_t elements;
	uint32_t used;                 /* entries */
	uint32_t changes;
	bool full;                     /* a name found no place: the set is closed for good */
	bool over;                     /* and each that comes after it */
};

struct hydns_name_set *hydns_name_set_new(void)
{
	struct hydns_name_set *s = calloc(1, sizeof(*s));

	if (s)
		pthread_mutex_init(&s->lock, NULL);
	return s;
}

static size_t octets(uint32_t elements)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), len = (size_t)elements * sizeof(struct hydns_names_bucket);

	return (len + page - 1) / page * page;
}

static struct hydns_names_head *head_of(const struct hydns_name_set *s)
{
	return (struct hydns_names_head *)s->map;
}

static void set_open(struct hydns_name_set *s, bool open)
{
	if (s->map)
		__atomic_store_n(&head_of(s)->open, open && !s->full && !s->over, __ATOMIC_SEQ_CST);
}

static void let_go(struct hydns_name_set *s)
{
	set_open(s, false);
	hydns_soas_end(&s->soas);
	if (s->map)
		munmap(s->map, octets(s->elements));
	hydns_children_end(&s->children);
	free(s->note);
	s->map = NULL;
	s->note = NULL;
	s->used = s->buckets = s->elements = 0;
	s->full = false;
}

void hydns_name_set_free(struct hydns_name_set *s)
{
	if (!s)
		return;
	let_go(s);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int begin(struct hydns_name_set *s, int map_fd, const struct hydns_names_request *q)
{
	const uint32_t soas = hydns_soa_element(q->buckets - 1, q->leaves, 0), elements = soas + q->zones * HYDNS_SOA_ELEMENTS;
	struct hydns_names_head *head;
	void *map = mmap(NULL, octets(elements), PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	s->map = map;
	s->buckets = q->buckets;
	s->elements = elements;
	s->note = calloc(q->buckets, sizeof(*s->note));
	head = head_of(s);
	if (!s->note || !hydns_soas_begin(&s->soas, (struct hydns_soa_now *)(s->map + soas), q->zones, soas) ||
	    getrandom(head->seed, sizeof(head->seed), 0) != sizeof(head->seed)) {
		let_go(s);
		return -ENOMEM;
	}
	head->mask = q->buckets - 1;
	hydns_children_begin(&s->children, head, (struct hydns_leaf *)(s->map + hydns_leaf_element(head->mask, 0)), q->leaves);
	return 0;
}

int hydns_name_set_take(struct hydns_name_set *s, int map_fd, const struct hydns_names_request *q)
{
	int error;

	pthread_mutex_lock(&s->lock);
	let_go(s);
	error = begin(s, map_fd, q);
	pthread_mutex_unlock(&s->lock);
	close(map_fd);
	return error;
}

/* -- entries, under the lock -------------------------------------------------------------------------------- */
struct place {
	struct hydns_names_entry *entry; /* NULL: both buckets are full */
	struct note *note;
	struct hydns_names_hash hash;
};

static void point(const struct hydns_name_set *s, struct place *p, uint32_t bucket, unsigned i)
{
	p->entry = &s->map[bucket].entry[i];
	p->note = &s->note[bucket - 1][i];
}

/* Points to the entry if the bucket has it, or to an empty one if the bucket has more of these than *most. */
static bool look_in(const struct hydns_name_set *s, struct place *p, uint32_t bucket, unsigned *most)
{
	unsigned empty = 0, last = 0;

	for (unsigned i = 0; i < HYDNS_NAMES_ENTRIES; i++) {
		const struct hydns_names_entry *e = &s->map[bucket].entry[i];

		if (e->tag == p->hash.tag && HYDNS_NAMES_CHECK(e->what) == p->hash.check) {
			point(s, p, bucket, i);
			return true;
		}
		if (!e->tag) {
			empty++;
			last = i;
		}
	}
	if (empty > *most) {
		point(s, p, bucket, last);
		*most = empty;
	}
	return false;
}

/* The name's entry; or an empty one for it, whose tag is 0, in the emptier bucket. */
static struct place place_of(const struct hydns_name_set *s, const uint8_t *name, size_t len)
{
	const struct hydns_names_head *head = head_of(s);
	struct place p = { .hash = hydns_names_hash(name, (__u32)len, head->seed) };
	unsigned most = 0;

	if (!look_in(s, &p, hydns_names_bucket(p.hash.tag, head->mask, 0), &most))
		look_in(s, &p, hydns_names_bucket(p.hash.tag, head->mask, 1), &most);
	return p;
}

/* says: HYDNS_NAMES_SAYS(). zone: of a new entry. */
static bool write_entry(struct hydns_name_set *s, const struct place *p, uint32_t says, uint16_t zone)
{
	if (!p->entry) {
		s->full = true;
		set_open(s, false);
		return false;
	}
	__atomic_store_n(&p->entry->what, HYDNS_NAMES_WHAT(p->hash.check, says), __ATOMIC_SEQ_CST);
	if (p->entry->tag)
		return true;
	*p->note = (struct note){ .changed = s->changes, .zone = zone };
	s->used++;
	__atomic_store_n(&p->entry->tag, p->hash.tag, __ATOMIC_SEQ_CST);
	return true;
}

static void remove_entry(struct hydns_name_set *s, struct hydns_names_entry *e)
{
	__atomic_store_n(&e->tag, 0, __ATOMIC_SEQ_CST);
	s->used--;
}

/* Nothing is known of the name and below it any more. */
static void say_nothing(struct hydns_name_set *s, const uint8_t *name, size_t len, uint16_t zone, bool stays)
{
	struct place p = place_of(s, name, len);

	if (!write_entry(s, &p, 0, zone))
		return;
	p.note->changed = s->changes;
	p.note->stays |= stays;
}

static bool is_there(const struct place *p)
{
	return p->entry && p->entry->tag;
}

static bool has_changed_since(const struct note *n, uint32_t since)
{
	return (int32_t)(n->changed - since) > 0;
}

/* The name, below another one, is in a zone whose proofs tell children. */
static void child_comes(struct hydns_name_set *s, const uint8_t *name, size_t len)
{
	const uint8_t *parent = name + 1 + name[0];
	const struct hydns_names_hash h = hydns_names_hash(parent, (__u32)(len - 1 - name[0]), head_of(s)->seed);
	const struct hydns_child child = hydns_child_of(h.tag, name);

	hydns_children_come(&s->children, &child);
}

void hydns_name_set_hash_comes(struct hydns_name_set *s, const uint8_t *origin, size_t origin_len, const uint8_t hash[HYDNS_SHA1_OCTETS])
{
	pthread_mutex_lock(&s->lock);
	if (s->map) {
		const struct hydns_names_hash h = hydns_names_hash(origin, (__u32)origin_len, head_of(s)->seed);
		const struct hydns_child child = hydns_child_of_hash(h.tag, hash);

		hydns_children_come(&s->children, &child);
	}
	pthread_mutex_unlock(&s->lock);
}

bool hydns_name_set_hashing(struct hydns_name_set *s, unsigned number, struct hydns_nsec3 *out)
{
	bool exists;

	pthread_mutex_lock(&s->lock);
	exists = s->map && number && number <= HYDNS_NAMES_NSEC3;
	if (exists)
		*out = head_of(s)->nsec3[number - 1];
	pthread_mutex_unlock(&s->lock);
	return exists;
}

void hydns_name_set_hash_so(struct hydns_name_set *s, unsigned number, const struct hydns_nsec3 *how)
{
	pthread_mutex_lock(&s->lock);
	if (s->map)
		head_of(s)->nsec3[number - 1] = *how;
	pthread_mutex_unlock(&s->lock);
}

/* -- changes ------------------------------------------------------------------------------------------------ */
static bool is_wildcard(const uint8_t *name)
{
	return name[0] == 1 && name[1] == '*';
}

/* Names above it, up to the zone's origin, exist with it (RFC 4592 section 2.2.2), and those without data of their own may go with it.
 * They have changed as well: they may be there only because nobody has taken them out yet, whose look at the data is now too old. */
static void add_above(struct hydns_name_set *s, const uint8_t *name, size_t len, size_t origin_len, uint16_t zone)
{
	for (size_t at = 0; len - at > origin_len; ) {
		struct place p;
		uint32_t says;

		at += 1U + name[at];
		p = place_of(s, name + at, len - at);
		says = is_there(&p) ? HYDNS_NAMES_SAID(p.entry->what) : 0;
		if (!HYDNS_NAMES_TYPES(says) && HYDNS_NAMES_LENGTH(says))
			says |= HYDNS_NAMES_SAYS(HYDNS_NAMES_TYPES_ALL, 0);
		if (!write_entry(s, &p, says, zone))
			return;
		p.note->changed = s->changes;
	}
}

void hydns_name_set_change(struct hydns_name_set *s, const uint8_t *name, size_t len, size_t origin_len, uint16_t zone, bool children)
{
	pthread_mutex_lock(&s->lock);
	s->changes++;
	if (s->map) {
		for (size_t at = 0; children && len - at > origin_len; at += 1U + name[at])
			child_comes(s, name + at, len - at);
		add_above(s, name, len, origin_len, zone);
		say_nothing(s, name, len, zone, false);
		if (is_wildcard(name) && len > origin_len)
			say_nothing(s, name + 2, len - 2, zone, false);
	}
	pthread_mutex_unlock(&s->lock);
}

void hydns_name_set_show(struct hydns_name_set *s, const uint8_t *name, size_t len, size_t origin_len, uint16_t zone)
{
	pthread_mutex_lock(&s->lock);
	for (size_t at = 0; s->map && len - at > origin_len; at += 1U + name[at])
		say_nothing(s, name + at, len - at, zone, true);
	pthread_mutex_unlock(&s->lock);
}

uint32_t hydns_name_set_now(struct hydns_name_set *s)
{
	uint32_t now;

	pthread_mutex_lock(&s->lock);
	now = s->changes;
	pthread_mutex_unlock(&s->lock);
	return now;
}

/* How names of its zone are denied to queries with DO. */
static uint32_t proof_of(struct hydns_name_data data)
{
	if (data.hashing && data.unproved)
		return HYDNS_NAMES_UNPROVED;
	return data.proofs ? HYDNS_NAMES_SIGNED | HYDNS_NAMES_HASHED(data.hashing) : 0;
}

/* What is said of a delegation in place of its types. */
static uint32_t types_of_cut(struct hydns_name_data data, size_t origin_len)
{
	if (!data.no_ds)
		return HYDNS_NAMES_TYPES_ALL;
	return HYDNS_NAMES_NO_DS(origin_len) | (data.proofs ? HYDNS_NAMES_NO_DS_SIGNED : 0);
}

/* HYDNS_NAMES_SAYS() of a name of len octets. */
static uint32_t said_of(struct hydns_name_data data, size_t len, size_t origin_len)
{
	switch (data.below) {
	case HYDNS_BELOW_NOTHING:
		return HYDNS_NAMES_SAYS(data.types, (uint32_t)origin_len) | proof_of(data);
	case HYDNS_BELOW_CUT:
		return HYDNS_NAMES_SAYS(types_of_cut(data, origin_len), (uint32_t)len) | HYDNS_NAMES_CUT;
	default:
		return 0;
	}
}

void hydns_name_set_settle(struct hydns_name_set *s, const uint8_t *name, size_t len, size_t origin_len, uint16_t zone,
			   struct hydns_name_data data, uint32_t since)
{
	struct place p;

	pthread_mutex_lock(&s->lock);
	if (s->map) {
		p = place_of(s, name, len);
		if (is_there(&p) && (has_changed_since(p.note, since) || p.note->stays))
			;
		else if (data.below != HYDNS_BELOW_ABSENT)
			write_entry(s, &p, said_of(data, len, origin_len), zone);
		else if (is_there(&p))
			remove_entry(s, p.entry);
	}
	pthread_mutex_unlock(&s->lock);
}

/* -- loading a zone ----------------------------------------------------------------------------------------- */
static bool is_of(const struct note *n, const struct hydns_name_load *load)
{
	return n->zone == load->zone && n->load == load->number;
}

/* False: there is no place, or the name is in this load already. */
static bool put_found(struct hydns_name_set *s, const struct place *p, const struct hydns_name_load *load, uint32_t says)
{
	bool there = is_there(p), again = there && is_of(p->note, load);

	if (there && (p->note->stays || has_changed_since(p->note, load->since) || (again && !HYDNS_NAMES_LENGTH(p->entry->what))))
		says = 0;              /* what another name of this load has said stays said */
	if (!write_entry(s, p, says, load->zone))
		return false;
	p->note->zone = load->zone;
	p->note->load = load->number;
	return !again;
}

/* The names above it that have no data of their own; below a delegation as the name itself. */
static void found_above(struct hydns_name_set *s, const struct hydns_name_load *load, const uint8_t *name, size_t len, uint32_t says,
			bool children)
{
	for (size_t at = 1U + name[0]; len - at > load->origin_len; at += 1U + name[at]) {
		struct place p = place_of(s, name + at, len - at);

		if ((is_there(&p) && is_of(p.note, load)) || !put_found(s, &p, load, says))
			return;
		if (children)
			child_comes(s, name + at, len - at);
	}
}

void hydns_name_set_found(struct hydns_name_set *s, const struct hydns_name_load *load, const uint8_t *name, size_t len,
			  struct hydns_name_data data)
{
	const uint32_t says = said_of(data, len, load->origin_len);
	const bool children = data.proofs == HYDNS_PROOFS_NSEC;
	struct place p;

	pthread_mutex_lock(&s->lock);
	if (s->map) {
		p = place_of(s, name, len);
		if (data.below != HYDNS_BELOW_FOREIGN || !is_there(&p) || p.note->zone == load->zone)
			put_found(s, &p, load, says);
		if (is_there(&p))
			p.note->foreign = data.below == HYDNS_BELOW_FOREIGN || (p.note->foreign && len == load->origin_len);
		if (children && len > load->origin_len)
			child_comes(s, name, len);
		data.unproved = false;
		if (len > load->origin_len)
			found_above(s, load, name, len, says ? HYDNS_NAMES_SAYS(0, (uint32_t)load->origin_len) | proof_of(data) : 0, children);
		if (is_wildcard(name) && len > load->origin_len) {
			p = place_of(s, name + 2, len - 2);
			put_found(s, &p, load, 0);
		}
	}
	pthread_mutex_unlock(&s->lock);
}

void hydns_name_set_loaded(struct hydns_name_set *s, const struct hydns_name_load *load)
{
	pthread_mutex_lock(&s->lock);
	for (uint32_t b = 0; s->map && b < s->buckets; b++)
		for (unsigned i = 0; i < HYDNS_NAMES_ENTRIES; i++) {
			struct hydns_names_entry *e = &s->map[1 + b].entry[i];
			const struct note *n = &s->note[b][i];

			if (e->tag && n->zone == load->zone && n->load != load->number && !n->stays && !has_changed_since(n, load->since))
				remove_entry(s, e);
		}
	pthread_mutex_unlock(&s->lock);
}

/* -- templates ---------------------------------------------------------------------------------------------- */
/* The name behind the child, or without one the first, right below the name of len octets. Returns its length; 0: it is too long. */
static size_t probe_name(const struct hydns_child *child, const uint8_t *name, size_t len, uint8_t *out)
{
	const uint32_t label = child ? hydns_child_len(child) : 0;

	if (label == HYDNS_CHILD_LONG || 2 + label + len > HYDNS_NAME_MAX)
		return 0;
	out[0] = (uint8_t)(label + 1);
	for (uint32_t i = 0; i < label; i++)
		out[1 + i] = (uint8_t)(child->label[i / 8] >> (56 - i % 8 * 8));
	out[1 + label] = 0;
	memcpy(out + 2 + label, name, len);
	return 2 + label + len;
}

/* Of a name that does not exist: before is its first label that does not, name what follows, and hash that of this. */
static size_t template_of_name(const struct hydns_name_set *s, const struct hydns_names_hash *hash, const uint8_t *before,
			       const uint8_t *name, size_t len, uint8_t *out)
{
	const struct hydns_child key = hydns_child_of(hash->tag, before);

	return head_of(s)->table & 1 ? 0 : probe_name(hydns_children_before(&s->children, &key), name, len, out);
}

/* The hash that a child of a chain is; NULL: 0, for that before the first one. False: it is none. */
static bool hash_of(const struct hydns_child *child, uint8_t hash[HYDNS_SHA1_OCTETS])
{
	for (unsigned i = 0; i < HYDNS_SHA1_OCTETS; i++)
		hash[i] = child ? (uint8_t)(child->label[i / 8] >> (56 - i % 8 * 8)) : 0;
	return !child || hydns_child_len(child) == HYDNS_SHA1_OCTETS;
}

/* The name to be asked for a template that stands at a hash, as long as that one's: nobody knows a name of that hash, so it is below the
 * name that was missed. before: its first label that does not exist, which other names follow. */
static void name_to_ask(struct hydns_name_template *t, const uint8_t *before)
{
	const size_t fill = HYDNS_HASHED_LEN - 1U - before[0];

	t->asked_qtype = HYDNS_BELOW_TYPE;
	memset(t->asked, 0, fill);             /* which makes it a probe */
	t->asked[0] = (uint8_t)(fill - 1);
	memcpy(t->asked + fill, before, t->len - fill);
}

/* The same where the zone hashes names. says: HYDNS_NAMES_SAID() of the name. */
static size_t template_at_hash(const struct hydns_name_set *s, uint32_t says, const uint8_t *before, const uint8_t *name, size_t len,
			       struct hydns_name_template *out)
{
	const struct hydns_names_head *head = head_of(s);
	const size_t origin_len = HYDNS_NAMES_LENGTH(says);
	uint8_t hash[HYDNS_SHA1_OCTETS];
	struct hydns_child key;

	if (head->table & 1 || HYDNS_HASHED_LEN + len > HYDNS_NAME_MAX || (len == origin_len && before[0] == HYDNS_HASHED_LABEL))
		return 0;
	hydns_nsec3_hash(before, (unsigned)(1U + before[0] + len), &head->nsec3[HYDNS_NAMES_HASHING(says) - 1], hash);
	key = hydns_child_of_hash(hydns_names_hash(name + len - origin_len, (__u32)origin_len, head->seed).tag, hash);
	if (!hash_of(hydns_children_before(&s->children, &key), hash))
		return 0;
	out->qtype = HYDNS_HASHED_TYPE;
	out->len = HYDNS_HASHED_LEN + len;
	hydns_hashed_name(hash, out->name);
	memcpy(out->name + HYDNS_HASHED_LEN, name, len);
	name_to_ask(out, before);
	return out->len;
}

/* Of names below this one, whatever their labels. Returns the template's length; 0: it is too long. */
static size_t template_below(const uint8_t *name, size_t len, uint8_t *out)
{
	if (len > HYDNS_NAME_MAX - HYDNS_BELOW_LABEL_LEN)
		return 0;
	memcpy(out, HYDNS_BELOW_LABEL, HYDNS_BELOW_LABEL_LEN);
	memcpy(out + HYDNS_BELOW_LABEL_LEN, name, len);
	return HYDNS_BELOW_LABEL_LEN + len;
}

static size_t template_of(const struct hydns_name_set *s, const uint8_t *name, size_t len, uint16_t qtype, struct hydns_name_template *out)
{
	size_t at = 0, before = 0;

	for (unsigned i = 0; i < HYDNS_BELOW_LABELS && at < len; i++, before = at, at += 1U + name[at]) {
		struct place p = place_of(s, name + at, len - at);
		uint32_t says;

		if (!is_there(&p))
			continue;
		says = HYDNS_NAMES_SAID(p.entry->what);
		out->zone = p.note->zone;
		out->qtype = at ? HYDNS_BELOW_TYPE : HYDNS_NODATA_TYPE;
		if (!HYDNS_NAMES_LENGTH(says) || !(says & HYDNS_NAMES_SIGNED))
			return 0;
		if (at && hydns_names_is_unproved(says))
			return template_below(name + at, len - at, out->name);
		if (at && HYDNS_NAMES_HASHING(says))
			return template_at_hash(s, says, name + before, name + at, len - at, out);
		if (at)
			return template_of_name(s, &p.hash, name + before, name + at, len - at, out->name);
		memcpy(out->name, name, len);
		return hydns_names_lacks(says, qtype) && HYDNS_NAMES_LENGTH(says) != len ? len : 0;
	}
	return 0;
}

bool hydns_name_set_template(struct hydns_name_set *s, const uint8_t *name, size_t len, uint16_t qtype, struct hydns_name_template *out)
{
	pthread_mutex_lock(&s->lock);
	out->len = s->map && head_of(s)->open ? template_of(s, name, len, qtype, out) : 0;
	pthread_mutex_unlock(&s->lock);
	if (out->len && out->qtype != HYDNS_HASHED_TYPE) {
		out->asked_qtype = out->qtype;
		memcpy(out->asked, out->name, out->len);
	}
	return out->len;
}

bool hydns_name_set_proves_no_ds(struct hydns_name_set *s, const uint8_t *name, size_t len)
{
	struct place p = { 0 };
	bool proves;

	pthread_mutex_lock(&s->lock);
	if (s->map)
		p = place_of(s, name, len);
	proves = is_there(&p) && hydns_names_denies_ds(HYDNS_NAMES_SAID(p.entry->what), true) == len;
	pthread_mutex_unlock(&s->lock);
	return proves;
}

void hydns_name_set_empty_table(struct hydns_name_set *s)
{
	pthread_mutex_lock(&s->lock);
	hydns_children_empty(&s->children);
	pthread_mutex_unlock(&s->lock);
}

void hydns_name_set_merge(struct hydns_name_set *s)
{
	struct hydns_children_list list;
	bool merged, more;

	for (more = true; more; ) {
		pthread_mutex_lock(&s->lock);
		more = hydns_children_merge_begins(&s->children, &list);
		pthread_mutex_unlock(&s->lock);
		if (!more)
			return;
		merged = hydns_children_merge(&s->children, &list);
		pthread_mutex_lock(&s->lock);
		hydns_children_merge_ends(&s->children, merged);
		more = s->children.coming.count;
		pthread_mutex_unlock(&s->lock);
	}
}

/* -- present SOAs ------------------------------------------------------------------------------------------- */
bool hydns_name_set_soa_closes(struct hydns_name_set *s, uint16_t zone)
{
	bool used;

	pthread_mutex_lock(&s->lock);
	used = hydns_soas_close(&s->soas, zone);
	pthread_mutex_unlock(&s->lock);
	return used;
}

bool hydns_name_set_soa_differs(struct hydns_name_set *s, uint16_t zone, const struct hydns_zone_soa *soa)
{
	bool differs;

	pthread_mutex_lock(&s->lock);
	differs = hydns_soas_differs(&s->soas, zone, soa);
	pthread_mutex_unlock(&s->lock);
	return differs;
}

void hydns_name_set_soa_is(struct hydns_name_set *s, uint16_t zone, const struct hydns_zone_soa *soa)
{
	pthread_mutex_lock(&s->lock);
	hydns_soas_open(&s->soas, zone, soa);
	pthread_mutex_unlock(&s->lock);
}

bool hydns_name_set_soa(struct hydns_name_set *s, uint16_t zone, bool is_signed, struct hydns_offer_soa *out)
{
	bool is;

	pthread_mutex_lock(&s->lock);
	is = hydns_soas_find(&s->soas, zone, is_signed, out);
	pthread_mutex_unlock(&s->lock);
	return is;
}

bool hydns_name_set_soa_is_bare(struct hydns_name_set *s, uint16_t zone)
{
	bool bare;

	pthread_mutex_lock(&s->lock);
	bare = hydns_soas_is_bare(&s->soas, zone);
	pthread_mutex_unlock(&s->lock);
	return bare;
}

bool hydns_name_set_is_foreign(struct hydns_name_set *s, const uint8_t *name, size_t len)
{
	struct place p = { 0 };
	bool foreign;

	pthread_mutex_lock(&s->lock);
	if (s->map)
		p = place_of(s, name, len);
	foreign = is_there(&p) && p.note->foreign;
	pthread_mutex_unlock(&s->lock);
	return foreign;
}

void hydns_name_set_drop(struct hydns_name_set *s)
{
	pthread_mutex_lock(&s->lock);
	let_go(s);
	pthread_mutex_unlock(&s->lock);
}

void hydns_name_set_open(struct hydns_name_set *s, bool open)
{
	pthread_mutex_lock(&s->lock);
	set_open(s, open);
	pthread_mutex_unlock(&s->lock);
}

void hydns_name_set_close(struct hydns_name_set *s)
{
	pthread_mutex_lock(&s->lock);
	set_open(s, false);
	s->over = true;
	pthread_mutex_unlock(&s->lock);
}

struct hydns_name_set_state hydns_name_set_state(struct hydns_name_set *s)
{
	struct hydns_name_set_state out;

	pthread_mutex_lock(&s->lock);
	out = (struct hydns_name_set_state){
		.names = s->used, .room = s->buckets * HYDNS_NAMES_ENTRIES, .exists = s->map, .full = s->full,
		.open = s->map && head_of(s)->open, .children = (uint32_t)s->children.room, .table_full = s->children.full,
	};
	pthread_mutex_unlock(&s->lock);
	return out;
}
