// The programs of `examples/ask-a-person`, as they are shipped: they ask, somebody answers, they go on.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { serve } from "./server.mjs";

const examples = new URL("../../examples/ask-a-person/", import.meta.url).pathname;
const here = new URL(".", import.meta.url).pathname;

let server;
let built;
before(async () => {
  server = await serve();
  built = await mkdtemp(join(tmpdir(), "holdpoint-ask-"));
  const options = ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom,dom.iterable"];
  const types = ["--types", "node", "--typeRoots", join(here, "node_modules/@types")];
  const tsc = join(here, "node_modules/typescript/bin/tsc");
  const words = [tsc, join(examples, "ask.mts"), "--outDir", built, ...options, ...types];
  await promisify(execFile)(process.execPath, words).catch((error) => assert.fail(error.stdout));
});
after(async () => {
  await server.stop();
  await rm(built, { recursive: true, force: true });
});

/** Starts a program. What it said, and how it ended, comes when it has. */
function start(program, words, input = "") {
  const env = { ...process.env, HOLDPOINT_URL: server.url, PYTHONDONTWRITEBYTECODE: "1", PYTHONUTF8: "1" };
  const running = spawn(program, words, { env, stdio: ["pipe", "pipe", "pipe"] });
  running.stdin.end(input);
  let out = "";
  let errors = "";
  running.stdout.on("data", (text) => (out += text));
  running.stderr.on("data", (text) => (errors += text));
  return new Promise((resolve) => running.once("close", (code) => resolve({ code, out, errors })));
}

const python = (node, title) => start("python3", [join(examples, "ask.py"), node, title]);
const typescript = (node, title) => start(process.execPath, [join(built, "ask.mjs"), node, title]);

/** The question of this node, or else of this workflow, once it is asked. */
async function pending(who) {
  for (;;) {
    const page = await (await fetch(`${server.url}/api/v1/interrupts?status=pending`)).json();
    const found = page.items.filter((item) => item.node_id === who || item.workflow_id === who);
    assert.ok(found.length <= 1, "it is asked once");
    if (found.length === 1) return found[0];
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function say(question, verb, body) {
  const headers = { "Content-Type": "application/json" };
  const path = `${server.url}/api/v1/interrupts/${question.id}/${verb}`;
  return (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).status;
}

test("a Python program asks, and goes on with what a person says", async () => {
  const yes = python("deploy", "部署 2.0?");
  const twin = python("deploy", "部署 2.0?");
  const question = await pending("deploy");
  assert.equal(question.title, "部署 2.0?");
  assert.equal(await say(question, "resolve", { approved: true, comment: "go" }), 200);
  for (const ended of [await yes, await twin]) {
    assert.equal(ended.code, 0, ended.errors);
    assert.deepEqual(JSON.parse(ended.out), { status: "resolved", by: "dev", comment: "go" });
  }
  const no = python("delete", "Delete it?");
  assert.equal(await say(await pending("delete"), "reject", { comment: "never" }), 200);
  const ended = await no;
  assert.equal(ended.code, 1, ended.errors);
  assert.equal(JSON.parse(ended.out).comment, "never");
});

test("a TypeScript program asks for a number, and gets one", async () => {
  const asking = typescript("count", "How many?");
  const question = await pending("count");
  assert.equal(await say(question, "resolve", { input: "three" }), 422);
  assert.equal(await say(question, "resolve", { input: 3 }), 200);
  const ended = await asking;
  assert.equal(ended.code, 0, ended.errors);
  assert.deepEqual(JSON.parse(ended.out), { status: "resolved", input: 3, by: "dev" });
});

test("a voice asks before it does what cannot be undone", async () => {
  const heard = "lights on\nTransfer 500 € to *Bob*\n删除 everything\n";
  const talking = start("python3", [join(examples, "voice.py")], heard);
  const transfer = await pending("voice");
  assert.equal(transfer.data.heard, "Transfer 500 € to *Bob*");
  assert.equal(await say(transfer, "resolve", { approved: true }), 200);
  let next = await pending("voice");
  while (next.id === transfer.id) next = await pending("voice");
  assert.equal(await say(next, "reject", { comment: "certainly <not>" }), 200);
  const ended = await talking;
  assert.equal(ended.code, 0, ended.errors);
  assert.deepEqual(ended.out.trim().split("\n"), [
    "OK. lights on.",
    "One moment. I am asking for approval.",
    "Approved by dev. Transfer 500 to Bob .",
    "One moment. I am asking for approval.",
    "I will not do that. certainly not .",
  ]);
});

test("a voice does at once only what it knows to be harmless", async () => {
  const dangerous = ["transferring 500 euros now", "deletes everything", "remove all files", "lights on and open the door"];
  dangerous.push("wire 500 to Bob", "把文件全部清空", "开灯并且打开大门");
  const talking = start("python3", [join(examples, "voice.py")], ["Lights on.", "开灯。", ...dangerous].join("\n"));
  for (const heard of dangerous) {
    let question = await pending("voice");
    while (question.data.heard !== heard) question = await pending("voice");
    assert.equal(await say(question, "reject", { comment: "no" }), 200);
  }
  const ended = await talking;
  assert.equal(ended.code, 0, ended.errors);
  const refused = dangerous.flatMap(() => ["One moment. I am asking for approval.", "I will not do that. no."]);
  assert.deepEqual(ended.out.trim().split("\n"), ["OK. lights on.", "OK. 开灯.", ...refused]);
});

test("a guardrail has a person review what fails its checks", async () => {
  const guard = (text) => start("python3", [join(examples, "guard.py")], text);
  assert.equal((await guard("Nothing special.\n")).out, "Nothing special.\n");
  const text = "Write to ann@example.com.\n";
  const held = guard(text);
  const review = await pending("guard");
  assert.deepEqual([review.type, review.data], ["review", { text, findings: ["an address of a person"] }]);
  assert.equal(await say(review, "resolve", { approved: true }), 200);
  assert.deepEqual([(await held).code, (await held).out], [0, text]);
  const refused = guard("4111 1111 1111 1111");
  assert.equal(await say(await pending("guard"), "reject", {}), 200);
  assert.deepEqual([(await refused).code, (await refused).out], [1, ""]);
});

test("a client streams what an agent says, and answers where it stops", async () => {
  const words = [join(examples, "talk.py"), "approval-agent", "deploy-123", "部署 v2.0 到生产环境"];
  const ended = await start("python3", words, "y\n");
  assert.equal(ended.code, 0, ended.errors);
  assert.match(ended.out, /Please confirm/);
  assert.match(ended.out, /部署完成/);
});
