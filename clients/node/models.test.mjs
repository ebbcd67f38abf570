// Agents whose models are provided by aimock: the wire formats of OpenAI and Anthropic, written by others.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import * as command from "./command.mjs";
import { contents } from "./command.mjs";

const apis = ["openai", "openai-responses", "anthropic"];

let mock;
let folder;
before(async () => {
  mock = new LLMock({ port: 0, logLevel: "silent" });
  await mock.start();
});
after(() => mock.stop());
beforeEach(async (context) => {
  mock.reset();
  folder = await mkdtemp(join(tmpdir(), "holdpoint-models-"));
  const there = folder;
  context.after?.(() => rm(there, { recursive: true, force: true }));
});

const hold = (...words) =>
  command.hold(
    folder,
    {
      OPENAI_BASE_URL: `${mock.url}/v1`,
      OPENAI_API_KEY: "sk-mock",
      ANTHROPIC_BASE_URL: mock.url,
      ANTHROPIC_API_KEY: "sk-mock",
    },
    ...words,
  );

/** An agent with two tools that say what they were called with; `pay` asks before. */
async function agent(model) {
  const tool = (name) => `    - {name: ${name}, effect: read, description: Does ${name}., command: [cat], input_schema: {type: object, properties: {n: {type: integer}}}}\n`;
  const text = `apiVersion: holdpoint/v1
kind: Agent
metadata: {name: clerk}
spec:
  model: ${model}
  system_prompt: You are a clerk.
  tools:
${tool("pay")}${tool("look")}  interrupt_on: {pay: true}
`;
  await writeFile(join(folder, "agent.yaml"), text);
}

const run = (input) => hold("run", "agent.yaml", "--input", input, "--thread", "t");

for (const api of apis) {
  test(`${api}: a text is streamed, and what it took is counted`, async () => {
    await agent(`{primary: "${api}:m"}`);
    const text = "Grüße aus dem Lager: 🙂 alles da. ".repeat(20);
    const usage = { prompt_tokens: 100, completion_tokens: 20, input_tokens: 100, output_tokens: 20 };
    mock.on({ userMessage: "hello" }, { content: text, usage }, { chunkSize: 3 });
    const done = await run("hello");
    assert.equal(done.code, 0, JSON.stringify(done));
    assert.equal(done.output, text);
    assert.deepEqual([done.usage.input_tokens, done.usage.output_tokens], [100, 20]);
  });

  test(`${api}: calls at once are gated as they should be, and their results go back`, async () => {
    await agent(`{primary: "${api}:m"}`);
    const toolCalls = [
      { name: "pay", arguments: '{"n": 1}' },
      { name: "look", arguments: '{"n": 2}' },
      { name: "pay", arguments: '{"n": 3}' },
    ];
    mock.on({ hasToolResult: false }, { content: "At once.", toolCalls }, { chunkSize: 2 });
    mock.on({ hasToolResult: true }, { content: "All done." });
    const asks = await run("go");
    assert.equal(asks.code, 3);
    const [interrupt] = asks.__interrupt__;
    const asked = interrupt.value.action_requests.map((it) => [it.name, it.args.n]);
    assert.deepEqual(asked, [["pay", 1], ["pay", 3]]);
    const decisions = JSON.stringify([{ type: "approve" }, { type: "reject", message: "too much" }]);
    const done = await hold("resume", "t", "--decisions", decisions);
    assert.equal(done.code, 0);
    assert.equal(done.output, "All done.");
    const told = contents(done).sort();
    assert.match(told[0], /too much/);
    assert.deepEqual(told.slice(1), ['{"n":1}', '{"n":2}']);
    // What aimock understood of the second request: every call with its result.
    const { messages } = mock.getLastRequest().body;
    const ids = messages.filter((it) => it.role === "assistant").flatMap((it) => it.tool_calls ?? []).map((it) => it.id);
    const answered = messages.filter((it) => it.role === "tool").map((it) => it.tool_call_id);
    assert.equal(ids.length, 3);
    assert.deepEqual(answered, ids);
  });

  test(`${api}: an error that passes is tried again`, async () => {
    await agent(`{primary: "${api}:m"}`);
    mock.onMessage("hello", { content: "Here I am." });
    mock.nextRequestError(503, { message: "overloaded", type: "server_error" });
    const done = await run("hello");
    assert.deepEqual([done.code, done.output], [0, "Here I am."]);
  });

  test(`${api}: a rate limit for long is slept through`, async () => {
    await agent(`{primary: "${api}:m"}`);
    mock.onMessage("hello", { error: { message: "slow down", type: "rate_limit_error" }, status: 429, retryAfter: 3600 });
    const sleeps = await run("hello");
    assert.deepEqual([sleeps.code, sleeps.status, sleeps.cause], [3, "sleeping", "rate_limit"]);
  });

  test(`${api}: what is refused is put before a person`, async () => {
    await agent(`{primary: "${api}:m"}`);
    mock.onMessage("hello", { error: { message: "no such parameter", type: "invalid_request_error" }, status: 400 });
    const asks = await run("hello");
    assert.equal(asks.code, 3);
    assert.match(JSON.stringify(asks.__interrupt__), /no such parameter/);
  });

  test(`${api}: a stream that breaks off is no answer, and none of its calls is made`, async () => {
    await agent(`{primary: "${api}:m"}`);
    const toolCalls = [{ name: "look", arguments: '{"n": 2}' }];
    const broken = { truncateAfterChunks: 3, chunkSize: 2 };
    mock.on({ hasToolResult: false, sequenceIndex: 0 }, { content: "I look now.", toolCalls }, broken);
    mock.on({ hasToolResult: false, sequenceIndex: 1 }, { content: "Whole." });
    const done = await run("go");
    assert.deepEqual([done.code, done.output, contents(done)], [0, "Whole.", []]);
  });

  // As Anthropic, aimock sends what it could read of them, which is `{}`: there is nothing to mend.
  if (api === "anthropic") continue;
  test(`${api}: arguments that are no JSON are mended`, async () => {
    await agent(`{primary: "${api}:m"}`);
    mock.on({ hasToolResult: false }, { toolCalls: [{ name: "look", arguments: '{"n": 2' }] });
    mock.on({ toolResultContains: "JSON" }, { toolCalls: [{ name: "look", arguments: '{"n": 2}' }] });
    mock.on({ hasToolResult: true }, { content: "Mended." });
    const done = await run("go");
    assert.deepEqual([done.code, done.output], [0, "Mended."], JSON.stringify(done));
    assert.equal(contents(done)[1], '{"n":2}');
  });
}

test("another provider answers where the first one cannot", async () => {
  await agent('{primary: "openai:big", fallback: ["openai-responses:big", "anthropic:small"]}');
  const down = { error: { message: "down", type: "server_error" }, status: 503 };
  mock.on({ model: "big" }, down);
  mock.on({ model: "small" }, { content: "Small, but here." });
  const done = await run("hello");
  assert.deepEqual([done.code, done.output], [0, "Small, but here."]);
});

test("anthropic: thoughts go back with the call that they led to", async () => {
  await agent('{primary: "anthropic:m", effort: low}');
  const toolCalls = [{ name: "look", arguments: "{}" }];
  mock.on({ hasToolResult: false }, { content: "I look.", toolCalls, reasoning: "Where is it?", reasoningSignature: "c2ln" });
  mock.on({ hasToolResult: true }, { content: "There." });
  const done = await run("go");
  assert.deepEqual([done.code, done.output], [0, "There."]);
});
