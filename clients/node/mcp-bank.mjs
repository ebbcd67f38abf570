// A server of the Model Context Protocol as of 2026-07-28, made with its official SDK: a bank that asks before it pays.
// What it does is written to the file that LEDGER names, a line each.
//
//   node mcp-bank.mjs              on standard input and output
//   node mcp-bank.mjs --http       over HTTP; it prints its address

import { appendFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, acceptedContent, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const tell = (line) => appendFileSync(process.env.LEDGER, `${line}\n`);
const said = (text) => ({ content: [{ type: "text", text }] });

function bank() {
  const server = new McpServer({ name: "bank", version: "1" });
  const to = z.object({ to: z.string() });

  // Nothing happens before the last answer: what was answered first comes back in its own state.
  const pin = z.object({ pin: z.string().min(4) });
  const amount = z.object({ cents: z.number().int() });
  server.registerTool("pay", { description: "Pays somebody.", inputSchema: to }, async ({ to }, ctx) => {
    const { inputResponses } = ctx.mcpReq;
    const requestState = ctx.mcpReq.requestState();
    tell(`asked ${to} ${requestState ?? "-"} ${JSON.stringify(inputResponses ?? {})}`);
    if (inputResponses?.amount?.action === "decline" || inputResponses?.pin?.action === "decline") return said("not paid");
    if (requestState === undefined) {
      const requestedSchema = amount;
      const ask = inputRequired.elicit({ message: `How much for ${to}?`, requestedSchema });
      return inputRequired({ inputRequests: { amount: ask }, requestState: "wants an amount" });
    }
    if (requestState === "wants an amount") {
      const { cents } = acceptedContent(inputResponses, "amount", amount);
      const ask = inputRequired.elicit({ message: `Your PIN to pay ${cents}?`, requestedSchema: pin });
      return inputRequired({ inputRequests: { pin: ask }, requestState: `pays ${cents}` });
    }
    acceptedContent(inputResponses, "pin", pin);
    tell(`${requestState} ${to}`);
    return said(`${to} has it: ${requestState}`);
  });

  const harmless = { readOnlyHint: true, idempotentHint: true };
  server.registerTool("balance", { description: "What is there.", annotations: harmless }, () => said("17"));

  const grave = { destructiveHint: true };
  server.registerTool("close", { description: "Closes the account.", annotations: grave }, () => {
    tell("closed");
    return said("closed");
  });

  // It is in the middle of its effect until somebody lets it end.
  server.registerTool("transfer", { description: "Moves money.", inputSchema: to }, async ({ to }, ctx) => {
    tell(`began ${to} ${ctx.mcpReq._meta?.["holdpoint/idempotency-key"]}`);
    while (!existsSync(process.env.GATE)) await sleep(20);
    tell(`moved ${to}`);
    return said("moved");
  });
  return server;
}

if (process.argv.includes("--http")) {
  const http = createServer(toNodeHandler(createMcpHandler(bank)));
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
} else {
  serveStdio(bank);
}
