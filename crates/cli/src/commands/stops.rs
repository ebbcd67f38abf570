//! From one stop of a run to the next: reports it, or asks the person at the terminal and goes on.

use holdpoint_core::InterruptId;
use holdpoint_store::ThreadKey;

use crate::{
    ask::{Asked, Person},
    exit::Exit,
    failure::Failure,
    pending,
    session::{Output, Session, Watched},
    terminal,
};

/// Whether questions are asked where a person sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// They are: all, or at first this one.
    Where(Option<InterruptId>),
    /// They are only reported.
    Never,
}

/// Goes on until the run is over, or waits for somebody who is not here.
///
/// # Errors
///
/// The store fails.
pub(crate) async fn to_the_last(
    session: &Session,
    key: &ThreadKey,
    asking: Asking,
) -> Result<Exit, Failure> {
    let Asking::Where(mut first) = asking else {
        let (state, view) = session.view(key).await?;
        return Ok(session.report(&state, &view));
    };
    let mut person = Person::new();
    loop {
        let (state, view) = session.view(key).await?;
        let chosen = view
            .interrupts
            .iter()
            .find(|interrupt| first.is_none_or(|id| id == interrupt.id))
            .or(view.interrupts.first());
        let Some(interrupt) = chosen else {
            return Ok(session.report(&state, &view));
        };
        if session.output == Output::Json || !terminal::is_interactive() {
            return Ok(session.report(&state, &view));
        }
        first = None;
        session.screen.turn_to(key.thread, Some(&state));
        match person.ask(session, key, &view, interrupt).await? {
            Asked::Decided(submitted) => {
                if session.see_through(key, *submitted).await? == Watched::Left {
                    let (state, view) = session.view(key).await?;
                    return Ok(session.report(&state, &view));
                }
            }
            Asked::LookAgain => {
                // Someone else may have decided, and their process may be at work.
                if session.watch(key, session.engine.drive(key)).await? == Watched::Left {
                    return Ok(Exit::Waiting);
                }
            }
            Asked::Left => {
                let again = format!("resume {}", pending::thread_word(&view));
                terminal::note(&format!(
                    "nothing was decided; go on with: {}",
                    session.place.command(&again)
                ));
                return Ok(Exit::Waiting);
            }
        }
    }
}
