# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The differential tester: is every kernel answer the one that the resolver would have sent?

zone.py       zones with every kind of answer, beside the generated tree and the lab's
questions.py  the questions: hot, brief, changing and cold
queries.py    whole queries from questions: flags, EDNS, letter case, damage
slow_zones.py zones whose servers are slow or silent, and questions about them
authorities.py  these servers
ledger.py     what they have sent and left unanswered: is a reply true?
crowds.py     several clients that ask such a question at once
asking.py     the twins program: each query asked in the kernel path, past it, and at a reference
cookies.py    server cookies in queries and replies
judge.py      what may differ, and what may not
disturb.py    gives commands while queries go on, and records when
commands.py   flushes, changes of data and reloads, by server
whole.py      one preloaded zone: its questions, changes and servers
servers.py    the servers that can be tested, and how each differs
shrink.py     the smallest query that still shows a difference
show.py       messages in presentation form, and the report
session.py    all of it in one run
"""
