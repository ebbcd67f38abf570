//! What the interrupts API takes, as JSON. What it shows is [`holdpoint_engine::question::Interrupt`].

use holdpoint_core::{ActionId, Answer, Digest};
use holdpoint_engine::{
    Question,
    question::{Reply, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::problem::Problem;

/// What is said to an interrupt.
///
/// `approved`, with what the question asks for besides; or, where an agent asks, `decisions`, one for each action.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// Whether it is approved. An approval or a review must say so; for other kinds, who says nothing does not object.
    approved: Option<bool>,
    /// What is chosen of the options.
    option_id: Option<String>,
    /// What is put in.
    input: Option<Value>,
    /// Why, or what else there is to say.
    #[serde(default)]
    comment: String,
    /// Who says it: the caller, as their key names them. It may be left out.
    user_id: Option<String>,
    /// What the answering program wants to keep with it.
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// The digest of the call that whoever answers has seen; where there are several, a map from `action_id` to it. An
    /// answer that has seen something else than what would run is refused.
    #[schema(value_type = Option<Object>)]
    params_hash: Option<Value>,
    /// Where an agent asks: what is decided on each action, in order or by `action_id`.
    #[schema(value_type = Option<Vec<Object>>, example = json!([{"type": "approve"}]))]
    decisions: Option<Value>,
}

impl Said {
    /// What was seen of the calls that a question is about.
    ///
    /// # Errors
    ///
    /// It is said in another way than the question needs.
    pub(crate) fn seen(&self, question: &Question) -> Result<Vec<(ActionId, Digest)>, Problem> {
        let Some(given) = &self.params_hash else {
            return Ok(Vec::new());
        };
        let bad = |error: &str| Problem::new("bad_answer", format!("`params_hash`: {error}"));
        let digest = |value: &Value| {
            let digest = serde_json::from_value::<Digest>(value.clone());
            digest.map_err(|_| bad("a digest is `sha256:` and 64 hex digits"))
        };
        let asks = question.interrupt.asks.iter();
        let calls = asks.filter(|ask| ask.subject.params_hash().is_some());
        let calls: Vec<ActionId> = calls.map(|ask| ask.action_id).collect();
        match (given, calls.as_slice()) {
            (_, []) => Err(bad("the question is not about a call")),
            (Value::Object(given), _) => {
                let seen = given.iter().map(|(id, value)| {
                    let id: ActionId = id.parse().map_err(|_| bad("a key is no `action_id`"))?;
                    Ok((id, digest(value)?))
                });
                seen.collect()
            }
            (one, [only]) => Ok(vec![(*only, digest(one)?)]),
            (_, _) => Err(bad(
                "the question is about several calls: give a map from `action_id` to digests",
            )),
        }
    }

    /// As the engine takes it.
    ///
    /// # Errors
    ///
    /// Somebody speaks for somebody else, or says the same thing in two ways.
    pub(crate) fn into_reply(self, name: &str) -> Result<Reply, Problem> {
        let bad = |error: String| Problem::new("bad_answer", error);
        if let Some(user) = self.user_id.filter(|user| user != name) {
            let error = format!(
                "`user_id` is `{user}`, but you are `{name}`: nobody answers for somebody else"
            );
            return Err(bad(error));
        }
        let Some(decisions) = self.decisions else {
            return Ok(Reply::Response(Box::new(Response {
                approved: self.approved,
                option_id: self.option_id.filter(|it| !it.is_empty()),
                input: self.input,
                comment: self.comment,
                metadata: self.metadata,
                ..Response::default()
            })));
        };
        if self.approved.is_some() || self.option_id.is_some() || self.input.is_some() {
            return Err(bad(
                "say either `decisions` or `approved`, `option_id` and `input`, not both"
                    .to_owned(),
            ));
        }
        let text = json!({ "decisions": decisions }).to_string();
        let answer = Answer::parse(&text).map_err(holdpoint_engine::Error::from)?;
        Ok(Reply::Decisions(answer))
    }
}

/// Why an interrupt is rejected.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rejected {
    /// Why.
    #[serde(default)]
    pub(crate) comment: String,
}

impl Rejected {
    pub(crate) fn into_reply(self) -> Reply {
        Reply::Response(Box::new(Response::reject(self.comment)))
    }
}

/// An interrupt to be raised: what is described here is read by [`holdpoint_engine::question::InterruptOptions`].
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "it only describes")]
pub(crate) struct NewInterrupt {
    /// The workflow that asks.
    #[schema(example = "release", min_length = 1)]
    workflow_id: String,
    /// The node of it. It has one question pending at a time.
    #[schema(required = false, example = "deploy")]
    node_id: String,
    /// `approval`, `input`, `review`, `breakpoint` or `error`.
    #[schema(example = "approval")]
    r#type: String,
    /// In a few words.
    #[schema(required = false, example = "Deploy 2.0?")]
    title: String,
    /// In more words.
    #[schema(required = false)]
    description: String,
    /// What the person needs to see.
    data: Option<Value>,
    /// What they may choose from: `id`, `label`, `description`, `is_default`.
    #[schema(required = false, value_type = Vec<Object>)]
    options: Vec<Value>,
    /// The JSON Schema of what they may put in.
    input_schema: Option<Value>,
    /// How long it stays open, in nanoseconds; 24 hours if unsaid or 0.
    #[schema(required = false, minimum = 0)]
    timeout: i64,
    /// What happens then: `expire` (if unsaid), `reject` or `keep`. It is never approved.
    #[schema(required = false)]
    on_timeout: String,
    /// The position of the asking program. Asked again at the same one, an answered question keeps its answer.
    checkpoint_id: Option<String>,
    /// What the asking program wants to keep with it.
    #[schema(required = false, value_type = Object)]
    metadata: Map<String, Value>,
}
