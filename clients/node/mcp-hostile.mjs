// A server that does whatever the file PLAY says at that moment, by hand and to the byte: what no SDK would send.
// It speaks the protocol of 2025, and writes to LEDGER what it was asked.

import { appendFileSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const play = () => JSON.parse(readFileSync(process.env.PLAY, "utf8"));
const tell = (line) => appendFileSync(process.env.LEDGER, `${line}\n`);
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (it) => ({ content: [{ type: "text", text: it }] });
const schema = { type: "object" };

const methods = {
  initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: { listChanged: true } }, serverInfo: { name: "h", version: "1" } }),
  ping: () => ({}),
  "tools/list": ({ cursor }) => {
    const { tools, lists } = play();
    tell("list");
    if (lists === "badly" || worse) throw new Error("not now");
    if (lists === "without end") return { tools: [], nextCursor: `${Number(cursor ?? 0) + 1}` };
    if (lists === "at length") {
      const nth = Number(cursor ?? 0);
      const long = { name: `t${nth}`, description: "x".repeat(900_000), inputSchema: schema };
      return { tools: [long], nextCursor: nth < 12 ? `${nth + 1}` : undefined };
    }
    return { tools: tools.map((it) => ({ inputSchema: schema, ...it })) };
  },
};

const plays = {
  text: (id, it) => send({ id, result: text(it.text) }),
  failed: (id, it) => send({ id, result: { ...text(it.text), isError: true } }),
  error: (id, it) => send({ id, error: { code: it.code, message: it.message ?? "no" } }),
  // It asks for something long after it was told to stop, and takes no notice of that.
  late: (id, it) => setTimeout(() => plays.asks(id, it), 1500),
  asks: (id, it) => {
    const params = { message: it.message, requestedSchema: { type: "object", properties: { n: { type: "integer" } } } };
    waiting = ({ result }) => {
      if (result.action !== "accept") return it.code ? send({ id, error: { code: it.code, message: "nobody there" } }) : send({ id, result: text("asked in vain") });
      tell(`did ${JSON.stringify(result.content)}`);
      send({ id, result: text("did it") });
    };
    send({ id: "e", method: "elicitation/create", params });
  },
  does: (id, it) => {
    tell("did");
    if (it.code) send({ id, error: { code: it.code, message: "output does not fit" } });
    else setTimeout(() => send({ id, result: text("did") }), it.after);
  },
  raw: (id, it) => send({ id, result: it.result }),
  secret: (id) => send({ id, result: text(`the key is ${process.env.KEY}, and ${JSON.stringify(Object.keys(process.env).sort())}`) }),
  garbage: (id) => {
    process.stdout.write("Starting up…\n{not json\n[]\n{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n\xff\xfe\n");
    send({ id, result: text("after garbage") });
  },
  endless: () => process.stdout.write("x".repeat(3 << 20)),
  hang: () => {},
  die: () => {
    process.stderr.write("out of money\n");
    process.exit(3);
  },
  samples: (id) => {
    const params = { messages: [{ role: "user", content: { type: "text", text: "who are you?" } }], maxTokens: 10 };
    waiting = (answer) => send({ id, result: text(`sampled: ${JSON.stringify(answer.error ?? answer.result)}`) });
    send({ id: "s", method: "sampling/createMessage", params });
  },
  changes: (id, it) => {
    worse = it.lists === "badly";
    slow = it.lists === "slowly" ? 900 : 0;
    send({ method: "notifications/tools/list_changed" });
    send({ id, result: text(it.text) });
  },
  // It asks and asks, each time in other words, whatever it is told.
  nags: (id) => {
    let nth = 0;
    waiting = () => send({ id: `e${(nth += 1)}`, method: "elicitation/create", params: { message: `${nth}?`, requestedSchema: { type: "object", properties: {} } } });
    waiting();
  },
  // It asks and never reads an answer.
  floods: () => {
    deaf = true;
    let nth = 0;
    const more = () => {
      let room = true;
      while (room) room = process.stdout.write(`{"jsonrpc":"2.0","id":"${"p".repeat(100)}${(nth += 1)}","method":"ping"}\n`);
      process.stdout.once("drain", more);
    };
    more();
  },
  grumbles: (id) => process.stderr.write("woe ".repeat(2 << 20), () => send({ id, result: text("done all the same") })),
};

let waiting = () => {};
let [worse, slow, deaf] = [false, 0, false];
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, ...answer } = JSON.parse(line);
  if (!method) waiting(answer);
  else if (method === "tools/call") {
    tell(`${params.name} ${JSON.stringify(params.arguments)}`);
    const now = play()[params.name] ?? play().call;
    plays[now.is](id, now);
  } else if (id !== undefined) {
    const known = methods[method];
    if (slow && method === "tools/list") await sleep(slow);
    try {
      send(known ? { id, result: known(params ?? {}) } : { id, error: { code: -32601, message: "no such method" } });
    } catch (error) {
      send({ id, error: { code: -32603, message: error.message } });
    }
  }
  while (deaf) await sleep(1000);
}
