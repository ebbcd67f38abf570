// A server of this test's own: the real binary, in a folder of its own.

import { spawn } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const examples = new URL("../../examples/", import.meta.url).pathname;

const echo = (name, more) => `
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: ${name}}
spec:
  model: {primary: "scripted:echo-scenario.yaml"}
${more}`;

// What it is told is what it does: every line a call, all of them in one turn.
const clerk = `
apiVersion: holdpoint/v1
kind: Agent
metadata: {name: clerk}
spec:
  model: {primary: "scripted:clerk-scenario.yaml"}
  tools:
    - name: pay
      description: Pays somebody.
      effect: write
      input_schema:
        type: object
        properties: {to: {type: string}, cents: {type: integer, maximum: 100000}}
        required: [to, cents]
      command: [cat]
  interrupt_on: {pay: true}
`;

const clerkScenario = `
apiVersion: holdpoint/v1
kind: Scenario
rules:
  - when: {user: both, turn: 1}
    say: I pay them.
    call:
      - {tool: pay, args: {to: Ann, cents: 500}}
      - {tool: pay, args: {to: Bob, cents: 700}}
  - when: {user: one, turn: 1}
    say: I pay her.
    call:
      - {tool: pay, args: {to: Ann, cents: 500}}
  - say: All done.
`;

/** Starts the server with the shipped approval agent, two that only say what they are told, and one that pays. */
export async function serve() {
  const binary = process.env.HOLDPOINT_BIN;
  if (!binary) throw new Error("HOLDPOINT_BIN must name the binary; `cargo xtask test` sets it");
  const folder = await mkdtemp(join(tmpdir(), "holdpoint-clients-"));
  await cp(join(examples, "approval-agent"), join(folder, "approval-agent"), { recursive: true });
  await writeFile(join(folder, "echo.yaml"), echo("echo", ""));
  // Its words are looked at, so it speaks once they are committed.
  await writeFile(join(folder, "careful.yaml"), echo("careful", "  confirm: {keywords: [zzz-never-zzz], keywords_only: true}\n"));
  await writeFile(
    join(folder, "echo-scenario.yaml"),
    'apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - say: "{user}"\n',
  );
  await writeFile(join(folder, "clerk.yaml"), clerk);
  await writeFile(join(folder, "clerk-scenario.yaml"), clerkScenario);
  await writeFile(
    join(folder, "server.yaml"),
    `apiVersion: holdpoint/v1
kind: Server
spec:
  store: "memory:"
  agents: [approval-agent/agent.yaml, echo.yaml, careful.yaml, clerk.yaml]
  models: {gpt-4o: "scripted:approval-agent/scenario.yaml"}
  stores: {redis: "sqlite:chat.db"}
`,
  );
  const process_ = spawn(binary, ["serve", "--dev", "--config", "server.yaml", "--listen", "127.0.0.1:0"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, HOLDPOINT_LOG: "warn" },
  });
  const said = [];
  const url = await new Promise((resolve, reject) => {
    process_.once("exit", () => reject(new Error(`the server ended: ${said.join("\n")}`)));
    createInterface({ input: process_.stderr }).on("line", (line) => {
      said.push(line);
      const found = line.match(/listens on (http:\S+)/);
      if (found) resolve(found[1]);
    });
  });
  const stop = async () => {
    const ended = new Promise((resolve) => process_.once("exit", resolve));
    process_.kill("SIGTERM");
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  return { url, stop };
}

export function post(url, path, body, headers = {}) {
  return fetch(`${url}/api/v1/chat/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}
