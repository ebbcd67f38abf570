// Ten thousand texts that try to be more than text, through both formats and back, read by a parser that others wrote.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createParser } from "eventsource-parser";
import { post, serve } from "./server.mjs";

const TEXTS = 10_000;
const AT_ONCE = 16;
const PIECES = [
  "\r", "\n", "\r\n", "\n\n", "\u2028", "\u2029", "\u0085", "\0", "\0INTERRUPT:", "[DONE]", "data: [DONE]", "data:", "data: ",
  "event: interrupt", "event:", "id: 7", "retry: 1", ": ", " ", "  ", "\t", "\ufeff", "{", "}", '"', "\\", "\\u0000", "é",
  "确认", "😀", "a", "b", "[", "]", "DONE", "INTERRUPT:{}", "\u000b", "\u000c", "\u001c", "\u007f", "word ",
];

let server;
before(async () => {
  server = await serve();
});
after(() => server.stop());

/** The same numbers each time. */
function random(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function hostile(seed) {
  const draw = random(seed * 7919 + 1);
  let text = "";
  for (let left = 1 + draw(12); left > 0; left -= 1) text += PIECES[draw(PIECES.length)];
  return text;
}

async function events(response) {
  assert.equal(response.status, 200);
  const seen = [];
  const parser = createParser({ onEvent: (event) => seen.push(event), onError: (error) => assert.fail(error) });
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for await (const bytes of response.body) parser.feed(decoder.decode(bytes, { stream: true }));
  return seen;
}

async function check(at) {
  const message = hostile(at);
  const agent_id = at % 2 === 0 ? "echo" : "careful";
  const bare = await events(await post(server.url, "stream", { agent_id, session_id: `l${at}`, message }));
  const last = bare.pop();
  assert.equal(last.data, "[DONE]", JSON.stringify(message));
  assert.ok(bare.every((event) => event.event === undefined && event.id === undefined));
  assert.ok(bare.every((event) => event.data !== "[DONE]" && !event.data.startsWith("\0")));
  const expected = message.replaceAll("\r\n", "\n").replaceAll("\r", "\n").replaceAll("\0", "\ufffd");
  assert.equal(bare.map((event) => event.data).join(""), expected, JSON.stringify(message));

  const headers = { "X-A2UI": "true" };
  const named = await events(await post(server.url, "stream", { agent_id, session_id: `a${at}`, message }, headers));
  const parsed = named.map((event) => ({ name: event.event, ...JSON.parse(event.data) }));
  assert.deepEqual(parsed.pop().type, "done");
  assert.ok(parsed.every((event) => event.name === "text" && event.type === "text"));
  assert.equal(parsed.map((event) => event.data.delta).join(""), message);
  assert.equal(parsed.at(-1).data.content, message);
}

test(`${TEXTS} hostile texts come back as they were sent`, async () => {
  let next = 0;
  let done = 0;
  const worker = async () => {
    while (next < TEXTS) {
      const at = next;
      next += 1;
      await check(at);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  assert.equal(done, TEXTS);
});
