//! Asks the person at the terminal, plainly. Whatever is not clearly a decision decides nothing.

use holdpoint_core::{
    Answer, Decision, DecisionKind, EditedAction, InterruptId, Params, parse_strict,
};
use holdpoint_engine::{ActionRequest, Error, InterruptView, ReviewConfig, RunView, Submitted};
use holdpoint_store::ThreadKey;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};

use crate::{failure::Failure, pending, safe_text::line, session::Session, terminal};

/// Reads what the person types.
#[derive(Debug)]
pub(crate) struct Person(BufReader<Stdin>);

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Asked {
    /// It is decided, and the run can go on.
    Decided(Box<Submitted>),
    /// It was not, and may stand differently now: look again.
    LookAgain,
    /// The person left. The question stays.
    Left,
}

/// What came of one prompt.
enum Said<T> {
    This(T),
    /// Ask the same again.
    Again,
    /// The person left.
    Left,
}

impl Person {
    /// The person at this terminal.
    pub(crate) fn new() -> Self {
        Self(BufReader::new(tokio::io::stdin()))
    }

    /// Asks about one interrupt, and sends the answer.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub(crate) async fn ask(
        &mut self,
        session: &Session,
        key: &ThreadKey,
        view: &RunView,
        interrupt: &InterruptView,
    ) -> Result<Asked, Failure> {
        terminal::data(pending::heading(view, interrupt).trim_end());
        let mut decisions = Vec::new();
        let requests = interrupt.value.action_requests.iter();
        for (at, (request, config)) in requests.zip(&interrupt.value.review_configs).enumerate() {
            terminal::data("");
            let shown = pending::action(at + 1, request, config, &interrupt.value);
            terminal::data(shown.trim_end());
            match self.decide(session, key, request, config).await? {
                Some(decision) => decisions.push(decision),
                None => return Ok(Asked::Left),
            }
        }
        self.send(session, key, interrupt.id, decisions).await
    }

    async fn send(
        &self,
        session: &Session,
        key: &ThreadKey,
        interrupt: InterruptId,
        decisions: Vec<Decision>,
    ) -> Result<Asked, Failure> {
        let answer = Answer::ByPosition(decisions);
        let sent = session.engine.answer(&session.by, key, interrupt, answer);
        match Box::pin(sent).await {
            Ok(submitted) => Ok(Asked::Decided(Box::new(submitted))),
            Err(error @ (Error::Refused(_) | Error::AlreadyDecided { .. })) => {
                terminal::note(&format!("not accepted: {}", line(&error.to_string())));
                Ok(Asked::LookAgain)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks until something is decided; `None` if the person left.
    async fn decide(
        &mut self,
        session: &Session,
        key: &ThreadKey,
        request: &ActionRequest,
        config: &ReviewConfig,
    ) -> Result<Option<Decision>, Failure> {
        let allowed = config.allowed_decisions.as_slice();
        let offer: Vec<String> = allowed.iter().map(|kind| hint(*kind, allowed)).collect();
        let prompt = format!("{}, or q to leave it: ", offer.join(", "));
        loop {
            let Some(typed) = self.read(session, &prompt).await else {
                return Ok(None);
            };
            // Whoever sees a form may give the answer itself; no decision has a name like it.
            if allowed.contains(&DecisionKind::Answer)
                && let Ok(value @ Value::Object(_)) = parse_strict(&typed)
            {
                return Ok(Some(Decision::Answer { value }));
            }
            let kind = match choose(&typed, allowed) {
                Choice::Decision(kind) => kind,
                Choice::Leave => return Ok(None),
                Choice::Unclear(why) => {
                    terminal::note(&why);
                    continue;
                }
            };
            match self.complete(session, key, request, kind).await? {
                Said::This(decision) => return Ok(Some(decision)),
                Said::Again => {}
                Said::Left => return Ok(None),
            }
        }
    }

    /// Asks for what else a decision needs.
    async fn complete(
        &mut self,
        session: &Session,
        key: &ThreadKey,
        request: &ActionRequest,
        kind: DecisionKind,
    ) -> Result<Said<Decision>, Failure> {
        Ok(match kind {
            DecisionKind::Approve => Said::This(Decision::APPROVE),
            DecisionKind::Answer => match self.read(session, "the answer, as JSON: ").await {
                Some(text) => match parse_strict(&text) {
                    Ok(value) => Said::This(Decision::Answer { value }),
                    Err(error) => {
                        terminal::note(&format!("not accepted: {}", line(&error.to_string())));
                        Said::Again
                    }
                },
                None => Said::Left,
            },
            DecisionKind::NotCommitted => Said::This(Decision::NotCommitted),
            DecisionKind::Compensate => Said::This(Decision::Compensate),
            DecisionKind::Reject => {
                match self
                    .read(session, "why (the model reads it; may be empty): ")
                    .await
                {
                    Some(why) => Said::This(Decision::Reject {
                        message: (!why.is_empty()).then_some(why),
                    }),
                    None => Said::Left,
                }
            }
            DecisionKind::Respond => {
                match self.read(session, "the tool's answer instead: ").await {
                    Some(message) if !message.is_empty() => {
                        Said::This(Decision::Respond { message })
                    }
                    Some(_) => {
                        terminal::note("an empty answer tells the model nothing");
                        Said::Again
                    }
                    None => Said::Left,
                }
            }
            DecisionKind::Committed => {
                match self.read(session, "what it returned, as JSON: ").await {
                    Some(text) => match parse_strict(&text) {
                        Ok(result) => Said::This(Decision::Committed { result }),
                        Err(error) => {
                            terminal::note(&format!("not accepted: {}", line(&error.to_string())));
                            Said::Again
                        }
                    },
                    None => Said::Left,
                }
            }
            DecisionKind::Edit => return self.edit(session, key, request).await,
        })
    }

    async fn edit(
        &mut self,
        session: &Session,
        key: &ThreadKey,
        request: &ActionRequest,
    ) -> Result<Said<Decision>, Failure> {
        terminal::note("all arguments, as JSON on one line; they replace these:");
        terminal::note(&format!("  {}", line(&request.args.to_string())));
        let Some(text) = self.read(session, "new arguments: ").await else {
            return Ok(Said::Left);
        };
        let checked = match Params::parse(&text) {
            Err(error) => Err(error.to_string()),
            Ok(args) => session
                .engine
                .check_args(key, request.action_id, &args)
                .await?
                .map(|()| args),
        };
        match checked {
            Ok(args) => Ok(Said::This(Decision::Edit {
                edited_action: EditedAction {
                    name: request.name.clone(),
                    args,
                },
            })),
            Err(why) => {
                terminal::note(&format!("not accepted: {}", line(&why)));
                Ok(Said::Again)
            }
        }
    }

    /// One typed line, trimmed; `None` at the end of input or on Ctrl+C.
    async fn read(&mut self, session: &Session, prompt: &str) -> Option<String> {
        terminal::discard_typed_ahead();
        terminal::part(prompt);
        let mut text = String::new();
        let read = tokio::select! {
            // Cancel safe: once we are asked to go nothing is read any more.
            read = self.0.read_line(&mut text) => read.ok(),
            _ = session.leaving().asked() => None,
        };
        match read {
            // A line without its end was cut off by the end of input: nobody pressed enter.
            Some(_) if text.ends_with('\n') => Some(text.trim().to_owned()),
            Some(_) | None => {
                terminal::data("");
                None
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Decision(DecisionKind),
    Leave,
    Unclear(String),
}

/// What was typed: a decision's name, or as much of its beginning as only it has.
fn choose(typed: &str, allowed: &[DecisionKind]) -> Choice {
    let typed = typed.to_lowercase();
    if ["q", "quit"].contains(&typed.as_str()) {
        return Choice::Leave;
    }
    let names = || {
        let names: Vec<&str> = allowed.iter().map(|kind| kind.as_str()).collect();
        names.join(", ")
    };
    let fits: Vec<DecisionKind> = allowed
        .iter()
        .copied()
        .filter(|kind| !typed.is_empty() && kind.as_str().starts_with(&typed))
        .collect();
    let exact = fits.iter().find(|kind| kind.as_str() == typed);
    match (exact, fits.as_slice()) {
        (Some(kind), _) | (None, [kind]) => Choice::Decision(*kind),
        (None, []) => Choice::Unclear(format!("nothing is decided; say one of: {}", names())),
        (None, _) => Choice::Unclear(format!(
            "nothing is decided; `{}` can be several of: {}",
            line(&typed),
            names()
        )),
    }
}

/// A decision's name with the part in brackets that is enough to type.
fn hint(kind: DecisionKind, allowed: &[DecisionKind]) -> String {
    let name = kind.as_str();
    let enough = (1..name.len())
        .find(|length| choose(&name[..*length], allowed) == Choice::Decision(kind))
        .unwrap_or(name.len());
    format!("[{}]{}", &name[..enough], &name[enough..])
}

#[cfg(test)]
mod tests {
    use DecisionKind::{Approve, Committed, Compensate, Edit, NotCommitted, Reject, Respond};

    use super::*;

    #[test]
    fn only_a_clear_beginning_of_an_allowed_decision_decides() {
        let all = [Approve, Edit, Reject, Respond];
        let decided = [
            ("a", Approve),
            ("APPROVE", Approve),
            ("e", Edit),
            ("rej", Reject),
            ("res", Respond),
        ];
        for (typed, kind) in decided {
            assert_eq!(choose(typed, &all), Choice::Decision(kind), "{typed}");
        }
        for typed in [
            "",
            "y",
            "yes",
            "r",
            "re",
            "approved",
            "ok",
            "1",
            "a e",
            "committed",
        ] {
            assert!(matches!(choose(typed, &all), Choice::Unclear(_)), "{typed}");
        }
        assert!(matches!(choose("a", &[Reject]), Choice::Unclear(_)));
        assert_eq!(choose("q", &all), Choice::Leave);
    }

    #[test]
    fn the_hint_shows_what_is_enough() {
        let hints = |allowed: &[DecisionKind]| -> Vec<String> {
            allowed.iter().map(|kind| hint(*kind, allowed)).collect()
        };
        assert_eq!(
            hints(&[Approve, Edit, Reject, Respond]),
            ["[a]pprove", "[e]dit", "[rej]ect", "[res]pond"]
        );
        assert_eq!(
            hints(&[Committed, NotCommitted, Compensate]),
            ["[comm]itted", "[n]ot_committed", "[comp]ensate"]
        );
    }
}
