//! Agents whose models are provided over HTTP: by a server that says what it is told to, in every API.

use std::{fs, process::Stdio, time::Duration};

use expectrl::{Expect, session::OsSession};
use holdpoint_test_provider::{Answer, Api, Asked, Gate, Said, Server, said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    served::Served,
    support::{World, asked, pending, tool_contents},
};

const KEY: &str = "sk-very-secret";

/// A world in which the provider of this API is this server, and has a key.
fn world(api: Api, server: &Server) -> World {
    let mut world = World::new();
    let base = format!("{}{}", server.url(), api.provider().1);
    let (base_url, key) = match api {
        Api::Chat | Api::Responses => ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
        Api::Anthropic => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    };
    world.set(base_url, &base);
    world.set(key, KEY);
    world
}

fn reference(api: Api) -> String {
    format!("{}:test", api.provider().0)
}

/// An agent with the tool `act`, which notes its call in the ledger, and with this model.
fn agent(world: &World, gate: &str, model: &str) -> String {
    let file = world.agent("clerk", gate, "  - say: x\n");
    let text = fs::read_to_string(world.path().join(&file)).unwrap();
    let text = text.replace("{primary: 'scripted:scenario.yaml'}", model);
    world.write(&file, &text);
    file
}

fn stream(api: Api, said: &Said) -> Answer {
    Answer::stream(said.in_api(api))
}

/// How many results of calls a request carries.
fn results(asked: &Asked) -> usize {
    let text = asked.body.to_string();
    [
        "\"role\":\"tool\"",
        "\"function_call_output\"",
        "\"tool_result\"",
    ]
    .map(|mark| text.matches(mark).count())
    .iter()
    .sum()
}

/// Calls `act`, and then says that it is done.
fn acting(api: Api) -> Vec<Answer> {
    vec![
        stream(
            api,
            &said("I act. ").calling("call_1", "act", &["{\"n\"", ": 1}"]),
        ),
        stream(api, &said("It is done.")),
    ]
}

fn run<'a>(file: &'a str, thread: &'a str) -> [&'a str; 6] {
    ["run", file, "--input", "act", "--thread", thread]
}

fn primary(api: Api) -> String {
    format!("{{primary: '{}'}}", reference(api))
}

#[test]
fn a_run_over_every_api_is_killed_while_it_asks_and_goes_on_elsewhere_with_one_effect() {
    for api in Api::ALL {
        let server = Server::playing(acting(api));
        let world = world(api, &server);
        let file = agent(&world, "true", &primary(api));
        let mut command = world.command();
        command.args(run(&file, "a"));
        let mut session = OsSession::spawn(command).unwrap();
        session.set_expect_timeout(Some(Duration::from_secs(20)));
        session.expect("[a]pprove").unwrap();
        assert_eq!(world.effects(), 0, "{api:?}");
        let pid = Pid::from_raw(session.get_process().pid().as_raw()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        session.get_process().wait().unwrap();
        drop(session);
        let done = world.json(0, &["resume", "a", "--approve"]);
        assert_eq!(done["status"], "finished", "{api:?}");
        assert_eq!(done["output"], "It is done.");
        assert_eq!(world.effects(), 1, "{api:?}");
        // The arguments are what the model wrote, to the byte.
        let calls = &done["messages"][1]["tool_calls"];
        assert_eq!(calls[0]["arguments"], "{\"n\": 1}", "{done}");
        let asked = server.asked();
        assert_eq!(
            asked.iter().map(results).collect::<Vec<_>>(),
            [0, 1],
            "{api:?}"
        );
    }
}

#[test]
fn a_run_that_is_killed_in_the_middle_of_an_answer_asks_again_and_does_nothing_twice() {
    for api in Api::ALL {
        let [acts, done] = acting(api).try_into().unwrap();
        let gate = Gate::new();
        let slow = done.clone().waiting_after(30, &gate);
        let server = Server::playing(vec![acts, slow, done]);
        let world = world(api, &server);
        let file = agent(&world, "false", &primary(api));
        let mut running = world
            .command()
            .args(run(&file, "a"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        server.wait_for(2);
        running.kill().unwrap();
        running.wait().unwrap();
        gate.open();
        world.hold(&["recover"]).ends(0);
        let done = world.json(0, &["show", "a"]);
        assert_eq!(done["output"], "It is done.", "{api:?}");
        assert_eq!((world.effects(), server.asked().len()), (1, 3), "{api:?}");
    }
}

#[test]
fn a_provider_that_wants_an_hour_lets_the_run_sleep() {
    let body = r#"{"error":{"message":"not now","type":"rate_limit_error"}}"#;
    for api in Api::ALL {
        let server = Server::playing(vec![
            Answer::error(429, body).with_header("retry-after", "3600"),
        ]);
        let world = world(api, &server);
        let file = agent(&world, "true", &primary(api));
        let sleeping = world.json(3, &run(&file, "a"));
        assert_eq!(sleeping["status"], "sleeping", "{api:?}: {sleeping}");
        assert_eq!(sleeping["cause"], "rate_limit", "{api:?}: {sleeping}");
        // Nobody who looks after it asks too early.
        world.hold(&["recover"]).ends(0);
        assert_eq!(server.asked().len(), 1, "{api:?}");
    }
}

#[test]
fn what_is_over_in_a_moment_is_tried_again() {
    for api in Api::ALL {
        let broken = stream(api, &said("so much to say")).broken_after(200);
        let server = Server::playing(vec![
            Answer::error(503, ""),
            broken,
            stream(api, &said("It is done.")),
        ]);
        let world = world(api, &server);
        let file = agent(&world, "true", &primary(api));
        let done = world.json(0, &run(&file, "a"));
        assert_eq!(done["output"], "It is done.", "{api:?}");
        assert_eq!(server.asked().len(), 3, "{api:?}");
    }
}

#[test]
fn calls_of_an_answer_that_was_cut_off_are_not_made() {
    for api in Api::ALL {
        let cut = said("So ")
            .calling("call_1", "act", &["{\"n\":1}"])
            .cut_off();
        let server = Server::playing(vec![stream(api, &cut), stream(api, &said("Sorry."))]);
        let world = world(api, &server);
        let file = agent(&world, "false", &primary(api));
        let done = world.json(0, &run(&file, "a"));
        assert_eq!(done["output"], "Sorry.", "{api:?}");
        assert_eq!(world.effects(), 0, "{api:?}");
        assert!(tool_contents(&done)[0].contains("cut off"), "{done}");
    }
}

#[test]
fn arguments_that_are_no_json_are_mended_by_the_model() {
    for api in Api::ALL {
        for broken in ["{\"n\":", "[1]", "{\"n\": 1} }", "{\"n\": \"one\"}"] {
            let server = Server::playing(vec![
                stream(api, &said("").calling("call_1", "act", &[broken])),
                stream(api, &said("").calling("call_2", "act", &["{\"n\":1}"])),
                stream(api, &said("It is done.")),
            ]);
            let world = world(api, &server);
            let file = agent(&world, "false", &primary(api));
            let done = world.json(0, &run(&file, "a"));
            assert_eq!(done["output"], "It is done.", "{api:?} {broken}");
            assert_eq!(world.effects(), 1, "{api:?} {broken}");
            let first = &done["messages"][1]["tool_calls"][0]["arguments"];
            assert_eq!(first, broken, "{api:?}");
            let asked = server.asked();
            assert_eq!(asked.iter().map(results).collect::<Vec<_>>(), [0, 1, 2]);
        }
    }
}

#[test]
fn another_model_answers_where_the_first_cannot() {
    let down = Server::playing(vec![Answer::error(503, "")]);
    let server = Server::playing(vec![stream(Api::Anthropic, &said("It is done."))]);
    let mut world = world(Api::Anthropic, &server);
    world.set("OPENAI_BASE_URL", &down.url());
    let model = "{primary: 'openai:a', fallback: 'anthropic:b'}";
    let file = agent(&world, "true", model);
    let done = world.json(0, &run(&file, "a"));
    assert_eq!(done["output"], "It is done.");
    assert_eq!((down.asked().len(), server.asked().len()), (1, 1));
    // Who it was stands in the trace.
    let trace = world.hold(&["trace", "a", "--json"]).ends(0);
    assert!(
        trace.stdout.contains("anthropic:test-1"),
        "{}",
        trace.stdout
    );
}

#[test]
fn a_key_is_neither_stored_nor_shown_nor_passed_on() {
    let error = format!(r#"{{"error":{{"message":"no such key: {KEY}"}}}}"#);
    for api in Api::ALL {
        let [acts, done] = acting(api).try_into().unwrap();
        let refused = Answer::error(400, &error);
        let server = Server::playing(vec![acts, refused, done]);
        let world = world(api, &server);
        let file = agent(&world, "false", &primary(api));
        let text = fs::read_to_string(world.path().join(&file)).unwrap();
        // The tool says all that it sees.
        let text = text.replace("[holdpoint-example-ledger, pay-once]", "[sh, -c, env]");
        world.write(&file, &text);
        let asking = world
            .hold(&[&run(&file, "a")[..], &["--json"]].concat())
            .ends(3);
        assert!(
            asking.stdout.contains("no such key: [secret]"),
            "{asking:?}"
        );
        let done = world.hold(&["resume", "a", "--approve"]).ends(0);
        let shown = world.hold(&["show", "a", "--json"]).ends(0);
        let traced = world.hold(&["trace", "a"]).ends(0);
        assert!(shown.stdout.contains("HOLDPOINT_TOOL=act"), "{shown:?}");
        for said in [asking, done, shown, traced] {
            assert!(
                !said.stdout.contains(KEY) && !said.stderr.contains(KEY),
                "{said:?}"
            );
        }
        for entry in fs::read_dir(world.path()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap_or_default();
            let has = bytes.windows(KEY.len()).any(|it| it == KEY.as_bytes());
            assert!(!has, "{}", path.display());
        }
    }
}

#[test]
fn without_a_key_nothing_is_started_and_a_check_says_so() {
    let world = World::new();
    let file = agent(&world, "true", "{primary: 'openai:gpt-4o'}");
    let refused = world.hold(&run(&file, "a")).ends(2);
    assert!(
        refused
            .stderr
            .contains("the environment has no `OPENAI_API_KEY`"),
        "{refused:?}"
    );
    assert!(!world.path().join("holdpoint.db").exists());
    let checked = world.hold(&["check", "--strict", &file]).ends(0);
    assert!(
        checked.stderr.contains("warning: clerk/agent.yaml"),
        "{checked:?}"
    );
    assert!(checked.stderr.contains("`OPENAI_API_KEY`"), "{checked:?}");
    // One that has another behind it may be asked without.
    let file = agent(
        &world,
        "true",
        "{primary: 'openai:gpt-4o', fallback: 'ollama:x'}",
    );
    let checked = world.json(0, &["check", &file]);
    assert_eq!(checked["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn what_could_not_be_asked_is_said_before_anything_is_started() {
    let mut world = World::new();
    world.set("OPENAI_API_KEY", KEY);
    world.set("OPENAI_BASE_URL", "127.0.0.1:8000/v1");
    let file = agent(&world, "true", "{primary: 'openai:gpt-4o'}");
    let refused = world.hold(&run(&file, "a")).ends(2);
    assert!(
        refused
            .stderr
            .contains("`openai` cannot be asked: `OPENAI_BASE_URL` cannot be used"),
        "{refused:?}"
    );
    assert!(!world.path().join("holdpoint.db").exists());
    // A server may have other agents, and starts.
    let served = Served::start(&world, &["--dev", &file]);
    let warned = served
        .said
        .iter()
        .any(|line| line.contains("warning") && line.contains("`OPENAI_BASE_URL` cannot be used"));
    assert!(warned, "{:?}", served.said);
}

#[test]
fn a_key_may_have_space_around_it() {
    let server = Server::playing(vec![stream(Api::Chat, &said("Hello."))]);
    let mut world = world(Api::Chat, &server);
    world.set("OPENAI_API_KEY", &format!("{KEY}\n"));
    let file = agent(&world, "true", "{primary: 'openai:test'}");
    world.hold(&run(&file, "a")).ends(0);
}

#[test]
fn names_and_providers_of_a_configuration_count_for_every_command() {
    let server = Server::playing(acting(Api::Chat));
    let world = World::new();
    let config = format!(
        "apiVersion: holdpoint/v1\nkind: Server\nspec:\n  providers:\n    own:\n      api: openai-chat\n      base_url: {}/v1\n      key: {{file: own.key}}\n      key_header: api-key\n  models: {{gpt-4o: 'own:best'}}\n",
        server.url()
    );
    world.write("conf/server.yaml", &config);
    world.write("conf/own.key", &format!("{KEY}\n"));
    let file = agent(&world, "true", "{primary: gpt-4o}");
    let unknown = world.hold(&run(&file, "a")).ends(2);
    assert!(
        unknown.stderr.contains("no model is called `gpt-4o` here"),
        "{unknown:?}"
    );
    let with = |args: &[&str]| world.hold(&[args, &["--config", "conf/server.yaml"]].concat());
    with(&["check", "--strict", &file]).ends(0);
    let asking = with(&run(&file, "a")).ends(3);
    assert!(
        asking.stdout.contains("--config conf/server.yaml"),
        "{asking:?}"
    );
    // Without it nobody knows whom to ask.
    let refused = world.hold(&["resume", "a", "--approve"]);
    assert!(
        refused
            .stderr
            .contains("nobody provides the model `own:best`"),
        "{refused:?}"
    );
    assert_eq!(world.effects(), 0);
    let mut command = world.command();
    command.env("HOLDPOINT_CONFIG", "conf/server.yaml");
    let done = command.args(["resume", "a", "--approve"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(world.effects(), 1);
    let asked = server.asked();
    assert_eq!(asked[0].headers["api-key"], KEY);
    assert_eq!(asked[0].body["model"], "best");
}

#[test]
fn another_model_may_be_named_on_the_command_line() {
    let server = Server::playing(vec![stream(Api::Chat, &said("Hello."))]);
    let world = world(Api::Chat, &server);
    let file = agent(
        &world,
        "true",
        "{primary: 'anthropic:opus', fallback: 'ollama:x'}",
    );
    let args = [&run(&file, "a")[..], &["--model", "openai:small"]].concat();
    assert_eq!(world.json(0, &args)["output"], "Hello.");
    assert_eq!(server.asked()[0].body["model"], "small");
    let args = [&run(&file, "b")[..], &["--model", "small"]].concat();
    let refused = world.hold(&args).ends(2);
    assert!(
        refused.stderr.contains("write `PROVIDER:MODEL`"),
        "{refused:?}"
    );
}

/// Three tools that say what they were called with, in a file of an agent with these gates and whatever comes after.
fn scenario_agent(world: &World, api: Api, rest: &str) {
    let tool = |name: &str| {
        format!(
            "    - {{name: {name}, effect: read, command: [cat], input_schema: {{type: object}}}}\n"
        )
    };
    let tools: String = ["sample_tool", "get_weather", "get_soccer_scores"]
        .map(tool)
        .concat();
    world.write(
        "deep.yaml",
        &format!(
            "apiVersion: holdpoint/v1\nkind: Agent\nmetadata: {{name: deep}}\nspec:\n  model: {}\n  system_prompt: You are the agent.\n  tools:\n{tools}{rest}",
            primary(api)
        ),
    );
}

/// Calls all three at once, and then says that it is done.
fn all_three(api: Api, asked: &Asked) -> Answer {
    let call =
        |said: Said, name: &str| said.calling(&format!("call_{name}"), name, &["{\"x\":", "1}"]);
    let names = ["sample_tool", "get_weather", "get_soccer_scores"];
    match results(asked) {
        0 => stream(api, &names.into_iter().fold(said("All three."), call)),
        _ => stream(api, &said("All were called.")),
    }
}

const DEEP: [&str; 6] = [
    "run",
    "deep.yaml",
    "--input",
    "call all three",
    "--thread",
    "a",
];
const SAMPLE_TOOL_CONFIG: &str = "  interrupt_on:\n    sample_tool: true\n    get_weather: false\n    get_soccer_scores: {allowed_decisions: [approve, reject]}\n";

fn names_asked(object: &Value) -> Vec<&str> {
    let requests = &object["__interrupt__"][0]["value"]["action_requests"];
    let requests = requests.as_array().unwrap().iter();
    requests.map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn r4_45_gated_calls_of_a_turn_are_asked_about_and_all_happen_once_approved() {
    for api in Api::ALL {
        let server = Server::start(move |asked| all_three(api, asked));
        let world = world(api, &server);
        scenario_agent(&world, api, SAMPLE_TOOL_CONFIG);
        let stopped = world.json(3, &DEEP);
        assert_eq!(
            names_asked(&stopped),
            ["sample_tool", "get_soccer_scores"],
            "{api:?}"
        );
        let decisions = r#"{"decisions": [{"type": "approve"}, {"type": "approve"}]}"#;
        let done = world.json(0, &["resume", "a", "--decisions", decisions]);
        assert_eq!(done.get("__interrupt__"), None, "{api:?}");
        assert_eq!(tool_contents(&done).len(), 3, "{api:?}");
        assert_eq!(done["output"], "All were called.", "{api:?}");
    }
}

/// The agent gives a task to this subagent, which calls all three tools.
fn delegating(api: Api, asked: &Asked, subagent: &str) -> Answer {
    let is_below = !asked.body.to_string().contains("You are the agent.");
    if is_below {
        return all_three(api, asked);
    }
    match results(asked) {
        0 => {
            let task =
                json!({"description": "call all three", "subagent_type": subagent}).to_string();
            stream(api, &said("").calling("call_task", "task", &[&task]))
        }
        _ => stream(api, &said("The task is done.")),
    }
}

#[test]
fn r4_46_a_subagent_has_its_agent_s_gates_and_its_calls_are_asked_about() {
    for api in Api::ALL {
        let server = Server::start(move |asked| delegating(api, asked, "general-purpose"));
        let world = world(api, &server);
        let below = "  subagents:\n    - {name: general-purpose, description: Does anything., system_prompt: You do tasks.}\n";
        scenario_agent(&world, api, &format!("{SAMPLE_TOOL_CONFIG}{below}"));
        let stopped = world.json(3, &DEEP);
        assert_eq!(
            names_asked(&stopped),
            ["sample_tool", "get_soccer_scores"],
            "{api:?}"
        );
        let interrupt = pending(&stopped);
        assert_eq!(asked(&stopped).len(), 2);
        let decisions =
            format!(r#"{{"{interrupt}": [{{"type": "approve"}}, {{"type": "reject"}}]}}"#);
        let done = world.json(0, &["resume", "a", "--decisions", &decisions]);
        assert_eq!(done["output"], "The task is done.", "{api:?}");
        let told = server.asked();
        let below: Vec<_> = told
            .iter()
            .filter(|it| !it.body.to_string().contains("You are the agent."))
            .collect();
        assert_eq!(
            below.iter().map(|it| results(it)).collect::<Vec<_>>(),
            [0, 3],
            "{api:?}"
        );
        assert!(
            below[1]
                .body
                .to_string()
                .contains("User rejected the tool call"),
            "{api:?}"
        );
    }
}

#[test]
fn r4_47_a_subagent_s_own_gates_ask_about_the_weather_alone() {
    for api in Api::ALL {
        let server = Server::start(move |asked| delegating(api, asked, "task_handler"));
        let world = world(api, &server);
        let gates = "  interrupt_on: {sample_tool: true, get_weather: true}\n";
        let below = "  subagents:\n    - name: task_handler\n      description: Handles tasks.\n      system_prompt: You handle tasks.\n      interrupt_on: {sample_tool: false, get_weather: true}\n";
        scenario_agent(&world, api, &format!("{gates}{below}"));
        let stopped = world.json(3, &DEEP);
        assert_eq!(names_asked(&stopped), ["get_weather"], "{api:?}");
        let done = world.json(0, &["resume", "a", "--approve"]);
        assert_eq!(done["output"], "The task is done.", "{api:?}");
    }
}
