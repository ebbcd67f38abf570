// The page that a link opens, in a browser as people have it.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import puppeteer from "puppeteer-core";
import { serve } from "./server.mjs";

// The width of a phone.
const PHONE = { width: 390, height: 844, isMobile: true, hasTouch: true };

// Each of these does something where it is taken for more than a text.
const HOSTILE = [
  "<script>document.title='pwned';alert(1)</script>",
  '"><img src=x onerror=alert(1)>',
  "'><svg/onload=alert(1)>",
  "</textarea><script>alert(1)</script>",
  "</title><script>alert(1)</script>",
  "</pre></td></table><iframe src=javascript:alert(1)></iframe>",
  "</select><img src=x onerror=alert(1)>",
  "</style><style>*{display:none}</style>",
  "<a href=javascript:alert(1)>x</a>",
  "<base href=https://elsewhere.example/>",
  '<meta http-equiv=refresh content="0;url=https://elsewhere.example/">',
  "<form action=https://elsewhere.example/><button>Approve</button></form>",
  '" autofocus onfocus=alert(1) x="',
  "<details open ontoggle=alert(1)>",
  "<body onload=alert(1)>",
  "<object data=javascript:alert(1)></object>",
  "<math><mtext></form><img src=x onerror=alert(1)></math>",
  "<!--<img src=--><img src=x onerror=alert(1)>",
  "]]><script>alert(1)</script>",
  "&lt;script&gt;alert(1)&lt;/script&gt;",
  "{{constructor.constructor('alert(1)')()}}${alert(1)}",
  "javascript:alert(1)//",
  "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
  "<scr\u0000ipt>alert(1)</scr\u0000ipt>",
];

// What our pages are made of. Anything else came out of a text.
const OURS = ["html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "dl", "dt", "dd", "time", "form", "input"]
  .concat(["pre", "table", "tbody", "tr", "th", "td", "fieldset", "legend", "label", "small", "span", "select", "option", "textarea"])
  .concat(["div", "button", "section", "code", "details", "summary", "strong", "ul", "li", "a", "br"]);

let server;
let browser;
before(async () => {
  server = await serve();
  browser = await puppeteer.launch({
    executablePath: process.env.HOLDPOINT_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function call(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(`${server.url}/api/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
  const said = await answer.json();
  assert.ok(answer.ok, JSON.stringify(said));
  return said;
}

let asked = 0;
async function ask(more) {
  asked += 1;
  const question = await call("POST", "interrupts", { workflow_id: "pages", node_id: `node-${asked}`, type: "approval", title: "Go on?", ...more });
  return question.id;
}

const linkTo = async (id) => (await call("POST", `interrupts/${id}/link`, {})).url;
const shown = (id) => call("GET", `interrupts/${id}`);

/** The question that a run waits for. */
async function waiting(run) {
  for (;;) {
    const { status, interrupts } = await call("GET", `runs/${run}`);
    if (interrupts?.length) return interrupts[0].id;
    assert.notEqual(status, "finished");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function ended(run) {
  for (;;) {
    const seen = await call("GET", `runs/${run}`);
    if (seen.status === "finished") return seen;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A tab of somebody's phone, and everything in it that no page of ours does. */
async function tab() {
  const page = await browser.newPage();
  await page.setViewport(PHONE);
  const strange = [];
  page.on("dialog", (dialog) => {
    strange.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(server.url)) strange.push(`request: ${url}`);
  });
  return { page, strange };
}

async function elements(page) {
  // What stands for a character that cannot be seen is ours, too.
  return page.$$eval("*:not(b.hidden)", (all) => all.map((one) => one.localName));
}

/** Nobody scrolls sideways. */
async function expectNarrow(page) {
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= PHONE.width);
}

async function press(page, button) {
  await Promise.all([page.waitForNavigation(), page.click(button)]);
}

const APPROVE = "button[value=approve]";

test("somebody opens a link on a phone and decides with one touch", async () => {
  const id = await ask({ title: "删除 1,234 条记录?", description: "x".repeat(2_000), data: { 表: "users", rows: 1234 } });
  const { page, strange } = await tab();
  await page.goto(await linkTo(id));
  await expectNarrow(page);
  const tall = await page.$eval(APPROVE, (button) => button.getBoundingClientRect().height);
  assert.ok(tall >= 40, "a thumb can press it");
  assert.match(await page.$eval("body", (body) => body.innerText), /删除 1,234 条记录\?[^]*1234[^]*users/);
  await Promise.all([page.waitForNavigation(), page.tap(APPROVE)]);
  assert.match(await page.$eval("h1", (h1) => h1.innerText), /It is decided/);
  assert.deepEqual(strange, []);
  assert.equal((await shown(id)).status, "resolved");
  // Whatever a browser shows to somebody who goes back, there is nothing left to decide.
  await page.goBack();
  if (await page.$("button[value=reject]")) await press(page, "button[value=reject]");
  assert.equal((await shown(id)).status, "resolved");
  await page.close();
});

test("a link that was fetched a hundred times still works", async () => {
  const id = await ask({});
  const link = await linkTo(id);
  await Promise.all(Array.from({ length: 100 }, async (_, at) => assert.equal((await fetch(link, { method: at % 2 ? "GET" : "HEAD" })).status, 200)));
  assert.equal((await shown(id)).status, "pending");
  const { page } = await tab();
  await page.goto(link);
  await press(page, APPROVE);
  assert.equal((await shown(id)).status, "resolved");
  await page.close();
});

test("Enter in a field decides nothing", async () => {
  const input_schema = { type: "object", properties: { why: { type: "string", maxLength: 100 } } };
  const id = await ask({ input_schema });
  const { page } = await tab();
  await page.goto(await linkTo(id));
  await page.type("input[name='in/why']", "because");
  await page.keyboard.press("Enter");
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal((await shown(id)).status, "pending");
  await press(page, APPROVE);
  assert.deepEqual((await shown(id)).response.input, { why: "because" });
  await page.close();
});

test("one thing is approved with other arguments, and what is wrong is said and kept", async () => {
  const { run_id } = await call("POST", "runs", { agent_id: "clerk", session_id: "one", input: "one" });
  const { page } = await tab();
  await page.goto(await linkTo(await waiting(run_id)));
  const change = async (args, button = "button[value=edit]") => {
    if (!(await page.$eval("details", (it) => it.open))) await page.click("summary");
    await page.$eval("textarea[name=a0]", (area, text) => (area.value = text), args);
    await press(page, button);
  };
  // Whoever changes them and presses the other button has decided nothing.
  await change('{"to": "Ann", "cents": 300}', APPROVE);
  assert.match(await page.$eval("[role=alert]", (it) => it.innerText), /you changed the arguments/);
  assert.match(await page.$eval("textarea[name=a0]", (it) => it.value), /300/);
  assert.equal((await call("GET", `runs/${run_id}`)).status, "waiting");
  await change('{"to": "Ann", "cents": 5000000}');
  assert.match(await page.$eval("[role=alert]", (it) => it.innerText), /arguments of pay/);
  assert.match(await page.$eval("details .wrong", (it) => it.innerText), /cents: .*100000/);
  assert.match(await page.$eval("textarea[name=a0]", (it) => it.value), /5000000/);
  assert.equal((await call("GET", `runs/${run_id}`)).status, "waiting");
  await change('{"to": "Ann", "cents": 400}');
  await ended(run_id);
  assert.match(JSON.stringify(await call("GET", `runs/${run_id}/state`)), /400/);
  await page.close();
});

test("two things of one turn are decided on one page, each for itself", async () => {
  const { run_id } = await call("POST", "runs", { agent_id: "clerk", session_id: "two", input: "both" });
  const { page } = await tab();
  await page.goto(await linkTo(await waiting(run_id)));
  const text = await page.$eval("body", (body) => body.innerText);
  assert.match(text, /Would run: pay[^]*500[^]*Ann[^]*Would run: pay[^]*700[^]*Bob/);
  // Without a word on one of them the browser itself sends nothing.
  await page.click("input[name=d0][value=edit]");
  await page.click("button[value=answer]");
  assert.equal((await call("GET", `runs/${run_id}`)).status, "waiting");
  await page.click("section:nth-of-type(1) summary");
  await page.$eval("textarea[name=a0]", (area) => (area.value = '{"to": "Ann", "cents": 450}'));
  await page.click("input[name=d1][value=reject]");
  await page.type("textarea[name=m1]", "Bob was paid already.");
  await press(page, "button[value=answer]");
  await ended(run_id);
  const said = JSON.stringify(await call("GET", `runs/${run_id}/state`));
  assert.match(said, /450/);
  assert.match(said, /Bob was paid already\./);
  await page.close();
});

test("whatever somebody writes is shown as a text", async () => {
  const { page, strange } = await tab();
  for (const text of HOSTILE) {
    const id = await ask({
      workflow_id: text,
      node_id: `${text}${asked}`,
      type: "input",
      title: text,
      description: text,
      data: { [text]: text, nested: { [text]: [text] } },
      options: [{ id: text, label: text, description: text }],
      input_schema: {
        type: "object",
        properties: {
          [text]: { type: "string", title: text, description: text, default: text },
          short: { type: "string", maxLength: 99, title: text, default: text },
          choice: { enum: [text, "other"], title: text },
        },
      },
      metadata: { [text]: text },
    });
    const check = async (where) => {
      const strangers = (await elements(page)).filter((name) => !OURS.includes(name));
      assert.deepEqual(strangers, [], `${where}: ${text}`);
      assert.deepEqual(strange, [], `${where}: ${text}`);
      await expectNarrow(page);
      assert.equal(await page.$$eval("form", (forms) => forms.filter((form) => new URL(form.action).origin !== location.origin).length), 0);
      const handlers = await page.$$eval("*", (all) => all.flatMap((one) => one.getAttributeNames()).filter((name) => name.startsWith("on") || name === "autofocus"));
      assert.deepEqual(handlers, [], `${where}: ${text}`);
    };
    await page.goto(await linkTo(id));
    await check("asked");
    const visible = text.replaceAll("\u0000", "");
    if (visible === text) {
      const seen = await page.$eval("body", (body) => body.innerText);
      assert.ok(seen.split(text).length > 4, `it is there to be read: ${text}`);
      assert.equal(await page.title(), text);
    }
    await page.$eval("textarea[name=comment]", (area, said) => (area.value = said), visible);
    await press(page, "button[value=answer]");
    await check("answered");
    const list = await call("POST", "waiting", {});
    await ask({ workflow_id: text, node_id: `list ${text}${asked}`, title: text });
    await page.goto(list.url);
    await check("listed");
  }
  await page.close();
});

test("the same look finds what a careless page lets through", async () => {
  const { page, strange } = await tab();
  let found = 0;
  for (const text of HOSTILE) {
    strange.length = 0;
    await page.setContent(`<title>${text}</title><body><h1>${text}</h1><input value="${text}"><textarea>${text}</textarea></body>`).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 20));
    const strangers = (await elements(page).catch(() => ["gone"])).filter((name) => !OURS.includes(name));
    if (strangers.length > 0 || strange.length > 0) found += 1;
  }
  assert.ok(found * 2 >= HOSTILE.length, `${found} of ${HOSTILE.length}`);
  await page.close();
});

test("no other site decides, whatever it does with a link", async () => {
  const id = await ask({});
  const link = await linkTo(id);
  const html = await (await fetch(link)).text();
  const proof = html.match(/name="page" value="([^"]+)"/)[1];
  const hidden = `<input name=page value="${proof}"><input name=say value=approve>`;
  const attacks = {
    "/form": `<form method=post action="${link}">${hidden}</form><script>document.forms[0].submit()</script>`,
    "/blank": `<form method=post target=_blank action="${link}">${hidden}</form><script>document.forms[0].submit()</script>`,
    "/text": `<form method=post enctype=text/plain action="${link}">${hidden}</form><script>document.forms[0].submit()</script>`,
    "/frame": `<iframe src="${link}"></iframe><form method=post target=f action="${link}">${hidden}</form><iframe name=f></iframe><script>document.forms[0].submit()</script>`,
    "/fetch": `<script>fetch("${link}",{method:"POST",mode:"no-cors",credentials:"include",headers:{"content-type":"application/x-www-form-urlencoded"},body:"page=${proof}&say=approve"})</script>`,
    "/beacon": `<script>navigator.sendBeacon("${link}",new URLSearchParams({page:"${proof}",say:"approve"}))</script>`,
    "/noreferrer": `<meta name=referrer content=no-referrer><form method=post action="${link}">${hidden}</form><script>document.forms[0].submit()</script>`,
    "/sandbox": `<iframe sandbox="allow-forms allow-scripts" srcdoc='<form method=post action="${link}">${hidden}</form><script>document.forms[0].submit()</script>'></iframe>`,
  };
  let served = 0;
  const elsewhere = createServer((request, answer) => {
    const attack = attacks[request.url];
    if (attack) served += 1;
    answer.writeHead(attack ? 200 : 404, { "Content-Type": "text/html" }).end(attack ?? "");
  });
  await new Promise((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  const { port } = elsewhere.address();
  for (const path of Object.keys(attacks)) {
    // On this machine another port is the same site, and another name of it is another one: neither may.
    for (const host of ["127.0.0.1", "localhost"]) {
      const page = await browser.newPage();
      let posted = 0;
      const count = (request) => (posted += request.method() === "POST" && request.url() === link);
      page.on("request", count);
      page.on("popup", (popup) => (posted += popup !== null));
      await page.goto(`http://${host}:${port}${path}`, { waitUntil: "networkidle0" }).catch(() => {});
      assert.ok(posted > 0, `${path} did try`);
      assert.equal((await shown(id)).status, "pending", path);
      await page.close();
    }
  }
  assert.equal(served, 2 * Object.keys(attacks).length);
  elsewhere.close();
  const { page } = await tab();
  await page.goto(link);
  await press(page, APPROVE);
  assert.equal((await shown(id)).status, "resolved");
  await page.close();
});
