//! A program does not outlive its driver, and a driver outlives its watchdog.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use holdpoint_tools::Watchdog;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::bench::{Bench, PLENTY, block_on, call, failed, params, unknown};

crate::trials!(
    a_program_dies_with_its_driver,
    a_program_whose_driver_lives_does_its_work,
    an_interrupt_of_the_drivers_group_reaches_neither_watchdog_nor_program,
    a_call_whose_watchdog_is_killed_is_unknown_and_its_program_dies,
    a_watchdog_that_is_none_starts_nothing,
);

const ARGUMENT: &str = "__driver";
/// It reads its arguments first, as programs do: by then the driver can know of it.
const SCRIPT: &str =
    "cat >/dev/null; echo $PPID >watchdog; echo $$ >leader; sleep 1; echo done >late";

/// If this process was started as a driver, it makes one call in the given folder and exits.
pub(crate) fn enter() {
    let arguments: Vec<_> = env::args().collect();
    if arguments
        .get(1)
        .is_some_and(|argument| argument == ARGUMENT)
    {
        env::set_current_dir(&arguments[2]).unwrap();
        let runner = holdpoint_core::Runner::Command {
            command: crate::bench::shell(SCRIPT),
            cwd: arguments[2].clone(),
            lookup: None,
            compensate: None,
        };
        let tool = Bench::new().tool(runner);
        let outcome = block_on(tool.call(call(&params("{}"), PLENTY)));
        fs::write("outcome", format!("{outcome:?}\n")).unwrap();
        std::process::exit(0);
    }
}

fn start_driver(bench: &Bench) -> Child {
    let mut driver = Command::new(env::current_exe().unwrap());
    driver
        .args([ARGUMENT, &bench.cwd()])
        .process_group(0)
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

fn a_program_dies_with_its_driver() {
    let bench = Bench::new();
    let mut driver = start_driver(&bench);
    bench.wait_for("leader");
    driver.kill().unwrap();
    driver.wait().unwrap();
    bench.must_die("leader", Duration::from_millis(900));
    bench.must_die("watchdog", Duration::from_millis(900));
    std::thread::sleep(Duration::from_millis(1_200));
    assert!(!bench.path("late").exists());
}

/// Shows that the test above would see a program that lives on.
fn a_program_whose_driver_lives_does_its_work() {
    let bench = Bench::new();
    let mut driver = start_driver(&bench);
    assert_eq!(bench.wait_for("late"), "done");
    assert!(driver.wait().unwrap().success());
    assert_eq!(bench.wait_for("outcome"), r#"Done { content: "" }"#);
}

fn an_interrupt_of_the_drivers_group_reaches_neither_watchdog_nor_program() {
    let bench = Bench::new();
    let mut driver = start_driver(&bench);
    let group_of = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ")
            .next()
            .unwrap()
            .split(' ')
            .nth(2)
            .unwrap()
            .to_owned()
    };
    let (leader, watchdog) = (bench.wait_for("leader"), bench.wait_for("watchdog"));
    assert_eq!((group_of(&leader), group_of(&watchdog)), (leader, watchdog));
    kill_process_group(Pid::from_child(&driver), Signal::INT).unwrap();
    assert!(!driver.wait().unwrap().success());
    // It dies all the same, because its driver did.
    bench.must_die("leader", Duration::from_millis(900));
}

fn a_call_whose_watchdog_is_killed_is_unknown_and_its_program_dies() {
    let bench = Bench::new();
    let tool = bench.script(SCRIPT);
    let outcome = block_on(async {
        let handle = tokio::spawn(async move { tool.call(call(&params("{}"), PLENTY)).await });
        while bench.written("leader").is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let watchdog = fs::read_to_string(bench.path("watchdog"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        kill_process(Pid::from_raw(watchdog).unwrap(), Signal::KILL).unwrap();
        handle.await.unwrap()
    });
    let lost = "its watchdog ended without a report, and nobody knows how far it got";
    assert_eq!(outcome, unknown(lost));
    bench.must_die("leader", Duration::from_millis(900));
}

fn a_watchdog_that_is_none_starts_nothing() {
    let bench = Bench::new();
    let runner = || holdpoint_core::Runner::Command {
        command: crate::bench::shell("touch started"),
        cwd: bench.cwd(),
        lookup: None,
        compensate: None,
    };
    let call_under = |program: &str| {
        let spec = crate::bench::spec(runner());
        let registry = holdpoint_tools::Registry::new();
        let tool = holdpoint_tools::instantiate(&spec, &registry, &Watchdog::at(program)).unwrap();
        block_on(tool.call(call(&params("{}"), PLENTY)))
    };
    let missing =
        "not started: the watchdog could not be started: No such file or directory (os error 2)";
    assert_eq!(call_under("/no/such/watchdog"), failed(missing));
    let lost = "its watchdog ended without a report, and nobody knows how far it got";
    // It prints its argument without end, and does not care for orders.
    assert_eq!(call_under("yes"), unknown(lost));
    assert!(!bench.path("started").exists());
}
