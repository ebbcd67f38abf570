//! What `execute` promises: a program that tries everything gets nowhere, and one that works does.

use std::{
    env, fs,
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use holdpoint_core::{Builtin, Outcome, PreviewForm, ToolSpec};
use holdpoint_tools::{Registry, Tool, Watchdog, instantiate};
use serde_json::json;

use crate::{
    bench::{Bench, PLENTY, block_on, call, params},
    builtins::told,
};

crate::trials!(
    a_hostile_program_gets_nowhere,
    the_same_program_unconfined_gets_through,
    a_confined_program_does_its_work,
    a_confined_program_has_an_environment_and_a_folder_of_its_own,
    what_a_crash_left_is_removed_and_what_is_in_use_is_not,
    a_confined_program_and_all_that_it_started_die_at_the_deadline,
    a_confined_program_cannot_claim_that_it_never_ran,
    a_confined_program_that_cannot_be_started_has_failed,
    a_confined_program_is_shown_before_it_runs,
    a_confined_program_has_limits,
);

const ARGUMENT: &str = "__execute";

/// If this process was started to make one call of `execute`, it does that and prints what came of it.
pub(crate) fn enter() {
    let arguments: Vec<_> = env::args().collect();
    if arguments.get(1).is_none_or(|argument| argument != ARGUMENT) {
        return;
    }
    let tool = builtin(Builtin::Execute, &arguments[2]);
    println!("{}", told(run(&*tool, &arguments[3], PLENTY)));
    std::process::exit(0);
}

pub(crate) fn builtin(which: Builtin, folder: &str) -> Arc<dyn Tool> {
    let spec = ToolSpec::builtin(which, Some(folder));
    instantiate(&spec, &[], &Registry::new(), &Watchdog::default()).unwrap()
}

pub(crate) fn run(tool: &dyn Tool, command: &str, remaining: Duration) -> Outcome {
    let args = params(&json!({"command": command}).to_string());
    block_on(tool.call(call(&args, remaining)))
}

fn execute(bench: &Bench, command: &str) -> String {
    let tool = builtin(Builtin::Execute, &bench.cwd());
    told(run(&*tool, command, PLENTY))
}

/// What a hostile program could get at: a folder beside its own, a process and sockets.
struct Prey {
    bench: Bench,
    outside: PathBuf,
    process: std::process::Child,
    port: u16,
    _listeners: (TcpListener, UdpSocket, UnixListener, UnixListener),
    abstract_name: String,
}

impl Prey {
    fn new() -> Self {
        let bench = Bench::new();
        fs::create_dir(bench.path("work")).unwrap();
        fs::create_dir(bench.path("outside")).unwrap();
        let outside = bench.path("outside/store.db");
        fs::write(&outside, "secret of the store").unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let unix = UnixListener::bind(bench.path("outside/socket")).unwrap();
        let abstract_name = format!("holdpoint-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        let process = Command::new("sleep")
            .arg("600")
            .env("PREY", "secret of the process")
            .spawn()
            .unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hostile.c");
        let compiled = Command::new("cc")
            .args(["-w", "-o"])
            .arg(bench.path("work/hostile"))
            .arg(source)
            .status()
            .unwrap();
        assert!(compiled.success(), "the hostile program was not compiled");
        Self {
            bench,
            outside,
            process,
            port,
            _listeners: (tcp, udp, unix, hidden),
            abstract_name,
        }
    }

    fn work(&self) -> String {
        self.bench.path("work").to_str().unwrap().to_owned()
    }

    fn command(&self) -> String {
        format!(
            "./hostile '{}' '{}' {} {} '{}' '{}'",
            self.outside.display(),
            self.outside.parent().unwrap().display(),
            self.process.id(),
            self.port,
            self.bench.path("outside/socket").display(),
            self.abstract_name
        )
    }
}

impl Drop for Prey {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The attempts, and what must work: each name with whether it was done.
fn attempts(report: &str) -> [Vec<(String, bool)>; 2] {
    let (refused, allowed) = report
        .split_once("-- allowed\n")
        .unwrap_or_else(|| panic!("{report}"));
    [refused, allowed].map(|part| {
        part.lines()
            .filter(|line| line.contains(" DONE") || line.contains(" refused"))
            .map(|line| {
                let name = line.split(' ').next().unwrap().to_owned();
                (name, line.contains(" DONE"))
            })
            .collect()
    })
}

fn done(attempts: &[(String, bool)]) -> Vec<&str> {
    let done = attempts.iter().filter(|(_, done)| *done);
    done.map(|(name, _)| name.as_str()).collect()
}

/// A descriptor that is not closed is left to whoever is started: as careless programs do.
fn with_a_stray_descriptor(
    program: &Path,
    arguments: &[&str],
    folder: &str,
    prey: &Prey,
) -> String {
    let script = format!("exec 9<'{}'; exec \"$@\"", prey.outside.display());
    let output = Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(program)
        .args(arguments)
        .current_dir(folder)
        .env("TMPDIR", folder)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

const ATTEMPTS: usize = 55;

fn a_hostile_program_gets_nowhere() {
    let prey = Prey::new();
    let this = env::current_exe().unwrap();
    let work = prey.work();
    let arguments = [ARGUMENT, &work, &prey.command()];
    let report = with_a_stray_descriptor(&this, &arguments, &work, &prey);
    println!("{report}");
    assert!(report.starts_with("[exit code 0]\n"), "{report}");
    let [tried, allowed] = attempts(&report);
    assert_eq!(done(&tried), [""; 0], "{report}");
    assert_eq!(tried.len(), ATTEMPTS, "{report}");
    assert_eq!(done(&allowed).len(), allowed.len(), "{report}");
    assert_eq!(allowed.len(), 9, "{report}");
    let kept = fs::read_to_string(&prey.outside).unwrap();
    assert_eq!(kept, "secret of the store");
    assert_eq!(fs::read_dir(prey.bench.path("outside")).unwrap().count(), 2);
}

/// Shows that the attempts are real: without the sandbox, most of them succeed.
fn the_same_program_unconfined_gets_through() {
    let prey = Prey::new();
    let work = prey.work();
    let arguments = ["-c", &prey.command()];
    let report = with_a_stray_descriptor(Path::new("/bin/sh"), &arguments, &work, &prey);
    println!("{report}");
    let [tried, _] = attempts(&report);
    assert_eq!(tried.len(), ATTEMPTS, "{report}");
    assert!(2 * done(&tried).len() >= ATTEMPTS, "{report}");
    for name in [
        "read-outside",
        "write-outside",
        "tcp",
        "abstract",
        "unix",
        "kill",
        "setsid",
        "stray-fd",
    ] {
        assert!(done(&tried).contains(&name), "{name}: {report}");
    }
}

fn a_confined_program_does_its_work() {
    let bench = Bench::new();
    fs::write(bench.path("in"), "some words\nmore words\n").unwrap();
    for (command, expected) in [
        (
            "cat in | tr a-z A-Z >out; cat out",
            "[exit code 0]\nSOME WORDS\nMORE WORDS",
        ),
        (
            "pwd",
            &format!(
                "[exit code 0]\n{}",
                bench.path("").canonicalize().unwrap().display()
            ),
        ),
        ("mkdir -p a/b && mv in a/b/ && ls a/b", "[exit code 0]\nin"),
        ("echo oops >&2; exit 3", "[exit code 3]\n[stderr]\noops"),
        (
            "for n in 1 2 3; do (echo $n) & wait; done",
            "[exit code 0]\n1\n2\n3",
        ),
        (
            "printf '#!/bin/sh\\necho ran\\n' >s; sh ./s",
            "[exit code 0]\nran",
        ),
        ("printf '%s' \"$(date +%Y | wc -c)\"", "[exit code 0]\n5"),
        ("awk 'BEGIN {print 6 * 7}'", "[exit code 0]\n42"),
        ("kill -9 $$", "[ended by signal 9]"),
    ] {
        assert_eq!(execute(&bench, command), expected, "{command}");
    }
    let large = execute(&bench, "yes | head -c 3000000");
    let (told, kept) = large.split_once("this is the beginning]\n").unwrap();
    assert!(told.contains("more than 1048576 bytes"), "{told}");
    assert!(kept.len() > 1_000_000 && kept.starts_with("y\ny\n"));
}

fn a_confined_program_has_an_environment_and_a_folder_of_its_own() {
    let bench = Bench::new();
    let environment = execute(&bench, "env");
    let names: Vec<_> = environment
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    for name in &names {
        let is_listed = [
            "PATH", "HOME", "LANG", "TZ", "TERM", "TMPDIR", "PWD", "_", "SHLVL", "OLDPWD",
        ]
        .contains(name);
        assert!(is_listed || name.starts_with("LC_"), "{environment}");
    }
    let shown = execute(
        &bench,
        r#"echo x >"$TMPDIR/x"; echo "$TMPDIR"; [ "$HOME" = "$TMPDIR" ]; umask"#,
    );
    let folder = shown.lines().nth(1).unwrap();
    assert!(
        folder.starts_with(bench.path("").canonicalize().unwrap().to_str().unwrap()),
        "{shown}"
    );
    assert!(shown.ends_with("0077"), "{shown}");
    assert!(!Path::new(folder).exists());
    let nothing = "chmod 0 $TMPDIR; mkdir -p $TMPDIR/a/b; exit 0";
    execute(&bench, nothing);
    assert_eq!(fs::read_dir(bench.path("")).unwrap().count(), 0);
}

fn what_a_crash_left_is_removed_and_what_is_in_use_is_not() {
    let bench = Bench::new();
    let left = bench.path(".holdpoint-tmp-left");
    fs::create_dir_all(left.join("deep")).unwrap();
    let used = bench.path(".holdpoint-tmp-used");
    fs::create_dir(&used).unwrap();
    let lock = fs::File::open(&used).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    execute(&bench, "true");
    assert!(!left.exists() && used.exists());
}

fn a_confined_program_and_all_that_it_started_die_at_the_deadline() {
    let bench = Bench::new();
    let tool = builtin(Builtin::Execute, &bench.cwd());
    let command = "
        trap '' TERM HUP INT
        (setsid sleep 300; sh -c 'echo $$ >deep; exec sleep 300' & sh -c 'echo $$ >deeper; exec sleep 300' &) &
        echo begun; sleep 300";
    let args = params(&json!({"command": command, "timeout": 1}).to_string());
    let outcome = block_on(tool.call(call(&args, PLENTY)));
    let content = "[killed after 1 seconds, wherever it was]\nbegun".to_owned();
    let told = told(outcome);
    assert!(told.starts_with(&content), "{told}");
    bench.must_die("deep", Duration::from_secs(1));
    bench.must_die("deeper", Duration::from_secs(1));
    let left = fs::read_dir(bench.path("")).unwrap();
    let left = left.filter(|it| {
        it.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".holdpoint")
    });
    assert_eq!(left.count(), 0);
}

fn a_confined_program_cannot_claim_that_it_never_ran() {
    let bench = Bench::new();
    let claim = "echo '0123456789abcdef0123456789abcdef it was not started' >&2; exit 125";
    let told = execute(&bench, claim);
    assert!(told.starts_with("[exit code 125]"), "{told}");
}

fn a_confined_program_that_cannot_be_started_has_failed() {
    let bench = Bench::new();
    let work = bench.path("work");
    fs::create_dir(&work).unwrap();
    let tool = builtin(Builtin::Execute, work.to_str().unwrap());
    fs::remove_dir(&work).unwrap();
    let outcome = run(&*tool, "echo x", PLENTY);
    assert!(
        matches!(&outcome, Outcome::Failed { error } if error.starts_with("not started: ")),
        "{outcome:?}"
    );
    let outcome = run(&*builtin(Builtin::Execute, &bench.cwd()), "echo \0", PLENTY);
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
}

fn a_confined_program_is_shown_before_it_runs() {
    let bench = Bench::new();
    let args = params(r#"{"command": "rm -rf *"}"#);
    let preview = |which| {
        let tool = builtin(which, &bench.cwd());
        block_on(tool.preview(call(&args, PLENTY)))
            .unwrap()
            .unwrap()
    };
    let confined = preview(Builtin::Execute);
    assert_eq!(confined.form, PreviewForm::Command);
    let folder = bench.path("").canonicalize().unwrap();
    let folder = format!("folder: {}\n", folder.display());
    assert!(confined.body.starts_with(&folder), "{}", confined.body);
    assert!(
        confined.body.contains("confined by the kernel"),
        "{}",
        confined.body
    );
    assert!(
        confined.body.ends_with("command:\nrm -rf *\n"),
        "{}",
        confined.body
    );
    let free = preview(Builtin::Shell);
    assert!(free.body.contains("not confined"), "{}", free.body);
    let long = json!({"command": "x".repeat(300_000)}).to_string();
    let tool = builtin(Builtin::Shell, &bench.cwd());
    let refused = block_on(tool.preview(call(&params(&long), PLENTY))).unwrap_err();
    assert!(refused.contains("too large to be shown"), "{refused}");
}

fn a_confined_program_has_limits() {
    let bench = Bench::new();
    assert_eq!(
        execute(&bench, "ulimit -c; ulimit -n"),
        "[exit code 0]\n0\n1024"
    );
    // More than a file may have: the program is told so, or ended.
    let told = execute(
        &bench,
        "head -c 2000000000 /dev/zero >large; wc -c <large; rm large",
    );
    assert!(told.contains("1073741824"), "{told}");
}
