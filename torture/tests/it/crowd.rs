//! A crowd of people answers one question at once, half of it by each of two servers on one store.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    agent::REFUND,
    duel::Stand,
    http::{Answer, Request},
    ledger::Ledger,
    pool,
    process::Watch,
    programs::{Build, Effort},
    report::Tally,
    scenario::Scenario,
    service::Service,
    trace::Trace,
    world::{Setting, Timing, World},
};

/// How many answers each question gets.
const CROWD: usize = 100;

/// How many it gets where that is enough to see that it works.
const FEW: usize = 20;

/// How many people give them.
const PEOPLE: usize = 10;

/// Far longer than a run needs to come to its question, or from there to its end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody who has a key.
#[derive(Debug)]
struct Person {
    /// As journals and refusals call them.
    name: String,
    key: String,
}

/// A question that is pending.
#[derive(Debug)]
struct Question {
    session: String,
    run: String,
    id: String,
    stand: Stand,
}

/// By which routes it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    Runs,
    Interrupts,
}

/// What came of one.
#[derive(Debug, Default)]
struct Fought {
    /// The answers that won, by their number.
    winners: Vec<usize>,
    problems: Vec<String>,
}

/// Where they meet.
#[derive(Debug)]
struct Square<'w> {
    world: &'w World,
    services: [Service<'w>; 2],
    people: Vec<Person>,
    route: Route,
    /// How many answers each question gets.
    crowd: usize,
}

impl<'w> Square<'w> {
    fn new(world: &'w World, route: Route, crowd: usize) -> Self {
        let people = (0..PEOPLE).map(|nth| Person::new(world, nth)).collect();
        let mut services = [(); 2].map(|()| Service::locked(world));
        for service in &mut services {
            service.start(Timing::Prompt);
            service.await_ready().unwrap();
        }
        Self {
            world,
            services,
            people,
            route,
            crowd,
        }
    }

    /// Which server the nth answer goes to.
    const fn server_of(&self, nth: usize) -> usize {
        nth * 2 / self.crowd
    }

    /// Who gives the nth answer.
    fn person(&self, nth: usize) -> &Person {
        &self.people[nth % PEOPLE]
    }

    /// Has a person ask a server for something.
    fn ask(&self, person: usize, server: usize, request: Request) -> Result<Answer, String> {
        let request = request.by(&self.person(person).key);
        let answer = request.send(self.services[server].address);
        answer.map_err(|error| format!("no answer to {}: {error}", request.path))
    }

    /// Has a run come to its question.
    fn park(&self, number: usize, stand: Stand) -> Question {
        let session = format!("q{number}");
        let body = json!({"agent_id": "clerk", "session_id": session, "input": "please"});
        let begin = Request::post("/api/v1/runs", format!("{session}-begin"), body);
        let begun = self.ask(number, number % 2, begin).unwrap();
        let run = begun.run.clone();
        let run = run.unwrap_or_else(|| panic!("{begun:?}"));
        let seen = self.await_status(&run, "waiting").unwrap();
        let id = seen["interrupts"][0]["id"].as_str();
        let question = Question {
            id: id.unwrap_or_else(|| panic!("{seen}")).to_owned(),
            session,
            run,
            stand,
        };
        if stand == Stand::Paused {
            self.tell(&question, "pause").unwrap();
        }
        question
    }

    fn tell(&self, question: &Question, what: &str) -> Result<(), String> {
        let Question { run, session, .. } = question;
        let path = format!("/api/v1/runs/{run}/{what}");
        let told = self.ask(
            0,
            0,
            Request::post(path, format!("{session}-{what}"), json!({})),
        )?;
        match told.status {
            200 => Ok(()),
            _ => Err(format!("it cannot be told to {what}: {told:?}")),
        }
    }

    fn await_status(&self, run: &str, status: &str) -> Result<Value, String> {
        let watch = Watch::start();
        loop {
            let seen = self.ask(0, 0, Request::get(format!("/api/v1/runs/{run}")))?;
            if seen.body["status"] == status {
                return Ok(seen.body);
            }
            if watch.elapsed() > PATIENCE {
                return Err(format!("it does not get {status}: {seen:?}"));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Has the crowd answer at once.
    fn fight(&self, question: &Question) -> Fought {
        let together = Arc::new(Barrier::new(self.crowd));
        let answers: Vec<_> = thread::scope(|scope| {
            let crowd = (0..self.crowd).map(|nth| {
                let together = Arc::clone(&together);
                scope.spawn(move || {
                    let answer = answer(question, nth, self.route);
                    together.wait();
                    self.ask(nth, self.server_of(nth), answer)
                })
            });
            let crowd: Vec<_> = crowd.collect();
            crowd.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let mut fought = Fought::default();
        let mut told = Vec::new();
        for (nth, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(answer) if answer.status == 200 => fought.winners.push(nth),
                Ok(answer) if answer.code() == "already_decided" => {
                    told.push(answer.body["details"]["by"].clone());
                }
                Ok(answer) => fought.problems.push(format!("{nth}: {answer:?}")),
                Err(problem) => fought.problems.push(format!("{nth}: {problem}")),
            }
        }
        let [winner] = fought.winners.as_slice() else {
            let text = format!("{} winners: {:?}", fought.winners.len(), fought.winners);
            fought.problems.push(text);
            return fought;
        };
        let name = &self.person(*winner).name;
        let misled: Vec<_> = told.iter().filter(|by| *by != name).collect();
        if !misled.is_empty() {
            let text = format!("{name} won, and others were told: {misled:?}");
            fought.problems.push(text);
        }
        if let Err(problem) = self.await_end(question) {
            fought.problems.push(problem);
        }
        fought
    }

    fn await_end(&self, question: &Question) -> Result<(), String> {
        if question.stand == Stand::Paused {
            self.tell(question, "continue")?;
        }
        self.await_status(&question.run, "finished").map(drop)
    }

    /// What was done, and what does not hold: the journal has the winner's answer and no other one, and the ledger what it
    /// says, once.
    fn judge(&self, ledger: &Ledger, question: &Question, fought: &Fought) -> (usize, Vec<String>) {
        let trace = match Trace::read(self.world, &question.session) {
            Ok(trace) => trace,
            Err(problem) => return (0, vec![problem]),
        };
        let keys = trace.keys();
        let done: Vec<_> = keys.iter().flat_map(|key| ledger.amounts(key)).collect();
        let mut problems = Vec::new();
        if let [winner] = fought.winners.as_slice() {
            let answered = trace.answered_by();
            if answered != [self.person(*winner).name.as_str()] {
                problems.push(format!("answered by {answered:?}, and {winner} won"));
            }
            if done != [amount(*winner)] {
                problems.push(format!("done: {done:?}, and {winner} won"));
            }
        }
        (done.len(), problems)
    }

    /// Looks at what came of all of them.
    fn judge_all(&self, tally: &mut Tally, fought: Vec<(Question, Fought)>) {
        let ledger = self.world.ledger();
        let judged = pool::each(&fought, |(question, fought)| {
            self.judge(&ledger, question, fought)
        });
        for ((question, mut fought), (effects, problems)) in fought.into_iter().zip(judged) {
            fought.problems.extend(problems);
            tally.effects += effects;
            tally.judge(&question.session, 0, &fought.problems);
        }
    }
}

impl Person {
    fn new(world: &World, nth: usize) -> Self {
        let name = format!("p{nth}");
        let words = ["keys", "create", "--tenant", "local", "--name", &name];
        let made = world.call(&words, &Setting::PLAIN).only_line();
        let key = made["key"].as_str();
        Self {
            key: key.unwrap_or_else(|| panic!("{made}")).to_owned(),
            name: format!("user:{name}"),
        }
    }
}

/// What the nth answer wants to be done. No two edits are alike.
fn amount(nth: usize) -> String {
    match is_approval(nth) {
        true => "5.00".to_owned(),
        false => format!("{nth}.50"),
    }
}

fn is_approval(nth: usize) -> bool {
    nth.is_multiple_of(PEOPLE)
}

fn answer(question: &Question, nth: usize, route: Route) -> Request {
    let Question {
        run, session, id, ..
    } = question;
    let decision = if is_approval(nth) {
        json!({"type": "approve"})
    } else {
        let args = json!({"order_id": session, "amount": amount(nth)});
        json!({"type": "edit", "edited_action": {"name": REFUND, "args": args}})
    };
    let (path, body) = match route {
        Route::Runs => (
            format!("/api/v1/runs/{run}/resume"),
            json!({ id: decision }),
        ),
        Route::Interrupts => (
            format!("/api/v1/interrupts/{id}/resolve"),
            json!({ "decisions": [decision] }),
        ),
    };
    Request::post(path, format!("{session}-{nth}"), body)
}

/// The call has all the time it needs beside a crowd.
fn scenario() -> Scenario {
    Scenario::approve().with_timeout("30s")
}

/// Has crowds answer so many questions, and expects one winner of each, and one effect.
fn storm(scenario: &Scenario, route: Route, wanted: usize, crowd: usize, name: String) {
    let mut tally = Tally::new("one winner", name);
    let world = World::new(Build::Shipped, scenario);
    let square = Square::new(&world, route, crowd);
    let numbers: Vec<usize> = (0..wanted).collect();
    let parked = pool::each(&numbers, |number| {
        // No lease helps where a run is paused.
        let is_paused = number % 4 == 2;
        let stand = if is_paused {
            Stand::Paused
        } else {
            Stand::Waiting
        };
        square.park(*number, stand)
    });
    let fight = |question| {
        let fought = square.fight(&question);
        (question, fought)
    };
    let fought: Vec<_> = parked.into_iter().map(fight).collect();
    let winners = fought.iter().flat_map(|(_, fought)| &fought.winners);
    let by_one = winners.filter(|nth| square.server_of(**nth) == 0).count();
    println!("of {wanted} winners, {by_one} answered by the first server");
    square.judge_all(&mut tally, fought);
    let (claimed, effects) = (tally.effects, world.ledger().effect_count());
    drop(square);
    if !tally.violations.is_empty() {
        world.keep_and_say();
    }
    tally.conclude();
    assert_eq!((claimed, effects), (wanted, wanted));
}

#[test]
fn of_a_crowd_that_answers_by_two_servers_on_postgres_exactly_one_wins() {
    let wanted = Effort::asked_for().pick(10, 1_000);
    let name = format!("{wanted} questions, {CROWD} answers each by 2 servers, PostgreSQL");
    storm(&scenario().on_postgres(), Route::Runs, wanted, CROWD, name);
}

#[test]
fn of_a_crowd_that_answers_interrupts_by_two_servers_on_one_file_exactly_one_wins() {
    let effort = Effort::asked_for();
    let (wanted, crowd) = (effort.pick(50, 1_000), effort.pick(FEW, CROWD));
    let name = format!("{wanted} interrupts, {crowd} answers each by 2 servers, one file");
    storm(&scenario(), Route::Interrupts, wanted, crowd, name);
}

#[test]
fn of_a_crowd_that_answers_interrupts_by_two_servers_on_postgres_exactly_one_wins() {
    let effort = Effort::asked_for();
    let (wanted, crowd) = (effort.pick(50, 1_000), effort.pick(FEW, CROWD));
    let name = format!("{wanted} interrupts, {crowd} answers each by 2 servers, PostgreSQL");
    storm(
        &scenario().on_postgres(),
        Route::Interrupts,
        wanted,
        crowd,
        name,
    );
}

#[test]
fn without_the_version_check_a_crowd_has_several_winners_on_postgres() {
    const QUESTIONS: usize = 30;
    let mut tally = Tally::new(
        "negative controls",
        format!("version check off, {CROWD} answers by 2 servers, PostgreSQL"),
    );
    let world = World::new(Build::WeakVersionCheck, &scenario().on_postgres());
    let square = Square::new(&world, Route::Runs, CROWD);
    let mut most = 0;
    for number in 0..QUESTIONS {
        let question = square.park(number, Stand::Paused);
        let fought = square.fight(&question);
        most = fought.winners.len().max(most);
        square.judge_all(&mut tally, vec![(question, fought)]);
        // What follows would be about a store that is broken.
        if most > 1 {
            break;
        }
    }
    tally.publish();
    assert!(most > 1, "{tally:?}");
}
