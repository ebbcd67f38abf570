//! The bytes of every frame, as the seed's examples have them.

use holdpoint_core::{FieldKind, InputField, InterruptId, RunId, Timestamp};
use holdpoint_server::frames::{
    A2ui, CallStatus, Event, Interrupt, InterruptState, Legacy, beat, checkpoint_id,
};
use serde_json::json;

const NOW: Timestamp = Timestamp::from_millis(1_746_000_000_000);

pub(crate) fn question() -> InterruptState {
    InterruptState {
        session_id: "session-123".to_owned(),
        agent_name: "approval-agent".to_owned(),
        reason: "Please confirm: 即将删除 1,234 条记录,此操作不可逆。".to_owned(),
        fields: vec![InputField {
            name: "confirm".to_owned(),
            kind: FieldKind::Confirm,
            label: "确认删除".to_owned(),
            required: true,
            options: Vec::new(),
        }],
        timestamp: 1_746_000_000,
        checkpoint_id: checkpoint_id("approval-agent", "session-123", NOW),
        interrupt_id: None,
    }
}

fn legacy(act: impl FnOnce(&mut Legacy, &mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    act(&mut Legacy::default(), &mut out);
    String::from_utf8(out).unwrap()
}

fn a2ui(event: &Event<'_>) -> String {
    let mut out = Vec::new();
    A2ui::default().send(&mut out, NOW, event);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_chat_that_stops_for_a_question_looks_as_described() {
    let sent = legacy(|legacy, out| {
        legacy.text(out, "我将要删除");
        legacy.text(out, "以下过期用户数据:共 1,234 条记录。");
        legacy.interrupt(out, &question());
        legacy.done(out);
    });
    assert_eq!(
        sent,
        concat!(
            "data: 我将要删除\n\n",
            "data: 以下过期用户数据:共 1,234 条记录。\n\n",
            "data: \0INTERRUPT:{\"session_id\":\"session-123\",\"agent_name\":\"approval-agent\",",
            "\"reason\":\"Please confirm: 即将删除 1,234 条记录,此操作不可逆。\",",
            "\"fields\":[{\"name\":\"confirm\",\"type\":\"confirm\",\"label\":\"确认删除\",\"required\":true}],",
            "\"timestamp\":1746000000,\"checkpoint_id\":\"approval-agent_session-123_1746000000000000000\"}\n\n",
            "data: [DONE]\n\n",
        )
    );
}

#[test]
fn the_byte_before_an_interrupt_is_a_raw_nul() {
    let sent = legacy(|legacy, out| legacy.interrupt(out, &question()));
    assert_eq!(&sent.as_bytes()[..17], b"data: \x00INTERRUPT:");
}

#[test]
fn a_question_has_its_fields_even_if_there_are_none_and_its_id_at_the_end() {
    let state = InterruptState {
        fields: Vec::new(),
        interrupt_id: Some(InterruptId::from_bytes([1; 16])),
        ..question()
    };
    let json = serde_json::to_string(&state).unwrap();
    assert!(json.contains(r#""fields":[],"timestamp""#), "{json}");
    let end = r#"0000","interrupt_id":"int_01010101010101010101010101010101"}"#;
    assert!(json.ends_with(end), "{json}");
    assert_eq!(
        serde_json::from_str::<InterruptState>(&json).unwrap(),
        state
    );
}

#[test]
fn fields_have_options_only_if_there_are_any() {
    let field = |kind, options: &[&str]| InputField {
        name: "n".to_owned(),
        kind,
        label: "L".to_owned(),
        required: false,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    };
    assert_eq!(
        serde_json::to_string(&[
            field(FieldKind::Text, &[]),
            field(FieldKind::Select, &["a", "b"])
        ])
        .unwrap(),
        r#"[{"name":"n","type":"text","label":"L","required":false},{"name":"n","type":"select","label":"L","required":false,"options":["a","b"]}]"#
    );
}

#[test]
fn an_error_is_a_text_in_a_frame_of_its_own() {
    let sent = legacy(|legacy, out| {
        legacy.text(out, "so far");
        legacy.error(out, "no\nmodel\r");
        legacy.text(out, "\nmore");
    });
    assert_eq!(
        sent,
        "data: so far\n\ndata: [error] no\ndata: model\ndata: \n\ndata: \ndata: more\n\n"
    );
}

#[test]
fn a_beat_is_a_comment() {
    let mut out = Vec::new();
    beat(&mut out);
    assert_eq!(out, b": \n\n");
    assert_eq!(crate::sse::read(&out), []);
    assert_eq!(crate::seed_client::read(&out), []);
}

#[test]
fn every_event_has_its_name_and_one_line() {
    let fields = question().fields;
    let interrupt = |interrupt_id, checkpoint_id, run_id| {
        Event::Interrupt(Interrupt {
            reason: "Sure?",
            fields: &fields,
            interrupt_id,
            checkpoint_id,
            run_id,
        })
    };
    let field = r#"{"name":"confirm","type":"confirm","label":"确认删除","required":true}"#;
    let args = json!({"path": "/tmp/a"});
    let call = |status| Event::ToolCall {
        id: "c1",
        name: "rm",
        args: &args,
        status,
    };
    let result = |is_error| Event::ToolResult {
        id: "c1",
        name: "rm",
        result: "gone",
        is_error,
    };
    let progress = |current, total| Event::Progress {
        step: "half way",
        current,
        total,
    };
    let switch = Event::AgentSwitch {
        from_agent: "a",
        to_agent: "b",
    };
    let cases = [
        (
            Event::Thinking { content: "hm" },
            r#"{"content":"hm"}"#.to_owned(),
        ),
        (
            call(CallStatus::Calling),
            r#"{"id":"c1","name":"rm","arguments":{"path":"/tmp/a"},"status":"calling"}"#
                .to_owned(),
        ),
        (
            call(CallStatus::Success),
            r#"{"id":"c1","name":"rm","arguments":{"path":"/tmp/a"},"status":"success"}"#
                .to_owned(),
        ),
        (
            call(CallStatus::Error),
            r#"{"id":"c1","name":"rm","arguments":{"path":"/tmp/a"},"status":"error"}"#.to_owned(),
        ),
        (
            result(false),
            r#"{"id":"c1","name":"rm","result":"gone","is_error":false}"#.to_owned(),
        ),
        (
            result(true),
            r#"{"id":"c1","name":"rm","result":"gone","is_error":true}"#.to_owned(),
        ),
        (
            Event::CodeBlock {
                language: "rust",
                code: "fn a() {\n}\n",
            },
            r#"{"language":"rust","code":"fn a() {\n}\n"}"#.to_owned(),
        ),
        (
            interrupt(None, None, None),
            format!(r#"{{"reason":"Sure?","fields":[{field}]}}"#),
        ),
        (
            interrupt(
                Some(InterruptId::from_bytes([1; 16])),
                Some("c"),
                Some(RunId::from_bytes([2; 16])),
            ),
            format!(
                r#"{{"reason":"Sure?","fields":[{field}],"interrupt_id":"int_{}","checkpoint_id":"c","run_id":"run_{}"}}"#,
                "01".repeat(16),
                "02".repeat(16)
            ),
        ),
        (
            Event::Error {
                code: "chat_failed",
                message: "no",
            },
            r#"{"code":"chat_failed","message":"no"}"#.to_owned(),
        ),
        (Event::Done, "null".to_owned()),
        (progress(None, None), r#"{"step":"half way"}"#.to_owned()),
        (
            progress(Some(1), Some(2)),
            r#"{"step":"half way","current":1,"total":2}"#.to_owned(),
        ),
        (switch, r#"{"from_agent":"a","to_agent":"b"}"#.to_owned()),
    ];
    for (event, data) in cases {
        let name = event.name();
        let line = format!(r#"{{"type":"{name}","timestamp":1746000000000,"data":{data}}}"#);
        assert_eq!(a2ui(&event), format!("event: {name}\ndata: {line}\n\n"));
    }
}

#[test]
fn a_question_by_name_says_what_the_state_says() {
    let state = question();
    let sent = a2ui(&Event::Interrupt(Interrupt::from(&state)));
    assert_eq!(
        sent,
        concat!(
            "event: interrupt\ndata: {\"type\":\"interrupt\",\"timestamp\":1746000000000,",
            "\"data\":{\"reason\":\"Please confirm: 即将删除 1,234 条记录,此操作不可逆。\",",
            "\"fields\":[{\"name\":\"confirm\",\"type\":\"confirm\",\"label\":\"确认删除\",\"required\":true}],",
            "\"checkpoint_id\":\"approval-agent_session-123_1746000000000000000\"}}\n\n",
        )
    );
}

#[test]
fn text_has_what_is_new_and_all_there_is() {
    let (mut a2ui, mut out) = (A2ui::default(), Vec::new());
    a2ui.text(&mut out, NOW, "我将要删除");
    a2ui.text(&mut out, Timestamp::from_millis(1_746_000_000_050), "以下");
    assert_eq!(
        str::from_utf8(&out).unwrap(),
        concat!(
            "event: text\ndata: {\"type\":\"text\",\"timestamp\":1746000000000,\"data\":{\"content\":\"我将要删除\",\"delta\":\"我将要删除\"}}\n\n",
            "event: text\ndata: {\"type\":\"text\",\"timestamp\":1746000000050,\"data\":{\"content\":\"我将要删除以下\",\"delta\":\"以下\"}}\n\n",
        )
    );
}
