//! A program does not outlive its driver, and a driver outlives its watchdog.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use holdpoint_tools::Watchdog;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::{
    bench::{Bench, PLENTY, block_on, call, failed, params, unknown},
    journal::{Journal, Left},
};

crate::trials!(
    a_program_dies_with_its_driver,
    a_program_whose_driver_lives_does_its_work,
    an_interrupt_of_the_drivers_group_reaches_neither_watchdog_nor_program,
    a_call_whose_watchdog_is_killed_is_unknown_and_its_program_dies,
    a_watchdog_that_is_none_starts_nothing,
    a_watchdog_that_dies_before_it_is_ready_is_replaced,
    a_stepped_program_dies_with_its_driver,
    a_stepped_program_whose_driver_lives_does_its_work,
    a_program_that_does_not_listen_dies_with_its_driver,
    an_entry_whose_watchdog_is_killed_is_unknown_and_its_program_dies,
    a_frozen_driver_does_not_hold_up_the_deadline_of_a_program_that_talks,
);

const ARGUMENT: &str = "__driver";
const STEPPED: &str = "__stepped_driver";
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
    if arguments.get(1).is_some_and(|argument| argument == STEPPED) {
        env::set_current_dir(&arguments[2]).unwrap();
        let tool = crate::bench::stepped(crate::bench::shell(&arguments[3]), arguments[2].clone());
        let remaining = Duration::from_millis(arguments[4].parse().unwrap());
        let left = Journal::new().enter_for(&*tool, &params("{}"), remaining);
        fs::write("outcome", format!("{left:?}\n")).unwrap();
        std::process::exit(0);
    }
}

fn start_driver(bench: &Bench) -> Child {
    start(bench, &[ARGUMENT, &bench.cwd()])
}

fn start_stepped_driver(bench: &Bench, script: &str, remaining: Duration) -> Child {
    let remaining = remaining.as_millis().to_string();
    start(bench, &[STEPPED, &bench.cwd(), script, &remaining])
}

fn start(bench: &Bench, arguments: &[&str]) -> Child {
    let mut driver = Command::new(env::current_exe().unwrap());
    driver
        .args(arguments)
        .current_dir(bench.cwd())
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
        let tool =
            holdpoint_tools::instantiate(&spec, &[], &registry, &Watchdog::at(program)).unwrap();
        block_on(tool.call(call(&params("{}"), PLENTY)))
    };
    let missing =
        "not started: the watchdog could not be started: No such file or directory (os error 2)";
    assert_eq!(call_under("/no/such/watchdog"), failed(missing));
    // It prints its argument without end, and does not care for orders.
    let none = "not started: its watchdog died before it could take the order";
    assert_eq!(call_under("yes"), failed(none));
    assert!(!bench.path("started").exists());
}

/// As a terminal's Ctrl-C kills one that has no process group of its own yet.
fn a_watchdog_that_dies_before_it_is_ready_is_replaced() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let watchdog = bench.path("watchdog.sh");
    let (died, real) = (bench.path("died"), std::env::current_exe().unwrap());
    let script = format!(
        "#!/bin/sh\n[ -e '{0}' ] || {{ touch '{0}'; kill -INT $$; }}\nexec '{1}' \"$@\"\n",
        died.display(),
        real.display()
    );
    std::fs::write(&watchdog, script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&watchdog, executable).unwrap();
    let spec = crate::bench::spec(holdpoint_core::Runner::Command {
        command: crate::bench::shell("echo once >>acts; echo done"),
        cwd: bench.cwd(),
        lookup: None,
        compensate: None,
    });
    let registry = holdpoint_tools::Registry::new();
    let watchdog = Watchdog::at(watchdog);
    let tool = holdpoint_tools::instantiate(&spec, &[], &registry, &watchdog).unwrap();
    let outcome = block_on(tool.call(call(&params("{}"), PLENTY)));
    let content = "done".to_owned();
    assert_eq!(outcome, holdpoint_core::Outcome::Done { content });
    assert!(died.exists());
    let acts = std::fs::read_to_string(bench.path("acts")).unwrap();
    assert_eq!(acts, "once\n");
}

/// It is in the middle of a step.
const STEPPED_SCRIPT: &str = r#"
    read -r opening
    echo '{"step":{"name":"pay","effect":"write"}}'
    read -r run
    echo $PPID >watchdog; echo $$ >leader; sleep 1; echo done >late
    echo '{"done":{"name":"pay"}}'; echo '{"result":"paid"}'"#;

fn a_stepped_program_dies_with_its_driver() {
    let bench = Bench::new();
    let mut driver = start_stepped_driver(&bench, STEPPED_SCRIPT, PLENTY);
    bench.wait_for("leader");
    driver.kill().unwrap();
    driver.wait().unwrap();
    bench.must_die("leader", Duration::from_millis(900));
    bench.must_die("watchdog", Duration::from_millis(900));
    std::thread::sleep(Duration::from_millis(1_200));
    assert!(!bench.path("late").exists());
}

/// Shows that the test above would see a program that lives on.
fn a_stepped_program_whose_driver_lives_does_its_work() {
    let bench = Bench::new();
    let mut driver = start_stepped_driver(&bench, STEPPED_SCRIPT, PLENTY);
    assert_eq!(bench.wait_for("late"), "done");
    assert!(driver.wait().unwrap().success());
    let expected = r#"Ended(Done { content: "paid" })"#;
    assert_eq!(bench.wait_for("outcome"), expected);
}

fn a_program_that_does_not_listen_dies_with_its_driver() {
    let bench = Bench::new();
    // The answer has the long name twice: the driver hangs while it tells it, and the watchdog has nothing to report.
    let script = r#"
        name=$(yes | tr -d '\n' | head -c 1000000)
        printf '%s\n' "{\"step\":{\"name\":\"$name\",\"effect\":\"read\"}}"
        echo $PPID >watchdog; echo $$ >leader; sleep 60"#;
    let mut driver = start_stepped_driver(&bench, script, PLENTY);
    bench.wait_for("leader");
    // Until the watchdog has taken all that it keeps, besides what the program printed.
    let counts = format!("/proc/{}/io", bench.wait_for("watchdog"));
    let has_read = || {
        let counts = fs::read_to_string(&counts).unwrap();
        let count = counts.lines().next().unwrap().rsplit(' ').next().unwrap();
        count.parse::<usize>().unwrap()
    };
    while has_read() < 1_000_000 + (1 << 20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    driver.kill().unwrap();
    driver.wait().unwrap();
    bench.must_die("leader", Duration::from_millis(900));
    bench.must_die("watchdog", Duration::from_millis(900));
}

fn an_entry_whose_watchdog_is_killed_is_unknown_and_its_program_dies() {
    let bench = Bench::new();
    let tool = bench.stepped(STEPPED_SCRIPT);
    let (journal, args) = (Journal::new(), params("{}"));
    let left = block_on(async {
        let kill = async {
            while bench.written("leader").is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let watchdog = bench.written("watchdog").unwrap().parse().unwrap();
            kill_process(Pid::from_raw(watchdog).unwrap(), Signal::KILL).unwrap();
        };
        let entry = journal.side().follow(&*tool, &args, PLENTY);
        tokio::join!(entry, kill).0
    });
    let lost = "its watchdog ended without a report, and nobody knows how far it got";
    assert_eq!(left, Left::Ended(unknown(lost)));
    assert_eq!(journal.log(), ["begin pay write {}"]);
    bench.must_die("leader", Duration::from_millis(900));
}

fn a_frozen_driver_does_not_hold_up_the_deadline_of_a_program_that_talks() {
    let bench = Bench::new();
    let script = "
        echo $$ >leader; while [ ! -e frozen ]; do sleep 0.01; done
        touch talking; exec yes '{\"step\":{\"name\":\"a\",\"effect\":\"read\"}}'";
    let mut driver = start_stepped_driver(&bench, script, Duration::from_secs(3));
    bench.wait_for("leader");
    kill_process(Pid::from_child(&driver), Signal::STOP).unwrap();
    fs::write(bench.path("frozen"), "").unwrap();
    // Pipes are full long before the deadline, and nobody reads them.
    bench.must_die("leader", Duration::from_secs(20));
    assert!(bench.path("talking").exists());
    kill_process(Pid::from_child(&driver), Signal::CONT).unwrap();
    assert!(driver.wait().unwrap().success());
    bench.wait_for("outcome");
}
