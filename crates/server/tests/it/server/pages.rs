//! Pages on which people decide, opened by links.

use holdpoint_core::PrincipalKind;
use holdpoint_server::Access;
use reqwest::{Client, Method, redirect::Policy};
use serde_json::{Value, json};

use super::support::{World, chat, read};

const ALL: &str = "/api/v1/interrupts";

/// Texts that would be more than texts, were they let to.
const HOSTILE: [&str; 12] = [
    "<script>document.title='pwned'</script>",
    "\"><img src=x onerror=alert(1)>",
    "'><svg/onload=alert(1)>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</pre><iframe src=javascript:alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt;&#60;script&#62;",
    "<!--<script>",
    "]]><script>alert(1)</script>",
    "\u{202e}evil\u{202c}\u{0}\u{200b}",
    "${7*7}{{7*7}}<%= 7*7 %>",
];

/// A browser of somebody who has a link.
pub(super) struct Browser {
    pub(super) client: Client,
    pub(super) origin: String,
}

/// A page that was opened.
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) html: String,
    pub(super) url: String,
}

impl Browser {
    pub(super) fn new(world: &World) -> Self {
        let client = Client::builder().no_proxy().redirect(Policy::none());
        Self {
            client: client.build().unwrap(),
            origin: format!("http://{}", world.address),
        }
    }

    pub(super) async fn open(&self, url: &str) -> Page {
        let answer = self.client.get(url).send().await.unwrap();
        let status = answer.status().as_u16();
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "same-origin"),
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(answer.headers()[name], value, "{name}");
        }
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("script"));
        Page {
            status,
            html: answer.text().await.unwrap(),
            url: url.to_owned(),
        }
    }

    /// Presses a button, after this was put in. Follows to where that leads.
    pub(super) async fn press(&self, page: &Page, said: &[(&str, &str)]) -> Page {
        let mut form = vec![("page", page.proof())];
        form.extend(
            said.iter()
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
        let answer = self
            .client
            .post(&page.url)
            .header("origin", &self.origin)
            .header("sec-fetch-site", "same-origin")
            .header("sec-fetch-mode", "navigate")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(encoded(&form))
            .send()
            .await
            .unwrap();
        let status = answer.status().as_u16();
        if status == 303 {
            let to = answer.headers()["location"].to_str().unwrap();
            let mut shown = self.open(&format!("{}{to}", self.origin)).await;
            shown.status = 303;
            return shown;
        }
        Page {
            status,
            html: answer.text().await.unwrap(),
            url: page.url.clone(),
        }
    }
}

pub(super) fn encoded(form: &[(&str, String)]) -> String {
    let escape = |text: &str| -> String {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let pairs = form
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)));
    pairs.collect::<Vec<_>>().join("&")
}

impl Page {
    pub(super) fn proof(&self) -> String {
        let (_, rest) = self.html.split_once("name=\"page\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }

    pub(super) fn has(&self, text: &str) -> bool {
        self.html.contains(text)
    }
}

pub(super) async fn raised(world: &World, body: &Value) -> String {
    let (status, raised) = world.post(ALL, body).await;
    assert_eq!(status, 201, "{raised}");
    raised["id"].as_str().unwrap().to_owned()
}

pub(super) async fn link(world: &World, id: &str) -> String {
    let (status, given) = world.post(&format!("{ALL}/{id}/link"), &json!({})).await;
    assert_eq!(status, 201, "{given}");
    given["url"].as_str().unwrap().to_owned()
}

/// The question of a run of the clerk.
pub(super) async fn asked(world: &World, session: &str) -> (String, String) {
    let run = world.waiting(session).await;
    let (_, shown) = world.get(&format!("/api/v1/runs/{run}")).await;
    let id = shown["interrupts"][0]["id"].as_str().unwrap().to_owned();
    (run, id)
}

#[tokio::test]
async fn however_often_a_link_is_fetched_only_the_button_decides_and_only_once() {
    let world = World::dev().await;
    let (run, id) = asked(&world, "s").await;
    let url = link(&world, &id).await;
    let before = world.contents();
    let browser = Browser::new(&world);
    for _ in 0..100 {
        let page = browser.open(&url).await;
        assert_eq!(page.status, 200);
        assert!(page.has("Would run: <code>act</code>") && page.has("You are"));
    }
    let head = browser.client.head(&url).send().await.unwrap();
    assert_eq!(head.status(), 200);
    assert_eq!(world.contents(), before, "nothing has changed");

    let page = browser.open(&url).await;
    let done = browser.press(&page, &[("d0", "approve")]).await;
    assert_eq!(done.status, 303);
    assert!(done.has("It is decided") && done.has("user:dev"));
    world.until(&run, "finished").await;
    let (_, trace) = world.get(&format!("/api/v1/runs/{run}/trace")).await;
    let answered = trace["items"].as_array().unwrap().iter();
    let answered: Vec<_> = answered.filter(|it| it["type"] == "answered").collect();
    assert_eq!(answered.len(), 1);
    assert!(
        answered[0].to_string().contains("\"tok_"),
        "{}",
        answered[0]
    );
    // The same button again, and another one, find that it is over.
    for said in ["approve", "reject"] {
        let late = browser.press(&page, &[("d0", said)]).await;
        assert_eq!(late.status, 409, "{said}");
        assert!(late.has("It is decided"));
    }
    assert!(browser.open(&url).await.has("It is decided"));
}

#[tokio::test]
async fn what_is_rejected_or_changed_on_a_page_is_rejected_or_changed() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    let (run, id) = asked(&world, "no").await;
    let page = browser.open(&link(&world, &id).await).await;
    let done = browser
        .press(&page, &[("d0", "reject"), ("m0", "not\r\ntoday")])
        .await;
    assert_eq!(done.status, 303);
    assert!(
        done.has("It was rejected") && done.has("not\\ntoday"),
        "{}",
        done.html
    );
    world.until(&run, "finished").await;

    let (run, id) = asked(&world, "edit").await;
    let page = browser.open(&link(&world, &id).await).await;
    for (args, why) in [("{", "no JSON"), ("{\"a\":1,\"a\":2}", "no JSON")] {
        let again = browser.press(&page, &[("d0", "edit"), ("a0", args)]).await;
        assert_eq!(again.status, 422, "{args}");
        assert!(
            again.has(why) && again.has("role=\"alert\""),
            "{}",
            again.html
        );
    }
    assert_eq!(browser.press(&page, &[]).await.status, 422);
    assert_eq!(browser.press(&page, &[("d0", "respond")]).await.status, 422);
    let done = browser.press(&page, &[("d0", "edit"), ("a0", "{}")]).await;
    assert_eq!(done.status, 303);
    world.until(&run, "finished").await;
}

#[tokio::test]
async fn a_form_is_made_from_a_schema_and_keeps_what_was_put_in_until_it_fits() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    let body = json!({
        "workflow_id": "w", "node_id": "n", "type": "input", "title": "多少?",
        "options": [{"id": "fast", "label": "Fast"}, {"id": "slow", "label": "Slow"}],
        "input_schema": {
            "type": "object", "required": ["amount"], "additionalProperties": false,
            "properties": {"amount": {"type": "integer", "maximum": 10, "title": "Amount"}, "tier": {"enum": ["a", "b"]}},
        },
    });
    let id = raised(&world, &body).await;
    let page = browser.open(&link(&world, &id).await).await;
    assert!(
        page.has("多少?") && page.has("Amount *") && page.has("<option value=\"1\">b</option>")
    );
    let wrong = browser
        .press(&page, &[("say", "answer"), ("in/amount", "many")])
        .await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.has("must be a number") && wrong.has("value=\"many\""));
    let wrong = browser
        .press(
            &page,
            &[("say", "answer"), ("in/amount", "11"), ("option", "fast")],
        )
        .await;
    assert_eq!(wrong.status, 422);
    assert!(
        wrong.has("value=\"11\"") && wrong.has("value=\"fast\" checked"),
        "{}",
        wrong.html
    );
    let said = [
        ("say", "answer"),
        ("in/amount", "7"),
        ("in/tier", "1"),
        ("option", "slow"),
        ("comment", "ok"),
    ];
    let done = browser.press(&page, &said).await;
    assert_eq!(done.status, 303, "{}", done.html);
    let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
    let response = &shown["response"];
    assert_eq!(response["input"], json!({"amount": 7, "tier": "b"}));
    assert_eq!(
        (&response["option_id"], &response["comment"]),
        (&json!("slow"), &json!("ok"))
    );
    assert_eq!(response["user_id"], "dev");
}

/// What it is, the method, headers, the type of the body, and the body.
type Shape<'a> = (&'a str, Method, Vec<(&'a str, &'a str)>, &'a str, String);

#[tokio::test]
async fn no_page_of_another_site_can_decide_anything() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    let (_, id) = asked(&world, "s").await;
    let (_, other) = asked(&world, "other").await;
    let url = link(&world, &id).await;
    let page = browser.open(&url).await;
    let foreign = browser.open(&link(&world, &other).await).await.proof();
    let before = world.contents();
    let own = browser.origin.clone();
    let form = "application/x-www-form-urlencoded";
    let good = encoded(&[("page", page.proof()), ("d0", "approve".to_owned())]);
    let json = json!({"page": page.proof(), "d0": "approve"}).to_string();
    let with = |proof: &str| encoded(&[("page", proof.to_owned()), ("d0", "approve".to_owned())]);
    let ours: &[(&str, &str)] = &[("origin", &own), ("sec-fetch-site", "same-origin")];
    let port = world.address.port();
    let near = format!("http://127.0.0.1:{}", port.wrapping_add(1));
    let secure = format!("https://127.0.0.1:{port}");
    let longer = format!("{own}.evil.example");
    let mutated = page.proof().replace("hpp1", "hpt1");
    let shapes: Vec<Shape<'_>> = vec![
        ("no origin", Method::POST, vec![], form, good.clone()),
        (
            "null origin",
            Method::POST,
            vec![("origin", "null")],
            form,
            good.clone(),
        ),
        (
            "empty origin",
            Method::POST,
            vec![("origin", "")],
            form,
            good.clone(),
        ),
        (
            "other site",
            Method::POST,
            vec![("origin", "https://evil.example")],
            form,
            good.clone(),
        ),
        (
            "other port",
            Method::POST,
            vec![("origin", &near)],
            form,
            good.clone(),
        ),
        (
            "other scheme",
            Method::POST,
            vec![("origin", &secure)],
            form,
            good.clone(),
        ),
        (
            "longer name",
            Method::POST,
            vec![("origin", &longer)],
            form,
            good.clone(),
        ),
        (
            "upper case",
            Method::POST,
            vec![("origin", "HTTP://127.0.0.1")],
            form,
            good.clone(),
        ),
        (
            "two origins",
            Method::POST,
            vec![("origin", &own), ("origin", "https://evil.example")],
            form,
            good.clone(),
        ),
        (
            "referer instead",
            Method::POST,
            vec![("referer", &url)],
            form,
            good.clone(),
        ),
        (
            "cross-site",
            Method::POST,
            vec![("origin", &own), ("sec-fetch-site", "cross-site")],
            form,
            good.clone(),
        ),
        (
            "same-site",
            Method::POST,
            vec![("origin", &own), ("sec-fetch-site", "same-site")],
            form,
            good.clone(),
        ),
        (
            "typed in",
            Method::POST,
            vec![("origin", &own), ("sec-fetch-site", "none")],
            form,
            good.clone(),
        ),
        (
            "fetch",
            Method::POST,
            vec![("origin", &own), ("sec-fetch-mode", "cors")],
            form,
            good.clone(),
        ),
        (
            "no-cors fetch",
            Method::POST,
            vec![("origin", &own), ("sec-fetch-mode", "no-cors")],
            form,
            good.clone(),
        ),
        (
            "websocket",
            Method::POST,
            vec![("origin", &own), ("sec-fetch-mode", "websocket")],
            form,
            good.clone(),
        ),
        (
            "plain text",
            Method::POST,
            ours.to_vec(),
            "text/plain",
            good.clone(),
        ),
        (
            "multipart",
            Method::POST,
            ours.to_vec(),
            "multipart/form-data; boundary=x",
            good.clone(),
        ),
        (
            "json",
            Method::POST,
            ours.to_vec(),
            "application/json",
            json,
        ),
        ("no type", Method::POST, ours.to_vec(), "", good.clone()),
        (
            "no proof",
            Method::POST,
            ours.to_vec(),
            form,
            "d0=approve".to_owned(),
        ),
        ("empty proof", Method::POST, ours.to_vec(), form, with("")),
        (
            "proof of another page",
            Method::POST,
            ours.to_vec(),
            form,
            with(&foreign),
        ),
        (
            "proof of another form",
            Method::POST,
            ours.to_vec(),
            form,
            with(&mutated),
        ),
        (
            "the link as proof",
            Method::POST,
            ours.to_vec(),
            form,
            with(url.rsplit('/').next().unwrap()),
        ),
        (
            "cut proof",
            Method::POST,
            ours.to_vec(),
            form,
            with(&page.proof()[1..]),
        ),
        (
            "empty body",
            Method::POST,
            ours.to_vec(),
            form,
            String::new(),
        ),
        (
            "get with a query",
            Method::GET,
            ours.to_vec(),
            form,
            good.clone(),
        ),
        ("put", Method::PUT, ours.to_vec(), form, good.clone()),
        ("patch", Method::PATCH, ours.to_vec(), form, good.clone()),
        ("delete", Method::DELETE, ours.to_vec(), form, good.clone()),
        (
            "overridden get",
            Method::GET,
            vec![("origin", &own), ("x-http-method-override", "POST")],
            form,
            good.clone(),
        ),
    ];
    assert!(shapes.len() >= 30);
    for (name, method, headers, kind, body) in shapes {
        let is_get = method == Method::GET;
        let target = if is_get {
            format!("{url}?{body}")
        } else {
            url.clone()
        };
        let mut request = browser.client.request(method, &target);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let answer = request.body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let refused = if is_get {
            status == 200
        } else {
            [403, 405].contains(&status)
        };
        assert!(refused, "{name}: {status} {text}");
        assert_eq!(world.contents(), before, "{name}");
    }
    // And the person's own click works.
    assert_eq!(browser.press(&page, &[("d0", "approve")]).await.status, 303);
}

#[tokio::test]
async fn a_link_is_for_one_question_and_one_person_and_for_a_while() {
    let world = World::new(Access::Keys, |_| {}).await;
    let browser = Browser::new(&world);
    let (shop_key, shop) = world.key(PrincipalKind::Service, "acme", "shop").await;
    let (_, agent) = world.key(PrincipalKind::Agent, "acme", "robot").await;
    let post = async |key: &str, path: &str, body: Value| {
        let request = world.posting(path, &body).bearer_auth(key);
        read(request.send().await.unwrap()).await
    };
    let question = json!({"workflow_id": "w", "node_id": "n", "type": "approval", "title": "?"});
    let (_, asked) = post(&shop, ALL, question).await;
    let path = format!("{ALL}/{}/link", asked["id"].as_str().unwrap());
    // A service may give links only where it may give tokens; an agent never.
    for key in [&shop, &agent] {
        let (status, problem) = post(key, &path, json!({"user_id": "ann"})).await;
        assert_eq!((status, &problem["code"]), (403, &json!("forbidden")));
    }
    let mut issuer = holdpoint_core::Principal::new(PrincipalKind::Service, "acme", "desk");
    issuer.permissions.insert("tokens.issue".to_owned());
    let desk = world.keys().create(issuer, None, "").await.unwrap();
    for (body, ok) in [
        (json!({"user_id": "ann", "ttl_seconds": 86_401}), false),
        (json!({"user_id": "ann", "ttl_seconds": 0}), false),
        (json!({"user_id": "ann b"}), false),
        (json!({"user": "ann"}), false),
        (json!({"user_id": "ann", "ttl_seconds": 1}), true),
    ] {
        let (status, given) = post(&desk.key, &path, body).await;
        assert_eq!(status == 201, ok, "{given}");
    }
    let (_, given) = post(&desk.key, &path, json!({"user_id": "ann"})).await;
    assert_eq!(given["user_id"], "ann");
    let url = given["url"].as_str().unwrap();
    assert!(browser.open(url).await.has("<dd>ann</dd>"));
    let (_, brief) = post(
        &desk.key,
        &path,
        json!({"user_id": "bob", "ttl_seconds": 1}),
    )
    .await;
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let over = browser.open(brief["url"].as_str().unwrap()).await;
    assert_eq!(over.status, 410);
    assert!(over.has("This link has expired"));
    // Whatever is changed in it, it is none of ours; and what is for something else is no link.
    let (base, token) = url.rsplit_once('/').unwrap();
    for at in 0..token.len() {
        let mut bytes = token.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let other = String::from_utf8(bytes).unwrap();
        let page = browser.open(&format!("{base}/{other}")).await;
        assert_eq!(page.status, 403, "{at}");
        assert!(page.has("This link does not hold"));
    }
    let wish = json!({"user_id": "ann"});
    let (_, token) = post(&desk.key, &path.replace("/link", "/token"), wish.clone()).await;
    let token = token["resume_token"].as_str().unwrap();
    assert_eq!(browser.open(&format!("{base}/{token}")).await.status, 403);
    let (_, list) = post(&desk.key, "/api/v1/waiting", wish).await;
    let list = list["url"].as_str().unwrap();
    let as_link = list.replace("/waiting/", "/decide/");
    assert_eq!(browser.open(&as_link).await.status, 403);
    // It ends with the key of whoever gave it.
    world.keys().revoke(&desk.id).await.unwrap();
    assert_eq!(browser.open(url).await.status, 403);
    assert_eq!(browser.open(list).await.status, 403);
    let _ = shop_key;
}

#[tokio::test]
async fn a_list_shows_what_waits_and_leads_to_it() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    let (_, given) = world.post("/api/v1/waiting", &json!({})).await;
    let list = given["url"].as_str().unwrap().to_owned();
    assert!(browser.open(&list).await.has("Nothing waits."));
    let (_, _) = asked(&world, "s").await;
    let question = json!({"workflow_id": "w", "node_id": "n", "type": "review", "title": "Fine?"});
    let id = raised(&world, &question).await;
    let before = world.contents();
    let page = browser.open(&list).await;
    assert!(page.has("Allow act?") && page.has("Fine?"));
    assert_eq!(world.contents(), before);
    let links: Vec<&str> = page.html.split("<a href=\"").skip(1).collect();
    assert_eq!(links.len(), 2);
    let link = links[1].split('"').next().unwrap();
    let opened = browser.open(link).await;
    let done = browser
        .press(&opened, &[("say", "reject"), ("comment", "no")])
        .await;
    assert_eq!(done.status, 303);
    let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
    assert_eq!(shown["status"], "rejected");
    assert!(!browser.open(&list).await.has("Fine?"));
}

#[tokio::test]
async fn hostile_texts_are_texts_wherever_they_stand() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    for (number, text) in HOSTILE.into_iter().enumerate() {
        let body = json!({
            "workflow_id": text, "node_id": format!("{text}{number}"), "type": "input", "title": text, "description": text,
            "data": {text: text, "nested": {text: [text]}},
            "options": [{"id": text, "label": text, "description": text}],
            "input_schema": {"type": "object", "properties": {text: {"type": "string", "title": text, "description": text, "default": text},
                "choice": {"enum": [text]}}},
            "metadata": {text: text},
        });
        let id = raised(&world, &body).await;
        let page = browser.open(&link(&world, &id).await).await;
        assert_eq!(page.status, 200);
        let entered = format!("in/{text}");
        let again = browser
            .press(
                &page,
                &[
                    ("say", text),
                    (&entered, text),
                    ("comment", text),
                    ("option", text),
                ],
            )
            .await;
        assert_eq!(again.status, 422);
        let said = [("say", "reject"), ("comment", text)];
        let closed = browser.press(&page, &said).await;
        assert_eq!(closed.status, 303, "{}", closed.html);
        for page in [page, again, closed] {
            for sign in [
                "<script", "<img", "<svg", "<iframe", "<b>", "<!--<", "\u{202e}", "\u{0}",
                "\u{200b}",
            ] {
                // In what is put in, nothing is marked, and nothing is taken away.
                let html = page.html.replace("&lt;", "");
                let is_value = ["\u{202e}", "\u{0}", "\u{200b}"].contains(&sign);
                assert!(is_value || !html.contains(sign), "{sign}: {html}");
            }
        }
    }
}

#[tokio::test]
async fn what_a_model_asks_in_plain_words_is_shown_as_its_words_and_confirmed() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    world
        .stream("/api/v1/chat/stream", &chat("s", "删除"))
        .await;
    let (_, page) = world.get(&format!("{ALL}?status=pending")).await;
    let id = page["items"][0]["id"].as_str().unwrap().to_owned();
    let page = browser.open(&link(&world, &id).await).await;
    let words = "Please confirm: 即将删除 1,234 条记录";
    assert!(page.has("In the agent's own words"));
    assert!(page.has(words) && !page.has("Would run"));
    assert_eq!(browser.press(&page, &[]).await.status, 422);
    let done = browser.press(&page, &[("say", "approve")]).await;
    assert_eq!(done.status, 303);
    assert_eq!(done.html.matches(words).count(), 1, "{}", done.html);
    let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
    assert_eq!(shown["status"], "resolved");
}

#[tokio::test]
async fn the_front_page_leads_to_what_waits() {
    let world = World::dev().await;
    let (run, id) = asked(&world, "front").await;
    let front = world.request(Method::GET, "/").send().await.unwrap();
    let html = front.text().await.unwrap();
    assert!(html.contains(&run) && html.contains(&id), "{html}");
    let (_, rest) = html.split_once("class=\"decide\" href=\"").unwrap();
    let url = rest.split_once('"').unwrap().0;
    let browser = Browser::new(&world);
    let page = browser.open(url).await;
    let done = browser.press(&page, &[("d0", "approve")]).await;
    assert_eq!(done.status, 303);
    world.until(&run, "finished").await;
    let front = world.request(Method::GET, "/").send().await.unwrap();
    assert!(front.text().await.unwrap().contains("Nothing waits"));
}
