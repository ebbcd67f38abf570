// The programs of `examples/ask-a-person`, as they are shipped: they ask, somebody answers, they go on. So they do where they
// are killed meanwhile, and where what they are told gets lost.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
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

/** Starts a program. What it said, and how it ended, comes when it has; `kill` leaves it no time for anything. */
function start(program, words, input = "", url = server.url) {
  const env = { ...process.env, HOLDPOINT_URL: url, PYTHONDONTWRITEBYTECODE: "1", PYTHONUTF8: "1" };
  const running = spawn(program, words, { env, stdio: ["pipe", "pipe", "pipe"] });
  // One that refuses before it reads is not wrong.
  running.stdin.on("error", () => {});
  // Nobody says anything yet where there is no input.
  if (input !== null) running.stdin.end(input);
  let out = "";
  let errors = "";
  running.stdout.on("data", (text) => (out += text));
  running.stderr.on("data", (text) => (errors += text));
  // One that waits for what nobody says fails its test, rather than all of them.
  const late = setTimeout(() => running.kill("SIGKILL"), 30_000);
  const ended = new Promise((resolve) => running.once("close", (code) => resolve({ code, out, errors })));
  void ended.then(() => clearTimeout(late));
  return Object.assign(ended, { kill: () => running.kill("SIGKILL") });
}

const python = (node, title, occasion, url) => start("python3", [join(examples, "ask.py"), node, title, occasion], "", url);
const typescript = (node, title, occasion, url) => start(process.execPath, [join(built, "ask.mjs"), node, title, occasion], "", url);
const guard = (text, occasion) => start("python3", [join(examples, "guard.py"), occasion], text);
const voice = (heard, url) => start("python3", [join(examples, "voice.py")], heard, url);
const talk = (agent, session, message, said, url) =>
  start("python3", [join(examples, "talk.py"), agent, session, message], said, url);

/** The question of this node, or else of this workflow, once it is asked. */
async function pending(who) {
  for (const late = Date.now() + 30_000; Date.now() < late; ) {
    const page = await (await fetch(`${server.url}/api/v1/interrupts?status=pending`)).json();
    const found = page.items.filter((item) => item.node_id === who || item.workflow_id === who);
    assert.ok(found.length <= 1, "it is asked once");
    if (found.length === 1) return found[0];
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`${who} asks nothing`);
}

async function say(question, verb, body) {
  const headers = { "Content-Type": "application/json" };
  const path = `${server.url}/api/v1/interrupts/${question.id}/${verb}`;
  return (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).status;
}

/** Every question of this workflow, however it stands. */
async function asked(workflow) {
  return (await (await fetch(`${server.url}/api/v1/interrupts?workflow_id=${workflow}`)).json()).items;
}

/** Between a program and the server: it loses the replies that it is told to lose, and changes the texts of others. */
async function between({ loses = () => false, changes = (text) => text }) {
  const proxy = createServer(async (request, response) => {
    const body = await new Promise((resolve) => {
      const parts = [];
      request.on("data", (part) => parts.push(part)).on("end", () => resolve(Buffer.concat(parts)));
    });
    const { host, connection, "content-length": length, "transfer-encoding": chunked, ...headers } = request.headers;
    const init = { method: request.method, headers, body: request.method === "POST" ? body : undefined };
    const answer = await fetch(server.url + request.url, init).catch(() => undefined);
    const text = await answer?.text();
    if (answer === undefined || (await loses(request, text))) return response.destroy();
    response.writeHead(answer.status, { "Content-Type": answer.headers.get("content-type") });
    response.end(changes(text));
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    proxy.closeAllConnections();
    proxy.close();
  };
  return { url: `http://127.0.0.1:${proxy.address().port}`, stop };
}

/** Loses the reply to the first question, and only once somebody has answered it. */
function losesFirst(answers) {
  let lost = false;
  const loses = async (request, text) => {
    if (lost || request.method !== "POST" || request.url !== "/api/v1/interrupts") return false;
    lost = true;
    assert.equal(await say(JSON.parse(text), "resolve", answers), 200);
    return true;
  };
  return between({ loses });
}

test("a Python program asks, and goes on with what a person says", async () => {
  const yes = python("deploy", "部署 2.0?", "build-1");
  const twin = python("deploy", "部署 2.0?", "build-1");
  const question = await pending("deploy");
  assert.equal(question.title, "部署 2.0?");
  assert.equal(await say(question, "resolve", { approved: true, comment: "go" }), 200);
  for (const ended of [await yes, await twin]) {
    assert.equal(ended.code, 0, ended.errors);
    assert.deepEqual(JSON.parse(ended.out), { status: "resolved", by: "dev", comment: "go" });
  }
  const no = python("delete", "Delete it?", "once");
  assert.equal(await say(await pending("delete"), "reject", { comment: "never" }), 200);
  const ended = await no;
  assert.equal(ended.code, 1, ended.errors);
  assert.equal(JSON.parse(ended.out).comment, "never");
});

test("a TypeScript program asks for a number, and gets one", async () => {
  const asking = typescript("count", "How many?", "party-1");
  const question = await pending("count");
  assert.equal(await say(question, "resolve", { input: "three" }), 422);
  assert.equal(await say(question, "resolve", { input: 3 }), 200);
  const ended = await asking;
  assert.equal(ended.code, 0, ended.errors);
  assert.deepEqual(JSON.parse(ended.out), { status: "resolved", input: 3, by: "dev" });
});

test("a voice asks before it does what cannot be undone", async () => {
  const heard = "lights on\nTransfer 500 € to *Bob*\n删除 everything\n";
  const talking = voice(heard);
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
  const talking = voice(["Lights on.", "开灯。", ...dangerous].join("\n"));
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

test("a voice asks anew what was approved the last time that it was heard", async () => {
  for (const verb of ["resolve", "reject"]) {
    const talking = voice("open the garage\n");
    assert.equal(await say(await pending("voice"), verb, verb === "resolve" ? { approved: true } : {}), 200);
    assert.match((await talking).out, verb === "resolve" ? /Approved by dev\. open the garage/ : /I will not do that/);
  }
});

test("a guardrail has a person review what fails its checks", async () => {
  assert.equal((await guard("Nothing special.\n", "mail-1")).out, "Nothing special.\n");
  const text = "Write to ann@example.com.\r\n";
  const held = guard(text, "mail-2");
  const review = await pending("guard");
  const found = [{ what: "an address of a person", passage: text }];
  assert.deepEqual([review.type, review.data], ["review", { text, found }]);
  assert.equal(await say(review, "resolve", { approved: true }), 200);
  assert.deepEqual([(await held).code, (await held).out], [0, text]);
  const refused = guard("4111 1111 1111 1111", "mail-3");
  assert.equal(await say(await pending("guard"), "reject", {}), 200);
  assert.deepEqual([(await refused).code, (await refused).out], [1, ""]);
});

test("a guardrail sends nothing that nobody saw whole", async () => {
  // The card is where a part of the text would not show it.
  const held = guard(`${"a".repeat(8000)} 4111 1111 1111 1111 tail`, "long-1");
  const review = await pending("guard");
  assert.match(review.data.found[0].passage, /^a+ 4111 1111 1111 1111 tail$/);
  assert.equal(review.data.text.length, 8025);
  assert.equal(await say(review, "resolve", { approved: true }), 200);
  assert.deepEqual([(await held).code, (await held).out], [0, review.data.text]);

  const before = (await asked("guard")).length;
  for (const long of [`${"a".repeat(16_000)} 4111 1111 1111 1111`, `${"请".repeat(8000)}卡号4111111111111111。`]) {
    const refused = await guard(long, "long-2");
    assert.deepEqual([refused.code, refused.out], [2, ""]);
    assert.match(refused.errors, /a card number, and is too long for a review: \d+ bytes .* at most 15000; nothing went out/);
  }
  const broken = await guard(Buffer.from([0x34, 0xff]), "long-3");
  assert.deepEqual([broken.code, broken.out], [2, ""]);
  assert.equal((await asked("guard")).length, before);
});

test("a guardrail finds numbers and keys amid Chinese, and shows as much of it as fits", async () => {
  const text = `${"请".repeat(4500)}卡号4111111111111111请，密钥sk-abcdefghijklmnop1234`;
  const held = guard(text, "中文-1");
  const review = await pending("guard");
  assert.deepEqual([review.data.text, review.data.found.map((it) => it.what)], [text, ["a card number", "an API key"]]);
  assert.equal(await say(review, "resolve", { approved: true }), 200);
  assert.deepEqual([(await held).code, (await held).out], [0, text]);
});

test("a program that is killed while it waits finds its question again, and the answer that was given meanwhile", async () => {
  const programs = {
    "again-py": [(occasion) => python("again-py", "Again?", occasion), { approved: true }, "again-py"],
    "again-ts": [(occasion) => typescript("again-ts", "Again?", occasion), { input: 7 }, "again-ts"],
    guard: [(occasion) => guard("Call bob@example.com 请\n", occasion), { approved: true }, "guard"],
  };
  for (const [name, [run, answer, who]] of Object.entries(programs)) {
    const killed = run("today");
    const question = await pending(who);
    killed.kill();
    assert.equal((await killed).code, null);
    // Killed again while nobody has answered: it is the same question.
    const twice = run("today");
    while ((await pending(who)).id !== question.id);
    twice.kill();
    await twice;
    assert.equal(await say(question, "resolve", answer), 200);
    // However often: the last one may have been killed before its answer was used.
    for (let times = 0; times < 2; times += 1) {
      const ended = await run("today");
      assert.equal(ended.code, 0, `${name}: ${ended.errors}`);
      assert.match(ended.errors, new RegExp(`waiting for a person: ${question.id}`), name);
    }
    // But nobody's yes is good for the next time.
    const tomorrow = run("tomorrow");
    const next = await pending(who);
    assert.notEqual(next.id, question.id);
    assert.equal(await say(next, "reject", {}), 200);
    assert.equal((await tomorrow).code, 1);
  }
});

test("a question is asked once, where its reply is lost and somebody answers before it is asked again", async () => {
  const programs = [
    ["ask.py", { approved: true }, (url) => python("lost", "Lost?", "once", url), /"resolved"/],
    ["ask.ts", { input: 5 }, (url) => typescript("lost", "Lost?", "once", url), /"input":5/],
    // This one names no occasion.
    ["voice", { approved: true }, (url) => voice("sell the boat\n", url), /Approved by dev/],
  ];
  for (const [workflow, answer, run, says] of programs) {
    const before = (await asked(workflow)).length;
    const lossy = await losesFirst(answer);
    const ended = await run(lossy.url);
    lossy.stop();
    assert.equal(ended.code, 0, `${workflow}: ${ended.errors}`);
    assert.match(ended.out, says);
    assert.equal((await asked(workflow)).length, before + 1, workflow);
  }
});

test("a client streams what an agent says, and answers where it stops", async () => {
  const ended = await talk("approval-agent", "deploy-123", "部署 v2.0 到生产环境", "y\n");
  assert.equal(ended.code, 0, ended.errors);
  assert.match(ended.out, /Please confirm/);
  assert.match(ended.out, /部署完成/);
});

/** Whom the calls of a conversation paid. */
async function paid(session) {
  const { items } = await (await fetch(`${server.url}/api/v1/runs?agent_id=clerk&session_id=${session}`)).json();
  const trace = await (await fetch(`${server.url}/api/v1/runs/${items[0].run_id}/trace`)).json();
  const done = trace.items.filter((event) => event.type === "action_finished").map((event) => event.data.outcome);
  return done.filter((it) => it.status === "done").map((it) => JSON.parse(it.content).to).sort();
}

test("a client shows every call that would be made, and asks about each", async () => {
  const ann = 'pay {"cents": 500, "to": "Ann"}\nApprove [y/n] ';
  const bob = 'pay {"cents": 700, "to": "Bob"}\nApprove [y/n] ';
  for (const [said, expected] of [["y\ny\n", ["Ann", "Bob"]], ["n\ny\n", ["Bob"]], ["y\n", ["Ann"]], ["", []]]) {
    const session = `both-${expected.length}-${expected[0]}`;
    const ended = await talk("clerk", session, "both", said);
    assert.equal(ended.code, 0, ended.errors);
    assert.equal(ended.errors, ann + bob);
    assert.match(ended.out, /I pay them\.\n[^]*All done\./);
    assert.deepEqual(await paid(session), expected);
  }
});

test("a call that is shown to somebody in a terminal cannot play with it", async () => {
  const spoofed = await between({ changes: (text) => text.replaceAll('"Ann"', '"An\\u001b[2K\\u202e\\r\\n安"') });
  const ended = await talk("clerk", "spoofed", "one", "n\n", spoofed.url);
  spoofed.stop();
  assert.equal(ended.errors, 'pay {"cents": 500, "to": "An\\u001b[2K\\u202e\\r\\n安"}\nApprove [y/n] ');
  assert.deepEqual(await paid("spoofed"), []);
});

test("a client that is killed while it asks is asked the same again, and one that is refused says why", async () => {
  const killed = talk("clerk", "left", "one", null);
  await pending("left");
  killed.kill();
  await killed;
  const ended = await talk("clerk", "left", "one", "y\n");
  assert.equal(ended.code, 0, ended.errors);
  assert.match(ended.errors, /and waits; what you say now is not sent/);
  assert.deepEqual(await paid("left"), ["Ann"]);

  const refused = await talk("nobody", "here", "hello", "");
  assert.deepEqual([refused.code, refused.out, refused.errors], [1, "", "agent_not_found: agent not found: nobody\n"]);
});
