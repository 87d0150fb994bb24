# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The clients: four askers on two links, over IPv4 and IPv6, each with all questions in its own order."""

import random
from contextlib import ExitStack
from dataclasses import dataclass
from heapq import merge

from lab.client import Asker
from lab.network import CLIENT1, CLIENT2, SERVICE

from .zone import QUESTIONS

PATIENCE = 2.0                    # seconds after which a query counts as lost; its reply is judged however late


@dataclass
class Client:
    name: str
    link: str                     # of the resolver, to this client
    family: int
    asker: Asker
    questions: list


class Clients:
    """Context manager: asks until finish()."""

    def __init__(self, world, server, seed, rate):
        self.world, self.all = world, []
        network = world.network
        places = ((1, 4, network.client1, CLIENT1, {}), (2, 6, network.client2, CLIENT2, {"edns": True}),
                  (1, 6, network.client1, CLIENT1, {"dnssec": True}), (2, 4, network.client2, CLIENT2, server.letters))
        for number, family, ns, address, options in places:
            questions = list(QUESTIONS)
            random.Random(f"client {seed} {len(self.all)}").shuffle(questions)
            asker = Asker(world, ns, SERVICE[family], [(q.key.owner.rstrip("."), q.key.rdtype) for q in questions],
                          rate / len(places), local=address[family], timeout=PATIENCE, watch=True, **options)
            name = f"client {number}, IPv{family}" + "".join(f", {word}" for word in options)
            self.all.append(Client(name, f"r{number}", family, asker, questions))

    def __enter__(self):
        with ExitStack() as stack:
            for client in self.all:
                stack.enter_context(client.asker)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def finish(self):
        for client in self.all:
            client.asker.finish()

    def replies(self):
        """Yields (client, question, Answer) in the order of asking, over all clients."""
        def tagged(client):
            return ((client, client.questions[answer.question], answer) for answer in client.asker.answers())
        yield from merge(*map(tagged, self.all), key=lambda entry: entry[2].sent)

    def strays(self):
        """(client, Stray) of all clients; complete after replies()."""
        return [(client, stray) for client in self.all for stray in client.asker.strays]
