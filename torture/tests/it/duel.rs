//! Two processes on one file answer one question after the other, each in many ways at once.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    ledger::Ledger,
    programs::{Build, rivals},
    wal::Wal,
};

/// How many answers each process gives to each question.
pub(crate) const ANSWERS: usize = 50;

/// A process that answers.
#[derive(Debug)]
struct Rival {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Rival {
    fn start(build: Build, folder: &TempDir, name: &str) -> Self {
        let mut child = Command::new(rivals(build))
            .arg(folder.path().join("store.db"))
            .arg(folder.path().join("ledger.jsonl"))
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    fn tell(&mut self, order: &Value) {
        // That it is gone is noticed when it is to answer.
        let _ = writeln!(self.stdin.as_mut().unwrap(), "{order}");
    }

    /// What came of an order; an `error` if the process is gone.
    fn hear(&mut self) -> Value {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(1..) => serde_json::from_str(&line).unwrap(),
            Ok(0) | Err(_) => json!({"error": "a process died"}),
        }
    }

    fn ask(&mut self, order: &Value) -> Value {
        self.tell(order);
        self.hear()
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        // It ends when nobody speaks any more.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// How the run stands that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stand {
    /// Whoever wins goes on with it at once, and holds a lease meanwhile.
    Waiting,
    /// It is paused, so that an answer is recorded and nothing else.
    Paused,
}

/// A question that is pending.
#[derive(Debug)]
pub(crate) struct Question {
    asked: Value,
    stand: Stand,
}

/// How a run goes on after an answer if nobody else answers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Usual {
    events: Vec<String>,
    commits: usize,
}

/// What came of one question.
#[derive(Debug, Default)]
pub(crate) struct Fought {
    pub(crate) winners: Vec<String>,
    pub(crate) effects: usize,
    /// How many commits there were, if they could be counted.
    pub(crate) commits: Option<usize>,
    pub(crate) problems: Vec<String>,
}

/// A file, and two processes on it.
#[derive(Debug)]
pub(crate) struct Duel {
    rivals: [Rival; 2],
    folder: TempDir,
    /// By the kind of the answer.
    usual: BTreeMap<(String, Stand), Usual>,
}

impl Duel {
    pub(crate) fn new(build: Build) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rivals = ["one", "other"].map(|name| Rival::start(build, &folder, name));
        let mut duel = Self {
            rivals,
            folder,
            usual: BTreeMap::new(),
        };
        for number in 0..5 {
            duel.rehearse(number, Stand::Waiting);
            duel.rehearse(number, Stand::Paused);
        }
        duel
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Has one of the two stop a run at a question.
    pub(crate) fn park(&mut self, number: usize, stand: Stand) -> Question {
        self.park_as(&format!("q{number}"), number % 2, stand)
    }

    fn park_as(&mut self, session: &str, by: usize, stand: Stand) -> Question {
        let asked = self.rivals[by].ask(&json!({"park": session}));
        assert!(asked["interrupt"].is_string(), "{asked}");
        if stand == Stand::Paused {
            self.rivals[by].ask(&json!({"pause": asked["thread"]}));
        }
        Question { asked, stand }
    }

    /// Lets a run go on that was paused.
    fn go_on(&mut self, question: &Question) {
        if question.stand == Stand::Paused {
            let thread = &question.asked["thread"];
            self.rivals[0].ask(&json!({"continue": thread}));
        }
    }

    /// Learns what follows from an answer of this kind if nobody else answers.
    fn rehearse(&mut self, number: usize, stand: Stand) {
        let question = self.park_as(&format!("r{number}-{stand:?}"), 0, stand);
        let before = Wal::read(&self.path("store.db"));
        let said = self.rivals[0]
            .ask(&json!({"answer": question.asked, "from": number, "to": number + 1}));
        self.go_on(&question);
        let commits = Wal::read(&self.path("store.db")).since(&before);
        let kind = said["won"][0]["as"].as_str();
        let kind = kind.unwrap_or_else(|| panic!("{said}")).to_owned();
        let usual = Usual {
            events: types(&self.look(&question)),
            commits: commits.unwrap(),
        };
        if let Some(first) = self.usual.get(&(kind.clone(), stand)) {
            assert_eq!(*first, usual, "{kind}");
        }
        self.usual.insert((kind, stand), usual);
    }

    fn look(&mut self, question: &Question) -> Value {
        let thread = &question.asked["thread"];
        self.rivals[0].ask(&json!({"look": thread}))
    }

    /// Has both answer a question at once, each in many ways.
    pub(crate) fn fight(&mut self, question: &Question) -> Fought {
        let before = Wal::read(&self.path("store.db"));
        let effects = self.ledger().effect_count();
        let order = json!({"answer": question.asked, "from": 0, "to": ANSWERS});
        // Whoever hears of it first is ahead by a moment.
        self.rivals.rotate_left(1);
        for rival in &mut self.rivals {
            rival.tell(&order);
        }
        let said = self.rivals.each_mut().map(Rival::hear);
        let mut fought = Fought::default();
        let all = |kind: &str| {
            let lists = said.iter().filter_map(|said| said[kind].as_array());
            lists.flatten().cloned().collect::<Vec<Value>>()
        };
        let (won, lost) = (all("won"), all("lost"));
        let errors = said.iter().filter_map(|said| said.get("error"));
        let odd = all("odd").into_iter().chain(errors.cloned());
        fought.problems.extend(odd.map(|odd| odd.to_string()));
        let names = won.iter().filter_map(|won| won["by"].as_str());
        fought.winners = names.map(str::to_owned).collect();
        let [winner] = won.as_slice() else {
            let problem = format!("{} winners: {won:?}", won.len());
            fought.problems.push(problem);
            return fought;
        };
        let misled = lost.iter().filter(|lost| lost["told"] != winner["by"]);
        let misled: Vec<&Value> = misled.collect();
        if !misled.is_empty() || lost.len() != 2 * ANSWERS - 1 {
            let problem = format!("{} lost, some were told wrong: {misled:?}", lost.len());
            fought.problems.push(problem);
        }
        self.go_on(question);
        fought.commits = Wal::read(&self.path("store.db")).since(&before);
        fought.effects = self.ledger().effect_count() - effects;
        let looked = self.look(question);
        self.judge_records(&mut fought, winner, question, &looked);
        self.judge_effect(&mut fought, winner, question);
        fought
    }

    /// Nothing was recorded but what follows from the winner's answer.
    fn judge_records(
        &self,
        fought: &mut Fought,
        winner: &Value,
        question: &Question,
        looked: &Value,
    ) {
        let events = looked["events"].as_array().cloned().unwrap_or_default();
        let answered = events.iter().filter(|event| event["type"] == "answered");
        let answered: Vec<&Value> = answered.map(|event| &event["by"]).collect();
        if answered != [&winner["by"]] || looked["status"] != "finished" {
            let problem = format!("answered by {answered:?}: {looked}");
            fought.problems.push(problem);
        }
        let kind = winner["as"].as_str().unwrap_or_default();
        let usual = self.usual.get(&(kind.to_owned(), question.stand));
        let found = Usual {
            events: types(looked),
            // Where they could not be counted, nothing is said.
            commits: fought
                .commits
                .or(usual.map(|usual| usual.commits))
                .unwrap_or_default(),
        };
        if Some(&found) != usual {
            let problem = format!("recorded {found:?} instead of {usual:?}");
            fought.problems.push(problem);
        }
    }

    /// What was done is what the winner said.
    fn judge_effect(&self, fought: &mut Fought, winner: &Value, question: &Question) {
        let effects = self.ledger().effects().into_iter();
        let done: Vec<_> = effects
            .filter(|((order, _), _)| question.asked["session"] == **order)
            .collect();
        let by = winner["by"].as_str().unwrap_or_default();
        let told = format!("<{by}>");
        let right = match done.as_slice() {
            [((_, amount), 1)] => match winner["as"].as_str().unwrap_or_default() {
                "approve" => amount == "5.00",
                "edit" | "respond" => *amount == told,
                _ => amount.contains(&told),
            },
            _ => false,
        };
        if fought.effects != 1 || !right {
            let Fought { effects, .. } = fought;
            let problem = format!("{effects} effects, {winner} won, {done:?}");
            fought.problems.push(problem);
        }
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::read(&self.path("ledger.jsonl"))
    }
}

fn types(looked: &Value) -> Vec<String> {
    let events = looked["events"].as_array().cloned().unwrap_or_default();
    let types = events.iter().filter_map(|event| event["type"].as_str());
    types.map(str::to_owned).collect()
}
