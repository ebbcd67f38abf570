//! A server that is started, killed and started again, always at the same address and on the same store.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process,
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::Duration,
};

use crate::{
    http::Request,
    process::{Running, Watch},
    programs::Build,
    world::{Door, Setting, Timing, World},
};

/// Far longer than a server needs to be ready, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server, alive or dead.
#[derive(Debug)]
pub(crate) struct Service<'a> {
    world: &'a World,
    pub(crate) address: SocketAddr,
    door: Door,
    /// Another build than that of its world.
    build: Option<Build>,
    running: Option<Running>,
}

impl<'a> Service<'a> {
    /// One that is yet to be started.
    pub(crate) fn new(world: &'a World) -> Self {
        Self {
            world,
            address: free_address(),
            door: Door::Open,
            build: None,
            running: None,
        }
    }

    /// One that lets nobody in without a key.
    pub(crate) fn locked(world: &'a World) -> Self {
        let mut service = Self::new(world);
        service.door = Door::Locked;
        service
    }

    /// Makes it one of this build when it is started the next time.
    pub(crate) const fn becomes(&mut self, build: Build) {
        self.build = Some(build);
    }

    /// Starts it, and does not wait until it is ready. Its tools take their time at one place or another.
    pub(crate) fn start(&mut self, timing: Timing) {
        self.start_so(Setting {
            timing,
            ..Setting::PLAIN
        });
    }

    /// Starts it to die when it comes to this point for the nth time.
    pub(crate) fn start_to_die(&mut self, point: &'static str, nth: usize) {
        self.start_so(Setting {
            kill_at: Some((point, nth)),
            ..Setting::PLAIN
        });
    }

    fn start_so(&mut self, setting: Setting) {
        let setting = Setting {
            build: self.build,
            ..setting
        };
        self.running = Some(self.world.serve(self.address, self.door, &setting));
    }

    /// Waits until it is ready.
    pub(crate) fn await_ready(&mut self) -> Result<(), String> {
        let watch = Watch::start();
        let ready = Request::get("/readyz");
        while !ready.send(self.address).is_ok_and(|it| it.status == 200) {
            let is_gone = self.running.as_mut().is_none_or(Running::has_ended);
            if is_gone || watch.elapsed() > PATIENCE {
                let ended = self.running.take().map(Running::kill);
                let explained = ended.map(|ended| ended.explain()).unwrap_or_default();
                return Err(format!("the server does not get ready: {explained}"));
            }
            thread::sleep(Duration::from_millis(3));
        }
        Ok(())
    }

    /// Asks it to go, as whoever deploys a new version does, and waits until it has. Returns how long that took.
    pub(crate) fn let_go(&mut self) -> Result<Duration, String> {
        let Some(running) = self.running.take() else {
            return Err("there is no server".to_owned());
        };
        let watch = Watch::start();
        running.ask_to_go();
        let ended = running.wait();
        if ended.code() == Some(0) {
            return Ok(watch.elapsed());
        }
        Err(format!(
            "the server does not go in peace: {}",
            ended.explain()
        ))
    }

    /// Waits until it has died as it was to, but no longer than this. Returns whether it has.
    pub(crate) fn await_death(&mut self, patience: Duration) -> Result<bool, String> {
        let watch = Watch::start();
        while let Some(running) = &mut self.running {
            if running.has_ended() {
                let ended = self.running.take().map(Running::kill);
                return match ended {
                    Some(ended) if !ended.was_killed() => Err(ended.explain()),
                    Some(_) | None => Ok(true),
                };
            }
            if watch.elapsed() > patience {
                break;
            }
            thread::sleep(Duration::from_millis(3));
        }
        Ok(false)
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        let Some(running) = self.running.take() else {
            return Err("there is no server".to_owned());
        };
        let ended = running.kill();
        if ended.was_killed() {
            return Ok(());
        }
        Err(format!("the server died by itself: {}", ended.explain()))
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }
}

/// An address that nobody has, outside of the range from which clients get theirs: a client that finds no server at an
/// address within it may be connected to itself, and then the next server finds the address taken.
fn free_address() -> SocketAddr {
    const FROM: u16 = 20_000;
    const COUNT: u16 = 10_000;
    /// Several tests may share a process.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(process::id() % 600).unwrap() * 16;
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FROM + own.wrapping_add(next) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
