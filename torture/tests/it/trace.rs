//! A thread's journal, as `holdpoint trace` prints it after it has checked the chain.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::world::{Setting, World};

/// Every event of a thread.
#[derive(Debug, Default)]
pub(crate) struct Trace(Vec<Value>);

impl Trace {
    /// Reads it, or says why it cannot be trusted.
    pub(crate) fn read(world: &World, session: &str) -> Result<Self, String> {
        let ended = world.call(&["trace", session], &Setting::PLAIN);
        if ended.code() != Some(0) {
            return Err(format!("the chain is broken: {}", ended.explain()));
        }
        let seqs = ended.lines.iter().map(|line| line["seq"].as_u64());
        if !seqs.eq((1..=ended.lines.len()).map(|seq| u64::try_from(seq).ok())) {
            return Err("the journal has a gap".to_owned());
        }
        Ok(Self(ended.lines))
    }

    fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0
            .iter()
            .filter(move |line| line["type"] == kind)
            .map(|line| &line["event"])
    }

    /// Every event's place, and the hash of all up to there, from the beginning of the first run on.
    pub(crate) fn chain(&self) -> Vec<(u64, &str)> {
        let lines = self.0.iter();
        lines
            .skip_while(|line| line["type"] != "run_started")
            .filter_map(|line| Some((line["seq"].as_u64()?, line["hash"].as_str()?)))
            .collect()
    }

    /// How many calls were recorded as started.
    pub(crate) fn starts(&self) -> usize {
        self.of("action_started").count()
    }

    /// How often each question was answered.
    pub(crate) fn answers(&self) -> BTreeMap<String, usize> {
        let mut answers = BTreeMap::new();
        for event in self.of("answered") {
            let interrupt = event["interrupt"].as_str().unwrap_or_default();
            *answers.entry(interrupt.to_owned()).or_default() += 1;
        }
        answers
    }

    /// How often a question was closed without anybody's answer.
    pub(crate) fn closings(&self) -> usize {
        self.of("interrupt_closed").count()
    }

    /// Who gave an answer, for every answer there is.
    pub(crate) fn answered_by(&self) -> Vec<&str> {
        let answered = self.0.iter().filter(|line| line["type"] == "answered");
        answered.filter_map(|line| line["by"].as_str()).collect()
    }

    /// How often it was restored from a backup.
    pub(crate) fn restored(&self) -> usize {
        self.of("restored").count()
    }

    /// How often a run began.
    pub(crate) fn runs(&self) -> usize {
        self.of("run_started").count()
    }

    /// How often a run ended.
    pub(crate) fn ends(&self) -> usize {
        self.of("run_ended").count()
    }

    /// The kinds of decision in the answer to a question, in every answer that it got.
    pub(crate) fn decisions_on(&self, interrupt: &str) -> Vec<&str> {
        self.of("answered")
            .filter(|event| event["interrupt"] == interrupt)
            .filter_map(|event| event["decisions"].as_array())
            .flatten()
            .filter_map(|decided| decided["decision"]["type"].as_str())
            .collect()
    }

    /// The keys under which calls were started.
    pub(crate) fn keys(&self) -> BTreeSet<&str> {
        self.of("action_started")
            .filter_map(|event| event["key"].as_str())
            .collect()
    }

    /// How often people were asked to allow something.
    pub(crate) fn approvals(&self) -> usize {
        let raised = self.of("interrupt_raised");
        raised.filter(|event| event["kind"] == "approval").count()
    }

    /// Whether it was ever paused.
    pub(crate) fn was_paused(&self) -> bool {
        self.of("paused").count() > 0
    }

    /// The key under which an action, or a step of one, was started.
    pub(crate) fn key_of(&self, action: &Value) -> Option<&str> {
        let actions = self.of("action_started");
        let mut started = actions
            .map(|event| (&event["action"], event))
            .chain(self.of("step_started").map(|event| (&event["step"], event)));
        let started = started.find(|(started, _)| *started == action);
        started.and_then(|(_, event)| event["key"].as_str())
    }

    /// The action that this one undoes.
    pub(crate) fn undone_by(&self, compensation: &Value) -> Option<&Value> {
        self.of("compensation_bound")
            .find(|event| event["compensation"] == *compensation)
            .map(|event| &event["action"])
    }

    /// Whether a call had ended when it was requested to stop: then there was nothing in flight to be undone.
    pub(crate) fn stopped_too_late(&self) -> bool {
        let first = |kind: &str| self.0.iter().position(|line| line["type"] == kind);
        match (first("action_finished"), first("stop_requested")) {
            (Some(ended), Some(stopped)) => ended < stopped,
            (_, _) => false,
        }
    }

    /// Whether a person said that something took effect.
    pub(crate) fn has_committed(&self) -> bool {
        self.of("answered")
            .filter_map(|event| event["decisions"].as_array())
            .flatten()
            .any(|decided| decided["decision"]["type"] == "committed")
    }
}
