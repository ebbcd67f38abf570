//! `holdpoint pause` and `holdpoint continue`: a run stands still, and goes on.

use crate::{
    args::Thread,
    commands::stops::{self, Asking},
    exit::Exit,
    failure::Failure,
    pending,
    session::{IfMissing, Output, Session},
    terminal, thread_name,
};

/// Records the request. Whoever drives the run heeds it.
///
/// # Errors
///
/// There is no such thread, its run is over, or the store fails.
pub(crate) async fn pause(args: &Thread) -> Result<Exit, Failure> {
    let session = Session::open_to_drive(&args.threads, IfMissing::Refuse).await?;
    let key = thread_name::resolve(&session, &args.thread).await?;
    drop(Box::pin(session.engine.pause(&session.by, &key, None)).await?);
    let (_, view) = session.view(&key).await?;
    match session.output {
        Output::Json => terminal::json(&view),
        Output::Plain => {
            let in_flight = || {
                let name = pending::thread_word(&view);
                format!("{name} is being paused: what is in flight is awaited")
            };
            let stillness = pending::stillness(&view, &session.place);
            terminal::data(&stillness.unwrap_or_else(in_flight));
        }
    }
    Ok(Exit::Done)
}

/// Lets it go on, and drives or follows it until it stops again.
///
/// # Errors
///
/// There is no such thread, its run is over, or the store fails.
pub(crate) async fn go_on(args: &Thread) -> Result<Exit, Failure> {
    let session = Session::open_to_drive(&args.threads, IfMissing::Refuse).await?;
    let key = thread_name::resolve(&session, &args.thread).await?;
    let state = session.state(&key).await?;
    session.screen.turn_to(key.thread, Some(&state));
    let submitted = Box::pin(session.engine.unpause(&session.by, &key, None)).await?;
    session.see_through(&key, submitted).await?;
    stops::to_the_last(&session, &key, Asking::Never).await
}
