//! The tools of an agent.

use holdpoint_core::{ToolSpec, is_name};
use holdpoint_yaml::{Content, Field, Report, quoted, suggest};
use serde::Serialize;

use crate::{
    builtin,
    family::Family,
    name,
    parts::{Parts, Unsaid},
    tool,
};

/// All tools of an agent, and the names that could be read even where the tool could not.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Tools {
    pub(crate) specs: Vec<ToolSpec>,
    pub(crate) names: Vec<String>,
}

/// Reads the list of tools. A subagent may name tools of the agent above.
pub(crate) fn read_all(
    field: &Field<'_>,
    unsaid: Unsaid<'_>,
    family: &mut Family<'_>,
    report: &mut Report,
) -> Option<Tools> {
    let mut items = field.items("begin every tool with `- name: …`", report)?;
    name::label(field, &mut items);
    for item in &mut items {
        if let Some(name) = builtin::peek(item).filter(|name| is_name(name)) {
            item.path = format!("{}[{name}]", field.path);
        }
    }
    let mut tools = Tools::default();
    for item in items {
        let named = if let (Content::Text(name), Unsaid::Inherited(parent)) =
            (&item.node.content, unsaid)
        {
            let inherited = inherit(&item, name, parent, family, report);
            tools.specs.extend(inherited);
            Some(name.as_str())
        } else if builtin::is_meant(&item) {
            tools.specs.extend(builtin::read(&item, family, report));
            builtin::peek(&item)
        } else {
            tools.specs.extend(tool::read(&item, family, report));
            name::peek(&item)
        };
        let Some(name) = named else { continue };
        if tools.names.iter().any(|other| other == name) {
            item.problem(
                &format!("a second tool is called {}", quoted(name)),
                "give each tool its own name",
                report,
            );
        } else {
            tools.names.push(name.to_owned());
        }
    }
    Some(tools)
}

/// The tool of the agent above that has this name.
fn inherit(
    item: &Field<'_>,
    name: &str,
    parent: &Parts,
    family: &mut Family<'_>,
    report: &mut Report,
) -> Option<ToolSpec> {
    // Tools that could not be read were reported already.
    let above = parent.tools.as_ref()?;
    if above.names.iter().any(|known| known == name) {
        let spec = above.specs.iter().find(|spec| spec.name == name)?;
        return family.inherit(spec, item, report);
    }
    let names: Vec<_> = above.names.iter().map(String::as_str).collect();
    let known = match names.as_slice() {
        [] => "it has none; write the tool out: `{name: …, command: […]}`".to_owned(),
        [..] => format!(
            "its tools are {}; one of its own is written out: `{{name: …, command: […]}}`",
            names.join(", ")
        ),
    };
    let message = format!("the agent above has no tool called {}", quoted(name));
    item.problem(&message, &suggest(name, &names, &known), report);
    None
}
