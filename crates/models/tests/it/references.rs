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
    let cases = [
        (
            "gpt:5",
            "nobody provides the model `gpt:5`; possible is: `scripted:/absolute/path.yaml`",
        ),
        (
            "scripted",
            "nobody provides the model `scripted`; possible is: `scripted:/absolute/path.yaml`",
        ),
        (
            "",
            "nobody provides the model ``; possible is: `scripted:/absolute/path.yaml`",
        ),
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
