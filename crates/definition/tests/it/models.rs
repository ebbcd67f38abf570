//! Models of providers, in agents' files and in a server's.

use std::path::Path;

use holdpoint_core::{
    Api, Definition, HttpHeader, KeyFrom, LimitField, Price, Provider, Providers, Sampling, Span,
};
use holdpoint_definition::{Names, Problems, Setting, load_in, load_server};
use insta::assert_snapshot;

use crate::{AGENT, SUPERAGENT, folder, read, read_named, said_by};

const SERVER: &str = r#"apiVersion: holdpoint/v1
kind: Server
spec:
  providers:
    azure:
      api: openai-chat
      base_url: https://acme.openai.azure.com/openai/deployments/gpt
      key: {env: AZURE_KEY}
      key_header: api-key
      query: {api-version: "2024-10-21"}
      headers: {X-Team: shop, X-Tenant: {secret: TENANT, prefix: "t "}}
      limit_field: max_completion_tokens
      silence: 5m
      prices: {gpt: {input: 2.5, output: 10}}
    claude:
      api: anthropic
      base_url: http://llm.example.com
      insecure: true
      key: {file: claude.key}
    openai:
      prices: {gpt-4o: {input: 2.5, output: 10, cached_input: 1.25}}
    ollama: {api: openai-chat, base_url: "http://gpu:11434/v1", key: none}
  models: {gpt-4o: "azure:gpt", small: "ollama:llama3:8b"}
"#;

fn server(folder: &Path) -> Names {
    let file = folder.join("server.yaml");
    std::fs::write(&file, SERVER).unwrap();
    load_server(&file).unwrap().names
}

fn with(names: &Names, folder: &Path, model: &str) -> Result<Definition, Problems> {
    let file = folder.join("agent.yaml");
    let text = AGENT.replace("{primary: \"scripted:scenario.yaml\"}", model);
    std::fs::write(&file, text).unwrap();
    let search = None;
    load_in(&file, &Setting { names, search }).map(|loaded| loaded.definition)
}

#[test]
fn a_server_s_file_adds_providers_and_changes_those_that_everybody_knows() {
    let dir = folder();
    let names = server(dir.path());
    let usual = Providers::default();
    let price = |cached_input| Price {
        input: 2_500_000,
        output: 10_000_000,
        cached_input,
    };
    let azure = Provider {
        key_header: Some("api-key".to_owned()),
        query: [("api-version".to_owned(), "2024-10-21".to_owned())].into(),
        headers: [
            ("X-Team".to_owned(), HttpHeader::Text("shop".to_owned())),
            (
                "X-Tenant".to_owned(),
                HttpHeader::Secret {
                    name: "TENANT".to_owned(),
                    prefix: "t ".to_owned(),
                },
            ),
        ]
        .into(),
        limit_field: LimitField::MaxCompletionTokens,
        silence: Span::from_secs(300),
        prices: [("gpt".to_owned(), price(2_500_000))].into(),
        ..Provider::new(
            Api::OpenAiChat,
            "https://acme.openai.azure.com/openai/deployments/gpt",
        )
        .with_key_variable("AZURE_KEY")
    };
    let claude = Provider {
        insecure: true,
        key: KeyFrom::File(dir.path().join("claude.key")),
        ..Provider::new(Api::Anthropic, "http://llm.example.com")
    };
    let openai = Provider {
        prices: [("gpt-4o".to_owned(), price(1_250_000))].into(),
        ..usual.get("openai").unwrap().clone()
    };
    let expected = usual
        .with("azure", azure)
        .with("claude", claude)
        .with("openai", openai)
        .with(
            "ollama",
            Provider::new(Api::OpenAiChat, "http://gpu:11434/v1"),
        );
    assert_eq!(names.providers, expected);
    assert_eq!(names.models["small"], "ollama:llama3:8b");
}

#[test]
fn an_agent_says_which_models_answer_and_how_they_are_asked() {
    let dir = folder();
    let names = server(dir.path());
    let definition = with(
        &names,
        dir.path(),
        "{primary: gpt-4o, fallback: [small, \"claude:opus\"], max_output_tokens: 1000, temperature: 0.7, effort: low}",
    )
    .unwrap();
    assert_eq!(definition.model, "azure:gpt");
    assert_eq!(definition.fallback, ["ollama:llama3:8b", "claude:opus"]);
    let sampling = Sampling {
        max_output_tokens: Some(1_000),
        temperature_milli: Some(700),
        effort: Some("low".to_owned()),
    };
    assert_eq!(definition.sampling, sampling);
    let one = with(
        &names,
        dir.path(),
        "{primary: \"openai:gpt-4o\", fallback: small}",
    )
    .unwrap();
    assert_eq!(one.fallback, ["ollama:llama3:8b"]);
}

#[test]
fn a_superagent_file_may_name_a_provider_and_a_subagent_inherits_how_its_model_is_asked() {
    let dir = folder();
    let text = SUPERAGENT.replace("primary: gpt-4o", "primary: openai:gpt-4o");
    let loaded = read_named(&text, dir.path()).unwrap();
    assert_eq!(loaded.definition.model, "openai:gpt-4o");
    let sub = "  subagents: [{name: a, description: b, system_prompt: c}]\n";
    let model = "{primary: \"openai:gpt-4o\", fallback: \"ollama:x\", temperature: 0}";
    let text = AGENT.replace("{primary: \"scripted:scenario.yaml\"}", model) + sub;
    let definition = read(&text, dir.path()).unwrap().definition;
    let below = &definition.subagents[0].definition;
    assert_eq!(
        (&below.model, &below.fallback, &below.sampling),
        (
            &definition.model,
            &definition.fallback,
            &definition.sampling
        )
    );
    assert_eq!(below.sampling.temperature_milli, Some(0));
}

#[test]
fn every_problem_of_a_model_is_told_with_its_line_and_its_remedy() {
    let all: Vec<String> = [
        "{primary: gpt-4o}",
        "{primary: \"llama3:8b\"}",
        "{primary: \"opanai:gpt-4o\"}",
        "{primary: \"openai:\"}",
        "{fallback: \"openai:gpt-4o\"}",
        "{primary: \"openai:a\", fallback: [\"openai:a\", \"openai:b\", \"openai:b\"]}",
        "{primary: \"openai:a\", fallback: {a: b}}",
        "{primary: \"openai:a\", max_output_tokens: 0, temperature: 2.5, effort: 7}",
        "{primary: \"openai:a\", temperature: 0.12345}",
        "{primary: \"openai:a\", fallback: \"anthropic:b\", effort: medum}",
        "{primary: \"openai:a\", temprature: 1}",
    ]
    .into_iter()
    .map(|model| {
        let text = AGENT.replace("{primary: \"scripted:scenario.yaml\"}", model);
        format!("{model}\n{}", said_by(read, &text))
    })
    .collect();
    assert_snapshot!(all.join("\n\n"));
}

#[test]
fn a_tool_that_no_provider_would_take_is_a_problem_only_where_one_is_asked() {
    let dir = folder();
    let text = format!("{AGENT}  default: allow\n",);
    let renamed = |text: &str| text.replace("- name: read_file", "- name: files.read");
    let provided = text.replace("scripted:scenario.yaml", "openai:gpt-4o");
    assert!(read(&provided, dir.path()).is_ok());
    let message = read(&renamed(&provided), dir.path())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("`openai:gpt-4o` takes no tool that is called `files.read`"),
        "{message}"
    );
}
