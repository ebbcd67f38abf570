//! Tools that are HTTP requests: files that are fine, and what is said of others.

use std::collections::BTreeMap;

use holdpoint_core::{
    HttpBody, HttpHeader, HttpMethod, HttpRequest, Runner, Template, ToolKind, ToolSpec,
    UrlTemplate,
};
use insta::assert_snapshot;

use crate::{folder, read};

/// An agent with one HTTP tool, whose lines the tests replace.
const AGENT: &str = r#"apiVersion: holdpoint/v1
kind: Agent
metadata: {name: clerk}
spec:
  model: {primary: "scripted:scenario.yaml"}
  tools:
    - name: refund
      input_schema: {type: object, properties: {order_id: {type: string}, dry: {type: boolean}}, required: [order_id, dry]}
      http:
        url: https://pay.example.com/orders/{order_id}/refunds
        query: {dry: "{dry}"}
        headers: {Authorization: {secret: PAY_TOKEN}, X-Team: billing}
      lookup: {http: {url: "https://pay.example.com/refunds/by-key/{$key}"}}
"#;

const HEADERS: &str = "{Authorization: {secret: PAY_TOKEN}, X-Team: billing}";
const URL: &str = "https://pay.example.com/orders/{order_id}/refunds";
const LOOKUP: &str = "lookup: {http: {url: \"https://pay.example.com/refunds/by-key/{$key}\"}}";

fn tool_of(text: &str) -> (ToolSpec, Vec<String>) {
    let dir = folder();
    let mut loaded = read(text, dir.path()).unwrap();
    let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    (loaded.definition.tools.remove(0), warnings)
}

fn replaced(from: &str, to: &str) -> String {
    assert!(AGENT.contains(from), "{from}");
    AGENT.replacen(from, to, 1)
}

/// What is said of [`AGENT`] after each of these replacements: problems, or else warnings.
fn said_of_each(cases: &[(&str, &str)]) -> String {
    let dir = folder();
    let mut all = String::new();
    for (from, to) in cases {
        let said = match read(&replaced(from, to), dir.path()) {
            Err(problems) => problems.to_string(),
            Ok(loaded) => {
                let warnings = loaded.warnings.iter();
                let shown: Vec<_> = warnings
                    .map(|warning| format!("warning: {warning}"))
                    .collect();
                assert!(!shown.is_empty(), "nothing is said of {to}");
                shown.join("\n")
            }
        };
        let shown = to.trim_end().replace('\n', "\n# ");
        all.push_str(&format!("# {shown}\n{said}\n\n"));
    }
    all
}

fn request(method: HttpMethod, url: &str, body: HttpBody) -> HttpRequest {
    HttpRequest {
        method,
        url: UrlTemplate::parse(url).unwrap(),
        query: BTreeMap::new(),
        headers: BTreeMap::new(),
        body,
        idempotency_header: None,
        allow_private: vec![],
    }
}

#[test]
fn a_request_is_read_with_its_defaults() {
    let (tool, warnings) = tool_of(AGENT);
    let secret = HttpHeader::Secret {
        name: "PAY_TOKEN".to_owned(),
        prefix: String::new(),
    };
    let pay = HttpRequest {
        query: BTreeMap::from([("dry".to_owned(), Template::parse("{dry}").unwrap())]),
        headers: BTreeMap::from([
            ("Authorization".to_owned(), secret),
            ("X-Team".to_owned(), HttpHeader::Text("billing".to_owned())),
        ]),
        ..request(HttpMethod::Post, URL, HttpBody::Args)
    };
    let look = request(
        HttpMethod::Get,
        "https://pay.example.com/refunds/by-key/{$key}",
        HttpBody::None,
    );
    let expected = Runner::Http {
        request: Box::new(pay),
        lookup: Some(Box::new(look)),
        compensate: None,
    };
    assert_eq!(tool.runner, expected);
    assert!(tool.hooks().lookup && !tool.hooks().compensate);
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn everything_can_be_said_in_both_spellings() {
    let full = |idempotency: &str, allow: &str| {
        let text = replaced(
            "      lookup",
            &format!(
                "      effect: idempotent
      compensate:
        http:
          method: DELETE
          url: http://10.0.0.5:8080/refunds/{{$key}}?epoch={{$epoch}}
          headers: {{Authorization: {{secret: PAY_TOKEN, prefix: \"Bearer \"}}}}
          body: rest
          {idempotency}: Idempotency-Key
          {allow}: [10.0.0.5, \"::1\", Internal.example.com]
      lookup"
            ),
        );
        let Runner::Http { compensate, .. } = tool_of(&text).0.runner else {
            panic!("not a request")
        };
        *compensate.unwrap()
    };
    let url = "http://10.0.0.5:8080/refunds/{$key}?epoch={$epoch}";
    let secret = HttpHeader::Secret {
        name: "PAY_TOKEN".to_owned(),
        prefix: "Bearer ".to_owned(),
    };
    let hosts = ["10.0.0.5", "::1", "Internal.example.com"];
    let expected = HttpRequest {
        headers: BTreeMap::from([("Authorization".to_owned(), secret)]),
        idempotency_header: Some("Idempotency-Key".to_owned()),
        allow_private: hosts.map(str::to_owned).to_vec(),
        ..request(HttpMethod::Delete, url, HttpBody::Rest)
    };
    assert_eq!(full("idempotency_header", "allow_private"), expected);
    assert_eq!(full("idempotencyHeader", "allowPrivate"), expected);
}

#[test]
fn this_machine_may_be_named_where_that_is_allowed() {
    for (host, allow) in [
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "0:0:0:0:0:0:0:1"),
        ("localhost", "LocalHost"),
        ("localhost", "127.0.0.1"),
    ] {
        let url = format!("http://{host}:8080/{{order_id}}\n        allow_private: [\"{allow}\"]");
        let (tool, warnings) = tool_of(&replaced(URL, &url));
        assert!(matches!(tool.runner, Runner::Http { .. }));
        assert_eq!(warnings, Vec::<String>::new());
    }
}

#[test]
fn a_request_may_say_that_it_takes_no_steps() {
    let (tool, warnings) = tool_of(&replaced(
        LOOKUP,
        &format!("stepped: false\n      {LOOKUP}"),
    ));
    assert_eq!(tool.kind, ToolKind::Plain);
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn the_body_follows_the_method() {
    for (method, body) in [
        ("GET", HttpBody::None),
        ("DELETE", HttpBody::None),
        ("POST", HttpBody::Args),
        ("PUT", HttpBody::Args),
        ("PATCH", HttpBody::Args),
    ] {
        let text = replaced(
            "      http:\n",
            &format!("      http:\n        method: {method}\n"),
        );
        let Runner::Http { request, .. } = tool_of(&text).0.runner else {
            panic!("not a request")
        };
        assert_eq!((request.method.as_str(), request.body), (method, body));
    }
}

#[test]
fn requests_are_checked() {
    let cases = [
        ("        url: https", "        uri: https"),
        ("        query:", "        method: get\n        query:"),
        ("        query:", "        method: HEAD\n        query:"),
        ("        query:", "        body: all\n        query:"),
        ("        query:", "        retries: 3\n        query:"),
        (URL, "ftp://pay.example.com/"),
        (URL, "https://{order_id}.example.com/"),
        (URL, "https://pay.example.com:{order_id}/"),
        (URL, "https://user:pass@pay.example.com/"),
        (URL, "https://pay example.com/"),
        (URL, "https://pay.example.com/a/../b"),
        (URL, "\"https://pay.example.com/#{order_id}\""),
        (URL, "https://pay.example.com/%{order_id}"),
        (URL, "https://pay.example.com/ä"),
        (URL, "https://pay.example.com/{order_id"),
        (URL, "https://pay.example.com/{$run}"),
        (URL, "https://pay.example.com/{orderid}"),
        (URL, "https://pay.example.com/{customer}"),
        (URL, "http://127.0.0.1:8080/"),
        (URL, "http://localhost:8080/"),
        (URL, "http://[fd00::1]/"),
        (URL, "\"\""),
        ("{dry: \"{dry}\"}", "{dry: {dry}}"),
        ("{dry: \"{dry}\"}", "{dry: true}"),
        ("{dry: \"{dry}\"}", "{dry: \"{dri}\"}"),
        ("{dry: \"{dry}\"}", "[dry]"),
        (
            "      http:\n",
            "      http:\n        allow_private: [10.0.0.0/8, \"http://a\", \"a:80\", 7]\n",
        ),
        (
            "      http:\n",
            "      http:\n        allow_private: [a]\n        allowPrivate: [b]\n",
        ),
        ("      http:\n", "      stepped: true\n      http:\n"),
        ("      http:\n", "      htp:\n"),
        ("      http:\n", "      command: [refund]\n      http:\n"),
        (LOOKUP, "lookup: [./refund, --lookup]"),
        (LOOKUP, "lookup: {url: \"https://pay.example.com/\"}"),
        (
            LOOKUP,
            "lookup: {http: {url: \"https://pay.example.com/{$id}\"}}",
        ),
        (LOOKUP, "lookup: {}"),
    ];
    assert_snapshot!(said_of_each(&cases));
}

#[test]
fn headers_are_checked_and_secrets_are_not_repeated() {
    let cases = [
        (HEADERS, "{Authorization: Bearer hunter2}"),
        (HEADERS, "{X-Api-Key: hunter2}"),
        (HEADERS, "{Authorization: {secret: }}"),
        (HEADERS, "{Authorization: {secret: \"\"}}"),
        (HEADERS, "{Authorization: {secret: \"Bearer hunter2\"}}"),
        (HEADERS, "{Authorization: {secret: 2FA}}"),
        (HEADERS, "{Authorization: {prefix: \"Bearer \"}}"),
        (HEADERS, "{Authorization: {secret: T, prefix: \"a\\nb\"}}"),
        (HEADERS, "{Authorization: {secret: T, value: x}}"),
        (HEADERS, "{X-Order: \"{order_id}\"}"),
        (HEADERS, "{X-Key: \"{$key}\"}"),
        (HEADERS, "{X-Team: \"a\\r\\nb: c\"}"),
        (HEADERS, "{X-Team: 7}"),
        (HEADERS, "{X-Team: [a]}"),
        (HEADERS, "{\"X Team\": a}"),
        (HEADERS, "{Host: evil.example.com}"),
        (HEADERS, "{Content-Length: \"0\"}"),
        (HEADERS, "{X-Team: a, x-team: b}"),
        (HEADERS, "{X-Team: a}\n        idempotency_header: x-team"),
        (HEADERS, "{X-Team: a}\n        idempotency_header: Host"),
        (HEADERS, "[X-Team]"),
    ];
    let said = said_of_each(&cases);
    for line in said.lines().filter(|line| !line.starts_with('#')) {
        assert!(!line.contains("hunter2"), "{line}");
    }
    assert_snapshot!(said);
}

#[test]
fn what_is_allowed_and_probably_not_meant_is_a_warning() {
    let cases = [
        ("required: [order_id, dry]", "required: [order_id]"),
        (
            "https://pay.example.com/orders",
            "http://pay.example.com/orders",
        ),
        (LOOKUP, "timeout: 5s"),
        (LOOKUP, "effect: idempotent"),
    ];
    assert_snapshot!(said_of_each(&cases));
    let keyed = "effect: idempotent\n      compensate: {http: {url: \"https://a.example/{$key}\"}}";
    let text = replaced(LOOKUP, keyed).replace(
        "        query",
        "        idempotency_header: Idempotency-Key\n        query",
    );
    assert_eq!(tool_of(&text).1, Vec::<String>::new());
}

#[test]
fn a_commands_hooks_are_commands() {
    let dir = folder();
    let text = crate::AGENT.replace(
        "lookup: [ls]",
        "lookup: {http: {url: \"https://a.example/\"}}",
    );
    let said = read(&text, dir.path()).unwrap_err().to_string();
    assert_snapshot!(said, @r"
    agent.yaml:12:15: spec.tools[delete_file].lookup: the tool is a `command`, so its `lookup` must be one too
      help: list the program and its arguments, for instance [./refund, --fast]
    ");
}
