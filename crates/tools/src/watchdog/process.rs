//! The watchdog's own process. Plain `std` and one thread that waits: it starts on the path of every call.

use std::{
    io::{self, BufRead, PipeReader, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags},
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};

use super::{
    clock,
    pipe::{Input, Output, READ, is_ready, non_blocking, wait_for, wait_until_ready},
    protocol::{Captured, End, MAX_LINE, MAX_STDOUT, Order, Report, Speech, VERSION},
    relay,
    surroundings::Surroundings,
};

/// `poll` does not count the time the machine sleeps, so it looks at the clock this often.
pub(super) const SLICE: Duration = Duration::from_secs(1);

/// How long a killed program may take to be gone. One that hangs in the kernel is reported without being waited for.
pub(super) const DYING: Duration = Duration::from_secs(1);

/// Takes one order from standard input, carries it out, and reports on standard output.
pub(super) fn watch() {
    send(&Report::Ready);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    // A driver that died while it wrote its order gets nothing started.
    if read.is_err() || !line.ends_with('\n') {
        return;
    }
    match begin(&line) {
        Ok((mut program, deadline)) => {
            // INVARIANT: before the program gets its arguments, so that the driver can kill what it must answer for.
            send(&Report::Started {
                pid: program.group.as_raw_pid(),
            });
            let end = match program.speech {
                Speech::Whole => program.supervise(deadline),
                Speech::Relayed | Speech::Served => relay::supervise(&mut program, deadline),
            };
            if let Some(end) = end {
                send(&program.report(end));
            }
        }
        Err(reason) => send(&Report::NotStarted { reason }),
    }
}

/// A report that cannot be delivered has nobody who waits for it.
fn send(report: &Report) {
    let mut stdout = io::stdout().lock();
    let _ = stdout
        .write_all(report.to_line().as_bytes())
        .and_then(|()| stdout.flush());
}

fn begin(line: &str) -> Result<(Program, Duration), String> {
    let order: Order =
        serde_json::from_str(line).map_err(|error| format!("the order cannot be read: {error}"))?;
    if order.v != VERSION {
        let theirs = order.v;
        return Err(format!(
            "the driver speaks version {theirs} of the watchdog's protocol, this executable {VERSION}"
        ));
    }
    let deadline = Duration::from_micros(order.deadline);
    if clock::now() >= deadline {
        return Err("its time was over before it could be started".to_owned());
    }
    if is_ready(io::stdin()) {
        return Err("the driver is gone".to_owned());
    }
    Ok((Program::start(order)?, deadline))
}

/// A program that was started, with everything it says.
pub(super) struct Program {
    child: Child,
    group: Pid,
    /// Readable once the program has ended. It is not reaped then, so its process group's number is not reused.
    pub(super) ended: PipeReader,
    pub(super) stdin: Input,
    pub(super) stdout: Output<ChildStdout>,
    pub(super) stderr: Output<ChildStderr>,
    pub(super) speech: Speech,
    surroundings: Surroundings,
}

impl Program {
    /// Fails only if it is certain that nothing ran.
    fn start(order: Order) -> Result<Self, String> {
        let Some((name, arguments)) = order.argv.split_first() else {
            return Err("the command is empty".to_owned());
        };
        if !Path::new(&order.cwd).is_dir() {
            return Err(format!(
                "the folder `{}` to run it in does not exist",
                order.cwd
            ));
        }
        // Before the program: a failure here must not leave one running.
        let (ended, announce) =
            wait_elsewhere().map_err(|error| format!("the watchdog failed: {error}"))?;
        let (mut command, surroundings) = Surroundings::of(&order, name, arguments)?;
        for (name, value) in order.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command
            .current_dir(&order.cwd)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| explain(name, &error))?;
        let group = Pid::from_child(&child);
        // It is fine if the waiting thread is gone: then `ended` is readable, and the program is killed at once.
        let _ = announce.send(group);
        let stdin = Input::new(
            non_blocking(child.stdin.take()),
            order.stdin.into_bytes(),
            order.speech,
        );
        let most = match order.speech {
            Speech::Whole => MAX_STDOUT,
            // A line that is not too long is always taken out before there is no room for what is read next.
            Speech::Relayed | Speech::Served => MAX_LINE + READ,
        };
        let stdout = Output::new(non_blocking(child.stdout.take()), most);
        let stderr = Output::new(non_blocking(child.stderr.take()), order.stderr.bytes());
        Ok(Self {
            child,
            group,
            ended,
            stdin,
            stdout,
            stderr,
            speech: order.speech,
            surroundings,
        })
    }

    /// Returns once the whole group is dead; without an end if that is not known, or nobody is left to hear of it.
    fn supervise(&mut self, deadline: Duration) -> Option<End> {
        loop {
            let left = deadline.saturating_sub(clock::now());
            self.wait_for_news(left.min(SLICE));
            self.stdin.feed();
            self.stdout.pump();
            self.stderr.pump();
            if is_ready(&self.ended) {
                // INVARIANT: the group is killed before its leader is reaped.
                self.kill();
                self.stdout.drain();
                self.stderr.drain();
                return self.reap();
            }
            if is_ready(io::stdin()) {
                self.kill();
                if self.surroundings.are_cleaned() {
                    wait_until_ready(&self.ended, DYING);
                }
                return None;
            }
            if clock::now() >= deadline {
                self.kill();
                wait_until_ready(&self.ended, DYING);
                self.stdout.drain();
                self.stderr.drain();
                return Some(End::TimedOut);
            }
        }
    }

    pub(super) fn kill(&self) {
        // It is fine if nobody is left in the group.
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    pub(super) fn reap(&mut self) -> Option<End> {
        let status = self.child.wait().ok()?;
        status
            .code()
            .map(End::Code)
            .or_else(|| status.signal().map(End::Signal))
    }

    fn wait_for_news(&self, at_most: Duration) {
        let driver = io::stdin();
        let mut sources = vec![
            PollFd::new(&driver, PollFlags::IN),
            PollFd::new(&self.ended, PollFlags::IN),
        ];
        sources.extend(
            self.stdin
                .pipe
                .iter()
                .map(|pipe| PollFd::new(pipe, PollFlags::OUT)),
        );
        sources.extend(
            self.stdout
                .pipe
                .iter()
                .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        );
        sources.extend(
            self.stderr
                .pipe
                .iter()
                .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        );
        wait_for(&mut sources, at_most);
    }

    fn report(self, end: End) -> Report {
        let stdout = match String::from_utf8(self.stdout.kept) {
            Ok(text) if text.len() <= MAX_STDOUT => Captured::Text(text),
            Ok(text) => Captured::TooLong(text[..text.floor_char_boundary(MAX_STDOUT)].to_owned()),
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                match error.as_bytes().len() {
                    ..=MAX_STDOUT => Captured::NotUtf8(text),
                    _ => Captured::TooLong(text),
                }
            }
        };
        let stderr = String::from_utf8_lossy(&self.stderr.kept).into_owned();
        if let Some(reason) = self.surroundings.failure(end, &stderr) {
            return Report::NotStarted { reason };
        }
        Report::Ended {
            end,
            stdout,
            stderr,
        }
    }
}

/// A thread that waits for the process whose number it is sent, and then closes its end of the pipe.
fn wait_elsewhere() -> io::Result<(PipeReader, mpsc::Sender<Pid>)> {
    let (ended, end) = io::pipe()?;
    let (announce, announced) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let _end = end;
        if let Ok(pid) = announced.recv() {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), ended), Err(Errno::INTR)) {}
        }
    })?;
    Ok((ended, announce))
}

fn explain(name: &str, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return format!(
            "the program `{name}` was not found, or the interpreter that its first line names"
        );
    }
    format!("the program `{name}` could not be executed: {error}")
}
