//! What is done after a death: the command is given again, what was left behind is recovered, and a person who is asked
//! what happened looks into the ledger and tells the truth.

use serde_json::{Value, json};

use crate::{
    play::{Cancel, Play},
    point,
    process::Ended,
    scenario::{End, Phase, Undo},
    trace::Trace,
    world::{SESSION, Setting, Timing},
};

/// More than any scenario needs: each round settles something.
pub(crate) const ROUNDS: usize = 12;

/// A second death, of a process that was started because of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Second {
    pub(crate) step: Step,
    pub(crate) point: &'static str,
    pub(crate) nth: usize,
}

/// Which process it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The command that had died, given again.
    Reissue,
    /// `holdpoint recover`.
    Recover,
    /// The first answer to the question whether something took effect.
    Tell,
}

impl Play<'_> {
    /// Goes on after a death.
    pub(crate) fn revive(&mut self, phase: &Phase) {
        let deaths = self.deaths;
        self.reissue(phase, &self.revival_setting(Step::Reissue));
        if self.deaths > deaths {
            self.reissue(phase, &Setting::PLAIN);
        }
        self.recover(&self.revival_setting(Step::Recover));
    }

    /// While someone tries to revive it, tools act late, so that a second death can come while one runs.
    fn revival_setting(&self, step: Step) -> Setting {
        let second = self.plan.second.filter(|second| second.step == step);
        Setting {
            timing: Timing::ACTS_LATE,
            kill_at: second.map(|second| (second.point, second.nth)),
            log: Some(self.world.path(&format!("points-{step:?}"))),
            ..Setting::PLAIN
        }
    }

    /// The deaths that this step could have died.
    pub(crate) fn possible_seconds(&self, step: Step) -> Vec<Second> {
        let log = self.world.path(&format!("points-{step:?}"));
        let passed = point::passed(&log).into_iter();
        passed
            .flat_map(|(point, count)| (1..=count).map(move |nth| Second { step, point, nth }))
            .collect()
    }

    /// Gives the command again. It either was not recorded and now is, or is refused as done.
    fn reissue(&mut self, phase: &Phase, setting: &Setting) {
        match phase {
            Phase::Start => {
                let shown = self.world.show(SESSION);
                // A run that was recorded goes on by itself; to start another one would be wrong.
                if shown["code"].is_string() {
                    let ended = self.world.run(SESSION, setting);
                    self.note(&ended, setting);
                }
            }
            Phase::Answer(..) | Phase::AnswerMap(_) => self.answer_again(setting),
            Phase::Pause | Phase::Continue => {
                let words = self.words.clone();
                self.call(&words, setting);
            }
            Phase::PauseInFlight(_) => {
                // Paused first: what is answered then does not start.
                let words = ["pause", SESSION].map(str::to_owned);
                self.call(&words, &Setting::PLAIN);
                self.answer_again(setting);
            }
            // Whoever looks next sees what is still asked, or due.
            Phase::ApproveRest | Phase::AwaitDue => {
                self.recover(setting);
            }
            Phase::Cancel | Phase::CancelInFlight(_) => {
                if self.cancel != Cancel::Recorded {
                    let ended = self.world.call(&["cancel", SESSION], setting);
                    self.note_cancel(&ended);
                    self.note(&ended, setting);
                }
            }
        }
    }

    fn answer_again(&mut self, setting: &Setting) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let ended = self.world.call(&words, setting);
        if !(ended.code() == Some(4) && ended.error_code() == Some("already_decided")) {
            self.note(&ended, setting);
        }
    }

    pub(crate) fn recover(&mut self, setting: &Setting) -> Ended {
        let ended = self.world.call(&["recover"], setting);
        self.note(&ended, setting);
        ended
    }

    /// Brings the run to where it waits for the scenario's person, or to its end.
    pub(crate) fn settle(&mut self) {
        for _ in 0..ROUNDS {
            let view = self.world.show(SESSION);
            let pending = view["__interrupt__"].as_array().cloned();
            let doubts: Vec<Value> = pending
                .unwrap_or_default()
                .into_iter()
                .filter(|interrupt| interrupt["kind"] == "error")
                .collect();
            if view["status"] == "running" {
                self.recover(&Setting::PLAIN);
            } else if doubts.is_empty() {
                return;
            }
            for doubt in &doubts {
                self.tell_the_truth(doubt);
            }
        }
        self.complain("the run does not come to an end");
    }

    /// Answers as a person would who can see the ledger.
    fn tell_the_truth(&mut self, interrupt: &Value) {
        self.asked += 1;
        let trace = Trace::read(&self.world, SESSION).unwrap_or_default();
        let request = &interrupt["value"]["action_requests"][0];
        let action = &request["action_id"];
        let ledger = self.world.ledger();
        let decision = if let Some(original) = trace.undone_by(action) {
            if !matches!(self.scenario.end, End::CancelledInFlight(Undo::Compensated)) {
                self.complain(format!("a compensation that nobody wanted: {interrupt}"));
            }
            let key = trace.key_of(original).unwrap_or_default();
            let result = json!({"reversed": request["args"]});
            decision(ledger.undone(key), &result)
        } else {
            // A step is named after its tool.
            let name = request["name"].as_str().unwrap_or_default();
            let tool = name.split_once('.').map_or(name, |(tool, _)| tool);
            if !self.scenario.doubtful.contains(&tool) {
                self.complain(format!(
                    "a person is asked what could be found out: {interrupt}"
                ));
            }
            let key = trace.key_of(action).unwrap_or_default();
            let result = json!({"recorded": request["args"]});
            decision(ledger.done(key), &result)
        };
        let id = interrupt["id"].as_str().unwrap_or_default().to_owned();
        let decisions = json!([decision]).to_string();
        let words = [
            "resume",
            SESSION,
            "--interrupt",
            &id,
            "--decisions",
            &decisions,
        ];
        let setting = if self.asked == 1 {
            self.revival_setting(Step::Tell)
        } else {
            Setting::PLAIN
        };
        let ended = self.world.call(&words, &setting);
        self.note(&ended, &setting);
    }
}

fn decision(times: usize, result: &Value) -> Value {
    if times == 0 {
        json!({"type": "not_committed"})
    } else {
        json!({"type": "committed", "result": result})
    }
}
