//! The series: what they are called, and what adds to them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use holdpoint_core::{Cause, InterruptStatus, Span, Spared, Tally, Usage, tally};
use holdpoint_engine::{OwnAppend, Waiting};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::agents::Agents;

/// A gauge that is a fraction.
type Ratio = Gauge<f64, AtomicU64>;

/// From a second to a month: people sleep, and are on holiday.
const DECISION_SECONDS: [f64; 14] = [
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    3_600.0,
    14_400.0,
    28_800.0,
    86_400.0,
    172_800.0,
    432_000.0,
    1_209_600.0,
    2_592_000.0,
];

/// From a millisecond to the time that a process which died leaves behind.
const RESUME_SECONDS: [f64; 13] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0,
];

/// By what an effect was not done twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prevented {
    /// A second answer was refused.
    AlreadyDecided,
    /// A request came again under its `Idempotency-Key`.
    IdempotencyKey,
    /// A program asked again what it had asked before.
    SameQuestion,
    /// As the journal says.
    Spared(Spared),
}

impl Prevented {
    const ALL: [Self; 5] = [
        Self::AlreadyDecided,
        Self::IdempotencyKey,
        Self::SameQuestion,
        Self::Spared(Spared::Lookup),
        Self::Spared(Spared::LateOutcome),
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyDecided => "already_decided",
            Self::IdempotencyKey => "idempotency_key",
            Self::SameQuestion => "same_question",
            Self::Spared(Spared::Lookup) => "lookup",
            Self::Spared(Spared::LateOutcome) => "late_outcome",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Started {
    agent: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    agent: Arc<str>,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tokens {
    agent: Arc<str>,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Raised {
    kind: &'static str,
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Closed {
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct By {
    by: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Waits {
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Store {
    store: String,
}

/// What is counted and measured.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    agents: Agents,
    runs_started: Family<Started, Counter>,
    runs_ended: Family<Ended, Counter>,
    model_tokens: Family<Tokens, Counter>,
    model_cost: Family<Started, Counter<f64, AtomicU64>>,
    questions_raised: Family<Raised, Counter>,
    questions_closed: Family<Closed, Counter>,
    time_to_decision: Family<Kind, Histogram, fn() -> Histogram>,
    resume_latency: Histogram,
    resume_attempts: Counter,
    resume_successes: Counter,
    resume_success_ratio: Ratio,
    prevented: Family<By, Counter>,
    duplicates: Counter,
    takeovers: Counter,
    takeover_ratio: Ratio,
    waiting: Family<Waits, Gauge>,
    waiting_capped: Gauge,
    streams_open: Gauge,
    store_up: Family<Store, Gauge>,
    /// All runs that began, whichever agent's.
    runs: AtomicU64,
    /// What the last look at each store saw.
    seen: Mutex<BTreeMap<String, Seen>>,
}

/// What a look at a store saw.
#[derive(Debug)]
struct Seen {
    waiting: BTreeMap<Cause, usize>,
    is_capped: bool,
}

impl Default for Metrics {
    fn default() -> Self {
        let new: fn() -> Histogram = || Histogram::new(DECISION_SECONDS);
        let mut metrics = Self {
            registry: Registry::with_prefix("holdpoint"),
            agents: Agents::default(),
            runs_started: Family::default(),
            runs_ended: Family::default(),
            model_tokens: Family::default(),
            model_cost: Family::default(),
            questions_raised: Family::default(),
            questions_closed: Family::default(),
            time_to_decision: Family::new_with_constructor(new),
            resume_latency: Histogram::new(RESUME_SECONDS),
            resume_attempts: Counter::default(),
            resume_successes: Counter::default(),
            resume_success_ratio: Ratio::default(),
            prevented: Family::default(),
            duplicates: Counter::default(),
            takeovers: Counter::default(),
            takeover_ratio: Ratio::default(),
            waiting: Family::default(),
            waiting_capped: Gauge::default(),
            streams_open: Gauge::default(),
            store_up: Family::default(),
            runs: AtomicU64::new(0),
            seen: Mutex::default(),
        };
        metrics.register_counters();
        metrics.register_resumes();
        metrics.register_gauges();
        // What can be named beforehand is there from the start, as zero.
        for prevented in Prevented::ALL {
            let by = prevented.as_str();
            drop(metrics.prevented.get_or_create(&By { by }));
        }
        metrics
    }
}

impl Metrics {
    fn register_counters(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "runs_started",
            "Runs of agents that began",
            self.runs_started.clone(),
        );
        registry.register(
            "runs_ended",
            "Runs of agents that ended",
            self.runs_ended.clone(),
        );
        registry.register(
            "model_tokens",
            "Tokens that models read and wrote",
            self.model_tokens.clone(),
        );
        registry.register(
            "model_cost_usd",
            "What models cost, as far as prices are configured",
            self.model_cost.clone(),
        );
        registry.register(
            "questions_raised",
            "Questions that were asked",
            self.questions_raised.clone(),
        );
        registry.register(
            "questions_closed",
            "Questions that were closed",
            self.questions_closed.clone(),
        );
        registry.register_with_unit(
            "time_to_decision",
            "How long questions were open that were answered",
            Unit::Seconds,
            self.time_to_decision.clone(),
        );
        registry.register(
            "duplicate_effects_prevented",
            "What was not done a second time",
            self.prevented.clone(),
        );
        registry.register(
            "duplicate_side_effects",
            "Effects that turned out to be there after they had been settled as not done",
            self.duplicates.clone(),
        );
        registry.register(
            "human_takeovers",
            "Questions about errors and effects in doubt that a person settled",
            self.takeovers.clone(),
        );
    }

    fn register_resumes(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "resume_attempts",
            "Answered runs that went on, or failed to",
            self.resume_attempts.clone(),
        );
        registry.register(
            "resume_successes",
            "Answered runs that went on",
            self.resume_successes.clone(),
        );
        registry.register(
            "resume_success_ratio",
            "Successes by attempts of this process; NaN while there are none",
            self.resume_success_ratio.clone(),
        );
        registry.register_with_unit(
            "resume_latency",
            "How long after an answer what it let start was committed",
            Unit::Seconds,
            self.resume_latency.clone(),
        );
        registry.register(
            "human_takeover_ratio",
            "Take-overs by runs that this process began; NaN while there are none",
            self.takeover_ratio.clone(),
        );
    }

    fn register_gauges(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "waiting",
            "Questions that are pending in the stores, as last looked at",
            self.waiting.clone(),
        );
        registry.register(
            "waiting_capped",
            "Whether more are pending than were looked at",
            self.waiting_capped.clone(),
        );
        registry.register(
            "streams_open",
            "Streams that clients of this process follow",
            self.streams_open.clone(),
        );
        registry.register(
            "store_up",
            "Whether a store could be written a moment ago",
            self.store_up.clone(),
        );
    }

    /// Counts what this process committed.
    pub(crate) fn count(&self, append: &OwnAppend<'_>) {
        let agent = &append.after.agent;
        let (before, after) = (append.before, append.after);
        tally(before, after, append.entries, append.at, |counted| {
            self.add(agent, counted);
        });
    }

    fn add(&self, agent: &str, counted: Tally) {
        match counted {
            Tally::RunStarted => {
                let agent = self.agents.label(agent);
                self.runs_started.get_or_create(&Started { agent }).inc();
                self.runs.fetch_add(1, Ordering::Relaxed);
            }
            Tally::RunEnded(ending) => {
                let ended = Ended {
                    agent: self.agents.label(agent),
                    outcome: ending.as_str(),
                };
                self.runs_ended.get_or_create(&ended).inc();
            }
            Tally::Asked { kind, cause } => {
                let raised = Raised {
                    kind: kind.as_str(),
                    cause: cause.as_str(),
                };
                self.questions_raised.get_or_create(&raised).inc();
            }
            Tally::Closed(status) => self.close(status),
            Tally::Decided { kind, after } => {
                let kind = Kind {
                    kind: kind.as_str(),
                };
                let decided = self.time_to_decision.get_or_create(&kind);
                decided.observe(seconds(after));
            }
            Tally::TakenOver => {
                self.takeovers.inc();
            }
            Tally::Resumed { after } => {
                self.resume_attempts.inc();
                self.resume_successes.inc();
                if let Some(after) = after {
                    self.resume_latency.observe(seconds(after));
                }
            }
            Tally::NotResumed => {
                self.resume_attempts.inc();
            }
            Tally::Spared(spared) => self.prevented(Prevented::Spared(spared)),
            Tally::Duplicate => {
                self.duplicates.inc();
            }
            Tally::Spent(usage) => self.spent(self.agents.label(agent), usage),
        }
    }

    fn spent(&self, agent: Arc<str>, usage: Usage) {
        let new = usage.input_tokens.saturating_sub(usage.cached_tokens);
        for (kind, tokens) in [
            ("input", new),
            ("cached_input", usage.cached_tokens),
            ("output", usage.output_tokens),
        ] {
            let agent = Arc::clone(&agent);
            let tokens_of = self.model_tokens.get_or_create(&Tokens { agent, kind });
            tokens_of.inc_by(tokens);
        }
        if usage.cost_nano_usd > 0 {
            let cost = self.model_cost.get_or_create(&Started { agent });
            cost.inc_by(usage.cost_nano_usd as f64 / 1e9);
        }
    }

    fn close(&self, status: InterruptStatus) {
        let status = status.as_str();
        self.questions_closed
            .get_or_create(&Closed { status })
            .inc();
    }

    /// Something was not done a second time.
    pub(crate) fn prevented(&self, prevented: Prevented) {
        let by = prevented.as_str();
        self.prevented.get_or_create(&By { by }).inc();
    }

    /// What a look at a store saw.
    pub(crate) fn saw_waiting(&self, store: &str, waiting: &Waiting) {
        let seen = Seen {
            waiting: waiting.by_cause(),
            is_capped: waiting.is_capped(),
        };
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(store.to_owned(), seen);
    }

    /// All series as text.
    ///
    /// # Errors
    ///
    /// A value cannot be written, which is our own mistake.
    pub(crate) fn show(
        &self,
        streams: usize,
        stores: impl Iterator<Item = (String, bool)>,
    ) -> Result<String, fmt::Error> {
        self.streams_open.set(whole(streams));
        for (store, is_up) in stores {
            let up = self.store_up.get_or_create(&Store { store });
            up.set(i64::from(is_up));
        }
        self.show_waiting();
        let (attempts, successes) = (self.resume_attempts.get(), self.resume_successes.get());
        self.resume_success_ratio.set(ratio(successes, attempts));
        let (takeovers, runs) = (self.takeovers.get(), self.runs.load(Ordering::Relaxed));
        self.takeover_ratio.set(ratio(takeovers, runs));
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn show_waiting(&self) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for cause in Cause::ALL {
            let waiting = seen.values().filter_map(|seen| seen.waiting.get(&cause));
            let cause = cause.as_str();
            let gauge = self.waiting.get_or_create(&Waits { cause });
            gauge.set(whole(waiting.sum()));
        }
        let is_capped = seen.values().any(|seen| seen.is_capped);
        self.waiting_capped.set(i64::from(is_capped));
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn seconds(span: Span) -> f64 {
    Duration::from(span).as_secs_f64()
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use holdpoint_core::{Ending, InterruptKind};

    use super::*;

    /// One of everything.
    fn one_of_each() -> Metrics {
        let metrics = Metrics::default();
        let after = Span::from_millis(1_500);
        for counted in [
            Tally::RunStarted,
            Tally::RunStarted,
            Tally::RunEnded(Ending::Failed),
            Tally::Asked {
                kind: InterruptKind::Error,
                cause: Cause::WriteUnknown,
            },
            Tally::Closed(InterruptStatus::Resolved),
            Tally::Decided {
                kind: InterruptKind::Error,
                after,
            },
            Tally::TakenOver,
            Tally::Resumed { after: Some(after) },
            Tally::Resumed { after: None },
            Tally::NotResumed,
            Tally::NotResumed,
            Tally::Spared(Spared::Lookup),
            Tally::Duplicate,
            Tally::Spent(Usage {
                input_tokens: 100,
                output_tokens: 20,
                cached_tokens: 40,
                cost_nano_usd: 500_000_000,
            }),
        ] {
            metrics.add("clerk", counted);
        }
        metrics
    }

    fn shown(metrics: &Metrics) -> String {
        let stores = [("sqlite:a.db".to_owned(), true), ("b".to_owned(), false)];
        metrics.show(3, stores.into_iter()).unwrap()
    }

    #[test]
    fn everything_that_is_counted_is_shown() {
        let text = shown(&one_of_each());
        for line in [
            "holdpoint_runs_started_total{agent=\"clerk\"} 2",
            "holdpoint_runs_ended_total{agent=\"clerk\",outcome=\"failed\"} 1",
            "holdpoint_model_tokens_total{agent=\"clerk\",kind=\"input\"} 60",
            "holdpoint_model_tokens_total{agent=\"clerk\",kind=\"cached_input\"} 40",
            "holdpoint_model_tokens_total{agent=\"clerk\",kind=\"output\"} 20",
            "holdpoint_model_cost_usd_total{agent=\"clerk\"} 0.5",
            "holdpoint_questions_raised_total{kind=\"error\",cause=\"write_unknown\"} 1",
            "holdpoint_questions_closed_total{status=\"resolved\"} 1",
            "holdpoint_time_to_decision_seconds_count{kind=\"error\"} 1",
            "holdpoint_time_to_decision_seconds_sum{kind=\"error\"} 1.5",
            "holdpoint_resume_attempts_total 4",
            "holdpoint_resume_successes_total 2",
            "holdpoint_resume_success_ratio 0.5",
            "holdpoint_resume_latency_seconds_count 1",
            "holdpoint_resume_latency_seconds_sum 1.5",
            "holdpoint_duplicate_effects_prevented_total{by=\"lookup\"} 1",
            "holdpoint_duplicate_effects_prevented_total{by=\"idempotency_key\"} 0",
            "holdpoint_duplicate_side_effects_total 1",
            "holdpoint_human_takeovers_total 1",
            "holdpoint_human_takeover_ratio 0.5",
            "holdpoint_waiting{cause=\"human_approval\"} 0",
            "holdpoint_waiting_capped 0",
            "holdpoint_streams_open 3",
            "holdpoint_store_up{store=\"sqlite:a.db\"} 1",
            "holdpoint_store_up{store=\"b\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn without_anything_to_divide_by_a_ratio_is_no_number() {
        let text = shown(&Metrics::default());
        for name in ["resume_success_ratio", "human_takeover_ratio"] {
            let line = format!("holdpoint_{name} NaN");
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }

    #[test]
    fn however_many_agents_there_are_the_series_are_bounded() {
        let metrics = Metrics::default();
        for at in 0..500 {
            metrics.add(&format!("agent-{at}"), Tally::RunStarted);
            metrics.add(&format!("agent-{at}"), Tally::RunEnded(Ending::Finished));
        }
        let text = shown(&metrics);
        let count = |name: &str| text.lines().filter(|it| it.starts_with(name)).count();
        assert_eq!(count("holdpoint_runs_started_total"), 101);
        assert_eq!(count("holdpoint_runs_ended_total"), 101);
        let other = "holdpoint_runs_started_total{agent=\"other\"} 400";
        assert!(text.lines().any(|it| it == other), "{text}");
    }

    #[test]
    fn every_series_stands_in_the_documents_and_every_one_there_is_shown() {
        let text = shown(&one_of_each());
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let shown: BTreeSet<String> = types
            .map(|line| match line.split_once(' ').unwrap() {
                (name, "counter") => format!("{name}_total"),
                (name, _) => name.to_owned(),
            })
            .collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(path).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let told: BTreeSet<String> = rows
            .filter_map(|row| row.split_once('`'))
            .map(|(name, _)| name.to_owned())
            .filter(|name| name.starts_with("holdpoint_"))
            .collect();
        assert_eq!(shown, told);
    }

    #[test]
    fn what_several_stores_have_waiting_is_one_sum() {
        let metrics = Metrics::default();
        let look = |count, is_capped| Seen {
            waiting: BTreeMap::from([(Cause::HumanApproval, count)]),
            is_capped,
        };
        metrics.seen.lock().unwrap().extend([
            ("a".to_owned(), look(2, false)),
            ("b".to_owned(), look(3, true)),
        ]);
        let text = shown(&metrics);
        for line in [
            "holdpoint_waiting{cause=\"human_approval\"} 5",
            "holdpoint_waiting_capped 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }
}
