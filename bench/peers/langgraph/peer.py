"""LangGraph, doing what Holdpoint is measured by.

    peer.py COMMAND URL [OPTIONS]

The graph is the least that parks: one node, which asks with `interrupt()` before its effect and is resumed with
`Command(resume=...)`. There is no model: a node that called one would only be slower. The checkpointer is the one
from PyPI, with the durability that Holdpoint has: on a file (`sqlite:PATH`) WAL and `synchronous=FULL`, on a server
(`postgres://...`) what that does by itself, and always `durability="sync"`.

What was measured goes to stdout as JSON. Loading Python and LangGraph is not measured, except by `start`, which is
about nothing else: whoever started it takes the time of each of its lines.
"""

import argparse
import asyncio
import json
import operator
import os
import random
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from importlib.metadata import version
from itertools import count
from queue import SimpleQueue
from typing import Annotated, TypedDict

# Nothing that is measured goes anywhere else; read when the library is loaded.
os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"

import aiosqlite
import psycopg
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

PRAGMAS = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")
PAGE = 50
PAGES = 20
WARM_UP = 20
# As `PostgresSaver.from_conn_string` connects.
CONNECTING = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}


class Transfer(TypedDict, total=False):
    request: str
    result: str


class Effects:
    """Counts what the node did."""

    def __init__(self):
        self.numbers = count()

    def happen(self):
        # One bytecode, so no thread can get between.
        next(self.numbers)

    def total(self):
        return next(self.numbers)


effects = Effects()


def act(state):
    decision = interrupt({"name": "transfer", "args": {"to": "account-4711", "amount": 100}})
    if decision != "approve":
        raise RuntimeError("it was not approved")
    effects.happen()
    return {"result": "transferred"}


async def act_async(state):
    return act(state)


def transfers(node, saver):
    graph = StateGraph(Transfer)
    graph.add_node("act", node)
    graph.add_edge(START, "act")
    graph.add_edge("act", END)
    return graph.compile(checkpointer=saver)


def is_server(url):
    return url.startswith("postgres://")


def connect_file(url):
    connection = sqlite3.connect(url.removeprefix("sqlite:"), check_same_thread=False)
    for pragma in PRAGMAS:
        connection.execute(pragma)
    check(connection.execute("PRAGMA journal_mode").fetchone() == ("wal",), "no WAL")
    check(connection.execute("PRAGMA synchronous").fetchone() == (2,), "not synchronous=FULL")
    return connection


@contextmanager
def saving(url):
    """A saver for one client."""
    if is_server(url):
        with psycopg.connect(url, **CONNECTING) as connection:
            yield PostgresSaver(connection)
    else:
        with closing(connect_file(url)) as connection:
            yield SqliteSaver(connection)


@contextmanager
def savers(url, clients, apart):
    """The saver that each client has: all the same one, as the documentation does; or, on a server, each its own. A saver
    has a lock, so it has one client at a time. Of a file there is one connection."""
    if is_server(url):
        with ConnectionPool(url, min_size=clients, max_size=clients, kwargs=CONNECTING, open=False) as pool:
            pool.wait()
            yield [PostgresSaver(pool) for _ in range(clients)] if apart else [PostgresSaver(pool)] * clients
    else:
        with saving(url) as saver:
            yield [saver] * clients


@asynccontextmanager
async def savers_async(url, clients):
    if is_server(url):
        async with AsyncConnectionPool(url, min_size=clients, max_size=clients, kwargs=CONNECTING, open=False) as pool:
            await pool.wait()
            yield [AsyncPostgresSaver(pool) for _ in range(clients)]
    else:
        async with aiosqlite.connect(url.removeprefix("sqlite:")) as connection:
            for pragma in PRAGMAS:
                await connection.execute(pragma)
            yield [AsyncSqliteSaver(connection)] * clients


def newest_first(saver):
    """All checkpoints. One saver reads them as they are wanted, the other all that it is asked for at once."""
    if isinstance(saver, SqliteSaver):
        yield from saver.list(None)
        return
    before = None
    while found := list(saver.list(None, before=before, limit=4 * PAGE)):
        yield from found
        before = found[-1].config


def check(holds, otherwise):
    # Not `assert`, which goes away with an option of the interpreter.
    if not holds:
        raise RuntimeError(otherwise)


def thread(name, **more):
    return {"configurable": {"thread_id": name}, **more}


def session(run, generation=0):
    return f"session-{run:06}.{generation}"


class Sync:
    """A graph with a saver, called by one client."""

    def __init__(self, saver):
        self.saver = saver
        self.graph = transfers(act, self.saver)

    def park(self, name):
        state = self.graph.invoke({"request": "Transfer the money, please."}, thread(name), durability="sync")
        check(state.get("__interrupt__"), "it did not park")

    def resume(self, name):
        state = self.graph.invoke(Command(resume="approve"), thread(name), durability="sync")
        check(state.get("result") == "transferred", "it did not finish")

    def page(self, limit):
        """The first of what is pending. LangGraph keeps no list of it, so all threads are walked, newest first, until
        there is enough: of each the newest checkpoint, if a question belongs to it."""
        seen, found = set(), []
        checkpoints = newest_first(self.saver)
        with closing(checkpoints):
            for checkpoint in checkpoints:
                name = checkpoint.config["configurable"]["thread_id"]
                if name in seen:
                    continue
                seen.add(name)
                asked = [value for _, channel, value in checkpoint.pending_writes or () if channel == "__interrupt__"]
                found.extend((name, value) for value in asked[-1:])
                if len(found) >= limit:
                    break
        return found


class Async:
    """A graph with an asynchronous saver, called by one of the clients in one event loop."""

    def __init__(self, saver):
        self.graph = transfers(act_async, saver)

    async def park(self, name):
        state = await self.graph.ainvoke({"request": "Transfer the money, please."}, thread(name), durability="sync")
        check(state.get("__interrupt__"), "it did not park")

    async def resume(self, name):
        state = await self.graph.ainvoke(Command(resume="approve"), thread(name), durability="sync")
        check(state.get("result") == "transferred", "it did not finish")


async def by_clients(agents, runs, work):
    """Has clients, each with its agent, do `work` for all runs, each taking the next one when it is done."""
    rest = iter(runs)

    async def client(agent):
        for run in rest:
            await work(agent, run)

    await asyncio.gather(*map(client, agents))


class Watch:
    def __init__(self):
        self.began, self.processor = time.perf_counter(), time.process_time()

    def spent(self):
        return {"time": time.perf_counter() - self.began, "processor": time.process_time() - self.processor}


def cycle(args):
    """W1: parks and resumes runs, after some that do not count."""
    end = args.warm_up + args.runs
    if args.saver != "async":
        with savers(args.url, args.concurrency, args.saver == "apart") as all_savers, ThreadPoolExecutor(args.concurrency) as clients:
            all_savers[0].setup()
            agents = SimpleQueue()
            for saver in all_savers:
                agents.put(Sync(saver))

            def one(run):
                agent = agents.get()
                agent.park(session(run))
                agent.resume(session(run))
                agents.put(agent)

            # Starting threads is no part of it.
            list(clients.map(lambda _: time.sleep(0.01), range(args.concurrency)))
            list(clients.map(one, range(args.warm_up)))
            watch = Watch()
            list(clients.map(one, range(args.warm_up, end)))
            spent = watch.spent()
    else:

        async def one(agent, run):
            await agent.park(session(run))
            await agent.resume(session(run))

        async def main():
            async with savers_async(args.url, args.concurrency) as all_savers:
                await all_savers[0].setup()
                agents = [Async(saver) for saver in all_savers]
                await by_clients(agents, range(args.warm_up), one)
                watch = Watch()
                await by_clients(agents, range(args.warm_up, end), one)
                return watch.spent()

        spent = asyncio.run(main())
    total = effects.total()
    check(total == end, f"{total} effects in {end} runs")
    tell(spent)


def steps(args):
    """W3: one thread of many steps, in one call."""
    numbers = random.Random(1)
    printable = [chr(code) for code in range(32, 127)]
    times = []

    def step(state):
        times.append(time.perf_counter())
        return {"messages": ["".join(numbers.choices(printable, k=args.characters))]}

    def extend(messages, writes):
        return [*messages, *(message for write in writes for message in write)]

    channel = DeltaChannel(extend) if args.channel == "delta" else operator.add
    graph = StateGraph(TypedDict("Conversation", {"messages": Annotated[list, channel]}))
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: END if len(state["messages"]) >= args.steps else "step")
    with saving(args.url) as saver:
        saver.setup()
        graph = graph.compile(checkpointer=saver)
        config = thread("thread", recursion_limit=args.steps + 10)
        state = graph.invoke({"messages": []}, config, durability="sync")
        times.append(time.perf_counter())
        check(len(state["messages"]) == len(times) - 1 == args.steps, "steps are missing")
    tell({"times": [at - times[0] for at in times]})


def park(args):
    """Parks runs, as many at a time as is fastest."""

    async def main():
        async with savers_async(args.url, 32) as all_savers:
            await all_savers[0].setup()
            runs = range(args.first, args.parked)
            await by_clients(map(Async, all_savers), runs, lambda agent, run: agent.park(session(run)))

    asyncio.run(main())
    tell(args.parked)


class Crowd:
    """The parked runs. One that is resumed is replaced, so that there are always as many."""

    def __init__(self, parked):
        self.parked = parked
        self.generations = {}
        self.numbers = random.Random(1)

    def any(self):
        run = self.numbers.randrange(self.parked)
        return run, session(run, self.generations.get(run, 0))

    def replace(self, run):
        self.generations[run] = self.generations.get(run, 0) + 1
        return session(run, self.generations[run])


def resume(args):
    """W2: what it takes to list and to resume while others are parked."""
    with saving(args.url) as saver:
        agent, crowd = Sync(saver), Crowd(args.parked)
        page_ms, resume_ms = [], []
        for _ in range(PAGES):
            began = time.perf_counter()
            found = agent.page(PAGE)
            page_ms.append((time.perf_counter() - began) * 1e3)
            check(len(found) == min(PAGE, args.parked), "the page is not full")
        for nth in range(WARM_UP + args.resumes):
            run, name = crowd.any()
            began = time.perf_counter()
            agent.resume(name)
            if nth >= WARM_UP:
                resume_ms.append((time.perf_counter() - began) * 1e3)
            agent.park(crowd.replace(run))
        tell({"page_ms": page_ms, "resume_ms": resume_ms, "rss_kb": rss_kb()})


def work(args):
    """W4: resumes and parks until it is killed, saying how far it is."""
    with saving(args.url) as saver:
        agent, crowd = Sync(saver), Crowd(args.parked)
        for nth in count(1):
            run, name = crowd.any()
            agent.resume(name)
            agent.park(crowd.replace(run))
            tell(nth)


def start(args):
    """W4: what a process does that comes after one that was killed."""
    with saving(args.url) as saver:
        agent = Sync(saver)
        found = agent.page(PAGE)
        check(len(found) == min(PAGE, args.parked), "the page is not full")
        tell("ready")
        agent.resume(found[-1][0])
        tell("resumed")


def about(args):
    graph, *rest = [
        f"{name} {version(name)}"
        for name in ("langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "psycopg-binary")
    ]
    python = ".".join(map(str, sys.version_info[:3]))
    tell(f"{graph} with {', '.join(rest)}, on Python {python} with SQLite {sqlite3.sqlite_version}")


def rss_kb():
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def tell(value):
    print(json.dumps(value), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=[run.__name__ for run in COMMANDS])
    parser.add_argument("url")
    parser.add_argument("--saver", choices=["sync", "apart", "async"])
    parser.add_argument("--channel", choices=["plain", "delta"])
    for name in ("runs", "concurrency", "steps", "characters", "first", "parked", "resumes"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--warm-up", type=int, default=0)
    args = parser.parse_args()
    next(run for run in COMMANDS if run.__name__ == args.command)(args)


COMMANDS = (about, cycle, steps, park, resume, work, start)

if __name__ == "__main__":
    main()
