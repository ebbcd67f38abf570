//! Plays a scenario, with or without a death, to its end.

use serde_json::Value;

use crate::{
    judge,
    point::{self, CALL_BEFORE, CALL_RUNNING, Kill, LEDGER_WRITTEN, Seat},
    process::Ended,
    programs::Build,
    revival::{Second, Step},
    scenario::{Phase, Scenario},
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
    /// The question that the scenario's person answers.
    pub(crate) question: Option<String>,
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
    /// How many calls were recorded as started.
    pub(crate) starts: usize,
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
        question: None,
        cancel: Cancel::Wanted,
        problems: Vec::new(),
    };
    for (at, phase) in scenario.phases.iter().enumerate() {
        let deaths = play.deaths;
        play.act(at, phase);
        if play.deaths > deaths {
            play.revive(phase);
        }
        play.settle();
    }
    play.over(reference)
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
            Phase::Answer(decisions) => {
                self.find_question();
                let words = self.answer_words(decisions);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let ended = self.world.call(&words, &driver);
                self.note(&ended, &driver);
            }
            Phase::Cancel => {
                let ended = self.world.call(&["cancel", SESSION], &driver);
                self.note(&ended, &driver);
            }
            Phase::CancelInFlight(decisions) => {
                self.find_question();
                let words = self.answer_words(decisions);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let mut running = self.world.spawn(&words, &driver);
                running.wait_for_point(&driver.log.clone().unwrap_or_default(), CALL_BEFORE);
                let canceller = self.setting(at, Seat::Canceller);
                let cancelled = self.world.call(&["cancel", SESSION], &canceller);
                self.note_cancel(&cancelled);
                self.note(&cancelled, &canceller);
                let ended = self.world.finish(running, &driver);
                self.note(&ended, &driver);
            }
        }
    }

    /// How a process of a phase is started: it notes the points it passes, and maybe dies at one.
    fn setting(&self, at: usize, seat: Seat) -> Setting {
        let kill = self.plan.kill;
        let kill = kill.filter(|kill| kill.phase == at && kill.seat == seat);
        Setting {
            timing: self.plan.timing,
            kill_at: kill.map(|kill| (kill.point, kill.nth)),
            log: Some(self.world.path(&format!("points-{at}-{seat:?}"))),
        }
    }

    pub(crate) fn answer_words(&self, decisions: &Value) -> Vec<String> {
        let question = self.question.clone().unwrap_or_default();
        let decisions = decisions.to_string();
        let words = ["resume", SESSION, "--interrupt", &question, "--decisions"];
        let words = words.into_iter().chain([decisions.as_str()]);
        words.map(str::to_owned).collect()
    }

    fn find_question(&mut self) {
        let view = self.world.show(SESSION);
        let found = view["__interrupt__"][0]["id"].as_str().map(str::to_owned);
        if found.is_none() {
            self.complain(format!("nothing is asked: {view}"));
        }
        self.question = found;
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

    /// A cancel may come when the run is over. In the undisturbed play that would test nothing.
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
            starts: trace.starts(),
            kills,
            seconds: seconds.concat(),
            problems: self.problems,
        }
    }

    fn possible_kills(&self) -> Vec<Kill> {
        let timing = self.plan.timing;
        let mut kills = Vec::new();
        if timing == Timing::ENDS_LATE {
            // Whatever a scenario does, it does in its last phase.
            let acts = 1..=self.world.ledger().acts();
            kills.extend(acts.map(|nth| Kill {
                phase: self.scenario.phases.len() - 1,
                seat: Seat::Driver,
                timing,
                point: LEDGER_WRITTEN,
                nth,
            }));
        }
        for phase in 0..self.scenario.phases.len() {
            for seat in [Seat::Driver, Seat::Canceller] {
                let log = self.world.path(&format!("points-{phase}-{seat:?}"));
                let passed = point::passed(&log).into_iter();
                // That a call runs and has acted is better seen in the ledger.
                let useful = |point| !(point == CALL_RUNNING && timing == Timing::ENDS_LATE);
                for (point, count) in passed.filter(|(point, _)| useful(*point)) {
                    kills.extend((1..=count).map(|nth| Kill {
                        phase,
                        seat,
                        timing,
                        point,
                        nth,
                    }));
                }
            }
        }
        kills
    }
}
