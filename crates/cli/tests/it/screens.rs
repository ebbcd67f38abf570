//! What people read, word for word.

use crate::support::{Said, World};

fn snapshot(name: &str, said: &Said) {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"(thr|run|int|act|hpk|own)_[0-9a-f]{32}", "${1}_…");
    settings.add_filter(r"sha256:[0-9a-f]{64}", "sha256:…");
    settings.add_filter(
        r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+\+00:00)?",
        "[time]",
    );
    settings.add_filter(r"\d{4}-\d\d-\d\d", "[day]");
    settings.add_filter(r"\d\d:\d\d:\d\d\.\d{3}", "[time of day]");
    settings.add_filter(r"local:\S+\n", "local:USER\n");
    settings.add_filter(r"local:\S+ +", "local:USER  ");
    settings.add_filter(
        r#""name": "[^"]+",\n(\s+)"kind": "local""#,
        "\"name\": \"USER\",\n$1\"kind\": \"local\"",
    );
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let Said {
        code,
        stdout,
        stderr,
    } = said;
    let text = format!("exit {code}\n--- stdout\n{stdout}--- stderr\n{stderr}");
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn the_life_of_a_refund() {
    let world = World::new();
    let run = [
        "run",
        "refund/agent.yaml",
        "--input",
        "Please refund order 1001",
        "--thread",
        "monday",
    ];
    snapshot("run", &world.hold(&run));
    snapshot("run_again", &world.hold(&run));
    snapshot("show_waiting", &world.hold(&["show", "monday"]));
    snapshot(
        "resume_misfit",
        &world.hold(&["resume", "monday", "--decisions", "[]"]),
    );
    snapshot("resume_unasked", &world.hold(&["resume", "monday"]));
    snapshot("resume", &world.hold(&["resume", "monday", "--approve"]));
    snapshot(
        "resume_twice",
        &world.hold(&["resume", "monday", "--approve"]),
    );
    snapshot("show_finished", &world.hold(&["show", "monday"]));
    snapshot("trace", &world.hold(&["trace", "monday"]));
    snapshot("runs", &world.hold(&["runs"]));
    snapshot("recover_nothing", &world.hold(&["recover"]));
    snapshot("cancel_too_late", &world.hold(&["cancel", "monday"]));
    snapshot("show_nothing", &world.hold(&["show", "tuesday"]));
}

#[test]
fn a_batch_and_its_cancellation() {
    let world = World::new();
    let run = [
        "run",
        "file-manager/agent.yaml",
        "--input",
        "同时处理两件事",
        "--thread",
        "文件",
    ];
    snapshot("run_batch", &world.hold(&run));
    snapshot("cancel", &world.hold(&["cancel", "文件"]));
}

#[test]
fn a_question_that_is_asked_again() {
    let world = World::new();
    let run = [
        "run",
        "refund/agent.yaml",
        "--input",
        "Please refund order 1001",
        "--thread",
    ];
    world.hold(&[&run[..], &["a"]].concat()).ends(3);
    let yaml = std::fs::read_to_string(world.path().join("refund/agent.yaml")).unwrap();
    let changed = yaml.replace(
        "    - name: issue_refund\n",
        "    - name: issue_refund\n      version: \"2\"\n",
    );
    world.write("refund/agent.yaml", &changed);
    world.hold(&[&run[..], &["b"]].concat()).ends(3);
    snapshot("resume_stale", &world.hold(&["resume", "a", "--approve"]));
    snapshot("resume_stale_shown", &world.hold(&["resume", "a"]));
}

#[test]
fn a_write_that_nobody_knows_about() {
    let world = World::new();
    let file = world.dying("lost");
    snapshot(
        "run_unknown",
        &world.hold(&["run", &file, "--input", "x", "--thread", "a"]),
    );
}

#[test]
fn problems_of_definitions() {
    let world = World::new();
    let bad = world.agent("bad", "{allowed_decisions: [aprove]}", "  - say: One.\n");
    let good = world.agent("good", "true", "  - say: One.\n");
    snapshot("check", &world.hold(&["check", &good, &bad]));
    snapshot(
        "run_bad_definition",
        &world.hold(&["run", &bad, "--input", "x"]),
    );
    snapshot("run_nothing_to_do", &world.hold(&["run", &good]));
    snapshot("store_missing", &world.hold(&["runs"]));
}

#[test]
fn the_help_of_every_command() {
    let world = World::new();
    snapshot("help", &world.hold(&["--help"]));
    for command in [
        "run",
        "resume",
        "runs",
        "show",
        "trace",
        "artifacts",
        "recover",
        "cancel",
        "pause",
        "continue",
        "grants",
        "check",
        "serve",
        "keys",
        "backup",
        "webhooks",
        "store",
    ] {
        snapshot(
            &format!("help_{command}"),
            &world.hold(&[command, "--help"]),
        );
    }
}
