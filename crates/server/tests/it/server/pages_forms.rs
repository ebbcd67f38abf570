//! What people put into the forms of pages, and what is made of it.

use std::path::Path;

use holdpoint_core::{Principal, PrincipalKind};
use holdpoint_definition::ServerFile;
use holdpoint_server::Access;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    pages::{Browser, Page, asked, encoded, link, raised},
    support::{World, read},
};

const ALL: &str = "/api/v1/interrupts";

/// Lets the clerk make these calls instead.
fn calling(config: &ServerFile, calls: &[Value]) {
    let folder = config.agents[1].parent().unwrap_or(Path::new("."));
    let calls = Value::from(calls.to_vec());
    let scenario = format!(
        "apiVersion: holdpoint/v1\nkind: Scenario\nrules:\n  - when: {{turn: 1}}\n    call: {calls}\n  - say: \"It is done.\"\n"
    );
    std::fs::write(folder.join("clerk-scenario.yaml"), scenario).unwrap();
    let clerk = std::fs::read_to_string(&config.agents[1]).unwrap();
    let schema = json!({"type": "object", "properties": {"cents": {"type": "integer", "maximum": 1000}, "to": {"type": "string"}}});
    let clerk = clerk.replace(
        "      http: {",
        &format!("      input_schema: {schema}\n      permissions: PERMISSIONS\n      http: {{"),
    );
    let needed = if calls.to_string().contains("needy") {
        "[money]"
    } else {
        "[]"
    };
    std::fs::write(&config.agents[1], clerk.replace("PERMISSIONS", needed)).unwrap();
}

fn call(args: &Value) -> Value {
    json!({"tool": "act", "args": args})
}

async fn ran(world: &World, run: &str) -> String {
    world.until(run, "finished").await;
    let (_, trace) = world.get(&format!("/api/v1/runs/{run}/trace")).await;
    // Calls stand in it as texts.
    trace.to_string().replace('\\', "")
}

fn question(kind: &str, more: &Value) -> Value {
    let mut question = json!({"workflow_id": "w", "node_id": kind, "type": kind, "title": "Fine?"});
    let all = question.as_object_mut().unwrap();
    all.extend(more.as_object().unwrap().clone());
    question
}

async fn pending(world: &World, id: &str) -> bool {
    let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
    shown["status"] == "pending"
}

async fn page_of(world: &World, question: &Value) -> (String, Page) {
    let id = raised(world, question).await;
    let page = Browser::new(world).open(&link(world, &id).await).await;
    assert_eq!(page.status, 200);
    (id, page)
}

#[tokio::test]
async fn whoever_changes_the_arguments_and_presses_another_button_decides_nothing() {
    let args = json!({"cents": 5, "to": "Ann"});
    let world = World::new(Access::Dev, |config| calling(config, &[call(&args)])).await;
    let browser = Browser::new(&world);
    let (run, id) = asked(&world, "one").await;
    let page = browser.open(&link(&world, &id).await).await;
    let before = world.contents();
    for (button, said) in [("approve", "“Approve”"), ("reject", "“Reject”")] {
        for other in ["{\"cents\": 7, \"to\": \"Ann\"}", "{", ""] {
            let again = browser.press(&page, &[("d0", button), ("a0", other)]).await;
            assert_eq!(again.status, 422, "{button} {other}");
            assert!(again.has("you changed the arguments of `act`") && again.has(said));
            assert!(
                again.has("Choose “Approve with other arguments”") && again.has("<details open>")
            );
            let kept = other.replace('"', "&quot;");
            assert!(again.has(&format!("\n{kept}</textarea>")), "{}", again.html);
        }
    }
    assert_eq!(world.contents(), before);
    // In another form they are the same.
    let same = "\r\n{ \"to\" :\"\\u0041nn\",\"cents\":5 }\r\n";
    let done = browser
        .press(&page, &[("d0", "approve"), ("a0", same)])
        .await;
    assert_eq!(done.status, 303, "{}", done.html);
    assert!(!ran(&world, &run).await.contains("edited_action"));
}

#[tokio::test]
async fn of_several_calls_each_is_decided_with_its_own_arguments() {
    let calls = [
        call(&json!({"cents": 5})),
        call(&json!({"cents": 6, "to": "Bob"})),
    ];
    let world = World::new(Access::Dev, |config| calling(config, &calls)).await;
    let browser = Browser::new(&world);
    let (run, id) = asked(&world, "two").await;
    let page = browser.open(&link(&world, &id).await).await;
    let first = ("a0", "{\"cents\": 5}");
    let second = ("a1", "{\"cents\": 60, \"to\": \"Bob\"}");
    let (yes, both) = ([("d0", "approve"), ("d1", "approve")], [first, second]);
    let again = browser.press(&page, &[yes, both].concat()).await;
    assert_eq!(again.status, 422);
    assert!(again.has("arguments that were asked about") && again.has("&quot;cents&quot;: 60"));
    let nothing = browser.press(&page, &[("d0", "approve"), first]).await;
    assert!(nothing.status == 422 && nothing.has("choose what is to happen"));
    let mended = [("d0", "approve"), ("d1", "edit"), first, second];
    let done = browser.press(&again, &mended).await;
    assert_eq!(done.status, 303, "{}", done.html);
    let trace = ran(&world, &run).await;
    assert!(
        trace.contains("\"cents\":60") && trace.contains("\"cents\":5"),
        "{trace}"
    );
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_explained_beside_them() {
    let args = json!({"cents": 5, "to": "Ann\u{202e}"});
    let world = World::new(Access::Dev, |config| calling(config, &[call(&args)])).await;
    let browser = Browser::new(&world);
    let (run, id) = asked(&world, "one").await;
    let page = browser.open(&link(&world, &id).await).await;
    // Its bytes are kept, so what cannot be seen of it is told.
    assert!(page.has("Ann\u{202e}&quot;"), "{}", page.html);
    let warning = "characters that cannot be seen, or turn its order: U+202E";
    assert_eq!(page.html.matches(warning).count(), 1);
    let more = [("d0", "edit"), ("a0", "{\"cents\": 1001, \"to\": \"Ann\"}")];
    let again = browser.press(&page, &more).await;
    assert_eq!(again.status, 422);
    assert!(
        again.has("these arguments do not fit: cents: 1001")
            && again.has("&quot;cents&quot;: 1001")
    );
    assert!(again.has("arguments of act") && !again.has("edited_action") && !again.has("act_"));
    let untouched = serde_json::to_string_pretty(&args)
        .unwrap()
        .replace('\n', "\r\n");
    let done = browser
        .press(&page, &[("d0", "approve"), ("a0", &untouched)])
        .await;
    assert_eq!(done.status, 303, "{}", done.html);
    assert!(ran(&world, &run).await.contains("Ann\u{202e}"));
}

#[tokio::test]
async fn what_does_not_fit_is_told_at_its_field_in_words() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    let schema = json!({
        "title": "An order", "description": "For the office.", "type": "object", "required": ["to", "value"],
        "properties": {
            "value": {"type": "integer", "minimum": 0, "maximum": 9, "title": "Amount"},
            "to": {"type": "object", "title": "Address", "required": ["street"], "properties": {"street": {"type": "string", "minLength": 2}}},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}},
            "any": {"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"a": {"type": "integer"}}}]},
            "pick": {"enum": ["3", 3, "x"]},
            "day": {"type": "string", "format": "date"},
        },
    });
    let (id, page) = page_of(&world, &question("input", &json!({"input_schema": schema}))).await;
    for text in [
        "<h2>An order</h2>",
        "For the office.",
        "Address › street *",
        "Amount *",
        "a whole number, at least 0, at most 9",
        "one entry a line",
        "JSON, as in 1 or {&quot;a&quot;:1}",
        "a date, as in 2026-01-31",
        ">&quot;3&quot;</option>",
        ">3</option>",
        ">x</option>",
    ] {
        assert!(page.has(text), "{text}: {}", page.html);
    }
    // What is required comes first, in that order.
    let at = |text: &str| page.html.find(text).unwrap();
    assert!(at("Address › street") < at("Amount *") && at("Amount *") < at("name=\"in/any\""));
    let said = [
        ("say", "answer"),
        ("in/value", "-1"),
        ("in/to/street", "x"),
        ("in/tags", "ok\r\ntoo long"),
        ("in/any", "\"y\""),
    ];
    let again = browser.press(&page, &said).await;
    assert_eq!(again.status, 422);
    for text in [
        "Something is not filled in as it should be: Address › street, Amount, any, tags.",
        "value=\"-1\"><span class=\"wrong\">must be at least 0</span>",
        "must have at least 2 characters",
        "entry 2: must have at most 3 characters",
        "fits none of the forms that are possible here",
        "\nok\r\ntoo long</textarea>",
    ] {
        assert!(again.has(text), "{text}: {}", again.html);
    }
    for text in ["act_", "the minimum of", "anyOf"] {
        assert!(!again.has(text), "{text}");
    }
    assert!(pending(&world, &id).await);
    // The date is none; but no door demands that.
    let said = [
        ("say", "answer"),
        ("in/value", "1"),
        ("in/to/street", "xy"),
        ("in/tags", "a\r\nb"),
        ("in/pick", "0"),
        ("in/day", "soon"),
    ];
    assert_eq!(browser.press(&page, &said).await.status, 303);
    let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
    let put_in =
        json!({"value": 1, "to": {"street": "xy"}, "tags": ["a", "b"], "pick": "3", "day": "soon"});
    assert_eq!(shown["response"]["input"], put_in);
    let resolve = format!(
        "{ALL}/{}/resolve",
        raised(
            &world,
            &question("review", &json!({"input_schema": schema}))
        )
        .await
    );
    let (status, taken) = world
        .post(&resolve, &json!({"approved": true, "input": put_in}))
        .await;
    assert_eq!(status, 200, "{taken}");
}

#[tokio::test]
async fn a_form_of_which_nothing_must_be_filled_in_is_sent_without_anything() {
    let world = World::dev().await;
    let schema = json!({"type": "object", "properties": {"note": {"type": "string"}}});
    let (id, page) = page_of(
        &world,
        &question("approval", &json!({"input_schema": schema})),
    )
    .await;
    let done = Browser::new(&world)
        .press(&page, &[("say", "approve"), ("in/note", "")])
        .await;
    assert_eq!(done.status, 303, "{}", done.html);
    let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
    assert_eq!(shown["response"]["input"], json!({}));
}

#[tokio::test]
async fn what_asks_for_something_is_not_answered_by_nothing_at_any_door() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    let (id, page) = page_of(&world, &question("input", &json!({}))).await;
    assert!(page.has("<textarea name=\"in\""), "{}", page.html);
    for said in [
        &[("say", "answer")][..],
        &[("say", "answer"), ("in", " \r\n")],
        &[("say", "approve")],
    ] {
        let again = browser.press(&page, said).await;
        assert_eq!(again.status, 422);
        assert!(again.has("must be filled in"), "{}", again.html);
    }
    let resolve = format!("{ALL}/{id}/resolve");
    for body in [
        json!({}),
        json!({"approved": true}),
        json!({"input": ""}),
        json!({"approved": true, "input": null}),
    ] {
        let (status, problem) = world.post(&resolve, &body).await;
        assert_eq!(status, 422, "{body}: {problem}");
    }
    assert!(pending(&world, &id).await);
    let done = browser
        .press(&page, &[("say", "answer"), ("in", "a\r\nb")])
        .await;
    assert_eq!(done.status, 303);
    let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
    assert_eq!(shown["response"]["input"], "a\nb");
}

#[tokio::test]
async fn whoever_does_not_say_no_chooses_one_of_the_options_at_every_door() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    let options =
        json!({"options": [{"id": "now", "label": "Now"}, {"id": "later", "label": "Later"}]});
    for (kind, button) in [
        ("approval", "approve"),
        ("input", "answer"),
        ("review", "approve"),
    ] {
        let (id, page) = page_of(&world, &question(kind, &options)).await;
        let resolve = format!("{ALL}/{id}/resolve");
        for body in [
            json!({"approved": true}),
            json!({"approved": true, "input": "x"}),
            json!({"approved": true, "option_id": "never"}),
            json!({"approved": false, "option_id": "never"}),
            json!({"decisions": [{"type": "approve"}]}),
        ] {
            // Where yes and no are no answers, approving is not allowed at all.
            let (status, problem) = world.post(&resolve, &body).await;
            assert_eq!(
                (status, &problem["code"]),
                (422, &json!("misfit")),
                "{kind} {body}: {problem}"
            );
        }
        let again = browser
            .press(&page, &[("say", button), ("comment", "hm")])
            .await;
        assert_eq!(again.status, 422);
        assert!(
            again.has("choose one of these") && again.has("should be: Choose."),
            "{}",
            again.html
        );
        assert!(again.has("\nhm</textarea>") && pending(&world, &id).await);
        let done = browser
            .press(&page, &[("say", button), ("option", "later")])
            .await;
        assert_eq!(done.status, 303);
        let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
        assert_eq!(shown["response"]["option_id"], "later");
    }
    let (id, page) = page_of(&world, &question("breakpoint", &options)).await;
    assert_eq!(browser.press(&page, &[("say", "reject")]).await.status, 303);
    let (_, shown) = world.get(&format!("{ALL}/{id}")).await;
    assert_eq!(shown["status"], "rejected");
}

#[tokio::test]
async fn a_question_says_in_its_title_what_is_asked() {
    let world = World::dev().await;
    let before = world.contents();
    for title in [json!({"title": ""}), json!({"title": " \n\t"})] {
        let (status, problem) = world.post(ALL, &question("approval", &title)).await;
        assert_eq!((status, &problem["code"]), (422, &json!("bad_question")));
        assert!(
            problem["error"].as_str().unwrap().contains("`title`"),
            "{problem}"
        );
    }
    let unsaid = json!({"workflow_id": "w", "type": "approval"});
    assert_eq!(world.post(ALL, &unsaid).await.0, 422);
    assert_eq!(world.contents(), before);
}

#[tokio::test]
async fn what_cannot_be_approved_any_more_is_said_beforehand_and_can_be_rejected() {
    let needy = call(&json!({"to": "needy"}));
    let world = World::new(Access::Keys, |config| calling(config, &[needy])).await;
    let browser = Browser::new(&world);
    let person = |name: &str, permission: &str| {
        let mut who = Principal::new(PrincipalKind::User, "acme", name);
        who.permissions.insert(permission.to_owned());
        who
    };
    let keys = world.keys();
    let chief = keys.create(person("chief", "*"), None, "").await.unwrap();
    let ann = keys.create(person("ann", "money"), None, "").await.unwrap();
    let post = async |key: &str, path: &str, body: Value| {
        let request = world.posting(path, &body).bearer_auth(key);
        read(request.send().await.unwrap()).await
    };
    let body = json!({"agent_id": "clerk", "session_id": "s", "input": "pay"});
    let (status, begun) = post(&ann.key, "/api/v1/runs", body).await;
    assert_eq!(status, 201, "{begun}");
    let id = loop {
        let path = format!("/api/v1/runs/{}", begun["run_id"].as_str().unwrap());
        let request = world.request(Method::GET, &path).bearer_auth(&ann.key);
        let (_, shown) = read(request.send().await.unwrap()).await;
        if let Some(id) = shown["interrupts"][0]["id"].as_str() {
            break id.to_owned();
        }
    };
    let (_, given) = post(
        &chief.key,
        &format!("{ALL}/{id}/link"),
        json!({"user_id": "chief"}),
    )
    .await;
    let url = given["url"].as_str().unwrap();
    let before = browser.open(url).await;
    let told = "approval lets this run now (act)";
    assert!(!before.has(told), "{}", before.html);
    keys.revoke(&ann.id).await.unwrap();
    let page = browser.open(url).await;
    assert!(page.status == 200 && page.has(told), "{}", page.html);
    let refused = browser.press(&page, &[("d0", "approve")]).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.has("Nothing was decided: ") && refused.has("`money`"),
        "{}",
        refused.html
    );
    assert!(!refused.has("This link does not hold"));
    let done = browser.press(&refused, &[("d0", "reject")]).await;
    assert_eq!(done.status, 303, "{}", done.html);
    assert!(done.has("It was rejected"));
}

#[tokio::test]
async fn an_address_that_is_not_whole_says_so_on_a_page() {
    let world = World::new(Access::Keys, |_| {}).await;
    let browser = Browser::new(&world);
    let origin = browser.origin.clone();
    for (path, status) in [
        ("/decide", 404),
        ("/decide/", 404),
        ("/decide/x/", 404),
        ("/decide/x/y/z", 404),
        ("/decide/x", 403),
        ("/decide/%ff", 404),
        ("/waiting", 404),
        ("/waiting/", 404),
        ("/waiting/x/y", 404),
        ("/waiting/x", 403),
    ] {
        let page = browser.open(&format!("{origin}{path}")).await;
        assert_eq!(page.status, status, "{path}");
        let text = "This link is incomplete or damaged: copy it whole";
        assert!(page.has("<h1>") && page.has(text), "{path}: {}", page.html);
        assert!(!page.has("token"), "{path}");
    }
    let dev = World::dev().await;
    let id = raised(&dev, &question("approval", &json!({}))).await;
    let url = link(&dev, &id).await;
    let cut = Browser::new(&dev).open(&url[..url.len() - 9]).await;
    assert!(
        cut.status == 403 && cut.has("copy it whole"),
        "{}",
        cut.html
    );
}

#[tokio::test]
async fn a_form_that_is_too_big_or_says_two_things_is_refused_on_a_page() {
    let world = World::new(Access::Dev, |config| config.limits.body = 64 * 1_024).await;
    let browser = Browser::new(&world);
    let (id, page) = page_of(&world, &question("approval", &json!({}))).await;
    let long = "x".repeat(65 * 1_024);
    let big = browser
        .press(&page, &[("say", "approve"), ("comment", &long)])
        .await;
    assert_eq!(big.status, 413);
    assert!(big.has("<h1>Nothing was decided</h1>") && big.has("more than this server takes"));
    for twice in [
        &[("say", "approve"), ("say", "reject")][..],
        &[("say", "approve"), ("say", "approve")],
        &[("say", "approve"), ("comment", "a"), ("comment", "b")],
    ] {
        let again = browser.press(&page, twice).await;
        assert_eq!(again.status, 422, "{twice:?}");
        assert!(again.has("said something twice"), "{}", again.html);
    }
    let (run, call) = asked(&world, "s").await;
    let page = browser.open(&link(&world, &call).await).await;
    let again = browser
        .press(&page, &[("d0", "approve"), ("d0", "reject")])
        .await;
    assert_eq!(again.status, 422);
    let proofs = encoded(&[
        ("page", page.proof()),
        ("page", page.proof()),
        ("d0", "approve".to_owned()),
    ]);
    let request = browser
        .client
        .post(&page.url)
        .header("origin", &browser.origin);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(request.body(proofs).send().await.unwrap().status(), 403);
    assert!(pending(&world, &id).await && pending(&world, &call).await);
    let _ = run;
}

#[tokio::test]
async fn a_late_click_is_counted_as_a_late_answer_is() {
    let world = World::dev().await;
    let browser = Browser::new(&world);
    let (_, page) = page_of(&world, &question("approval", &json!({}))).await;
    let counted = async || {
        let metrics = world.request(Method::GET, "/metrics").send().await.unwrap();
        let text = metrics.text().await.unwrap();
        let name = "holdpoint_duplicate_effects_prevented_total{by=\"already_decided\"} ";
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(
        browser.press(&page, &[("say", "approve")]).await.status,
        303
    );
    assert_eq!(counted().await, 0);
    assert_eq!(
        browser.press(&page, &[("say", "approve")]).await.status,
        409
    );
    assert_eq!(counted().await, 1);
    assert_eq!(browser.press(&page, &[("say", "reject")]).await.status, 409);
    assert_eq!(counted().await, 2);
}
