//! What is said alike of every tool that reaches outside: how long a call may take, and who may cause one.

use holdpoint_core::{Effect, Span, ToolSpec};
use holdpoint_yaml::{Field, Fields, Report};

/// `timeout`, `settle` and `permissions`, every default filled in.
pub(crate) struct Bounds {
    pub(crate) timeout: Span,
    pub(crate) settle: Span,
    pub(crate) permissions: Vec<String>,
}

impl Bounds {
    pub(crate) fn read(fields: &Fields<'_>, report: &mut Report) -> Option<Self> {
        let timeout = match fields.optional("timeout") {
            None => Some(ToolSpec::DEFAULT_TIMEOUT),
            Some(field) => field.positive_duration(report),
        };
        let settle = match fields.optional("settle") {
            None => Some(ToolSpec::DEFAULT_SETTLE),
            Some(field) => field.duration(report),
        };
        let permissions = match fields.optional("permissions") {
            None => Some(Vec::new()),
            Some(field) => field.texts("list the permissions, for instance [refunds]", report),
        };
        Some(Self {
            timeout: timeout?,
            settle: settle?,
            permissions: permissions?.into_iter().map(str::to_owned).collect(),
        })
    }
}

/// What repeating a call would do.
pub(crate) fn read_effect(field: &Field<'_>, report: &mut Report) -> Option<Effect> {
    let words = [
        ("read", Effect::Read),
        ("idempotent", Effect::Idempotent),
        ("write", Effect::Write),
    ];
    field.one_of("an effect", &words, report)
}
