//! `holdpoint resume`: answers what a run waits for, and goes on with it.

use holdpoint_core::{Answer, Answers, Decision, InterruptId, State};
use holdpoint_engine::Error;
use serde_json::json;

use crate::{
    args::{Decision as Flags, Resume},
    commands::stops::{self, Asking},
    exit::Exit,
    failure::Failure,
    session::{IfMissing, Session, Watched},
    thread_name,
};

/// Answers an interrupt, and drives or follows the run until it stops again.
///
/// # Errors
///
/// The answer is refused and nothing has changed; the store fails.
pub(crate) async fn resume(args: &Resume) -> Result<Exit, Failure> {
    let session = Session::open_to_drive(&args.threads, IfMissing::Refuse).await?;
    let key = thread_name::resolve(&session, &args.thread).await?;
    let state = session.state(&key).await?;
    session.screen.turn_to(key.thread, Some(&state));
    let Some(answers) = answers(&args.decision)? else {
        if state.active().is_none() || args.interrupt.is_some() {
            choose(&state, args.interrupt)?;
        }
        let watched = session.watch(&key, session.engine.drive(&key)).await?;
        let asking = match watched {
            Watched::ToTheStop => Asking::Where(args.interrupt),
            Watched::Left => Asking::Never,
        };
        return stops::to_the_last(&session, &key, asking).await;
    };
    // One that is named need not be pending: whether it is, and who decided otherwise, the engine knows.
    let answers = match (answers, args.interrupt) {
        (Answers::Only(answer), Some(interrupt)) => vec![(interrupt, answer)],
        (Answers::Only(answer), None) => vec![(choose(&state, None)?, answer)],
        (Answers::ByInterrupt(answers), None) => answers,
        (Answers::ByInterrupt(_), Some(_)) => {
            let both = "`--interrupt` says nothing beside answers that name their interrupts";
            return Err(Failure::usage(both));
        }
    };
    let submitted = session.engine.answer_all(&session.by, &key, answers);
    let submitted = Box::pin(submitted).await?;
    session.see_through(&key, submitted).await?;
    stops::to_the_last(&session, &key, Asking::Never).await
}

fn answers(flags: &Flags) -> Result<Option<Answers>, Failure> {
    if flags.approve {
        return Ok(Some(Answers::Only(Answer::All(Decision::APPROVE))));
    }
    if let Some(message) = &flags.reject {
        let message = message.clone();
        return Ok(Some(Answers::Only(Answer::All(Decision::Reject {
            message,
        }))));
    }
    match &flags.decisions {
        Some(text) => Ok(Some(Answers::parse(text).map_err(Error::from)?)),
        None => Ok(None),
    }
}

/// The one interrupt that can be meant.
fn choose(state: &State, named: Option<InterruptId>) -> Result<InterruptId, Failure> {
    let pending: Vec<InterruptId> = state.interrupts.keys().copied().collect();
    match (named, pending.as_slice()) {
        (Some(id), pending) if pending.contains(&id) => Ok(id),
        (Some(id), _) => Err(Failure::refused(
            "not_pending",
            format!("interrupt `{id}` is not pending"),
        )
        .help("`holdpoint show` says what is pending")
        .details(json!({"interrupt": id}))),
        (None, [only]) => Ok(*only),
        (None, []) => Err(Failure::refused(
            "not_pending",
            format!(
                "nothing is pending in thread `{}/{}`",
                state.agent, state.session
            ),
        )
        .help("`holdpoint show` says how it stands")),
        (None, several) => {
            let list: Vec<String> = several.iter().map(|id| format!("`{id}`")).collect();
            Err(Failure::refused(
                "ambiguous",
                format!("several interrupts are pending: {}", list.join(", ")),
            )
            .help("say which one with `--interrupt`, or give a map from interrupt ids to answers")
            .details(json!({"pending": several})))
        }
    }
}
