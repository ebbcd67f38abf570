//! The stored format as files: a change that would read or write them differently fails here.
//!
//! `tests/golden/v1` is what was stored in version 1, `tests/golden/v2` what version 2 added; both stay as they are.
//! `tests/golden/v3` has what version 3 added. Where that is *meant* to change, and no store with it exists yet,
//! `HOLDPOINT_BLESS=v3 cargo test -p holdpoint-core --test it golden`
//! rewrites its files; afterwards, a change needs a new version and a new folder.

use std::{collections::BTreeMap, collections::BTreeSet, fmt, fs, path::PathBuf};

use holdpoint_core::{
    Action, ActionId, ActionStatus, Active, Actor, AfterLate, AfterLookup, AfterModel,
    AfterUnknown, Allowed, Ask, Basis, Breakpoints, Builtin, Called, Carried, Cause, Choice, Codec,
    Confirmation, ContextRule, Credential, Decided, Decision, DecisionKind, Definition, Digest,
    Doubt, EditedAction, Effect, Entry, Event, FIRST_FORMAT, FORMAT, Fate, FieldKind, Finish,
    Frame, FramePath, FramePhase, Gate, Grant, GrantId, GrantTerms, GrantUse, Hooks, HttpBody,
    HttpHeader, HttpMethod, HttpRequest, Index, InputField, Interrupt, InterruptId, InterruptKind,
    InterruptMode, InterruptStatus, Like, LimitKind, Limits, Lookup, Matches, McpHints, McpOffer,
    OnTimeout, Origin, Outcome, Payload, Phase, Policy, Principal, PrincipalKind, Prompt, Record,
    Restated, Role, Rule, Ruling, Run, RunId, RunOutcome, Runner, SECOND_FORMAT, Sampling, Scope,
    Seed, Seen, Shown, Side, Span, State, Stop, Subagent, Subject, Template, Terms, ThreadId,
    ThreadKind, Timestamp, ToolCall, ToolFacts, ToolKind, ToolSpec, UrlTemplate, Usage, Verdict,
    Via, Wait, Warrant, WarrantFrom, decode_definition, decode_head, decode_records, hex,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::thread::{Thread, done, held, params};

fn file(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let name = if name.contains('/') {
        name.to_owned()
    } else {
        format!("v1/{name}")
    };
    root.join("tests/golden").join(name)
}

/// The file's text; rewritten first if that was asked for.
fn stored<T: Serialize>(name: &str, value: &T) -> String {
    let path = file(name);
    let bless = std::env::var_os("HOLDPOINT_BLESS").is_some_and(|it| it == "v3");
    if bless && path.parent().unwrap().ends_with("v3") {
        let text = serde_json::to_string_pretty(value).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text + "\n").unwrap();
    }
    fs::read_to_string(path).unwrap()
}

/// What is stored reads as `value`, and `value` is written as what is stored, to the byte.
fn check<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(name: &str, value: &T) {
    let text = stored(name, value);
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value);
    assert_eq!(serde_json::to_string_pretty(value).unwrap() + "\n", text);
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000 + seconds * 1_000_000)
}

fn act(number: u8) -> ActionId {
    ActionId::from_bytes([number; 16])
}

fn int(number: u8) -> InterruptId {
    InterruptId::from_bytes([number; 16])
}

fn run() -> RunId {
    RunId::from_bytes([1; 16])
}

fn thread() -> ThreadId {
    ThreadId::from_bytes([2; 16])
}

fn subagent() -> FramePath {
    serde_json::from_str(r#""task#2/act#1""#).unwrap()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn actor(kind: PrincipalKind) -> Actor {
    Actor {
        tenant: text("acme"),
        name: text("bob"),
        kind,
    }
}

fn both_hooks() -> Hooks {
    Hooks {
        lookup: true,
        compensate: true,
    }
}

fn asked_verdict() -> Verdict {
    Verdict::Ask(asking_terms())
}

/// Terms in which everything is said that can be.
fn asking_terms() -> Terms {
    Terms {
        allowed: Allowed::new(DecisionKind::CONFIGURABLE.to_vec()).unwrap(),
        description: Some(text("look closely")),
        always_ask: true,
        requires_token: true,
        timeout: Some(Span::from_secs(300)),
        on_timeout: OnTimeout::Reject,
        flags: vec![],
    }
}

fn grant_id() -> GrantId {
    GrantId::from_bytes([5; 16])
}

fn grant_use() -> GrantUse {
    GrantUse {
        grant: grant_id(),
        by: actor(PrincipalKind::User),
    }
}

fn grant_terms(scope: Scope, matches: Matches) -> GrantTerms {
    GrantTerms {
        scope,
        matches,
        expires_in: None,
        uses: None,
    }
}

fn grant() -> Grant {
    Grant {
        id: grant_id(),
        terms: GrantTerms {
            expires_in: Some(Span::from_secs(900)),
            uses: Some(3),
            ..grant_terms(Scope::Thread, Matches::Args)
        },
        by: actor(PrincipalKind::User),
        given_at: at(3),
        expires_at: Some(at(903)),
        like: Like {
            lineage: vec![text("researcher")],
            tool: text("pay"),
            version: text("1"),
            schema: Digest::of(b"schema"),
            params_hash: Digest::of(b"params"),
        },
        used: 2,
        revoked: true,
    }
}

/// A grant about which nothing special is said.
fn plain_grant() -> Grant {
    let mut grant = grant();
    grant.terms = grant_terms(Scope::Thread, Matches::Tool);
    grant.id = GrantId::from_bytes([6; 16]);
    (grant.expires_at, grant.used, grant.revoked) = (None, 0, false);
    grant.like.lineage.clear();
    grant
}

fn breakpoints() -> Breakpoints {
    Breakpoints {
        before: BTreeSet::from([text("model")]),
        after: BTreeSet::from([text("pay")]),
    }
}

/// A question in which everything is said that can be.
fn long_prompt() -> Prompt {
    let choice = |id: &str, is_default| Choice {
        id: text(id),
        label: text("Berlin"),
        description: if is_default {
            text("the capital")
        } else {
            String::new()
        },
        is_default,
    };
    Prompt {
        title: text("Where?"),
        description: text("Say where it goes."),
        data: json!({"parcel": 7}),
        options: vec![choice("b", true), choice("c", false)],
        input_schema: Some(json!({"type": "string"})),
        timeout: Some(Span::from_secs(300)),
        checkpoint_id: Some(text("cp-1")),
        metadata: serde_json::Map::from_iter([(text("team"), json!("post"))]),
    }
}

fn facts() -> ToolFacts {
    ToolFacts {
        name: text("pay"),
        version: text("1"),
        effect: Effect::Write,
        timeout: Span::from_secs(60),
        settle: Span::from_secs(5),
        hooks: both_hooks(),
        kind: ToolKind::Plain,
    }
}

fn warrant(from: WarrantFrom) -> Warrant {
    Warrant {
        from,
        params_hash: Digest::of(b"params"),
        tool_version: text("1"),
        plan_version: 3,
    }
}

fn person(kind: PrincipalKind) -> WarrantFrom {
    WarrantFrom::Person {
        interrupt: int(9),
        by: actor(kind),
        at: at(3),
    }
}

fn action(number: u8, status: ActionStatus) -> Action {
    Action {
        id: act(number),
        run: run(),
        frame: FramePath::root(),
        parent: None,
        role: Role::Call,
        step: None,
        call_id: text("c1"),
        order: 2,
        version: 1,
        definition: Digest::of(b"definition"),
        tool: facts(),
        params: params(r#"{"amount":12.5,"to":"ä"}"#),
        params_hash: Digest::of(b"params"),
        verdict: asked_verdict(),
        grant: None,
        attempts: 1,
        progress: 0,
        settle_at: Some(at(70)),
        of_token: false,
        passed: false,
        doubt: Doubt::None,
        status,
        shown: None,
    }
}

fn plain_action(number: u8, status: ActionStatus) -> Action {
    Action {
        settle_at: None,
        verdict: Verdict::Allow,
        tool: ToolFacts {
            hooks: Hooks::default(),
            effect: Effect::Read,
            ..facts()
        },
        ..action(number, status)
    }
}

fn a_question(number: u8, kind: InterruptKind, cause: Cause, asks: Vec<Ask>) -> Interrupt {
    Interrupt {
        id: int(number),
        kind,
        cause,
        run: run(),
        frame: FramePath::root(),
        asks,
        plan_version: 3,
        definition: Digest::of(b"definition"),
        requester: actor(PrincipalKind::User),
        asked_at: at(2),
        expires_at: None,
        on_timeout: OnTimeout::Expire,
        nonce: text("00ff"),
        supersedes: None,
        changes: vec![],
    }
}

fn about_action(number: u8) -> Ask {
    Ask {
        action_id: act(number),
        subject: Subject::Action {
            tool_version: text("1"),
            schema: Digest::of(b"schema"),
            params_hash: Digest::of(b"params"),
            preview: Digest::of(b"preview"),
        },
        allowed: Allowed::standard(),
        description: None,
    }
}

fn about_effect(number: u8) -> Ask {
    let every = vec![
        DecisionKind::Approve,
        DecisionKind::Edit,
        DecisionKind::Reject,
        DecisionKind::Respond,
        DecisionKind::Committed,
        DecisionKind::NotCommitted,
        DecisionKind::Compensate,
        DecisionKind::Answer,
    ];
    Ask {
        action_id: act(number),
        subject: Subject::Effect {
            attempt: 2,
            params_hash: Digest::of(b"params"),
        },
        allowed: Allowed::new(every).unwrap(),
        description: Some(text("what became of it?")),
    }
}

fn about_model(number: u8) -> Ask {
    Ask {
        action_id: act(number),
        subject: Subject::Model,
        allowed: Allowed::standard(),
        description: None,
    }
}

fn about_node(number: u8, side: Side, action: Option<ActionId>) -> Ask {
    Ask {
        subject: Subject::Node {
            node: text("pay"),
            side,
            action,
        },
        ..about_model(number)
    }
}

fn about_question(number: u8, action: Option<ActionId>, name: &str, prompt: Prompt) -> Ask {
    Ask {
        subject: Subject::Question {
            action,
            name: text(name),
            prompt: Box::new(prompt),
        },
        ..about_model(number)
    }
}

fn confirmation() -> Confirmation {
    let kinds = [FieldKind::Text, FieldKind::Confirm, FieldKind::Select];
    let fields = kinds.into_iter().map(|kind| InputField {
        name: format!("{kind:?}"),
        kind,
        label: text("确认删除"),
        required: kind == FieldKind::Confirm,
        options: match kind {
            FieldKind::Select => vec![text("a"), text("b")],
            FieldKind::Text | FieldKind::Confirm => vec![],
        },
    });
    Confirmation {
        keywords: vec![text("please confirm"), text("请确认")],
        fields: fields.collect(),
        timeout: Some(Span::from_secs(300)),
    }
}

fn about_words(number: u8) -> Ask {
    Ask {
        subject: Subject::Confirmation {
            reply: 7,
            text: Digest::of(b"text"),
            from: 3,
            fields: confirmation().fields,
        },
        ..about_model(number)
    }
}

fn about_a_backup(number: u8, asked: Vec<Interrupt>) -> Ask {
    Ask {
        subject: Subject::Restored {
            backup: at(7),
            asked,
        },
        ..about_model(number)
    }
}

/// A thread that was found in a backup, with nothing open and with everything.
fn restored() -> Vec<Event> {
    let pending = a_question(
        7,
        InterruptKind::Approval,
        Cause::HumanApproval,
        vec![about_action(2)],
    );
    let asks = [vec![], vec![pending]].map(|asked| vec![about_a_backup(3, asked)]);
    let questions = asks.map(|asks| {
        let question = a_question(8, InterruptKind::Error, Cause::SystemRestart, asks);
        Event::InterruptRaised(Box::new(question))
    });
    let mut events = vec![
        Event::Restored {
            backup: at(7),
            interrupt: None,
            held: vec![],
            doubted: vec![],
        },
        Event::Restored {
            backup: at(7),
            interrupt: Some(int(8)),
            held: vec![act(1), act(2)],
            doubted: vec![act(3)],
        },
    ];
    events.extend(questions);
    events
}

fn every_cause() -> Vec<Cause> {
    vec![
        Cause::HumanApproval,
        Cause::HumanInput,
        Cause::Review,
        Cause::Breakpoint,
        Cause::UserPause,
        Cause::ToolFailure,
        Cause::RateLimit,
        Cause::BudgetExhausted,
        Cause::ExternalEvent,
        Cause::ModelTimeout,
        Cause::ModelError,
        Cause::WriteUnknown,
        Cause::RequirementChange,
        Cause::SystemRestart,
    ]
}

fn questions() -> Vec<Event> {
    let kinds = [
        InterruptKind::Approval,
        InterruptKind::Input,
        InterruptKind::Review,
        InterruptKind::Breakpoint,
        InterruptKind::Error,
    ];
    let timeouts = [
        OnTimeout::Expire,
        OnTimeout::Reject,
        OnTimeout::Escalate,
        OnTimeout::Keep,
    ];
    let asks = [
        about_action(1),
        about_effect(1),
        about_model(1),
        about_node(1, Side::Before, Some(act(2))),
        about_node(1, Side::After, None),
        about_question(1, Some(act(2)), "where", long_prompt()),
        about_question(1, None, "", Prompt::default()),
        about_words(1),
    ];
    let made = every_cause()
        .into_iter()
        .enumerate()
        .map(|(number, cause)| {
            let ask = asks[number % asks.len()].clone();
            let mut question = a_question(8, kinds[number % kinds.len()], cause, vec![ask]);
            question.on_timeout = timeouts[number % timeouts.len()];
            if number == 1 {
                question.frame = subagent();
                question.expires_at = Some(at(300));
                question.supersedes = Some(int(7));
                question.changes = vec![text("version 1 → 2")];
            }
            Event::InterruptRaised(Box::new(question))
        });
    made.collect()
}

fn answers() -> Vec<Event> {
    let edited_action = EditedAction {
        name: text("pay"),
        args: params(r#"{"to":"team"}"#),
    };
    let decisions = [
        Decision::APPROVE,
        Decision::Approve {
            grant: Some(grant().terms),
        },
        Decision::Approve {
            grant: Some(grant_terms(Scope::Agent, Matches::Tool)),
        },
        Decision::Approve {
            grant: Some(grant_terms(Scope::Thread, Matches::All)),
        },
        Decision::Edit { edited_action },
        Decision::Reject { message: None },
        Decision::Reject {
            message: Some(text("no")),
        },
        Decision::Respond {
            message: text("ask Carl"),
        },
        Decision::Committed {
            result: json!({"receipt": [1, null]}),
        },
        Decision::NotCommitted,
        Decision::Compensate,
        Decision::Answer {
            value: json!({"to": ["Berlin", null]}),
        },
    ];
    let decided = decisions.into_iter().zip(1..).map(|(decision, number)| {
        let params_hash = (number != 3).then(|| Digest::of(b"params"));
        Decided {
            action_id: act(number),
            decision,
            params_hash,
            grant: (number == 2).then(|| Box::new(grant())),
            shown: None,
        }
    });
    let decided: Vec<Decided> = decided.collect();
    let statuses = [
        InterruptStatus::Pending,
        InterruptStatus::Resolved,
        InterruptStatus::Rejected,
        InterruptStatus::Timeout,
        InterruptStatus::Canceled,
    ];
    let closed = statuses.map(|status| Event::InterruptClosed {
        interrupt: int(8),
        status,
        reason: text("the run was cancelled"),
        rejected: match status {
            InterruptStatus::Timeout => vec![act(1), act(2)],
            _ => vec![],
        },
        says: (status == InterruptStatus::Canceled).then(|| text("Do not.")),
    });
    let mut events = vec![
        Event::Answered {
            interrupt: int(8),
            status: InterruptStatus::Resolved,
            decisions: decided,
            roles: BTreeSet::from([text("treasurer")]),
            permissions: BTreeSet::from([text("pay")]),
            says: Some(text("Do it.")),
            via: Some(Box::new(Via {
                token: text("jti_1"),
                key: text("k1"),
                issuer: Principal::new(PrincipalKind::Service, "acme", "desk").actor,
                carrier: Principal::new(PrincipalKind::User, "acme", "ann").actor,
            })),
        },
        Event::Answered {
            interrupt: int(8),
            status: InterruptStatus::Rejected,
            decisions: vec![],
            roles: BTreeSet::new(),
            permissions: BTreeSet::new(),
            says: None,
            via: None,
        },
    ];
    events.extend(closed);
    events
}

fn turns() -> Vec<Event> {
    let called = |fate| Called {
        call: ToolCall {
            id: text("c1"),
            name: text("pay"),
            arguments: text(r#"{ "to": "a" }"#),
        },
        fate,
    };
    let asked = Fate::Action {
        id: act(1),
        version: text("1"),
        effect: Effect::Write,
        timeout: Span::from_secs(60),
        settle: Span::from_millis(1_500),
        hooks: both_hooks(),
        verdict: asked_verdict(),
        kind: ToolKind::Stepped,
        rule: Some(text("args.n > 100")),
        grant: Some(grant_use()),
        held_by: Some(int(8)),
        shown: None,
    };
    let fate = |effect, kind, verdict| Fate::Action {
        id: act(1),
        version: text("1"),
        effect,
        timeout: Span::from_secs(60),
        settle: Span::from_millis(1_500),
        hooks: Hooks::default(),
        verdict,
        kind,
        rule: None,
        grant: None,
        held_by: None,
        shown: None,
    };
    let plainly_asked = Verdict::Ask(Terms::new(Allowed::standard()));
    let calls = vec![
        called(asked),
        called(fate(Effect::Read, ToolKind::Task, Verdict::Allow)),
        called(fate(Effect::Idempotent, ToolKind::Plain, Verdict::Deny)),
        called(fate(Effect::Write, ToolKind::Plain, plainly_asked)),
        called(Fate::Refused {
            message: text("send it as a string"),
        }),
    ];
    let usage = Usage {
        input_tokens: 12,
        output_tokens: 7,
        ..Usage::default()
    };
    let failure = |frame, seen, then| Event::ModelFailed {
        frame,
        attempt: 1,
        error: text("503"),
        seen,
        then,
    };
    vec![
        Event::ModelStarted {
            frame: FramePath::root(),
            attempt: 1,
            epoch: 4,
        },
        Event::ModelStarted {
            frame: subagent(),
            attempt: 2,
            epoch: 4,
        },
        Event::ModelReplied {
            frame: subagent(),
            text: text("let me see"),
            calls,
            usage,
            model: String::new(),
            carried: None,
        },
        Event::ModelReplied {
            frame: FramePath::root(),
            text: String::new(),
            calls: vec![],
            usage: Usage::default(),
            model: String::new(),
            carried: None,
        },
        failure(
            FramePath::root(),
            Seen::ByItsDriver,
            AfterModel::RetryAt { at: at(9) },
        ),
        failure(subagent(), Seen::ByAnother, AfterModel::Ask),
    ]
}

fn effects() -> Vec<Event> {
    let unknown = |seen, then| Event::ActionUnknown {
        action: act(1),
        attempt: 1,
        reason: text("timed out"),
        seen,
        then,
    };
    let looked_up = |lookup, then| Event::ActionLookedUp {
        action: act(1),
        lookup,
        artifact: None,
        then,
    };
    let late = |outcome, then| Event::LateOutcome {
        action: act(1),
        attempt: 1,
        outcome,
        artifact: None,
        then,
    };
    let finished = |outcome| Event::ActionFinished {
        action: act(1),
        attempt: 1,
        outcome,
        artifact: None,
    };
    let reopened = Action {
        doubt: Doubt::Reopened,
        ..action(
            1,
            ActionStatus::Unsettled {
                warrant: warrant(WarrantFrom::Policy),
            },
        )
    };
    vec![
        Event::ActionStarted {
            action: act(1),
            attempt: 1,
            key: text("hpk_00"),
            epoch: 4,
            deadline: at(60),
        },
        finished(Finish::Done {
            content: text("paid"),
        }),
        finished(Finish::Failed {
            error: text("no funds"),
        }),
        unknown(Seen::ByItsDriver, AfterUnknown::RetryAt { at: at(9) }),
        unknown(Seen::ByAnother, AfterUnknown::LookUpAt { at: at(9) }),
        unknown(Seen::ByItsDriver, AfterUnknown::Ask),
        unknown(Seen::ByItsDriver, AfterUnknown::GiveUp),
        Event::ActionWithheld {
            action: act(1),
            attempt: 1,
            reason: text("too late"),
            retry_at: at(9),
        },
        looked_up(
            Lookup::Committed {
                receipt: json!({"id": 9}),
            },
            AfterLookup::Settled,
        ),
        looked_up(Lookup::NotFound, AfterLookup::RetryAt { at: at(9) }),
        looked_up(Lookup::NotFound, AfterLookup::NotDone),
        looked_up(
            Lookup::Unknown {
                reason: text("not reachable"),
            },
            AfterLookup::LookUpAt { at: at(9) },
        ),
        looked_up(
            Lookup::Partial {
                receipt: json!(null),
            },
            AfterLookup::Ask,
        ),
        late(
            Outcome::Unknown {
                reason: text("timed out"),
            },
            AfterLate::Recorded,
        ),
        late(
            Outcome::Failed {
                error: text("no funds"),
            },
            AfterLate::Settled,
        ),
        late(
            Outcome::Done {
                content: text("paid"),
            },
            AfterLate::Noted,
        ),
        late(
            Outcome::Done {
                content: text("paid"),
            },
            AfterLate::Contradicts {
                reopened: Box::new(reopened),
            },
        ),
        Event::WarrantVoided {
            action: act(1),
            reason: text("it changed"),
            interrupt: int(8),
            shown: None,
        },
        Event::CompensationBound {
            action: act(1),
            compensation: act(2),
        },
        Event::Repinned {
            definition: Digest::of(b"definition 2"),
            interrupt: int(8),
            actions: vec![Restated {
                action: act(1),
                tool: facts(),
                params_hash: Digest::of(b"params"),
                verdict: Verdict::Deny,
            }],
        },
    ]
}

fn steps() -> Vec<Event> {
    let started = |name: &str, attempt| Event::StepStarted {
        action: act(1),
        step: act(1).step(name),
        name: text(name),
        effect: Effect::Write,
        params: params(r#"{"to":"ä"}"#),
        attempt,
        key: text("hpk_00"),
        epoch: 4,
        deadline: at(60),
    };
    vec![
        started("book", 1),
        started("book", 2),
        Event::Suspended {
            action: act(1),
            name: text("where"),
            interrupt: int(8),
        },
        Event::Slept {
            action: act(1),
            name: text("nap"),
            until: at(60),
        },
        Event::Woken { action: act(1) },
        Event::Yielded { action: act(1) },
    ]
}

fn frames_and_pauses() -> Vec<Event> {
    vec![
        Event::FrameOpened {
            frame: subagent(),
            action: act(1),
            input: text("find it"),
        },
        Event::FrameClosed { frame: subagent() },
        Event::Paused,
        Event::Continued,
    ]
}

fn grants() -> Vec<Event> {
    vec![
        Event::GrantKept(Box::new(grant())),
        Event::GrantKept(Box::new(plain_grant())),
        Event::GrantUsed {
            grant: grant_id(),
            action: act(1),
            thread: thread(),
        },
        Event::GrantRevoked { grant: grant_id() },
    ]
}

fn ends() -> Vec<Event> {
    let stop = |stop, closed| Event::StopRequested { stop, closed };
    let limit = |limit| stop(Stop::Limit { limit }, vec![]);
    vec![
        stop(Stop::Cancelled, vec![act(1), act(2)]),
        limit(LimitKind::Turns),
        limit(LimitKind::Calls),
        limit(LimitKind::Time),
        stop(
            Stop::Loop {
                tool: text("pay"),
                rejections: 3,
            },
            vec![],
        ),
        stop(Stop::ModelUnavailable { error: text("401") }, vec![]),
        stop(Stop::TimedOut { interrupt: int(8) }, vec![]),
        Event::RunEnded {
            outcome: RunOutcome::Finished,
        },
        Event::RunEnded {
            outcome: RunOutcome::Failed {
                code: text("limit_turns"),
                message: text("the limit of model turns is reached"),
            },
        },
        Event::RunEnded {
            outcome: RunOutcome::Cancelled,
        },
        Event::RunEnded {
            outcome: RunOutcome::TimedOut,
        },
    ]
}

fn events() -> Vec<Event> {
    let mut requester = Principal::new(PrincipalKind::Local, "local", "ann");
    let begun = |requester: &Principal| Event::RunStarted {
        run: run(),
        definition: Digest::of(b"definition"),
        input: text("go"),
        plan_version: 3,
        limits: Limits::default(),
        requester: requester.clone(),
        breakpoints: if requester.roles.is_empty() {
            Breakpoints::default()
        } else {
            breakpoints()
        },
    };
    let created = |kind| Event::ThreadCreated {
        thread: thread(),
        tenant: text("acme"),
        agent: text("teller"),
        session: text("s1"),
        kind,
    };
    let mut events = vec![
        created(ThreadKind::Agent),
        created(ThreadKind::Outside),
        created(ThreadKind::Grant),
        Event::Forked {
            parent: thread(),
            at: 7,
            hash: Digest::of(b"hash"),
            depth: 1,
            head: Box::new(State {
                format: FIRST_FORMAT,
                ..State::default()
            }),
        },
        begun(&requester),
    ];
    requester.roles.insert(text("clerk"));
    requester.permissions.insert(text("pay"));
    for kind in [
        PrincipalKind::User,
        PrincipalKind::Service,
        PrincipalKind::Agent,
    ] {
        requester.actor.kind = kind;
        events.push(begun(&requester));
    }
    let more = [
        turns(),
        questions(),
        answers(),
        effects(),
        steps(),
        frames_and_pauses(),
        grants(),
        restored(),
        ends(),
    ];
    events.extend(more.concat());
    events
}

#[test]
fn every_event_is_stored_as_in_version_1() {
    let events = events();
    let names: BTreeSet<&str> = events.iter().map(Event::name).collect();
    assert_eq!(names.len(), 33, "a kind of event is missing: {names:?}");
    check("events.json", &events);
}

/// A head in which everything is open that can be.
fn everything_open() -> State {
    let policy = || warrant(WarrantFrom::Policy);
    let waiting = |on| ActionStatus::Waiting {
        warrant: policy(),
        on,
    };
    let statuses = [
        ActionStatus::Held { interrupt: int(8) },
        ActionStatus::Ready {
            warrant: policy(),
            not_before: None,
        },
        ActionStatus::Ready {
            warrant: warrant(person(PrincipalKind::User)),
            not_before: Some(at(9)),
        },
        ActionStatus::Started {
            warrant: policy(),
            epoch: 4,
            deadline: at(60),
        },
        ActionStatus::Unknown {
            warrant: policy(),
            lookups: 1,
            not_before: at(9),
        },
        ActionStatus::Unsettled { warrant: policy() },
        ActionStatus::InDoubt {
            warrant: warrant(WarrantFrom::Compensation),
            interrupt: int(9),
        },
        ActionStatus::Undoing { by: act(20) },
        waiting(Wait::Frame { frame: subagent() }),
        waiting(Wait::Answer { interrupt: int(11) }),
        waiting(Wait::Until { time: at(900) }),
        ActionStatus::Ready {
            warrant: warrant(WarrantFrom::Grant(grant_use())),
            not_before: None,
        },
    ];
    let mut actions: Vec<Action> = (1..)
        .zip(statuses)
        .map(|(number, status)| action(number, status))
        .collect();
    actions[1] = plain_action(2, actions[1].status.clone());
    actions[2].doubt = Doubt::EarlierAttemptDone;
    actions[2].passed = true;
    actions[8].tool.kind = ToolKind::Task;
    actions[9].tool.kind = ToolKind::Stepped;
    actions[9].progress = 1;
    actions[11].grant = Some(grant_use());
    let ready = ActionStatus::Ready {
        warrant: warrant(WarrantFrom::Compensation),
        not_before: Some(at(70)),
    };
    actions.push(Action {
        role: Role::Compensation,
        parent: Some(act(8)),
        doubt: Doubt::Reopened,
        ..action(20, ready.clone())
    });
    actions.push(Action {
        role: Role::Step,
        parent: Some(act(10)),
        step: Some(text("book")),
        frame: subagent(),
        ..action(21, ready)
    });
    let frame = |phase| Frame {
        definition: Digest::of(b"definition"),
        task: None,
        opened: 0,
        phase,
        rests: 0,
        rejected: BTreeMap::new(),
    };
    let path = |name: &str| serde_json::from_value(json!(name)).unwrap();
    let mut root = frame(FramePhase::Acting);
    root.opened = 4;
    root.rejected = BTreeMap::from([(Digest::of(b"rejected"), 2)]);
    let turn = |not_before| FramePhase::Turn {
        failures: 1,
        not_before,
        passed: not_before.is_some(),
    };
    let mut done = frame(FramePhase::Done);
    done.task = Some(act(9));
    let frames = BTreeMap::from([
        (FramePath::root(), root),
        (path("task#1"), frame(turn(None))),
        (path("task#2"), frame(turn(Some(at(9))))),
        (
            path("task#3"),
            frame(FramePhase::Thinking {
                attempt: 2,
                epoch: 4,
            }),
        ),
        (
            path("task#4"),
            frame(FramePhase::Stuck { error: text("401") }),
        ),
        (path("task#2/act#1"), done),
    ]);
    let questions = [
        a_question(
            8,
            InterruptKind::Approval,
            Cause::HumanApproval,
            vec![about_action(1)],
        ),
        a_question(
            9,
            InterruptKind::Error,
            Cause::WriteUnknown,
            vec![about_effect(7)],
        ),
        a_question(
            10,
            InterruptKind::Error,
            Cause::ModelTimeout,
            vec![about_model(22)],
        ),
        a_question(
            11,
            InterruptKind::Input,
            Cause::HumanInput,
            vec![about_question(23, Some(act(10)), "where", long_prompt())],
        ),
        a_question(
            12,
            InterruptKind::Breakpoint,
            Cause::Breakpoint,
            vec![about_node(24, Side::Before, None)],
        ),
    ];
    let active = Active {
        limits: Limits::default(),
        turns: 4,
        calls: 9,
        worked: Span::from_millis(1_234),
        busy_since: Some(at(1)),
        stop: Some(Stop::Cancelled),
        answered: None,
        paused: true,
        breakpoints: breakpoints(),
        frames,
    };
    State {
        format: FIRST_FORMAT,
        version: 42,
        hash: Digest::of(b"last"),
        now: at(3),
        thread: thread(),
        kind: ThreadKind::Agent,
        tenant: text("acme"),
        agent: text("teller"),
        session: text("s1"),
        forked: Some(Origin {
            parent: thread(),
            at: 7,
            hash: Digest::of(b"hash"),
            depth: 1,
        }),
        restored: Some(at(7)),
        plan_version: 3,
        run: Some(Run {
            id: run(),
            definition: Digest::of(b"definition"),
            requester: Principal::local("ann"),
            started_at: at(0),
            usage: Usage::default(),
            phase: Phase::Active(active),
        }),
        actions: actions.into_iter().map(|it| (it.id, it)).collect(),
        interrupts: questions.into_iter().map(|it| (it.id, it)).collect(),
        grants: [grant(), plain_grant()].map(|it| (it.id, it)).into(),
    }
}

#[test]
fn a_head_with_everything_open_is_stored_as_in_version_1() {
    let state = everything_open();
    check("head.json", &state);
    let text = fs::read(file("head.json")).unwrap();
    assert_eq!(decode_head(&Payload::json(text)).unwrap(), state);
}

#[test]
fn the_head_of_an_ended_run_and_of_a_thread_that_has_none_are_stored_as_in_version_1() {
    let ended = |outcome| {
        let mut state = everything_open();
        state.actions.clear();
        state.interrupts.clear();
        state.grants.clear();
        if let Some(run) = &mut state.run {
            run.phase = Phase::Ended(outcome);
        }
        state
    };
    let failed = RunOutcome::Failed {
        code: text("limit_turns"),
        message: text("the limit of model turns is reached"),
    };
    let of_kind = |kind| State {
        kind,
        ..State::default()
    };
    let of_version_1 = |state: State| State {
        format: FIRST_FORMAT,
        ..state
    };
    let heads = [
        State::default(),
        of_kind(ThreadKind::Outside),
        of_kind(ThreadKind::Grant),
        ended(RunOutcome::Finished),
        ended(failed),
        ended(RunOutcome::Cancelled),
        ended(RunOutcome::TimedOut),
    ];
    check("heads.json", &heads.map(of_version_1).to_vec());
}

fn definition() -> Definition {
    let spec = |name: &str, effect, runner| ToolSpec {
        name: text(name),
        description: text("does it"),
        version: text("1"),
        effect,
        input_schema: json!({"type": "object", "properties": {"to": {"type": "string"}}}),
        runner,
        kind: ToolKind::Plain,
        timeout: ToolSpec::DEFAULT_TIMEOUT,
        settle: ToolSpec::DEFAULT_SETTLE,
        permissions: vec![],
    };
    let command = |lookup: Option<&str>, compensate: Option<&str>| Runner::Command {
        command: vec![text("/bin/pay"), text("--now")],
        cwd: text("/srv"),
        lookup: lookup.map(|program| vec![text(program)]),
        compensate: compensate.map(|program| vec![text(program)]),
    };
    let mut pay = spec(
        "pay",
        Effect::Write,
        command(Some("/bin/seen"), Some("/bin/undo")),
    );
    pay.permissions = vec![text("pay")];
    let mut order = spec("order", Effect::Write, command(None, None));
    order.kind = ToolKind::Stepped;
    let mut give = spec(Definition::TASK, Effect::Read, command(None, None));
    give.kind = ToolKind::Task;
    let rule = |when: &str, then| Rule {
        when: text(when),
        then,
    };
    let gate = Gate {
        rules: vec![
            rule("args.n < 10", Ruling::Allow),
            rule("args.n < 100", Ruling::Interrupt),
            rule("args.n > 999", Ruling::Deny),
        ],
        otherwise: Ruling::Interrupt,
        terms: asking_terms(),
    };
    Definition {
        format: FIRST_FORMAT,
        name: text("teller"),
        version: text("3"),
        model: text("scripted:/srv/scenario.yaml"),
        fallback: vec![],
        sampling: Sampling::default(),
        context: ContextRule::default(),
        system_prompt: Some(text("Be careful.")),
        tools: vec![
            pay,
            spec("look", Effect::Read, command(None, None)),
            spec(
                "put",
                Effect::Idempotent,
                Runner::Code {
                    hooks: both_hooks(),
                },
            ),
            order,
            give,
        ],
        mcp_servers: Vec::new(),
        written: None,
        policy: Policy {
            interrupt_on: BTreeMap::from([
                (text("pay"), gate),
                (text("look"), Gate::open()),
                (text("*"), Gate::ask(Allowed::standard())),
            ]),
            default: Ruling::Deny,
        },
        interrupt_mode: InterruptMode::Batched,
        limits: Limits::default(),
        breakpoints: Breakpoints::default(),
        subagents: vec![],
        strict: false,
        confirm: Some(confirmation()),
        guardrails: BTreeMap::new(),
    }
}

fn http_runners() -> [Runner; 2] {
    let request = |method, url: &str, body| HttpRequest {
        method,
        url: UrlTemplate::parse(url).unwrap(),
        query: BTreeMap::new(),
        headers: BTreeMap::new(),
        body,
        idempotency_header: None,
        allow_private: vec![],
    };
    let token = |prefix| HttpHeader::Secret {
        name: text("PAY_TOKEN"),
        prefix: text(prefix),
    };
    let pay = HttpRequest {
        query: BTreeMap::from([(text("dry"), Template::parse("{dry}").unwrap())]),
        headers: BTreeMap::from([
            (text("Authorization"), token("Bearer ")),
            (text("X-Key"), token("")),
            (text("X-Team"), HttpHeader::Text(text("billing"))),
        ]),
        idempotency_header: Some(text("Idempotency-Key")),
        allow_private: vec![text("10.0.0.5")],
        ..request(
            HttpMethod::Post,
            "https://pay.example.com/orders/{id}",
            HttpBody::Args,
        )
    };
    let url = "https://pay.example.com/{$key}?e={$epoch}";
    let of = |method, body| Some(Box::new(request(method, url, body)));
    let full = Runner::Http {
        request: Box::new(pay),
        lookup: of(HttpMethod::Get, HttpBody::None),
        compensate: of(HttpMethod::Delete, HttpBody::Rest),
    };
    let plain = Runner::Http {
        request: Box::new(request(HttpMethod::Put, "http://h/", HttpBody::Args)),
        lookup: of(HttpMethod::Patch, HttpBody::Args),
        compensate: None,
    };
    [full, plain]
}

#[test]
fn a_definition_is_stored_as_in_version_1() {
    let mut small = definition();
    small.system_prompt = None;
    small.policy.default = Ruling::Allow;
    let mut asking = small.clone();
    asking.policy.default = Ruling::Interrupt;
    let mut leading = small.clone();
    leading.interrupt_mode = InterruptMode::PerCall;
    leading.breakpoints = breakpoints();
    leading.strict = true;
    leading.subagents = vec![Subagent {
        description: text("finds things"),
        definition: small.clone(),
    }];
    let mut http = small.clone();
    for (tool, runner) in http.tools.iter_mut().zip(http_runners()) {
        tool.runner = runner;
    }
    check(
        "definitions.json",
        &vec![definition(), small, asking, http, leading],
    );
    let text = stored("definition.json", &definition());
    let payload = Payload::json(text.into_bytes());
    assert_eq!(decode_definition(&payload).unwrap(), definition());
}

#[test]
fn digests_keys_ids_and_the_chain_are_computed_as_in_version_1() {
    let mut life = Thread::asked(vec![held("c1", r#"{"to":"ä","n":1.50}"#)]);
    life.answer(vec![Decision::APPROVE]).unwrap();
    let action = life.action("c1").clone();
    let key = action.idempotency_key(life.state.thread);
    life.run(action.id, done("paid"));
    let entries = decode_records(Digest::default(), &life.records).unwrap();
    assert_eq!(entries, life.entries);
    let records: Vec<_> = life
        .records
        .iter()
        .map(|record| {
            json!({
                "seq": record.seq,
                "header": String::from_utf8(record.header.clone()).unwrap(),
                "salt": hex(&record.salt),
                "payload": String::from_utf8(record.payload.bytes.clone()).unwrap(),
                "hash": record.hash,
            })
        })
        .collect();
    let definition = definition();
    let canonical = definition.to_canonical().unwrap();
    let mut seed = Seed::new([7; 16], at(0));
    let indexes = [
        Index::Runnable,
        Index::Pending,
        Index::Due,
        Index::Closed,
        Index::Run,
        Index::Session,
        Index::Workflow,
        Index::Grant,
    ];
    let derived = json!({
        "thread_of_acme_teller_s1": ThreadId::of_session("acme", "teller", "s1"),
        "thread_of_acme_flow_node": ThreadId::of_node("acme", "flow", "node"),
        "thread_of_grant": ThreadId::of_grant("acme", grant_id()),
        "grant_of_approval": GrantId::of_approval(int(1), act(2)),
        "step_book": act(1).step("book"),
        "question_digest": long_prompt().digest(),
        "params_hash": action.params_hash,
        "idempotency_key": key,
        "definition_digest": Digest::of(canonical.as_bytes()),
        "schema_digest": definition.tools[0].schema_digest(),
        "fresh_run": seed.run_id(),
        "fresh_action": seed.action_id(),
        "fresh_interrupt": seed.interrupt_id(),
        "fresh_nonce": seed.nonce(),
        "codecs": [Codec::Erased.number(), Codec::Json.number()],
        "indexes": indexes.map(Index::number),
    });
    let text = fs::read_to_string(file("derived.json")).unwrap();
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    let in_version_1: Vec<Stored> =
        serde_json::from_value(old.as_object_mut().unwrap().remove("records").unwrap()).unwrap();
    assert_eq!(derived, old);
    // The same life, as it was recorded then.
    let told = |entries: &[Entry]| -> Vec<Event> {
        entries.iter().map(|entry| entry.event.clone()).collect()
    };
    let in_version_2 = fs::read_to_string(file("v2/records.json")).unwrap();
    let in_version_2: Vec<Stored> = serde_json::from_str(&in_version_2).unwrap();
    for (format, records) in [(FIRST_FORMAT, in_version_1), (SECOND_FORMAT, in_version_2)] {
        let records: Vec<Record> = records.into_iter().map(Stored::record).collect();
        let old = decode_records(Digest::default(), &records).unwrap();
        assert_eq!(told(&old), told(&entries));
        assert!(old.iter().all(|entry| entry.header.format == format));
    }
    check("v3/records.json", &json!(records));
}

/// A record, as the files have it.
#[derive(Deserialize)]
struct Stored {
    seq: u64,
    header: String,
    salt: String,
    payload: String,
    hash: Digest,
}

impl Stored {
    fn record(self) -> Record {
        let salt =
            (0..16).map(|at| u8::from_str_radix(&self.salt[2 * at..2 * at + 2], 16).unwrap());
        Record {
            seq: self.seq,
            header: self.header.into_bytes(),
            salt: salt.collect::<Vec<_>>().try_into().unwrap(),
            payload: Payload::json(self.payload.into_bytes()),
            hash: self.hash,
        }
    }
}

fn shown() -> Shown {
    Shown {
        title: text("Write 2 lines to a.txt"),
        kept: Digest::of(b"preview"),
        basis: Some(Basis {
            before: Digest::of(b"old"),
            after: Digest::of(b"new"),
        }),
    }
}

#[test]
fn what_version_2_added_is_stored_so() {
    let carried = Carried {
        by: text("anthropic:claude-sonnet-4-5"),
        items: text(r#"[{"type":"thinking","thinking":"…","signature":"c2ln"}]"#),
    };
    let events = vec![
        Event::ModelReplied {
            frame: FramePath::root(),
            text: text("done"),
            calls: vec![],
            usage: Usage {
                input_tokens: 1_200,
                output_tokens: 7,
                cached_tokens: 1_000,
                cost_nano_usd: 1_370_000,
            },
            model: text("claude-sonnet-4-5-20250929"),
            carried: Some(Box::new(carried)),
        },
        Event::ModelFailed {
            frame: FramePath::root(),
            attempt: 1,
            error: text("429"),
            seen: Seen::ByItsDriver,
            then: AfterModel::SleepUntil { at: at(60) },
        },
        Event::FrameWoken { frame: subagent() },
        Event::WarrantVoided {
            action: act(1),
            reason: text("it changed"),
            interrupt: int(8),
            shown: Some(Box::new(shown())),
        },
        Event::Answered {
            interrupt: int(8),
            status: InterruptStatus::Resolved,
            decisions: vec![Decided {
                action_id: act(1),
                decision: Decision::Edit {
                    edited_action: EditedAction {
                        name: text("pay"),
                        args: params("{}"),
                    },
                },
                params_hash: Some(Digest::of(b"params")),
                grant: None,
                shown: Some(Box::new(shown())),
            }],
            roles: BTreeSet::new(),
            permissions: BTreeSet::new(),
            says: None,
            via: None,
        },
    ];
    check("v2/events.json", &events);
    let mut state = everything_open();
    state.format = SECOND_FORMAT;
    state.actions = [Action {
        shown: Some(Box::new(shown())),
        of_token: true,
        ..action(1, ActionStatus::Held { interrupt: int(1) })
    }]
    .map(|it| (it.id, it))
    .into();
    let run = state.run.as_mut().unwrap();
    run.requester.credential = Credential::Key;
    run.usage = Usage {
        input_tokens: 3,
        output_tokens: 2,
        cached_tokens: 1,
        cost_nano_usd: 9,
    };
    let Phase::Active(active) = &mut run.phase else {
        panic!("it is under way");
    };
    let root = active.frames.get_mut(&FramePath::root()).unwrap();
    root.rests = 2;
    root.phase = FramePhase::Resting {
        until: at(60),
        failures: 2,
    };
    check("v2/head.json", &state);
    let mut definition = definition();
    definition.fallback = vec![text("openai:gpt-4o"), text("ollama:llama3:8b")];
    definition.sampling = Sampling {
        max_output_tokens: Some(4_096),
        temperature_milli: Some(700),
        effort: Some(text("high")),
    };
    let canonical = definition.to_canonical().unwrap();
    let read = decode_definition(&Payload::json(canonical.into_bytes())).unwrap();
    assert_eq!(read.format, SECOND_FORMAT);
    definition.format = SECOND_FORMAT;
    assert_eq!(read, definition);
    check("v2/definition.json", &definition);
}

#[test]
fn builtin_tools_are_stored_so() {
    let runners = Builtin::ALL.map(|it| ToolSpec::builtin(it, Some("/srv/papers")).runner);
    check("v2/runners.json", &runners.to_vec());
    let plain = Definition::new("clerk", "scripted:/srv/clerk.yaml");
    let stored = |it: &Definition| {
        let text = it.to_canonical().unwrap();
        decode_definition(&Payload::json(text.into_bytes())).unwrap()
    };
    assert_eq!(stored(&plain).format, FIRST_FORMAT);
    let with = plain.with_builtin(Builtin::WriteFile, Some("/srv/papers"));
    let read = stored(&with);
    assert_eq!(read.format, SECOND_FORMAT);
    assert_eq!(read.tools, with.tools);
}

#[test]
fn what_a_newer_build_wrote_is_not_read() {
    let newer = |value: serde_json::Value| {
        let mut value = value;
        value["v"] = json!(FORMAT + 1);
        Payload::json(serde_json::to_vec(&value).unwrap())
    };
    let found = FORMAT + 1;
    let damaged = holdpoint_core::Damaged::Newer { found };
    let head = newer(serde_json::to_value(everything_open()).unwrap());
    assert_eq!(decode_head(&head), Err(damaged.clone()));
    let definition = newer(serde_json::to_value(definition()).unwrap());
    assert_eq!(decode_definition(&definition), Err(damaged));
}

#[test]
fn servers_and_their_tools_are_stored_so() {
    let mut definition = Definition::new("clerk", "test");
    for server in crate::mcp::servers() {
        definition = definition.with_mcp_server(server);
    }
    let offer = McpOffer {
        name: text("read"),
        description: text("Reads."),
        input_schema: json!({"type": "object"}),
        hints: McpHints {
            destructive: Some(true),
            ..McpHints::default()
        },
    };
    for server in crate::mcp::servers() {
        definition = definition
            .with_offers(&server, std::slice::from_ref(&offer))
            .unwrap();
    }
    definition.written = Some(Digest::of(b"what was written"));
    let canonical = definition.to_canonical().unwrap();
    let read = decode_definition(&Payload::json(canonical.into_bytes())).unwrap();
    assert_eq!(read.format, FORMAT);
    definition.format = FORMAT;
    assert_eq!(read, definition);
    check("v3/mcp.json", &definition);
}
