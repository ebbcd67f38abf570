//! What calls of command tools promise: every way to end, and that nothing outlives its deadline or its driver. And what
//! stepped tools promise, of code and of commands.
//!
//! This executable plays three parts: the tests, the watchdog of the commands they call, and a driver that can be killed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bench;
mod builtins;
mod code;
mod deadlines;
mod drivers;
mod ends;
mod floods;
mod hooks;
mod http;
mod journal;
mod mcp;
mod programs;
mod registry;
mod sandbox;
mod server;
mod surroundings;

use libtest_mimic::{Arguments, Trial};

fn main() {
    holdpoint_tools::enter();
    drivers::enter();
    surroundings::enter();
    sandbox::enter();
    builtins::enter();
    let tests = [
        ends::tests(),
        deadlines::tests(),
        drivers::tests(),
        hooks::tests(),
        http::tests(),
        http::endings::tests(),
        http::secrets::tests(),
        registry::tests(),
        code::tests(),
        mcp::tests(),
        programs::tests(),
        floods::tests(),
        builtins::tests(),
        sandbox::tests(),
    ];
    libtest_mimic::run(
        &Arguments::from_args(),
        tests.into_iter().flatten().collect(),
    )
    .exit();
}

/// Names tests by their functions.
#[macro_export]
macro_rules! trials {
    ($($test:ident),* $(,)?) => {
        /// The tests of this module.
        pub(crate) fn tests() -> Vec<$crate::Trial> {
            let (_, module) = module_path!().split_once("::").unwrap_or_default();
            vec![$($crate::Trial::test(format!("{module}::{}", stringify!($test)), || { $test(); Ok(()) })),*]
        }
    };
}
