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
function start(program, words) {
  const env = { ...process.env, HOLDPOINT_URL: server.url };
  const running = spawn(program, words, { env, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let errors = "";
  running.stdout.on("data", (text) => (out += text));
  running.stderr.on("data", (text) => (errors += text));
  return new Promise((resolve) => running.once("close", (code) => resolve({ code, out, errors })));
}

const python = (node, title) => start("python3", [join(examples, "ask.py"), node, title]);
const typescript = (node, title) => start(process.execPath, [join(built, "ask.mjs"), node, title]);

/** The question of this node, once it is asked. */
async function pending(node) {
  for (;;) {
    const page = await (await fetch(`${server.url}/api/v1/interrupts?status=pending`)).json();
    const found = page.items.filter((item) => item.node_id === node);
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
