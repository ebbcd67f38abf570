//! Runs over HTTP: begun, watched, answered, stopped, forked.

use std::time::Duration;

use holdpoint_server::Access;
use reqwest::Method;
use serde_json::{Value, json};

use super::support::{World, read};
use crate::sse;

#[tokio::test]
async fn a_run_is_begun_shown_answered_and_done() {
    let world = World::dev().await;
    let run = world.waiting("s").await;
    let (code, shown) = world.get(&format!("/api/v1/runs/{run}")).await;
    assert_eq!((code, &shown["cause"]), (200, &json!("human_approval")));
    let question = &shown["interrupts"][0];
    assert_eq!(question["value"]["action_requests"][0]["name"], "act");
    let path = format!("/api/v1/runs/{run}/resume");
    let (code, problem) = world.post(&path, &json!({"decisions": []})).await;
    assert_eq!((code, &problem["code"]), (422, &json!("misfit")));
    let (code, _) = world
        .post(&path, &json!({"decisions": [{"type": "approve"}]}))
        .await;
    assert_eq!(code, 200);
    let done = world.until(&run, "finished").await;
    assert_eq!(done["output"], "It is done.");
    let (code, problem) = world
        .post(&path, &json!({"decisions": [{"type": "approve"}]}))
        .await;
    assert_eq!((code, &problem["code"]), (409, &json!("not_pending")));
    let id = question["id"].as_str().unwrap();
    let (code, problem) = world.post(&path, &json!({ id: {"type": "approve"} })).await;
    assert_eq!((code, &problem["code"]), (409, &json!("already_decided")));
    let (_, state) = world.get(&format!("/api/v1/runs/{run}/state")).await;
    assert_eq!(state["messages"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn lists_come_in_pages_that_meet() {
    let world = World::dev().await;
    let mut runs = Vec::new();
    for at in 0..5 {
        runs.push(world.waiting(&format!("s{at}")).await);
    }
    let hello = json!({"agent_id": "approval-agent", "session_id": "h", "input": "hello"});
    let (_, begun) = world.post("/api/v1/runs", &hello).await;
    runs.push(begun["run_id"].as_str().unwrap().to_owned());
    world.until(runs.last().unwrap(), "finished").await;
    runs.reverse();
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let (code, page) = world.get(&format!("/api/v1/runs?limit=2{cursor}")).await;
        assert_eq!(code, 200, "{page}");
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        found.extend(
            items
                .iter()
                .map(|it| it["run_id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, runs);
    let (_, page) = world
        .get("/api/v1/runs?status=waiting&agent_id=clerk&session_id=s3")
        .await;
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    for bad in ["limit=0", "limit=x", "cursor=zzz"] {
        assert_eq!(
            world.get(&format!("/api/v1/runs?{bad}")).await.0,
            400,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn a_client_that_is_dropped_at_every_event_sees_every_event_once() {
    let world = World::dev().await;
    let run = world.waiting("s").await;
    let path = format!("/api/v1/runs/{run}/resume");
    world
        .post(&path, &json!({"decisions": [{"type": "approve"}]}))
        .await;
    world.until(&run, "finished").await;
    let (_, trace) = world
        .get(&format!("/api/v1/runs/{run}/trace?limit=200"))
        .await;
    let expected: Vec<u64> = trace["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    let stream = format!("/api/v1/runs/{run}/stream");
    let mut seen = Vec::new();
    loop {
        let mut request = world.request(Method::GET, &stream);
        if let Some(last) = seen.last() {
            request = request.header("Last-Event-ID", format!("{last}"));
        }
        let mut response = request.send().await.unwrap();
        if response.status() == 204 {
            break;
        }
        // One event is read, and the connection dropped in the middle.
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            bytes.extend_from_slice(&chunk);
            let events = sse::read(&bytes);
            if let Some(event) = events.iter().find(|it| !it.id.is_empty()) {
                seen.push(event.id.parse::<u64>().unwrap());
                break;
            }
        }
    }
    assert_eq!(seen, expected);
    for bad in ["999", "x", "-1"] {
        let request = world
            .request(Method::GET, &stream)
            .header("Last-Event-ID", bad);
        let (code, problem) = read(request.send().await.unwrap()).await;
        assert_eq!(
            (code, &problem["code"]),
            (400, &json!("bad_event_id")),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn who_listens_from_the_start_sees_what_is_said_and_then_that_it_was_said() {
    let world = World::dev().await;
    let body = json!({"agent_id": "clerk", "session_id": "s", "input": "go"});
    let (_, begun) = world.post("/api/v1/runs", &body).await;
    let run = begun["run_id"].as_str().unwrap();
    let listening = world.request(Method::GET, &format!("/api/v1/runs/{run}/stream"));
    let listening = tokio::spawn(async move { listening.send().await.unwrap().text().await });
    world.until(run, "waiting").await;
    let path = format!("/api/v1/runs/{run}/resume");
    world
        .post(&path, &json!({"decisions": [{"type": "approve"}]}))
        .await;
    let text = listening.await.unwrap().unwrap();
    let events = sse::read(text.as_bytes());
    let last = events.last().unwrap();
    assert_eq!(last.event, "run_ended");
    let names: Vec<&str> = events.iter().map(|it| it.event.as_str()).collect();
    for name in [
        "run_started",
        "model_replied",
        "interrupt_raised",
        "answered",
        "action_finished",
    ] {
        assert_eq!(
            names.iter().filter(|it| **it == name).count(),
            if name == "model_replied" { 2 } else { 1 },
            "{name} in {names:?}"
        );
    }
    let raised = events
        .iter()
        .find(|it| it.event == "interrupt_raised")
        .unwrap();
    assert!(!raised.data.contains("nonce") && raised.data.contains("act"));
}

#[tokio::test]
async fn a_run_stands_still_goes_on_and_is_stopped_and_only_this_one() {
    let world = World::dev().await;
    let old = world.waiting("s").await;
    let tell = |run: &str, what: &str| format!("/api/v1/runs/{run}/{what}");
    let (code, paused) = world.post(&tell(&old, "pause"), &json!({})).await;
    assert_eq!((code, &paused["status"]), (200, &json!("paused")));
    let (code, _) = world.post(&tell(&old, "continue"), &json!({})).await;
    assert_eq!(code, 200);
    let (code, stopped) = world.post(&tell(&old, "cancel"), &json!({})).await;
    assert_eq!((code, &stopped["status"]), (200, &json!("cancelled")));
    let new = world.waiting("s").await;
    for what in ["cancel", "pause", "continue"] {
        let (code, problem) = world.post(&tell(&old, what), &json!({})).await;
        assert_eq!(
            (code, &problem["code"]),
            (409, &json!("run_over")),
            "{what}"
        );
    }
    let (_, shown) = world.get(&format!("/api/v1/runs/{old}")).await;
    assert_eq!(
        (&shown["status"], &shown["run_id"]),
        (&json!("cancelled"), &json!(old))
    );
    let (_, shown) = world.get(&format!("/api/v1/runs/{new}")).await;
    assert_eq!(shown["status"], "waiting");
}

#[tokio::test]
async fn a_fork_asks_anew_and_goes_its_own_way() {
    let world = World::dev().await;
    let run = world.waiting("s").await;
    let (_, history) = world.get(&format!("/api/v1/runs/{run}/history")).await;
    let places = history["items"].as_array().unwrap();
    let place = places
        .iter()
        .rev()
        .find(|it| it["forkable"] == true)
        .unwrap();
    let body = json!({"session_id": "s2", "checkpoint_id": place["checkpoint_id"]});
    let (code, begun) = world.post(&format!("/api/v1/runs/{run}/fork"), &body).await;
    assert_eq!(
        (code, &begun["status"]),
        (201, &json!("waiting")),
        "{begun}"
    );
    let fork = begun["run_id"].as_str().unwrap();
    assert_ne!(fork, run);
    let path = format!("/api/v1/runs/{fork}/resume");
    let (code, _) = world
        .post(&path, &json!({"decisions": [{"type": "reject"}]}))
        .await;
    assert_eq!(code, 200);
    world.until(fork, "finished").await;
    world.until(&run, "waiting").await;
    let (code, problem) = world.post(&format!("/api/v1/runs/{run}/fork"), &body).await;
    assert_eq!((code, &problem["code"]), (409, &json!("thread_exists")));
    let nowhere = json!({"session_id": "s3", "checkpoint_id": "ckpt_99"});
    let path = format!("/api/v1/runs/{run}/fork");
    let (code, problem) = world.post(&path, &nowhere).await;
    assert_eq!((code, &problem["code"]), (404, &json!("not_found")));
    let (code, checkpoint) = world.get(&format!("/api/v1/runs/{run}/checkpoint")).await;
    assert_eq!((code, &checkpoint["status"]), (200, &json!("interrupted")));
    assert_eq!(checkpoint["resume_policy"], "after_human_approval");
}

#[tokio::test]
async fn starts_that_come_at_once_do_not_pass_the_limit_of_questions() {
    let world = World::new(Access::Dev, |file| file.limits.pending_per_user = 3).await;
    let starts = (0..20).map(|nth| {
        let body = json!({"agent_id": "clerk", "session_id": format!("s{nth}"), "input": "go"});
        let world = &world;
        async move { world.post("/api/v1/runs", &body).await }
    });
    let answers = futures::future::join_all(starts).await;
    let (begun, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|(code, _)| *code == 201);
    assert_eq!((begun.len(), refused.len()), (3, 17));
    for (code, problem) in refused {
        assert_eq!((*code, &problem["code"]), (429, &json!("too_many_pending")));
    }
    // The others were not begun at all, and those that were are still there to be answered.
    let (_, runs) = world.get("/api/v1/runs").await;
    assert_eq!(runs["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn limits_answer_with_their_statuses_and_lose_nothing() {
    let world = World::new(Access::Dev, |file| {
        file.limits.body = 2_048;
        file.limits.pending_per_user = 2;
        file.limits.batch = 1;
        file.limits.streams_per_key = 1;
    })
    .await;
    let first = world.waiting("a").await;
    world.waiting("b").await;
    let body = json!({"agent_id": "clerk", "session_id": "c", "input": "go"});
    let (code, problem) = world.post("/api/v1/runs", &body).await;
    assert_eq!((code, &problem["code"]), (429, &json!("too_many_pending")));
    let two = json!({"decisions": [{"type": "approve"}, {"type": "approve"}]});
    let path = format!("/api/v1/runs/{first}/resume");
    let (code, problem) = world.post(&path, &two).await;
    assert_eq!((code, &problem["code"]), (422, &json!("batch_too_large")));
    let large = json!({"agent_id": "clerk", "session_id": "c", "input": "x".repeat(4_096)});
    let (code, problem) = world.post("/api/v1/runs", &large).await;
    assert_eq!((code, &problem["code"]), (413, &json!("too_large")));
    // Who announces too much is told at once, and not asked for it.
    let announced = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n",
        world.address
    );
    let answer = world.raw(&announced).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("too_large"), "{answer}");
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let (code, problem) = world.post("/api/v1/runs", &deep).await;
    assert_eq!((code, &problem["code"]), (422, &json!("too_deep")));
    let stream = format!("/api/v1/runs/{first}/stream");
    let open = world.request(Method::GET, &stream).send().await.unwrap();
    let (code, problem) = world.get(&stream).await;
    assert_eq!((code, &problem["code"]), (429, &json!("too_many_streams")));
    drop(open);
    world
        .post(&path, &json!({"decisions": [{"type": "approve"}]}))
        .await;
    world.until(&first, "finished").await;
    let (code, begun) = world.post("/api/v1/runs", &body).await;
    assert_eq!(code, 201, "{begun}");
}

#[tokio::test]
async fn two_servers_on_one_store_are_one() {
    let here = World::dev().await;
    let there = here.beside().await;
    let run = here.waiting("s").await;
    let stream = here.request(Method::GET, &format!("/api/v1/runs/{run}/stream"));
    let reading = tokio::spawn(stream.send().await.unwrap().text());
    there.until(&run, "waiting").await;
    let path = format!("/api/v1/runs/{run}/resume");
    let answer = json!({"decisions": [{"type": "approve"}]});
    let answers = (0..20).map(|at| {
        let world = if at % 2 == 0 { &here } else { &there };
        world.post(&path, &answer)
    });
    let answers = futures::future::join_all(answers).await;
    let taken = answers.iter().filter(|(code, _)| *code == 200).count();
    let late = answers.iter().filter(|(code, _)| *code == 409).count();
    assert_eq!((taken, late), (1, 19), "{answers:?}");
    here.until(&run, "finished").await;
    there.until(&run, "finished").await;
    // Whoever followed it at the server that was not asked saw all of it.
    let told = reading.await.unwrap().unwrap();
    assert_eq!(told.matches("event: run_ended").count(), 1, "{told}");
    assert_eq!(told.matches("event: action_started").count(), 1, "{told}");
}

#[tokio::test]
async fn a_store_that_was_tampered_with_is_our_own_fault_and_nothing_runs() {
    let mut world = World::dev().await;
    let run = world.waiting("s").await;
    world.stop().await;
    let conn = rusqlite::Connection::open(world.folder.path().join("main.db")).unwrap();
    let changed = conn.execute(
        "UPDATE events SET payload = CAST(replace(payload, 'act', 'pay') AS BLOB) WHERE payload LIKE '%act%'",
        [],
    );
    assert!(changed.unwrap() > 0);
    drop(conn);
    let again = World::over(&world, Access::Dev).await;
    let before = again.contents();
    let path = format!("/api/v1/runs/{run}/resume");
    let (code, problem) = again
        .post(&path, &json!({"decisions": [{"type": "approve"}]}))
        .await;
    assert_eq!((code, &problem["code"]), (500, &json!("damaged")));
    assert_eq!(again.contents(), before);
}

#[tokio::test]
async fn only_words_that_mean_something_are_taken() {
    let world = World::dev().await;
    let (code, problem) = world.get("/api/v1/runs?status=pending").await;
    assert_eq!((code, &problem["code"]), (400, &json!("bad_request")));
    assert!(
        problem["error"].as_str().unwrap().contains("waiting"),
        "{problem}"
    );
    let run = world.waiting("s").await;
    let (_, runs) = world.get("/api/v1/runs?status=waiting").await;
    assert_eq!(runs["items"][0]["run_id"], json!(run));
    let began = runs["items"][0]["started_at"].as_str().unwrap();
    assert_eq!(began.len(), "2026-01-01T00:00:00.000000Z".len(), "{began}");
}

#[tokio::test]
async fn a_server_that_goes_ends_its_streams_and_the_next_one_goes_on() {
    let mut world = World::dev().await;
    let run = world.waiting("s").await;
    let stream = world.request(Method::GET, &format!("/api/v1/runs/{run}/stream"));
    let stream = stream.send().await.unwrap();
    let reading = tokio::spawn(stream.text());
    tokio::time::sleep(Duration::from_millis(50)).await;
    world.stop().await;
    let text = reading.await.unwrap().unwrap();
    assert!(text.ends_with("event: closing\ndata: {}\n\n"), "{text}");
    let again = World::over(&world, Access::Dev).await;
    again.until(&run, "waiting").await;
    let path = format!("/api/v1/runs/{run}/resume");
    again
        .post(&path, &json!({"decisions": [{"type": "approve"}]}))
        .await;
    again.until(&run, "finished").await;
}

#[tokio::test]
async fn a_changed_agent_is_read_again_and_a_broken_one_stays_as_it_was() {
    let world = World::dev().await;
    let file = world.folder.path().join("clerk.yaml");
    let good = std::fs::read_to_string(&file).unwrap();
    let digest = |agents: &Value| {
        let items = agents["items"].as_array().unwrap();
        let clerk = items.iter().find(|it| it["agent_id"] == "clerk").unwrap();
        (clerk["definition"].clone(), clerk["problem"].clone())
    };
    let (_, agents) = world.get("/api/v1/agents").await;
    let (before, problem) = digest(&agents);
    assert_eq!(problem, Value::Null);
    std::fs::write(&file, good.replace("interrupt_on", "interupt_on")).unwrap();
    let broken = world
        .agents_until(|agents| digest(agents).1 != Value::Null)
        .await;
    assert_eq!(digest(&broken).0, before);
    assert!(digest(&broken).1.as_str().unwrap().contains("interupt_on"));
    std::fs::write(
        &file,
        good.replace("{name: clerk}", "{name: clerk, version: \"2\"}"),
    )
    .unwrap();
    let changed = world
        .agents_until(|agents| digest(agents).0 != before)
        .await;
    assert_eq!(digest(&changed).1, Value::Null);
    world.waiting("s").await;
}

#[tokio::test]
async fn a_broken_file_in_a_folder_takes_no_other_agent_away() {
    let world = World::new(Access::Dev, |file| {
        let agents = file.agents[0].parent().unwrap().join("agents");
        std::fs::create_dir(&agents).unwrap();
        for name in ["clerk.yaml", "clerk-scenario.yaml"] {
            std::fs::copy(agents.with_file_name(name), agents.join(name)).unwrap();
        }
        file.agents = vec![agents];
    })
    .await;
    let agents = world.folder.path().join("agents");
    for broken in ["x: [\n", ""] {
        std::fs::write(agents.join("new.yaml"), broken).unwrap();
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let (_, shown) = world.get("/api/v1/agents").await;
        assert_eq!(
            shown["items"][0]["agent_id"], "clerk",
            "{broken:?}: {shown}"
        );
    }
    // And keeps no other one as it was.
    let file = agents.join("clerk.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let newer = text.replace("{name: clerk}", "{name: clerk, version: \"2\"}");
    std::fs::write(&file, newer).unwrap();
    world
        .agents_until(|agents| agents["items"][0]["version"] == "2")
        .await;
    world.waiting("s").await;
}

#[tokio::test]
async fn a_body_is_an_object_and_an_id_that_is_none_is_absent() {
    let world = World::dev().await;
    let run = world.waiting("s").await;
    for (path, body) in [
        ("/api/v1/runs".to_owned(), json!(["clerk", "x", "go"])),
        (
            "/api/v1/chat/stream".to_owned(),
            json!(["clerk", "x", "go", false]),
        ),
        (
            format!("/api/v1/runs/{run}/resume"),
            json!([{"type": "approve"}]),
        ),
    ] {
        let (code, problem) = world.post(&path, &body).await;
        assert_eq!(
            (code, &problem["code"]),
            (400, &json!("bad_request")),
            "{path}"
        );
    }
    let (code, problem) = world.get("/api/v1/runs/%ff").await;
    assert_eq!((code, &problem["code"]), (404, &json!("not_found")));
    let absent = json!({"int_00000000000000000000000000000001": {"type": "approve"}});
    let (code, problem) = world
        .post(&format!("/api/v1/runs/{run}/resume"), &absent)
        .await;
    assert_eq!((code, &problem["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn a_server_whose_store_cannot_be_written_is_not_ready_until_it_can() {
    let world = World::dev().await;
    assert_eq!(world.get("/readyz").await.0, 200);
    let other = rusqlite::Connection::open(world.folder.path().join("main.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let until = async |wanted: u16| {
        for _ in 0..300 {
            let (code, said) = world.get("/readyz").await;
            if code == wanted {
                return said;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("/readyz never said {wanted}");
    };
    assert_eq!(until(503).await["code"], "store_unavailable");
    assert_eq!(world.get("/healthz").await.0, 200);
    other.execute_batch("ROLLBACK").unwrap();
    until(200).await;
}
