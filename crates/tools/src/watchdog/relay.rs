//! A program whose lines go to and fro between it and the driver while it runs.
//!
//! The watchdog never waits for one of the two: a driver that does not listen, or a program that does not read, must not
//! hold up the deadline. What is under way is bounded. Beyond that the program is not read, and so blocks.

use std::{fs::File, io, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionbio, read, write},
    stdio::dup2_stdin,
};

use super::{
    clock,
    pipe::{READ, is_ready, wait_for, wait_until_ready},
    process::{DYING, Program, SLICE},
    protocol::{End, Garbled, MAX_LINE, MAX_RELAYED, Report, Speech},
};

/// The signal by which we kill.
const KILLED: i32 = 9;

/// Returns once the whole group is dead; without an end if that is not known.
pub(super) fn supervise(program: &mut Program, deadline: Duration) -> Option<End> {
    let mut reports = Reports::default();
    // Where this fails, a driver that does not listen can hold us up, but nothing is lost.
    let _ = ioctl_fionbio(io::stdout(), true);
    let end = relay(program, &mut reports, deadline)?;
    // A driver that is still telling the program something learns by this that it is in vain, and listens.
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = dup2_stdin(nothing);
    }
    let _ = ioctl_fionbio(io::stdout(), false);
    while reports.left() > 0 {
        reports.flush().ok()?;
    }
    Some(end)
}

fn relay(program: &mut Program, reports: &mut Reports, deadline: Duration) -> Option<End> {
    let mut lines = Lines::new(program.speech);
    loop {
        let left = deadline.saturating_sub(clock::now());
        wait_for_news(program, reports, left.min(SLICE));
        if listen(program).is_err() || reports.flush().is_err() {
            let by = end(program, End::LetGo);
            // A driver that found nobody to talk to is not why the program ended.
            return match program.reap() {
                Some(End::Signal(KILLED)) | None => Some(by),
                Some(own) => Some(own),
            };
        }
        program.stdin.feed();
        program.stderr.pump();
        let mut passed = Ok(());
        if reports.left() < MAX_LINE {
            program.stdout.pump();
            passed = lines.pass(&mut program.stdout.kept, reports);
        }
        if passed.is_ok() && is_ready(&program.ended) {
            // INVARIANT: the group is killed before its leader is reaped.
            program.kill();
            program.stderr.drain();
            passed = lines.pass_rest(program, reports);
            if passed.is_ok() {
                return program.reap();
            }
        }
        match passed {
            Err(garbled) => return Some(end(program, End::Garbled(garbled))),
            Ok(()) if clock::now() >= deadline => return Some(end(program, End::TimedOut)),
            Ok(()) => {}
        }
    }
}

fn end(program: &mut Program, by: End) -> End {
    program.kill();
    wait_until_ready(&program.ended, DYING);
    program.stderr.drain();
    program.stdout.kept.clear();
    by
}

fn wait_for_news(program: &Program, reports: &Reports, at_most: Duration) {
    let (driver, out) = (io::stdin(), io::stdout());
    let hear = if program.stdin.left() < MAX_LINE {
        PollFlags::IN
    } else {
        // That it hangs up is news in any case.
        PollFlags::empty()
    };
    let mut sources = vec![
        PollFd::new(&driver, hear),
        PollFd::new(&program.ended, PollFlags::IN),
    ];
    if program.stdin.left() > 0 {
        let pipe = program.stdin.pipe.iter();
        sources.extend(pipe.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
    }
    if reports.left() < MAX_LINE {
        let pipe = program.stdout.pipe.iter();
        sources.extend(pipe.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    }
    let pipe = program.stderr.pipe.iter();
    sources.extend(pipe.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    if reports.left() > 0 {
        sources.push(PollFd::new(&out, PollFlags::OUT));
    }
    wait_for(&mut sources, at_most);
}

/// The driver is gone.
struct Gone;

/// Takes what the driver has to say, as far as there is room for it.
fn listen(program: &mut Program) -> Result<(), Gone> {
    let driver = io::stdin();
    let mut sources = [PollFd::new(&driver, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if !poll(&mut sources, Some(&at_once)).is_ok_and(|ready| ready > 0) {
        return Ok(());
    }
    // Whatever it said last: nobody is left to take the program's answer.
    if sources[0].revents().contains(PollFlags::HUP) {
        return Err(Gone);
    }
    if program.stdin.left() >= MAX_LINE {
        return Ok(());
    }
    let mut buffer = [0; READ];
    match read(&driver, &mut buffer) {
        Ok(0) => Err(Gone),
        Ok(count) => {
            program.stdin.push(&buffer[..count]);
            Ok(())
        }
        Err(Errno::INTR | Errno::AGAIN) => Ok(()),
        Err(_) => Err(Gone),
    }
}

/// Reports on their way to the driver.
#[derive(Default)]
struct Reports {
    text: Vec<u8>,
    written: usize,
}

impl Reports {
    fn left(&self) -> usize {
        self.text.len() - self.written
    }

    fn push(&mut self, report: &Report) {
        self.text.drain(..self.written);
        self.written = 0;
        self.text.extend_from_slice(report.to_line().as_bytes());
    }

    /// Writes what fits.
    fn flush(&mut self) -> Result<(), Gone> {
        if self.left() == 0 {
            return Ok(());
        }
        match write(io::stdout(), &self.text[self.written..]) {
            Ok(count) => self.written += count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return Err(Gone),
        }
        Ok(())
    }
}

/// The lines that a program prints.
struct Lines {
    total: usize,
    /// How much it may be in all.
    most: usize,
}

impl Lines {
    const fn new(speech: Speech) -> Self {
        let most = match speech {
            Speech::Whole | Speech::Relayed => MAX_RELAYED,
            Speech::Served => usize::MAX,
        };
        Self { total: 0, most }
    }

    /// Takes whole lines out of what was printed, and reports them.
    fn pass(&mut self, printed: &mut Vec<u8>, reports: &mut Reports) -> Result<(), Garbled> {
        let mut passed = 0;
        while let Some(length) = printed[passed..].iter().position(|byte| *byte == b'\n') {
            self.report(&printed[passed..passed + length], reports)?;
            passed += length + 1;
        }
        printed.drain(..passed);
        if printed.len() > MAX_LINE {
            return Err(Garbled::LongLine);
        }
        Ok(())
    }

    /// Passes what is in the pipe when the program has ended. Its last line needs no newline.
    fn pass_rest(&mut self, program: &mut Program, reports: &mut Reports) -> Result<(), Garbled> {
        loop {
            let more = program.stdout.pump();
            self.pass(&mut program.stdout.kept, reports)?;
            if !more {
                break;
            }
        }
        let rest = std::mem::take(&mut program.stdout.kept);
        if rest.is_empty() {
            return Ok(());
        }
        self.report(&rest, reports)
    }

    fn report(&mut self, line: &[u8], reports: &mut Reports) -> Result<(), Garbled> {
        if line.len() > MAX_LINE {
            return Err(Garbled::LongLine);
        }
        self.total = self.total.saturating_add(line.len() + 1);
        if self.total > self.most {
            return Err(Garbled::TooMuch);
        }
        let text = std::str::from_utf8(line).map_err(|_| Garbled::NotUtf8)?;
        reports.push(&Report::Line {
            text: text.to_owned(),
        });
        Ok(())
    }
}
