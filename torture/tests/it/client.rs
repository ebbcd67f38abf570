//! Clients of a server that dies all the time: they send every request again until it is answered, and hold the server to
//! what it said.

use std::{
    io,
    net::SocketAddr,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    follower::{Followed, Memory, follow},
    http::{Answer, Request, is_lost_connection},
    process::Watch,
    trace::Trace,
    world::World,
};

/// After the last death, everything must be over within this time.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// As its definition calls it.
const AGENT: &str = "clerk";

/// How long a client waits before it looks, or tries, again.
const PAUSE: Duration = Duration::from_millis(12);

/// Runs end all the time; where none does for this long, something is stuck.
const STANDSTILL: Duration = Duration::from_secs(60);

/// How a client sees to its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Approve,
    Reject,
    /// Every request is sent twice at once, under one key: it is done once, and both are told so.
    Twins,
    /// Two answer at once, one with yes and one with no: one of them wins.
    Duel,
    /// By the chat API: what it answers is a stream, which a death cuts off and the same request gets again.
    Chat,
}

impl Manner {
    pub(crate) const ALL: [Self; 5] = [
        Self::Approve,
        Self::Twins,
        Self::Duel,
        Self::Chat,
        Self::Reject,
    ];
}

/// A run, as its client knows it.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) session: String,
    /// Its id, once it was acknowledged.
    pub(crate) id: String,
    /// The questions whether something may be done, each with the decision that was acknowledged.
    pub(crate) answers: Vec<(String, &'static str)>,
    /// How often a person was asked because somebody had died.
    pub(crate) asked: usize,
    /// Whether it ended before the last death.
    pub(crate) under_fire: bool,
    /// What somebody saw who followed it.
    pub(crate) followed: Option<Followed>,
    pub(crate) problems: Vec<String>,
}

/// Whether requests can be known again when they are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    Sent,
    /// Wrong on purpose.
    LeftOut,
}

/// What clients put up with, and send a request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bears {
    /// Everything: servers and stores die.
    Deaths,
    /// That a server goes: it says so, or is not there.
    Departures,
}

/// Why a request has to be sent again.
#[derive(Debug)]
enum Failure {
    Refused(Answer),
    CutOff,
    Lost(io::Error),
}

impl Bears {
    fn with(self, failure: &Failure) -> bool {
        match (self, failure) {
            (Self::Deaths, _) => true,
            (Self::Departures, Failure::Refused(answer)) => answer.code() == "shutting_down",
            // The stream of a chat has an end, whoever goes.
            (Self::Departures, Failure::CutOff) => false,
            (Self::Departures, Failure::Lost(error)) => is_lost_connection(error.kind()),
        }
    }
}

/// What all clients share.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    world: &'a World,
    /// Any of them answers anything, so requests go round.
    addresses: Vec<SocketAddr>,
    keys: Keys,
    /// How often each run asks whether something may be done.
    questions: usize,
    bears: Bears,
    /// Who follows the stream of each run, if anybody does.
    follower: Option<Memory>,
    /// Since when nobody dies any more.
    calm: OnceLock<Watch>,
    sent: AtomicUsize,
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// What was asked for, however often.
    pub(crate) requests: AtomicUsize,
    /// What had to be sent again.
    pub(crate) repeated: AtomicUsize,
    /// What the server said it had done before.
    pub(crate) replayed: AtomicUsize,
}

impl<'a> Load<'a> {
    pub(crate) fn new(world: &'a World, addresses: Vec<SocketAddr>, keys: Keys) -> Self {
        Self {
            world,
            addresses,
            keys,
            questions: 1,
            bears: Bears::Deaths,
            follower: None,
            calm: OnceLock::new(),
            sent: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            repeated: AtomicUsize::new(0),
            replayed: AtomicUsize::new(0),
        }
    }

    /// Of runs that ask so often.
    pub(crate) fn asking(mut self, questions: usize) -> Self {
        self.questions = questions;
        self
    }

    /// By clients that send nothing again but what a server that goes did not take.
    pub(crate) fn bearing_departures_only(mut self) -> Self {
        self.bears = Bears::Departures;
        self
    }

    /// With somebody who follows each run.
    pub(crate) fn followed(mut self, memory: Memory) -> Self {
        self.follower = Some(memory);
        self
    }

    /// How many runs have ended, well or not.
    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    /// How many runs have begun and not ended.
    pub(crate) fn under_way(&self) -> usize {
        let ended = self.ended();
        self.begun.load(Ordering::Relaxed) - ended
    }

    /// Waits until so many runs have ended.
    pub(crate) fn await_ended(&self, wanted: usize) -> Result<(), String> {
        let (mut watch, mut before) = (Watch::start(), self.ended());
        while before < wanted {
            thread::sleep(PAUSE);
            let ended = self.ended();
            if ended > before {
                (watch, before) = (Watch::start(), ended);
            } else if watch.elapsed() > STANDSTILL {
                return Err(format!("after {ended} runs, none ended for {STANDSTILL:?}"));
            }
        }
        Ok(())
    }

    pub(crate) fn any_address(&self) -> SocketAddr {
        self.addresses[self.any()]
    }

    fn any(&self) -> usize {
        self.sent.fetch_add(1, Ordering::Relaxed) % self.addresses.len()
    }

    /// Nobody dies from here on, and no new runs begin.
    pub(crate) fn calm_down(&self) {
        self.calm.get_or_init(Watch::start);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.get().is_some()
    }

    /// How long nobody has died.
    pub(crate) fn calm_for(&self) -> Duration {
        self.calm.get().map_or(Duration::ZERO, |it| it.elapsed())
    }

    /// Brings a run from its beginning to its end.
    pub(crate) fn play(&self, session: String, manner: Manner) -> Run {
        let mut run = Run {
            session,
            id: String::new(),
            answers: Vec::new(),
            asked: 0,
            under_fire: false,
            followed: None,
            problems: Vec::new(),
        };
        self.begun.fetch_add(1, Ordering::Relaxed);
        if let Err(problem) = self.bring_to_its_end(&mut run, manner) {
            run.problems.push(problem);
        }
        self.ended.fetch_add(1, Ordering::Relaxed);
        run.under_fire = !self.is_calm();
        run
    }

    fn bring_to_its_end(&self, run: &mut Run, manner: Manner) -> Result<(), String> {
        let begun = self.send(&begin(&run.session, manner), manner)?;
        let status = if manner == Manner::Chat { 200 } else { 201 };
        told(&begun, status)?;
        run.id = begun.run.unwrap_or_default();
        let Some(memory) = self.follower else {
            return self.see_to(run, manner);
        };
        let mut addresses = self.addresses.clone();
        addresses.rotate_left(self.any());
        let (id, over) = (run.id.clone(), OnceLock::new());
        // What happened is seen soon after.
        let is_wanted = || over.get().is_none_or(|it: &Watch| it.elapsed() < LIMIT);
        let (seen, followed) = thread::scope(|scope| {
            let follower = scope.spawn(|| follow(&addresses, &id, memory, is_wanted));
            let seen = self.see_to(run, manner);
            over.get_or_init(Watch::start);
            (seen, follower.join().unwrap())
        });
        run.followed = Some(followed);
        seen
    }

    /// Answers what a run asks, until it has ended.
    fn see_to(&self, run: &mut Run, manner: Manner) -> Result<(), String> {
        loop {
            let look = Request::get(format!("/api/v1/runs/{}", run.id));
            let seen = self.insist(&look)?;
            let seen = told(&seen, 200)?;
            let question = &seen["interrupts"][0];
            match seen["status"].as_str() {
                Some("finished") if run.answers.len() == self.questions => return Ok(()),
                Some("waiting") if question["kind"] == "approval" => {
                    self.decide(run, question, manner)?;
                }
                Some("waiting") if question["kind"] == "error" => {
                    self.help(run, question, &seen["cause"])?;
                }
                Some("running" | "waiting") => thread::sleep(PAUSE),
                Some(_) | None => return Err(format!("it stands otherwise than it may: {seen}")),
            }
            if self.calm_for() > LIMIT {
                return Err(format!(
                    "it is not over {LIMIT:?} after the last kill: {seen}"
                ));
            }
        }
    }

    /// Answers the question whether it may be done.
    fn decide(&self, run: &mut Run, question: &Value, manner: Manner) -> Result<(), String> {
        let id = question["id"].as_str().unwrap_or_default().to_owned();
        let is_known = run.answers.iter().any(|(before, _)| *before == id);
        if is_known || run.answers.len() == self.questions {
            let before = &run.answers;
            return Err(format!("{id} was asked although {before:?} were answered"));
        }
        // Within a second after an answer, one that does not say what it is meant for is refused.
        let is_named = run.asked > 0 || !run.answers.is_empty();
        let by_api = |kind: &str| match is_named {
            true => resume(run, &id, &json!({ &id: {"type": kind} })),
            false => resume(run, &id, &json!({"decisions": [{"type": kind}]})),
        };
        let (kind, answer) = match manner {
            Manner::Approve | Manner::Twins => ("approve", Some(by_api("approve"))),
            Manner::Reject => ("reject", Some(by_api("reject"))),
            Manner::Duel => (self.fight(run, &id)?, None),
            Manner::Chat => {
                let mut body = json!({"agent_id": AGENT, "session_id": run.session, "input": {"confirm": true}});
                if is_named {
                    body["interrupt_id"] = json!(id);
                }
                let key = format!("{}-{id}", run.session);
                let answer = Request::post("/api/v1/chat/resume", key, body);
                ("approve", Some(answer))
            }
        };
        if let Some(answer) = answer {
            told(&self.send(&answer, manner)?, 200)?;
        }
        run.answers.push((id, kind));
        Ok(())
    }

    /// Two answers at once. Returns the one that won.
    fn fight(&self, run: &Run, id: &str) -> Result<&'static str, String> {
        let kinds = ["approve", "reject"];
        let answer = |kind| {
            let key = format!("{kind}-{id}");
            resume(run, &key, &json!({id: {"type": kind}}))
        };
        let [yes, no] = kinds.map(answer);
        let (yes, no) = self.at_once(&yes, &no)?;
        let (winner, loser) = match (yes.status, no.status) {
            (200, 409) => ("approve", no),
            (409, 200) => ("reject", yes),
            (_, _) => return Err(format!("not one of two answers won: {yes:?} {no:?}")),
        };
        if !matches!(loser.code(), "already_decided" | "not_pending") {
            return Err(format!("the second of two answers is told: {loser:?}"));
        }
        Ok(winner)
    }

    /// Does what a person must where too many have died: has the model asked once more, or says what the ledger says.
    fn help(&self, run: &mut Run, question: &Value, cause: &Value) -> Result<(), String> {
        run.asked += 1;
        let id = question["id"].as_str().unwrap_or_default();
        let decision = if cause == "write_unknown" {
            let request = &question["value"]["action_requests"][0];
            let trace = Trace::read(self.world, &run.session)?;
            let key = trace.key_of(&request["action_id"]).unwrap_or_default();
            match self.world.ledger().done(key) {
                0 => json!({"type": "not_committed"}),
                _ => json!({"type": "committed", "result": {"recorded": request["args"]}}),
            }
        } else {
            json!({"type": "approve"})
        };
        // Named: it may come so soon after another one that it could be meant for that.
        let answer = resume(run, id, &json!({ id: decision }));
        told(&self.insist(&answer)?, 200)?;
        Ok(())
    }

    /// Sends a request until it is answered; as twins, twice at once.
    fn send(&self, request: &Request, manner: Manner) -> Result<Answer, String> {
        if manner != Manner::Twins {
            return self.insist(request);
        }
        let (one, other) = self.at_once(request, request)?;
        let same = one.status == other.status && one.run == other.run;
        if !same || !(one.replayed || other.replayed) {
            return Err(format!("one request was done twice: {one:?} {other:?}"));
        }
        Ok(one)
    }

    fn at_once(&self, one: &Request, other: &Request) -> Result<(Answer, Answer), String> {
        thread::scope(|scope| {
            let one = scope.spawn(|| self.insist(one));
            let other = self.insist(other);
            Ok((one.join().unwrap()?, other?))
        })
    }

    /// Sends a request again and again, until it is answered by a server that is not about to die.
    fn insist(&self, request: &Request) -> Result<Answer, String> {
        let keyless = (self.keys == Keys::LeftOut).then(|| request.clone().without_key());
        let request = keyless.as_ref().unwrap_or(request);
        // What the head of a stream says is acknowledged, though the rest of it is lost.
        let mut promised: Option<Answer> = None;
        self.requests.fetch_add(1, Ordering::Relaxed);
        for attempt in 1.. {
            let failure = match request.send(self.any_address()) {
                Ok(answer) if answer.status == 503 => Failure::Refused(answer),
                Ok(answer) if answer.whole => {
                    let replayed = usize::from(answer.replayed);
                    self.replayed.fetch_add(replayed, Ordering::Relaxed);
                    return match promised {
                        Some(before) if !answer.replayed || before.run != answer.run => {
                            Err(format!("forgotten: {before:?}, then {answer:?}"))
                        }
                        Some(_) | None => Ok(answer),
                    };
                }
                Ok(stream) => {
                    promised = Some(stream);
                    Failure::CutOff
                }
                Err(error) => Failure::Lost(error),
            };
            if !self.bears.with(&failure) {
                return Err(format!("{}: {failure:?}", request.path));
            }
            if attempt == 1 {
                self.repeated.fetch_add(1, Ordering::Relaxed);
            }
            if self.calm_for() > LIMIT {
                break;
            }
            thread::sleep(PAUSE);
        }
        let path = &request.path;
        Err(format!(
            "nobody answers {path} {LIMIT:?} after the last kill"
        ))
    }
}

fn begin(session: &str, manner: Manner) -> Request {
    let (path, words) = match manner {
        Manner::Chat => ("/api/v1/chat/stream", "message"),
        Manner::Approve | Manner::Reject | Manner::Twins | Manner::Duel => {
            ("/api/v1/runs", "input")
        }
    };
    let body = json!({"agent_id": AGENT, "session_id": session, words: "please"});
    Request::post(path, format!("{session}-begin"), body)
}

fn resume(run: &Run, name: &str, body: &Value) -> Request {
    let Run { id, session, .. } = run;
    let path = format!("/api/v1/runs/{id}/resume");
    Request::post(path, format!("{session}-{name}"), body.clone())
}

/// What an answer says, if it is the one that must come.
fn told(answer: &Answer, status: u16) -> Result<&Value, String> {
    if answer.status == status {
        return Ok(&answer.body);
    }
    Err(format!(
        "{} instead of {status}: {}",
        answer.status, answer.body
    ))
}
