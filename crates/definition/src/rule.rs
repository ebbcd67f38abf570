//! `when` and `rules` of a gate: in which cases a person is asked.

use holdpoint_core::{Rule, Ruling};
use holdpoint_yaml::{Field, Fields, Report};

use crate::words;

/// What `default` and a rule may say.
pub(crate) const RULINGS: [(&str, Ruling); 3] = [
    ("allow", Ruling::Allow),
    ("interrupt", Ruling::Interrupt),
    ("deny", Ruling::Deny),
];

/// `when` or `rules`, or neither: then a person is always asked.
pub(crate) fn read_cases(
    fields: &Fields<'_>,
    always_ask: bool,
    report: &mut Report,
) -> Option<(Vec<Rule>, Ruling)> {
    match (fields.optional("when"), fields.optional("rules")) {
        (None, None) => Some((Vec::new(), Ruling::Interrupt)),
        (Some(when), None) => {
            if always_ask {
                void(&when, "`when`", report);
            }
            let when = words::condition(&when, report)?;
            let then = Ruling::Interrupt;
            Some((vec![Rule { when, then }], Ruling::Allow))
        }
        (None, Some(rules)) => {
            let rules = read_rules(&rules, always_ask, report)?;
            Some((rules, Ruling::Interrupt))
        }
        (Some(when), Some(rules)) => {
            let help = "make `when` a rule: `{when: …, then: interrupt}`";
            when.problem("`when` cannot stand beside `rules`", help, report);
            words::condition(&when, report);
            read_rules(&rules, always_ask, report);
            None
        }
    }
}

fn void(field: &Field<'_>, what: &str, report: &mut Report) {
    let message = format!("{what} says nothing beside `always_ask`");
    field.problem(&message, "remove one of them", report);
}

fn read_rules(field: &Field<'_>, always_ask: bool, report: &mut Report) -> Option<Vec<Rule>> {
    let help = "begin every rule with `- when: …`, and say what is to happen: `then: allow`";
    let items = field.items(help, report)?;
    if items.is_empty() {
        field.problem(
            "must not be empty",
            "without rules a person is asked",
            report,
        );
        return None;
    }
    let rules: Vec<_> = items
        .iter()
        .map(|item| read_rule(item, always_ask, report))
        .collect();
    let rules = rules.into_iter().collect::<Option<Vec<Rule>>>()?;
    if !always_ask && rules.iter().all(|rule| rule.then == Ruling::Interrupt) {
        let message = "every rule asks, and so does a call that no rule is about";
        let help =
            "say `when` to ask in one case only, or end with `{when: \"true\", then: allow}`";
        report.warning(field.node.at, &field.path, message, help);
    }
    Some(rules)
}

fn read_rule(item: &Field<'_>, always_ask: bool, report: &mut Report) -> Option<Rule> {
    let fields = Fields::open(item, &["when", "then"], report)?;
    let when = fields
        .required("when", "say when the rule holds", report)
        .and_then(|field| words::condition(&field, report));
    let help = "say what happens then: allow, interrupt or deny";
    let then = fields.required("then", help, report).and_then(|field| {
        let then = field.one_of("what a rule can do", &RULINGS, report)?;
        if always_ask && then == Ruling::Allow {
            void(&field, "`allow`", report);
        }
        Some(then)
    });
    Some(Rule {
        when: when?,
        then: then?,
    })
}
