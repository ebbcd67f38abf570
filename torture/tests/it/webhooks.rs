//! An endpoint outside hears of every question and of its end, whatever becomes of servers and of the endpoint.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use serde_json::json;

use crate::{
    http::Request,
    point::Dice,
    process::Watch,
    programs::{Build, Effort},
    report::Tally,
    scenario::Scenario,
    service::Service,
    sink::{Heard, Mood, Sink},
    world::{CONFIG, Timing, World},
};

/// A message was accepted, and is still in the outbox.
const SENT: &str = "webhook.sent";
/// How many questions are asked in the life of a server.
const QUESTIONS: usize = 6;
/// How many programs ask them.
const PROGRAMS: usize = 3;
/// How long a server may take to come to its death.
const LIFE: Duration = Duration::from_secs(20);
/// How long it may be silent in the end, before what was not heard counts as lost.
const SILENCE: Duration = Duration::from_secs(10);

/// What came of it.
#[derive(Debug, Default)]
struct Told {
    deaths: usize,
    missed: usize,
    /// How many messages were accepted more than once.
    twice: usize,
    /// How many came to nothing.
    refused: usize,
    /// What does not hold, for each question.
    verdicts: BTreeMap<String, Vec<String>>,
    problems: Vec<String>,
}

fn configure(world: &World, sink: &Sink) {
    let config = json!({
        "apiVersion": "holdpoint/v1",
        "kind": "Server",
        "spec": {
            "store": "env:HOLDPOINT_STORE",
            "webhooks": [{
                "name": "sink",
                "url": format!("http://{}/hook", sink.address),
                "secret": "SINK_SECRET",
                "timeout": "300ms",
                "allow_private": ["127.0.0.1"],
            }],
        },
    });
    fs::write(world.path(CONFIG), config.to_string()).unwrap();
}

/// Asks until there is an answer, however many servers die meanwhile.
fn insist(address: SocketAddr, request: &Request, until: &Watch) -> Result<String, String> {
    loop {
        let said = match request.send(address) {
            Ok(answer) if (200..300).contains(&answer.status) => {
                let id = answer.body["id"].as_str();
                return id.map(str::to_owned).ok_or(format!("{answer:?}"));
            }
            Ok(answer) if answer.status < 500 => return Err(format!("{answer:?}")),
            Ok(answer) => format!("{answer:?}"),
            Err(error) => error.to_string(),
        };
        if until.elapsed() > LIFE * 60 {
            return Err(said);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Asks and answers a question. Returns its id.
fn ask(address: SocketAddr, number: usize) -> Result<String, String> {
    let watch = Watch::start();
    let body = json!({"workflow_id": "w", "node_id": format!("n{number}"), "type": "approval", "title": "?"});
    let question = Request::post("/api/v1/interrupts", format!("ask-{number}"), body);
    let id = insist(address, &question, &watch)?;
    let path = format!("/api/v1/interrupts/{id}/resolve");
    let answer = Request::post(path, format!("say-{number}"), json!({"approved": true}));
    insist(address, &answer, &watch)
}

/// Has servers die one after the other between delivering and recording that.
fn told_through_deaths(build: Build, scenario: &Scenario, kills: usize) -> Told {
    let world = World::new(build, scenario);
    let sink = Sink::new();
    configure(&world, &sink);
    let mut service = Service::new(&world);
    let address = service.address;
    let (allowed, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let total = kills * QUESTIONS;
    let mut told = Told::default();
    let asked: Vec<Result<String, String>> = thread::scope(|scope| {
        let program = || {
            let mut asked = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= total {
                    return asked;
                }
                while number >= allowed.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(3));
                }
                asked.push(ask(address, number));
            }
        };
        let programs: Vec<_> = (0..PROGRAMS).map(|_| scope.spawn(program)).collect();
        let mut dice = Dice::new("webhooks");
        for _ in 0..kills {
            service.start_to_die(SENT, 1 + dice.below(QUESTIONS));
            allowed.fetch_add(QUESTIONS, Ordering::SeqCst);
            match service.await_death(LIFE) {
                Ok(true) => told.deaths += 1,
                Ok(false) => {
                    told.missed += 1;
                    told.problems.extend(service.kill().err());
                }
                Err(problem) => told.problems.push(problem),
            }
        }
        sink.becomes(Mood::Kind);
        service.start(Timing::Prompt);
        told.problems.extend(service.await_ready().err());
        let asked = programs.into_iter().flat_map(|it| it.join().unwrap());
        asked.collect()
    });
    let mut ids = BTreeSet::new();
    for asked in asked {
        match asked {
            Ok(id) => drop(ids.insert(id)),
            Err(problem) => told.problems.push(problem),
        }
    }
    await_all(&sink, &ids);
    drop(service);
    let accepted = sink.accepted();
    told.twice = accepted.len() - names(&accepted).len();
    let (refused, wrong) = sink.troubles();
    told.refused = refused;
    told.problems.extend(wrong);
    told.verdicts = ids
        .into_iter()
        .map(|id| {
            let verdict = judge(&accepted, &id);
            (id, verdict)
        })
        .collect();
    if build == Build::Sound && told.verdicts.values().any(|it| !it.is_empty()) {
        world.keep_and_say();
    }
    told
}

fn names(accepted: &[Heard]) -> BTreeSet<&str> {
    accepted.iter().map(|it| it.id.as_str()).collect()
}

/// Waits until everything was heard, or nothing for a long time.
fn await_all(sink: &Sink, ids: &BTreeSet<String>) {
    let mut watch = Watch::start();
    let mut count = 0;
    while watch.elapsed() < SILENCE {
        let accepted = sink.accepted();
        if names(&accepted).len() >= ids.len() * 2 {
            return;
        }
        if accepted.len() > count {
            count = accepted.len();
            watch = Watch::start();
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// What does not hold for a question: that it was asked was heard, then what came of it, and each under one name with one text.
fn judge(accepted: &[Heard], id: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut heard: Vec<&Heard> = Vec::new();
    for it in accepted.iter().filter(|it| it.interrupt == id) {
        match heard.iter().find(|before| before.id == it.id) {
            None => heard.push(it),
            Some(before) if before.body == it.body => {}
            Some(_) => problems.push(format!("{} says something else the second time", it.id)),
        }
    }
    let kinds: Vec<&str> = heard.iter().map(|it| it.kind.as_str()).collect();
    if kinds != ["interrupt.created", "interrupt.resolved"] {
        problems.push(format!("heard: {kinds:?}"));
    }
    problems
}

impl Told {
    fn count(self, tally: &mut Tally) {
        for (id, problems) in &self.verdicts {
            tally.judge(id, 0, problems);
        }
        tally.violations.extend(self.problems);
        tally.missed += self.missed;
        tally.also("deaths", self.deaths);
        tally.also("heard twice", self.twice);
        tally.also("refused", self.refused);
    }
}

fn every_event_is_heard(scenario: &Scenario, shelf: &str) {
    let kills = Effort::asked_for().pick(8, 200);
    let name = format!("{kills} deaths between delivering and recording, {shelf}");
    let mut tally = Tally::new("webhooks", name);
    let told = told_through_deaths(Build::Sound, scenario, kills);
    let (deaths, twice, refused) = (told.deaths, told.twice, told.refused);
    told.count(&mut tally);
    tally.conclude();
    // Otherwise it was shown by nothing.
    assert!(
        deaths * 2 >= kills && twice * 2 >= deaths,
        "{deaths} deaths, {twice} heard twice"
    );
    assert!(refused * 2 > kills, "{refused} refused");
}

#[test]
fn an_endpoint_hears_of_everything_in_order_though_servers_die_on_one_file() {
    every_event_is_heard(&Scenario::approve(), "one file");
}

#[test]
fn an_endpoint_hears_of_everything_in_order_though_servers_die_on_postgres() {
    every_event_is_heard(&Scenario::approve().on_postgres(), "PostgreSQL");
}

#[test]
fn what_is_taken_out_of_the_outbox_before_it_is_sent_is_never_heard() {
    let mut tally = Tally::new(
        "negative controls",
        "outbox emptied before sending, server killed",
    );
    let told = told_through_deaths(Build::WeakNoStarted, &Scenario::approve(), 4);
    told.count(&mut tally);
    tally.publish();
    let lost = tally.violations.iter().any(|it| it.contains("heard: ["));
    assert!(lost, "{tally:?}");
}
