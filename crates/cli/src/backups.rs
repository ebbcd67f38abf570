//! A store that is a backup: why it is not driven, and how it is adopted.

use holdpoint_core::Timestamp;
use holdpoint_engine::Adopted;
use holdpoint_store::discreet;
use serde_json::json;

use crate::{failure::Failure, zone};

/// Says why nothing is done in a backup that nobody has adopted, and what adopting it does. `adopt` is the command that
/// does it.
pub(crate) fn refuse(store_url: &str, made_at: Timestamp, adopt: &str) -> Failure {
    let (store, when) = (discreet(store_url), zone::short(made_at));
    let message = format!("`{store}` is a backup of {when}, and nobody has adopted it");
    let lines = vec![
        format!("error: {message}"),
        "What happened after that is not known in it. If the original went on, payments may be made and questions may be \
         answered there that are still open here, and going on here would do them twice. So a backup is only read."
            .to_owned(),
        "To go on with it, make sure that the original is gone for good, and adopt it. Nothing then goes on by itself: \
         every open question is closed, every write that was begun and not ended becomes a question to a person, every run \
         asks before it goes on and then asks anew for whatever needs a person, and no earlier approval or grant counts."
            .to_owned(),
    ];
    Failure::unusable("not_adopted", message)
        .lines(lines)
        .help(format!("adopt it with: {adopt}"))
        .details(json!({"store": store, "made_at": made_at}))
}

/// What adopting a backup led to, in a line.
pub(crate) fn tell(store_url: &str, adopted: &Adopted) -> String {
    let (store, when) = (discreet(store_url), zone::short(adopted.made_at));
    let count = adopted.asking.len();
    let waits = match count {
        0 => "nothing in it was open".to_owned(),
        1 => "1 thread asks before it goes on".to_owned(),
        count => format!("{count} threads ask before they go on"),
    };
    format!("adopted `{store}`, a backup of {when}: {waits}")
}
