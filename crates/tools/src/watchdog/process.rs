//! The watchdog's own process. Plain `std` and one thread that waits: it starts on the path of every call.

use std::{
    io::{self, BufRead, PipeReader, Read, Write},
    os::{
        fd::AsFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionbio},
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};

use super::{
    clock,
    protocol::{Captured, End, MAX_STDERR, MAX_STDOUT, Order, Report, VERSION},
};

/// `poll` does not count the time the machine sleeps, so it looks at the clock this often.
const SLICE: Duration = Duration::from_secs(1);

/// How long a killed program may take to be gone. One that hangs in the kernel is reported without being waited for.
const DYING: Duration = Duration::from_secs(1);

/// Takes one order from standard input, carries it out, and reports on standard output.
pub(super) fn watch() {
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
            if let Some(end) = program.supervise(deadline) {
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
struct Program {
    child: Child,
    group: Pid,
    /// Readable once the program has ended. It is not reaped then, so its process group's number is not reused.
    ended: PipeReader,
    stdin: Input,
    stdout: Output<ChildStdout>,
    stderr: Output<ChildStderr>,
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
        let mut child = Command::new(name)
            .args(arguments)
            .current_dir(&order.cwd)
            .envs(order.env)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| explain(name, &error))?;
        let group = Pid::from_child(&child);
        // It is fine if the waiting thread is gone: then `ended` is readable, and the program is killed at once.
        let _ = announce.send(group);
        let stdin = Input {
            pipe: non_blocking(child.stdin.take()),
            text: order.stdin.into_bytes(),
            written: 0,
        };
        let stdout = Output::new(non_blocking(child.stdout.take()), MAX_STDOUT);
        let stderr = Output::new(non_blocking(child.stderr.take()), MAX_STDERR);
        Ok(Self {
            child,
            group,
            ended,
            stdin,
            stdout,
            stderr,
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
                return None;
            }
            if clock::now() >= deadline {
                self.kill();
                wait_until_ready(&self.ended, DYING);
                self.stderr.drain();
                return Some(End::TimedOut);
            }
        }
    }

    fn kill(&self) {
        // It is fine if nobody is left in the group.
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    fn reap(&mut self) -> Option<End> {
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
        let stdout = if self.stdout.kept.len() > MAX_STDOUT {
            Captured::TooLong
        } else {
            String::from_utf8(self.stdout.kept).map_or(Captured::NotUtf8, Captured::Text)
        };
        let stderr = String::from_utf8_lossy(&self.stderr.kept).into_owned();
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

/// A pipe that cannot be switched would block us past the deadline; without it the program sees it closed.
fn non_blocking<P: AsFd>(pipe: Option<P>) -> Option<P> {
    pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok())
}

/// Of a pipe that never carries data: whether its other end is closed.
fn is_ready(pipe: impl AsFd) -> bool {
    wait_until_ready(pipe, Duration::ZERO)
}

fn wait_until_ready(pipe: impl AsFd, at_most: Duration) -> bool {
    wait_for(&mut [PollFd::new(&pipe, PollFlags::IN)], at_most)
}

fn wait_for(sources: &mut [PollFd<'_>], at_most: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: at_most.as_secs().cast_signed(),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    // An interrupted wait is a short one; the caller looks again.
    poll(sources, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// What a program is given on stdin.
struct Input {
    pipe: Option<ChildStdin>,
    text: Vec<u8>,
    written: usize,
}

impl Input {
    /// Writes what fits, and closes the pipe when all is written or the program does not want it.
    fn feed(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(&self.text[self.written..]) {
            Ok(count) => self.written += count,
            Err(error) if is_temporary(&error) => return,
            Err(_) => self.written = self.text.len(),
        }
        if self.written == self.text.len() {
            self.pipe = None;
        }
    }
}

/// What a program prints, as far as it is kept: one byte more than the limit shows that there was more.
struct Output<P> {
    pipe: Option<P>,
    kept: Vec<u8>,
    limit: usize,
}

impl<P: Read> Output<P> {
    fn new(pipe: Option<P>, limit: usize) -> Self {
        Self {
            pipe,
            kept: Vec::new(),
            limit,
        }
    }

    /// Reads once, and says whether there may be more. What is over the limit is dropped, so the program never blocks.
    fn pump(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        let mut buffer = [0; 16 << 10];
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                let room = (self.limit + 1).saturating_sub(self.kept.len());
                self.kept.extend_from_slice(&buffer[..count.min(room)]);
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.pipe = None,
        }
        false
    }

    /// Reads what a program left in the pipe when it ended. Does not wait for one that escaped with the pipe still open.
    fn drain(&mut self) {
        while self.kept.len() <= self.limit && self.pump() {}
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}
