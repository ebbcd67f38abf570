// Asks a person for a number, follows the question as a stream, and prints the answer. `tsc` makes `ask.mjs` of it, for Node 20
// or newer.
//
//     HOLDPOINT_URL=http://127.0.0.1:8888 node ask.mjs count "How many?" party-2031
//
// Ends with 0 and the number, or with 1 where somebody says no. The last word names the occasion: killed at whatever moment and
// started again with the same words, it is the same question, answered or not. HOLDPOINT_KEY is the API key, where the server
// wants one.

interface Interrupt {
  id: string;
  status: "pending" | "resolved" | "rejected" | "timeout" | "canceled";
  response?: { input?: unknown; comment?: string; user_id?: string };
}

const url: string = (process.env.HOLDPOINT_URL ?? "http://127.0.0.1:8888") + "/api/v1/interrupts";
const key: string | undefined = process.env.HOLDPOINT_KEY;

/** What the server does not do, however often it is told. */
class Refused extends Error {}

async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (key) headers.set("Authorization", `Bearer ${key}`);
  const response = await fetch(url + path, { ...init, headers });
  if (response.ok) return response;
  const text = await response.text();
  // The server, or somebody between us and it, is away.
  if ([502, 503, 504].includes(response.status)) throw new Error(text);
  throw new Refused(text);
}

/** Does it again until it comes through: the server may be away, or an answer of it lost. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Refused) throw error;
      console.error(String(error));
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

async function ask(node: string, title: string, occasion: string): Promise<Interrupt> {
  const question = {
    workflow_id: "ask.ts",
    node_id: node,
    type: "input",
    title,
    input_schema: { type: "integer", minimum: 1 },
    // By this it is known again after we were killed, even once it is answered,
    checkpoint_id: occasion,
  };
  // and by this, where the reply is lost and we ask again.
  const headers = { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
  const init = { method: "POST", headers, body: JSON.stringify(question) };
  return patiently(async () => (await (await send("", init)).json()) as Interrupt);
}

/** Yields the question each time it changes, until it is closed. */
async function* follow(id: string): AsyncGenerator<Interrupt> {
  const response = await send(`/${id}/wait`, { headers: { Accept: "text/event-stream" } });
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true });
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data !== undefined && /^event: interrupt$/m.test(frame)) yield JSON.parse(data) as Interrupt;
    }
  }
}

const [node, title, occasion] = process.argv.slice(2);
if (!node || !title || !occasion) throw new Error("say which node asks, what, and on which occasion");
let asked: Interrupt = await ask(node, title, occasion);
console.error(`waiting for a person: ${asked.id}`);
// A stream may end because its server goes; another one answers.
while (asked.status === "pending") {
  await patiently(async () => {
    for await (const seen of follow(asked.id)) asked = seen;
  });
}
console.log(JSON.stringify({ status: asked.status, input: asked.response?.input, by: asked.response?.user_id }));
process.exitCode = asked.status === "resolved" ? 0 : 1;
