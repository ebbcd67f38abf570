"""LangGraph, doing what Holdpoint is measured by.

    peer.py COMMAND FILE [OPTIONS]

The graph is the least that parks: one node, which asks with `interrupt()` before its effect and is resumed with
`Command(resume=...)`. There is no model: a node that called one would only be slower. The checkpointer is the one
from PyPI on a file, with the durability that Holdpoint has: WAL, `synchronous=FULL`, `durability="sync"`.

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
from contextlib import asynccontextmanager, closing
from importlib.metadata import version
from itertools import count
from typing import Annotated, TypedDict

# Nothing that is measured goes anywhere else; read when the library is loaded.
os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"

import aiosqlite
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

PRAGMAS = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")
PAGE = 50
PAGES = 20
WARM_UP = 20


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


def connect(file):
    connection = sqlite3.connect(file, check_same_thread=False)
    for pragma in PRAGMAS:
        connection.execute(pragma)
    check(connection.execute("PRAGMA journal_mode").fetchone() == ("wal",), "no WAL")
    check(connection.execute("PRAGMA synchronous").fetchone() == (2,), "not synchronous=FULL")
    return connection


@asynccontextmanager
async def connect_async(file):
    async with aiosqlite.connect(file) as connection:
        for pragma in PRAGMAS:
            await connection.execute(pragma)
        yield connection


def check(holds, otherwise):
    # Not `assert`, which goes away with an option of the interpreter.
    if not holds:
        raise RuntimeError(otherwise)


def thread(name, **more):
    return {"configurable": {"thread_id": name}, **more}


def session(run, generation=0):
    return f"session-{run:06}.{generation}"


class Sync:
    """A graph with `SqliteSaver`, called by one client."""

    def __init__(self, connection):
        self.saver = SqliteSaver(connection)
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
        checkpoints = self.saver.list(None)
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
    """A graph with `AsyncSqliteSaver`, called by any number of clients in one event loop."""

    def __init__(self, connection):
        self.graph = transfers(act_async, AsyncSqliteSaver(connection))

    async def park(self, name):
        state = await self.graph.ainvoke({"request": "Transfer the money, please."}, thread(name), durability="sync")
        check(state.get("__interrupt__"), "it did not park")

    async def resume(self, name):
        state = await self.graph.ainvoke(Command(resume="approve"), thread(name), durability="sync")
        check(state.get("result") == "transferred", "it did not finish")


async def by_clients(clients, runs, work):
    """Has `clients` clients do `work` for all runs, each taking the next one when it is done."""
    rest = iter(runs)

    async def client():
        for run in rest:
            await work(run)

    await asyncio.gather(*(client() for _ in range(clients)))


class Watch:
    def __init__(self):
        self.began, self.processor = time.perf_counter(), time.process_time()

    def spent(self):
        return {"time": time.perf_counter() - self.began, "processor": time.process_time() - self.processor}


def cycle(args):
    """W1: parks and resumes runs."""
    if args.saver == "sync":
        with closing(connect(args.file)) as connection:
            agent = Sync(connection)
            agent.saver.setup()

            def one(run):
                agent.park(session(run))
                agent.resume(session(run))

            with ThreadPoolExecutor(args.concurrency) as clients:
                # Starting threads is no part of it.
                list(clients.map(lambda _: time.sleep(0.01), range(args.concurrency)))
                watch = Watch()
                list(clients.map(one, range(args.runs)))
                spent = watch.spent()
    else:

        async def main():
            async with connect_async(args.file) as connection:
                agent = Async(connection)
                await agent.graph.checkpointer.setup()

                async def one(run):
                    await agent.park(session(run))
                    await agent.resume(session(run))

                watch = Watch()
                await by_clients(args.concurrency, range(args.runs), one)
                return watch.spent()

        spent = asyncio.run(main())
    total = effects.total()
    check(total == args.runs, f"{total} effects in {args.runs} runs")
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
    with closing(connect(args.file)) as connection:
        graph = graph.compile(checkpointer=SqliteSaver(connection))
        config = thread("thread", recursion_limit=args.steps + 10)
        state = graph.invoke({"messages": []}, config, durability="sync")
        times.append(time.perf_counter())
        check(len(state["messages"]) == len(times) - 1 == args.steps, "steps are missing")
    tell({"times": [at - times[0] for at in times]})


def park(args):
    """Parks runs, as many at a time as is fastest."""

    async def main():
        async with connect_async(args.file) as connection:
            agent = Async(connection)
            await agent.graph.checkpointer.setup()
            await by_clients(32, range(args.first, args.parked), lambda run: agent.park(session(run)))

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
    with closing(connect(args.file)) as connection:
        agent, crowd = Sync(connection), Crowd(args.parked)
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
    with closing(connect(args.file)) as connection:
        agent, crowd = Sync(connection), Crowd(args.parked)
        for nth in count(1):
            run, name = crowd.any()
            agent.resume(name)
            agent.park(crowd.replace(run))
            tell(nth)


def start(args):
    """W4: what a process does that comes after one that was killed."""
    with closing(connect(args.file)) as connection:
        agent = Sync(connection)
        found = agent.page(PAGE)
        check(len(found) == min(PAGE, args.parked), "the page is not full")
        tell("ready")
        agent.resume(found[-1][0])
        tell("resumed")


def about(args):
    names = ("langgraph", "langgraph-checkpoint-sqlite")
    python = ".".join(map(str, sys.version_info[:3]))
    libraries = " with ".join(f"{name} {version(name)}" for name in names)
    tell(f"{libraries}, on Python {python} with SQLite {sqlite3.sqlite_version}")


def rss_kb():
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def tell(value):
    print(json.dumps(value), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=[run.__name__ for run in COMMANDS])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--saver", choices=["sync", "async"])
    parser.add_argument("--channel", choices=["plain", "delta"])
    for name in ("runs", "concurrency", "steps", "characters", "first", "parked", "resumes"):
        parser.add_argument(f"--{name}", type=int)
    args = parser.parse_args()
    next(run for run in COMMANDS if run.__name__ == args.command)(args)


COMMANDS = (about, cycle, steps, park, resume, work, start)

if __name__ == "__main__":
    main()
