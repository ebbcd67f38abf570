//! What a policy's words say, through the public interface.

use holdpoint_core::{Effect, Params, Principal, PrincipalKind};
use holdpoint_policy::{Agent, Condition, Facts, Template, Tool, Unclear};

mod condition;
mod hostile;
mod template;

/// A call by a subagent, for a user with a role and a permission.
struct Call {
    args: Params,
    user: Principal,
}

impl Call {
    fn new(args: &str) -> Self {
        let mut user = Principal::new(PrincipalKind::User, "acme", "李雷");
        user.roles = ["clerk".to_owned(), "财务".to_owned()].into();
        user.permissions = ["pay".to_owned()].into();
        Self {
            args: match Params::parse(args) {
                Ok(args) => args,
                Err(error) => panic!("{args}: {error}"),
            },
            user,
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            args: &self.args,
            tool: Tool {
                name: "pay",
                version: "2",
                effect: Effect::Write,
            },
            agent: Agent {
                name: "reader",
                path: "researcher#1/reader#2",
            },
            user: &self.user,
        }
    }

    fn says(&self, condition: &str) -> Result<bool, Unclear> {
        match Condition::compile(condition) {
            Ok(condition) => condition.evaluate(&self.facts()),
            Err(error) => panic!("{condition}: {error}; {}", error.help()),
        }
    }

    fn renders(&self, template: &str) -> Result<String, Unclear> {
        match Template::compile(template) {
            Ok(template) => template.render(&self.facts()),
            Err(error) => panic!("{template}: {error}; {}", error.help()),
        }
    }
}
