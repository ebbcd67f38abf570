//! Plays a scenario, with or without a death, to its end.

use std::{ops::RangeInclusive, time::Duration};

use serde_json::Value;

use crate::{
    judge,
    point::{self, CALL_BEFORE, CALL_RUNNING, Kill, LEDGER_ATTEMPTED, LEDGER_WRITTEN, Seat},
    process::Ended,
    programs::Build,
    revival::{ROUNDS, Second, Step},
    scenario::{Phase, Scenario, Which},
    trace::Trace,
    world::{SESSION, Setting, Timing, World},
};

/// What disturbs a play.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) timing: Timing,
    pub(crate) kill: Option<Kill>,
    pub(crate) second: Option<Second>,
}

impl Plan {
    pub(crate) const fn undisturbed(timing: Timing) -> Self {
        Self {
            timing,
            kill: None,
            second: None,
        }
    }

    pub(crate) const fn killed(kill: Kill) -> Self {
        Self {
            timing: kill.timing,
            kill: Some(kill),
            second: None,
        }
    }
}

/// A play under way.
#[derive(Debug)]
pub(crate) struct Play<'s> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) world: World,
    pub(crate) plan: Plan,
    /// How many processes were killed.
    pub(crate) deaths: usize,
    /// How often a person was asked whether something took effect.
    pub(crate) asked: usize,
    /// The command of the phase that is played.
    pub(crate) words: Vec<String>,
    /// What the ledger held when each phase began, and at the end of the last one.
    marks: Vec<Mark>,
    times: Vec<Duration>,
    pub(crate) cancel: Cancel,
    pub(crate) problems: Vec<String>,
}

/// What became of the request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    /// It is not known to be recorded.
    Wanted,
    Recorded,
    /// The run was over before.
    TooLate,
}

/// A play that is over.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) deaths: usize,
    pub(crate) asked: usize,
    /// How the run ended, without what differs from run to run.
    pub(crate) end: Value,
    pub(crate) effects: usize,
    /// It was to be cancelled with a call in flight, and the call had ended by then.
    pub(crate) too_late: bool,
    /// How many calls were recorded as started.
    pub(crate) starts: usize,
    /// How often people were asked to allow something.
    pub(crate) approvals: usize,
    /// How long the processes of each phase took.
    pub(crate) times: Vec<Duration>,
    /// The deaths that a play like this could die.
    pub(crate) kills: Vec<Kill>,
    /// The deaths that its revival could die.
    pub(crate) seconds: Vec<Second>,
    pub(crate) problems: Vec<String>,
}

/// Plays a scenario and judges it: by itself, and by an undisturbed play where there is one.
pub(crate) fn play(
    build: Build,
    scenario: &Scenario,
    plan: Plan,
    reference: Option<&Value>,
) -> Played {
    let mut play = Play {
        scenario,
        world: World::new(build, scenario),
        plan,
        deaths: 0,
        asked: 0,
        words: Vec::new(),
        marks: Vec::new(),
        times: Vec::new(),
        cancel: Cancel::Wanted,
        problems: Vec::new(),
    };
    for (at, phase) in scenario.phases.iter().enumerate() {
        let deaths = play.deaths;
        play.marks.push(play.mark());
        play.act(at, phase);
        let took = play.world.last_took();
        play.times.push(took);
        if play.deaths > deaths {
            play.revive(phase);
        }
        play.settle();
    }
    play.marks.push(play.mark());
    play.over(reference)
}

/// How far the ledger is.
#[derive(Debug, Clone, Copy)]
struct Mark {
    attempts: usize,
    acts: usize,
}

impl Play<'_> {
    pub(crate) fn complain(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    fn act(&mut self, at: usize, phase: &Phase) {
        let driver = self.setting(at, Seat::Driver);
        match phase {
            Phase::Start => {
                let ended = self.world.run(SESSION, &driver);
                self.note(&ended, &driver);
            }
            Phase::Answer(which, decisions) => {
                self.words = self.answer(*which, decisions);
                self.call(&self.words.clone(), &driver);
            }
            Phase::AnswerMap(answers) => {
                let found = answers.iter().map(|(which, decisions)| {
                    let question = self.world.question(*which).unwrap_or_default();
                    (question, decisions.clone())
                });
                let map: Value = found.collect();
                let words = ["resume", SESSION, "--decisions", &map.to_string()];
                self.words = words.map(str::to_owned).to_vec();
                self.call(&self.words.clone(), &driver);
            }
            Phase::ApproveRest => self.approve_rest(&driver),
            Phase::Cancel => self.call(&["cancel", SESSION].map(str::to_owned), &driver),
            Phase::Pause => {
                self.words = ["pause", SESSION].map(str::to_owned).to_vec();
                self.call(&self.words.clone(), &driver);
            }
            Phase::Continue => {
                self.words = ["continue", SESSION].map(str::to_owned).to_vec();
                self.call(&self.words.clone(), &driver);
            }
            Phase::AwaitDue => {
                self.world.await_due();
                let ended = self.world.call(&["recover"], &driver);
                self.note(&ended, &driver);
            }
            Phase::CancelInFlight(decisions) => {
                let cancelled = self.disturb(at, decisions, "cancel");
                self.note_cancel(&cancelled);
            }
            Phase::PauseInFlight(decisions) => {
                self.disturb(at, decisions, "pause");
            }
        }
    }

    /// A person answers, and another process comes in between while the call that was approved is in flight.
    fn disturb(&mut self, at: usize, decisions: &Value, word: &str) -> Ended {
        let (driver, beside) = (
            self.setting(at, Seat::Driver),
            self.setting(at, Seat::Beside),
        );
        self.words = self.answer(Which::Only, decisions);
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let mut running = self.world.spawn(&words, &driver);
        running.wait_for_point(&driver.log.clone().unwrap_or_default(), CALL_BEFORE);
        let disturbed = self.world.call(&[word, SESSION], &beside);
        self.note(&disturbed, &beside);
        let ended = self.world.finish(running, &driver);
        self.note(&ended, &driver);
        disturbed
    }

    /// Runs a command to its end, or to its death.
    pub(crate) fn call(&mut self, words: &[String], setting: &Setting) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ended = self.world.call(&words, setting);
        self.note(&ended, setting);
    }

    /// Approves one question after the other until there is none.
    fn approve_rest(&mut self, setting: &Setting) {
        for _ in 0..ROUNDS {
            let Some(question) = self.world.question(Which::Only) else {
                return;
            };
            let words = ["resume", SESSION, "--interrupt", &question, "--approve"];
            self.call(&words.map(str::to_owned), setting);
            self.settle();
        }
        self.complain("there is always another question");
    }

    /// How a process of a phase is started: it notes the points it passes, and maybe dies at one.
    fn setting(&self, at: usize, seat: Seat) -> Setting {
        let kill = self.plan.kill;
        let kill = kill.filter(|kill| kill.phase == at && kill.seat == seat);
        Setting {
            timing: self.plan.timing,
            kill_at: kill.map(|kill| (kill.point, kill.nth)),
            log: Some(self.world.path(&format!("points-{at}-{seat:?}"))),
            ..Setting::PLAIN
        }
    }

    /// The command that answers a question.
    fn answer(&mut self, which: Which, decisions: &Value) -> Vec<String> {
        let question = self.world.question(which).unwrap_or_else(|| {
            self.complain(format!("{which:?} is not asked"));
            String::new()
        });
        let decisions = decisions.to_string();
        let words = [
            "resume",
            SESSION,
            "--interrupt",
            &question,
            "--decisions",
            &decisions,
        ];
        words.map(str::to_owned).to_vec()
    }

    /// Takes in how a process ended: as it should, or by the death that was planned for it.
    pub(crate) fn note(&mut self, ended: &Ended, setting: &Setting) {
        if ended.was_killed() && setting.kill_at.is_some() {
            self.deaths += 1;
        } else if !matches!(ended.code(), Some(0 | 1 | 3)) && !self.is_expected(ended) {
            self.complain(ended.explain());
        }
    }

    pub(crate) fn note_cancel(&mut self, ended: &Ended) {
        match (ended.code(), ended.error_code()) {
            (Some(0), _) => self.cancel = Cancel::Recorded,
            (Some(4), Some("run_over")) if self.cancel == Cancel::Wanted => {
                self.cancel = Cancel::TooLate;
            }
            (_, _) => {}
        }
    }

    /// A cancel or a pause may come when the run is over. In the undisturbed play that would test nothing.
    fn is_expected(&self, ended: &Ended) -> bool {
        self.plan.kill.is_some() && ended.error_code() == Some("run_over")
    }

    fn over(mut self, reference: Option<&Value>) -> Played {
        let view = self.world.show(SESSION);
        let trace = Trace::read(&self.world, SESSION).unwrap_or_else(|problem| {
            self.complain(problem);
            Trace::default()
        });
        let end = judge::essence(&view);
        judge::judge(&mut self, &end, &trace, reference);
        let kills = self.possible_kills();
        let steps = [Step::Reissue, Step::Recover, Step::Tell];
        let seconds = steps.map(|step| self.possible_seconds(step));
        let effects = self.world.ledger().effect_count();
        if !self.problems.is_empty()
            && let Some(folder) = self.world.keep()
        {
            self.problems.push(format!("see {}", folder.display()));
        }
        Played {
            deaths: self.deaths,
            asked: self.asked,
            end,
            effects,
            too_late: trace.stopped_too_late() || self.cancel == Cancel::TooLate,
            starts: trace.starts(),
            approvals: trace.approvals(),
            times: self.times,
            kills,
            seconds: seconds.concat(),
            problems: self.problems,
        }
    }

    fn mark(&self) -> Mark {
        let ledger = self.world.ledger();
        Mark {
            attempts: ledger.attempts(),
            acts: ledger.acts(),
        }
    }

    fn possible_kills(&self) -> Vec<Kill> {
        let timing = self.plan.timing;
        let mut kills = Vec::new();
        for (phase, marks) in self.marks.windows(2).enumerate() {
            let mut add = |seat, point, nths: RangeInclusive<usize>| {
                kills.extend(nths.map(|nth| Kill {
                    phase,
                    seat,
                    timing,
                    point,
                    nth,
                }));
            };
            if let [from, to] = marks {
                if timing == Timing::ENDS_LATE {
                    add(Seat::Driver, LEDGER_WRITTEN, from.acts + 1..=to.acts);
                }
                if timing == Timing::ACTS_LATE {
                    let attempts = from.attempts + 1..=to.attempts;
                    add(Seat::Driver, LEDGER_ATTEMPTED, attempts);
                }
            }
            for seat in [Seat::Driver, Seat::Beside] {
                let log = self.world.path(&format!("points-{phase}-{seat:?}"));
                let passed = point::passed(&log).into_iter();
                // That a call runs and has acted is better seen in the ledger.
                let useful = |point| !(point == CALL_RUNNING && timing == Timing::ENDS_LATE);
                for (point, count) in passed.filter(|(point, _)| useful(*point)) {
                    add(seat, point, 1..=count);
                }
            }
        }
        kills
    }
}
