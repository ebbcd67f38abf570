// Asks a person for a number, follows the question as a stream, and prints the answer. `tsc` makes `ask.mjs` of it, for Node 20
// or newer.
//
//     HOLDPOINT_URL=http://127.0.0.1:8888 node ask.mjs count "How many?"
//
// Ends with 0 and the number, or with 1 where somebody says no. HOLDPOINT_KEY is the API key, where the server wants one.

interface Interrupt {
  id: string;
  status: "pending" | "resolved" | "rejected" | "timeout" | "canceled";
  response?: { input?: unknown; comment?: string; user_id?: string };
}

const url: string = (process.env.HOLDPOINT_URL ?? "http://127.0.0.1:8888") + "/api/v1/interrupts";
const key: string | undefined = process.env.HOLDPOINT_KEY;

async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (key) headers.set("Authorization", `Bearer ${key}`);
  const response = await fetch(url + path, { ...init, headers });
  if (response.ok) return response;
  const problem = (await response.json()) as { code: string; error: string };
  throw new Error(`${problem.code}: ${problem.error}`);
}

async function ask(node: string, title: string): Promise<Interrupt> {
  const question = {
    workflow_id: "ask.ts",
    node_id: node,
    type: "input",
    title,
    input_schema: { type: "integer", minimum: 1 },
  };
  const headers = { "Content-Type": "application/json" };
  const asked = await send("", { method: "POST", headers, body: JSON.stringify(question) });
  return (await asked.json()) as Interrupt;
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

const [node, title] = process.argv.slice(2);
if (node === undefined || title === undefined) throw new Error("say which node asks, and what");
let asked: Interrupt = await ask(node, title);
console.error(`waiting for a person: ${asked.id}`);
// A stream may end because its server goes; another one answers.
while (asked.status === "pending") {
  try {
    for await (const seen of follow(asked.id)) asked = seen;
  } catch (error) {
    console.error(String(error));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
console.log(JSON.stringify({ status: asked.status, input: asked.response?.input, by: asked.response?.user_id }));
process.exitCode = asked.status === "resolved" ? 0 : 1;
