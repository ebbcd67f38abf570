//! `cargo xtask check` and `cargo xtask test`.

use crate::{
    clients, requirements,
    services::Services,
    step::{self, Steps, run},
    variants::{Profile, Programs},
};

const DENY: [&str; 3] = ["--", "-D", "warnings"];

/// What can be said without running anything.
pub(crate) fn check() -> anyhow::Result<()> {
    let mut steps = Steps::default();
    static_checks(&mut steps);
    steps.finish()
}

/// `check`, and every test.
pub(crate) fn test() -> anyhow::Result<()> {
    let mut steps = Steps::default();
    static_checks(&mut steps);
    let mut programs = None;
    let built = steps.take("the programs that tests start", || {
        programs = Some(Programs::build_all(Profile::Dev)?);
        Ok(())
    });
    let mut services = None;
    let ready = steps.take("the services that tests need", || {
        services = Some(Services::start()?);
        Ok(())
    });
    if let (Some(()), Some(programs), Some(()), Some(services)) = (built, programs, ready, services)
    {
        steps.take("tests", || {
            let mut command = if step::has_nextest() {
                step::cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])
            } else {
                step::cargo(&[
                    "test",
                    "--workspace",
                    "--no-fail-fast",
                    "--lib",
                    "--bins",
                    "--tests",
                ])
            };
            programs.announce(&mut command);
            services.announce(&mut command);
            run(&mut command)
        });
        steps.take("clients in Node", || clients::node(&programs));
        steps.take("a fuzzer of the API", || clients::schemathesis(&programs));
        steps.take("doc tests", || {
            run(&mut step::cargo(&["test", "--workspace", "--doc"]))
        });
    }
    steps.finish()
}

fn static_checks(steps: &mut Steps) {
    steps.take("format", || {
        run(&mut step::cargo(&["fmt", "--all", "--check"]))
    });
    steps.take("lints", || {
        let clippy = ["clippy", "--workspace", "--all-targets"];
        run(step::cargo(&clippy).args(DENY))
    });
    steps.take("lints, with failpoints", || {
        let clippy = [
            "clippy",
            "-p",
            "holdpoint-cli",
            "--all-targets",
            "--features",
            "failpoints",
        ];
        run(step::cargo(&clippy).args(DENY))
    });
    steps.take("requirements map", requirements::check);
}
