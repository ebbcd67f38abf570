//! `metrics`: who may read how a server does.

use holdpoint_yaml::{Field, Fields, Report};

/// Who may read a server's metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MetricsAccess {
    /// Whoever has a key with the permission `metrics.read`.
    #[default]
    Permitted,
    /// Everybody who reaches the server.
    Open,
}

pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<MetricsAccess> {
    let fields = Fields::open(field, &["open"], report)?;
    let Some(open) = fields.optional("open") else {
        return Some(MetricsAccess::default());
    };
    Some(if open.flag(report)? {
        MetricsAccess::Open
    } else {
        MetricsAccess::Permitted
    })
}
