//! The pipes to and from a program. None of them ever blocks the watchdog.

use std::{
    io::{self, Read, Write},
    os::fd::AsFd,
    process::ChildStdin,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::ioctl_fionbio,
};

use super::protocol::Speech;

/// How much is read at once.
pub(super) const READ: usize = 16 << 10;

/// A pipe that cannot be switched would block us past the deadline; without it the program sees it closed.
pub(super) fn non_blocking<P: AsFd>(pipe: Option<P>) -> Option<P> {
    pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok())
}

/// Of a pipe that never carries data: whether its other end is closed.
pub(super) fn is_ready(pipe: impl AsFd) -> bool {
    wait_until_ready(pipe, Duration::ZERO)
}

pub(super) fn wait_until_ready(pipe: impl AsFd, at_most: Duration) -> bool {
    wait_for(&mut [PollFd::new(&pipe, PollFlags::IN)], at_most)
}

pub(super) fn wait_for(sources: &mut [PollFd<'_>], at_most: Duration) -> bool {
    let timeout = Timespec {
        tv_sec: at_most.as_secs().cast_signed(),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    // An interrupted wait is a short one; the caller looks again.
    poll(sources, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// What a program is given on stdin.
pub(super) struct Input {
    pub(super) pipe: Option<ChildStdin>,
    text: Vec<u8>,
    written: usize,
    speech: Speech,
}

impl Input {
    pub(super) fn new(pipe: Option<ChildStdin>, text: Vec<u8>, speech: Speech) -> Self {
        Self {
            pipe,
            text,
            written: 0,
            speech,
        }
    }

    /// How much the program has yet to take.
    pub(super) fn left(&self) -> usize {
        self.text.len() - self.written
    }

    pub(super) fn push(&mut self, text: &[u8]) {
        if self.pipe.is_some() {
            self.text.drain(..self.written);
            self.written = 0;
            self.text.extend_from_slice(text);
        }
    }

    /// Writes what fits. Closes the pipe when the program does not want it, or all is written that ever will be.
    pub(super) fn feed(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        if self.speech == Speech::Whole || self.written < self.text.len() {
            match pipe.write(&self.text[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if is_temporary(&error) => return,
                Err(_) => {
                    self.pipe = None;
                    self.written = self.text.len();
                }
            }
        }
        if self.speech == Speech::Whole && self.written == self.text.len() {
            self.pipe = None;
        }
    }
}

/// What a program prints, as far as it is kept: one byte more than the limit shows that there was more.
pub(super) struct Output<P> {
    pub(super) pipe: Option<P>,
    pub(super) kept: Vec<u8>,
    limit: usize,
}

impl<P: Read> Output<P> {
    pub(super) fn new(pipe: Option<P>, limit: usize) -> Self {
        Self {
            pipe,
            kept: Vec::new(),
            limit,
        }
    }

    /// Reads once, and says whether there may be more. What is over the limit is dropped, so the program never blocks.
    pub(super) fn pump(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        let mut buffer = [0; READ];
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
    pub(super) fn drain(&mut self) {
        while self.kept.len() <= self.limit && self.pump() {}
    }
}

pub(super) fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}
