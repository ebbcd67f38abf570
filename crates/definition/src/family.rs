//! What all agents of one file share.

use std::collections::BTreeSet;

use holdpoint_core::{Allowed, Limits, McpServer};
use holdpoint_yaml::{Field, Report};
use serde::Serialize;

use crate::{builtin::Workspace, command::Base, names::Names};

/// What subagents may inherit in all, in bytes of its stored form: a small file must not become a large definition.
const ROOM: usize = 4 << 20;

/// What all agents of one file share.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    pub(crate) base: &'a Base,
    pub(crate) names: &'a Names,
    pub(crate) version: String,
    pub(crate) limits: Limits,
    /// What `true` allows a person to say.
    pub(crate) asks: Allowed,
    /// Whether an agent of the file has subagents, so that `task` is a tool.
    pub(crate) has_tasks: bool,
    /// Where built-in tools work.
    pub(crate) workspace: Workspace,
    pub(crate) nodes: Nodes,
    room: usize,
}

/// Names of tools at which a run may stop.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) names: BTreeSet<String>,
    /// Servers whose tools are not known yet.
    pub(crate) servers: Vec<McpServer>,
    /// Some tools could not be read, so that there may be more.
    pub(crate) incomplete: bool,
}

impl<'a> Family<'a> {
    pub(crate) fn new(
        base: &'a Base,
        names: &'a Names,
        version: String,
        limits: Limits,
        asks: Allowed,
    ) -> Self {
        Self {
            base,
            names,
            version,
            limits,
            asks,
            has_tasks: false,
            workspace: Workspace::Unnamed,
            nodes: Nodes::default(),
            room: ROOM,
        }
    }

    /// A copy of what `heir` inherits; `None` if that grows too large, which is reported once.
    pub(crate) fn inherit<T: Clone + Serialize>(
        &mut self,
        value: &T,
        heir: &Field<'_>,
        report: &mut Report,
    ) -> Option<T> {
        if self.room == 0 {
            return None;
        }
        let weight = serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len());
        if weight > self.room {
            let message = format!(
                "what subagents inherit grows larger than {} MiB",
                ROOM >> 20
            );
            let help = "list the `tools` that each of them needs, or have fewer";
            heir.problem(&message, help, report);
            self.room = 0;
            return None;
        }
        self.room -= weight;
        Some(value.clone())
    }
}
