//! What a person is shown of a call that would be made: not what the model says of it, but what it would do.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// What a call would do, as its tool sees it before it is made.
///
/// It is for people: whoever shows it escapes it for the place where it is shown. Its digest is part of what an answer is
/// bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Preview {
    /// One line: what it is about.
    pub title: String,
    /// The whole of it. It is never cut: what is too long to be shown is not asked about.
    pub body: String,
    /// How the body is to be read.
    pub form: PreviewForm,
    /// What it was made from, and what it would lead to, where a tool can hold on to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

impl Preview {
    /// How long a body may be, in bytes.
    pub const MAX_BODY: usize = 256 << 10;

    /// One that holds on to nothing.
    #[must_use]
    pub fn new(title: impl Into<String>, body: impl Into<String>, form: PreviewForm) -> Self {
        Self {
            title: title.into(),
            body: body.into(),
            form,
            basis: None,
        }
    }

    /// With what it was made from, and what it would lead to.
    #[must_use]
    pub const fn with_basis(mut self, basis: Basis) -> Self {
        self.basis = Some(basis);
        self
    }
}

/// How the body of a [`Preview`] is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PreviewForm {
    /// A unified diff.
    Diff,
    /// What would be executed: where, what and in which environment.
    Command,
    /// Plain text.
    Text,
}

/// What something has to be for a call to do what was shown, and what it is afterwards.
///
/// A tool that is given one does nothing where the state is no longer `before`. When it is asked later whether the call
/// took effect, `after` says that it did, and `before` that it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Basis {
    /// The state that was shown.
    pub before: Digest,
    /// The state that the call leads to.
    pub after: Digest,
}
