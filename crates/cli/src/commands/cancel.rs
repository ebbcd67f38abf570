//! `holdpoint cancel`: asks for a run to be stopped.

use holdpoint_store::Holder;

use crate::{
    args::Thread,
    exit::Exit,
    failure::Failure,
    pending,
    session::{IfMissing, Output, Session},
    terminal, thread_name,
};

/// Records the request. Whoever drives the run ends it; if that is nobody, this process does.
///
/// # Errors
///
/// There is no such thread, its run is over, or the store fails.
pub(crate) async fn cancel(args: &Thread) -> Result<Exit, Failure> {
    let session = Session::open_to_drive(&args.threads, IfMissing::Refuse).await?;
    let key = thread_name::resolve(&session, &args.thread).await?;
    let state = session.state(&key).await?;
    session.screen.turn_to(key.thread, Some(&state));
    let submitted = Box::pin(session.engine.cancel(&session.by, &key, None)).await?;
    let head = session.engine.store().load(&key).await?;
    // Another process that is alive was told, and ends the run by itself.
    let ours = head
        .and_then(|head| head.lease)
        .is_some_and(|lease| lease.holder != Holder::MaybeAlive);
    if ours {
        session.see_through(&key, submitted).await?;
    }
    let (_, view) = session.view(&key).await?;
    match session.output {
        Output::Json => terminal::json(&view),
        Output::Plain if !view.interrupts.is_empty() => {
            terminal::data(&pending::render(&view, &session.place));
        }
        Output::Plain if view.cancel_requested => {
            let name = pending::thread_word(&view);
            terminal::data(&format!(
                "{name} is being cancelled: calls in flight are awaited"
            ));
        }
        Output::Plain => {
            terminal::data(&format!("{} {}", pending::thread_word(&view), view.status));
        }
    }
    Ok(Exit::Done)
}
