//! A stretch of a run as a span, in the words of OpenTelemetry's conventions for generative AI.
//!
//! What these conventions have no word for is called `holdpoint.…`. Nothing that anybody said is among it.

use std::time::{Duration, SystemTime};

use holdpoint_core::{
    Ending, Role, ThreadKind, Timestamp,
    spans::{Began, Call, CallEnd, ChatEnd, Stretch, What},
};
use opentelemetry::{
    InstrumentationScope, KeyValue, Value,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

/// How much of a model's name is sent: it is what its provider says.
const MOST_OF_MODEL: usize = 128;
/// How much of a model's id of a call is sent: it is the model's, so nobody knows how long it is.
const MOST_OF_CALL_ID: usize = 128;

/// Who says all this.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("holdpoint")
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}

/// The span that a stretch is.
pub(crate) fn span(stretch: &Stretch, scope: &InstrumentationScope) -> SpanData {
    let (start, unseen) = match stretch.began {
        Began::At(at) => (at.min(stretch.end), false),
        Began::Unseen => (stretch.end, true),
    };
    let mut said = Said::of(stretch);
    if unseen {
        said.note("holdpoint.start_unknown", true);
    }
    let status = said.error.map_or(Status::Unset, Status::error);
    let context = SpanContext::new(
        TraceId::from_bytes(*stretch.run.as_bytes()),
        SpanId::from_bytes(*stretch.id.as_bytes()),
        TraceFlags::SAMPLED,
        false,
        TraceState::default(),
    );
    let parent = stretch.parent.map(|id| SpanId::from_bytes(*id.as_bytes()));
    SpanData {
        span_context: context,
        parent_span_id: parent.unwrap_or(SpanId::INVALID),
        // Whoever sends the whole has seldom sent the part.
        parent_span_is_remote: parent.is_some(),
        span_kind: said.kind,
        name: said.name.into(),
        start_time: time(start),
        end_time: time(stretch.end),
        attributes: said.attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status,
        instrumentation_scope: scope.clone(),
    }
}

fn time(at: Timestamp) -> SystemTime {
    let micros = u64::try_from(at.as_micros()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}

/// What is said of a stretch.
struct Said {
    name: String,
    kind: SpanKind,
    attributes: Vec<KeyValue>,
    /// By what it failed, if it did: one of few words, or a stable code.
    error: Option<String>,
}

impl Said {
    fn of(stretch: &Stretch) -> Self {
        let mut said = Self {
            name: String::new(),
            kind: SpanKind::Internal,
            attributes: Vec::with_capacity(12),
            error: None,
        };
        said.note("holdpoint.run.id", stretch.run.to_string());
        said.note("gen_ai.conversation.id", stretch.thread.to_string());
        let whose = match stretch.kind {
            ThreadKind::Agent | ThreadKind::Grant => "gen_ai.agent.name",
            ThreadKind::Outside => "holdpoint.workflow",
        };
        said.note(whose, stretch.agent.clone());
        match &stretch.what {
            What::Run { ending, code } => said.run(stretch, *ending, code.as_deref()),
            What::Task {
                frame,
                action,
                done,
            } => {
                said.operation("invoke_agent", &stretch.agent);
                said.note("holdpoint.frame", frame.to_string());
                said.note("holdpoint.action.id", action.to_string());
                said.outcome(if *done { "finished" } else { "dropped" }, None);
            }
            What::Chat { attempt, end } => {
                said.operation("chat", "");
                said.kind = SpanKind::Client;
                said.note("holdpoint.attempt", i64::from(*attempt));
                said.chat(end);
            }
            What::Call(call) => said.call(call),
            What::Wait {
                interrupt,
                kind,
                cause,
                status,
            } => {
                said.name = format!("wait {}", cause.as_str());
                said.note("holdpoint.interrupt.id", interrupt.to_string());
                said.note("holdpoint.interrupt.kind", kind.as_str());
                said.note("holdpoint.interrupt.cause", cause.as_str());
                said.outcome(status.as_str(), None);
            }
        }
        said
    }

    fn note(&mut self, key: &'static str, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(key, value));
    }

    fn operation(&mut self, name: &'static str, of: &str) {
        self.name = format!("{name} {of}").trim_end().to_owned();
        self.note("gen_ai.operation.name", name);
    }

    fn outcome(&mut self, outcome: &'static str, error: Option<&str>) {
        self.note("holdpoint.outcome", outcome);
        if let Some(error) = error {
            self.note("error.type", error.to_owned());
            self.error = Some(error.to_owned());
        }
    }

    fn run(&mut self, stretch: &Stretch, ending: Ending, code: Option<&str>) {
        match stretch.kind {
            ThreadKind::Agent | ThreadKind::Grant => self.operation("invoke_agent", &stretch.agent),
            // A program outside works by itself, and only asks.
            ThreadKind::Outside => self.name = format!("ask {}", stretch.agent),
        }
        let error = match ending {
            Ending::Finished | Ending::Cancelled => None,
            Ending::Failed => Some(code.unwrap_or("failed")),
            Ending::TimedOut => Some("timed_out"),
        };
        self.outcome(ending.as_str(), error);
    }

    fn chat(&mut self, end: &ChatEnd) {
        match end {
            ChatEnd::Replied { usage, model } => {
                // Before the colon stands who provides it.
                if let Some((provider, model)) = model.split_once(':') {
                    self.note("gen_ai.provider.name", provider.to_owned());
                    let model: String = model.chars().take(MOST_OF_MODEL).collect();
                    self.note("gen_ai.response.model", model);
                }
                for (key, tokens) in [
                    ("gen_ai.usage.input_tokens", usage.input_tokens),
                    ("gen_ai.usage.output_tokens", usage.output_tokens),
                ] {
                    self.note(key, i64::try_from(tokens).unwrap_or(i64::MAX));
                }
                self.outcome("replied", None);
            }
            ChatEnd::Failed => self.outcome("failed", Some("failed")),
            ChatEnd::Lost => self.outcome("lost", Some("lost")),
            ChatEnd::Dropped => self.outcome("dropped", None),
        }
    }

    fn call(&mut self, call: &Call) {
        self.operation("execute_tool", &call.tool);
        self.note("gen_ai.tool.name", call.tool.clone());
        let call_id: String = call.call_id.chars().take(MOST_OF_CALL_ID).collect();
        self.note("gen_ai.tool.call.id", call_id);
        self.note("holdpoint.action.id", call.action.to_string());
        self.note("holdpoint.attempt", i64::from(call.attempt));
        self.note("holdpoint.effect", call.effect.as_str());
        self.note("holdpoint.compensates", call.role == Role::Compensation);
        match call.end {
            CallEnd::Done => self.outcome("done", None),
            CallEnd::Failed => self.outcome("failed", Some("failed")),
            CallEnd::Unknown => self.outcome("unknown", Some("unknown")),
            CallEnd::Lost => self.outcome("lost", Some("lost")),
            CallEnd::Withheld => self.outcome("withheld", None),
            CallEnd::Left => self.outcome("left", None),
            CallEnd::Dropped => self.outcome("dropped", None),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use holdpoint_core::{
        ActionId, Cause, Effect, FramePath, InterruptId, InterruptKind, InterruptStatus, RunId,
        ThreadId, Usage, spans::StretchId,
    };

    use super::*;

    fn stretch(what: What) -> Stretch {
        let run = RunId::from_bytes([7; 16]);
        Stretch {
            run,
            thread: ThreadId::from_bytes([8; 16]),
            kind: ThreadKind::Agent,
            id: StretchId::of_frame(run, &FramePath::root()),
            parent: None,
            agent: "teller".to_owned(),
            began: Began::At(Timestamp::from_millis(1_000)),
            end: Timestamp::from_millis(3_500),
            what,
        }
    }

    /// Any span.
    pub(crate) fn some_span() -> SpanData {
        let (ending, code) = (Ending::Finished, None);
        span(&stretch(What::Run { ending, code }), &scope())
    }

    fn called(end: CallEnd) -> What {
        What::Call(Call {
            action: ActionId::from_bytes([9; 16]),
            attempt: 2,
            tool: "pay".to_owned(),
            call_id: "c".repeat(1_000),
            effect: Effect::Write,
            role: Role::Call,
            end,
        })
    }

    fn attribute<'a>(span: &'a SpanData, key: &str) -> Option<&'a Value> {
        let mut all = span.attributes.iter();
        all.find(|it| it.key.as_str() == key).map(|it| &it.value)
    }

    fn text(span: &SpanData, key: &str) -> String {
        attribute(span, key).unwrap().to_string()
    }

    #[test]
    fn the_trace_is_found_by_the_id_of_the_run() {
        let span = some_span();
        let run = RunId::from_bytes([7; 16]).to_string();
        let trace = span.span_context.trace_id().to_string();
        assert_eq!(run, format!("run_{trace}"));
        assert!(span.span_context.is_valid() && span.span_context.is_sampled());
        assert_eq!(span.parent_span_id, SpanId::INVALID);
        assert_eq!(span.name, "invoke_agent teller");
        assert_eq!(text(&span, "gen_ai.operation.name"), "invoke_agent");
        let took = span.end_time.duration_since(span.start_time).unwrap();
        assert_eq!(took, Duration::from_millis(2_500));
    }

    #[test]
    fn how_it_ended_is_said_and_what_went_wrong_is_an_error() {
        let failed = What::Run {
            ending: Ending::Failed,
            code: Some("limit_reached".to_owned()),
        };
        let usage = Usage {
            input_tokens: 11,
            output_tokens: 5,
            ..Usage::default()
        };
        let chat = |end| What::Chat { attempt: 1, end };
        let task = |done| What::Task {
            frame: FramePath::root(),
            action: ActionId::from_bytes([9; 16]),
            done,
        };
        for (what, name, outcome, error) in [
            (
                failed,
                "invoke_agent teller",
                "failed",
                Some("limit_reached"),
            ),
            (task(true), "invoke_agent teller", "finished", None),
            (task(false), "invoke_agent teller", "dropped", None),
            (
                chat(ChatEnd::Replied {
                    usage,
                    model: "openai:gpt-4o-2024-08-06".to_owned(),
                }),
                "chat",
                "replied",
                None,
            ),
            (chat(ChatEnd::Failed), "chat", "failed", Some("failed")),
            (chat(ChatEnd::Lost), "chat", "lost", Some("lost")),
            (chat(ChatEnd::Dropped), "chat", "dropped", None),
            (called(CallEnd::Done), "execute_tool pay", "done", None),
            (
                called(CallEnd::Failed),
                "execute_tool pay",
                "failed",
                Some("failed"),
            ),
            (
                called(CallEnd::Unknown),
                "execute_tool pay",
                "unknown",
                Some("unknown"),
            ),
            (
                called(CallEnd::Lost),
                "execute_tool pay",
                "lost",
                Some("lost"),
            ),
            (
                called(CallEnd::Withheld),
                "execute_tool pay",
                "withheld",
                None,
            ),
            (called(CallEnd::Left), "execute_tool pay", "left", None),
            (
                called(CallEnd::Dropped),
                "execute_tool pay",
                "dropped",
                None,
            ),
        ] {
            let span = span(&stretch(what), &scope());
            assert_eq!(span.name, name);
            assert_eq!(text(&span, "holdpoint.outcome"), outcome);
            let expected = error.map_or(Status::Unset, |error| Status::error(error.to_owned()));
            assert_eq!(span.status, expected);
            let class = attribute(&span, "error.type").map(ToString::to_string);
            assert_eq!(class.as_deref(), error);
        }
    }

    #[test]
    fn a_wait_names_its_question_and_why_the_run_waited() {
        let what = What::Wait {
            interrupt: InterruptId::from_bytes([3; 16]),
            kind: InterruptKind::Approval,
            cause: Cause::HumanApproval,
            status: InterruptStatus::Rejected,
        };
        let span = span(&stretch(what), &scope());
        assert_eq!(span.name, "wait human_approval");
        assert_eq!(text(&span, "holdpoint.interrupt.kind"), "approval");
        assert_eq!(text(&span, "holdpoint.outcome"), "rejected");
        assert_eq!(attribute(&span, "gen_ai.operation.name"), None);
    }

    #[test]
    fn what_a_model_calls_its_call_is_cut() {
        let span = span(&stretch(called(CallEnd::Done)), &scope());
        assert_eq!(text(&span, "gen_ai.tool.call.id").len(), MOST_OF_CALL_ID);
    }

    #[test]
    fn a_beginning_that_nobody_saw_has_no_length_and_says_so() {
        let chat = What::Chat {
            attempt: 1,
            end: ChatEnd::Lost,
        };
        let mut lost = stretch(chat);
        lost.began = Began::Unseen;
        let span = span(&lost, &scope());
        assert_eq!(span.start_time, span.end_time);
        assert_eq!(
            attribute(&span, "holdpoint.start_unknown"),
            Some(&Value::Bool(true))
        );
    }
}
