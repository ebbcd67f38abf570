//! The shipped examples load, and there is nothing to warn of.

use std::{collections::BTreeMap, path::PathBuf};

use holdpoint_core::{Allowed, DecisionKind, Effect, Gate};
use holdpoint_definition::load;

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
        .join("agent.yaml")
}

#[test]
fn every_shipped_example_loads_without_problems_and_warnings() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path().join("agent.yaml");
        if file.exists() {
            let loaded = load(&file).unwrap_or_else(|problems| panic!("{problems}"));
            assert_eq!(loaded.warnings, [], "{}", file.display());
            names.push(loaded.definition.name);
        }
    }
    names.sort();
    assert_eq!(names, ["file-manager", "refund"]);
}

#[test]
fn the_file_manager_is_gated_by_risk() {
    let definition = load(&example("file-manager")).unwrap().definition;
    let two = Allowed::new(vec![DecisionKind::Approve, DecisionKind::Reject]).unwrap();
    let description = Some("助手想写入一个文件,请确认。".to_owned());
    let expected = BTreeMap::from([
        (
            "delete_file".to_owned(),
            Gate::Ask {
                allowed: Allowed::standard(),
                description: None,
            },
        ),
        ("read_file".to_owned(), Gate::Open),
        (
            "write_file".to_owned(),
            Gate::Ask {
                allowed: two,
                description,
            },
        ),
    ]);
    assert_eq!(definition.policy.interrupt_on, expected);
}

#[test]
fn the_refund_can_be_looked_up_and_undone() {
    let definition = load(&example("refund")).unwrap().definition;
    let refund = definition.tool("issue_refund").unwrap();
    assert_eq!(
        (
            refund.effect,
            refund.hooks().lookup,
            refund.hooks().compensate
        ),
        (Effect::Write, true, true)
    );
    assert_eq!(definition.tool("get_order").unwrap().effect, Effect::Read);
    let asked = Gate::Ask {
        allowed: Allowed::standard(),
        description: None,
    };
    assert_eq!(definition.policy.interrupt_on["issue_refund"], asked);
}
