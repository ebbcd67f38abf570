//! What we sign for ourselves: a text that says something, and that nobody else can have written.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use holdpoint_core::Refusal;
use serde::{Serialize, de::DeserializeOwned};

use super::Keyring;

/// The longest text that is looked at.
const MAX_LEN: usize = 4_096;

/// What a text is for. It is signed with the rest, so that none is ever taken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Leave to answer a question through the API.
    Token,
    /// Leave to open the page of a question, and to answer it there.
    Link,
    /// Leave to open the list of what waits for somebody.
    Waiting,
    /// That a page was shown by us, and what it showed.
    Page,
}

impl Form {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "hpt1",
            Self::Link => "hpl1",
            Self::Waiting => "hpw1",
            Self::Page => "hpp1",
        }
    }
}

/// What is said, signed with the first key of a ring.
pub(crate) fn seal<T: Serialize>(form: Form, said: &T, keys: &Keyring) -> String {
    let body = serde_json::to_vec(said).unwrap_or_default();
    let body = BASE64_URL_SAFE_NO_PAD.encode(body);
    let (key, sign) = keys.signing();
    let said = format!("{}.{key}.{body}", form.as_str());
    let signature = BASE64_URL_SAFE_NO_PAD.encode(sign(said.as_bytes()));
    format!("{said}.{signature}")
}

/// What a text says that was signed with a key of this ring, and which key that was.
///
/// # Errors
///
/// It is none, or nobody here signed it. One answer for all: whoever forges learns nothing.
pub(crate) fn open<T: DeserializeOwned>(
    form: Form,
    text: &str,
    keys: &Keyring,
) -> Result<(T, String), Refusal> {
    let bad = || Refusal::BadPass {
        why: "it is not one of ours",
    };
    if text.len() > MAX_LEN {
        return Err(bad());
    }
    let (said, signature) = text.rsplit_once('.').ok_or_else(bad)?;
    let mut parts = said.split('.');
    let (Some(beginning), Some(key), Some(body), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(bad());
    };
    if beginning != form.as_str() {
        return Err(bad());
    }
    let signature = BASE64_URL_SAFE_NO_PAD
        .decode(signature)
        .map_err(|_| bad())?;
    if !keys.has_signed(key, said.as_bytes(), &signature) {
        return Err(bad());
    }
    let body = BASE64_URL_SAFE_NO_PAD.decode(body).map_err(|_| bad())?;
    let said = serde_json::from_slice(&body).map_err(|_| bad())?;
    Ok((said, key.to_owned()))
}
