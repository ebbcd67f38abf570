//! From a reference to a model.

use std::fs;

use holdpoint_models::resolve;

use crate::conversation::scenario;

#[test]
fn a_reference_to_a_scenario_file_is_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b:c.yaml");
    fs::write(&path, scenario("  - say: x\n")).unwrap();
    resolve(&format!("scripted:{}", path.display())).unwrap();
}

#[test]
fn a_reference_that_leads_nowhere_says_what_would() {
    let nobody = |reference| {
        format!(
            "nobody provides the model `{reference}`; write `PROVIDER:MODEL`, for instance `openai:gpt-4o`, or \
             `scripted:/absolute/path.yaml`; known are anthropic, ollama, openai, openai-responses"
        )
    };
    for reference in ["gpt:5", "scripted", "", "openai:", "gpt-4o"] {
        let error = resolve(reference).unwrap_err();
        assert_eq!(error.to_string(), nobody(reference));
    }
    let cases = [
        (
            "scripted:here.yaml",
            "the path in `scripted:here.yaml` must be absolute",
        ),
        ("scripted:", "the path in `scripted:` must be absolute"),
        (
            "scripted:/no/such.yaml",
            "/no/such.yaml: cannot be read: No such file or directory (os error 2)",
        ),
    ];
    for (reference, expected) in cases {
        assert_eq!(resolve(reference).unwrap_err().to_string(), expected);
    }
}
