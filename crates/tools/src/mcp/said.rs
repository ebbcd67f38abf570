//! What a server said to a call, as it is kept and read again by a later entry.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asked::Request;

/// What came of asking a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub(super) enum Said {
    /// The call is over.
    Done {
        /// Its result, or its error, as the model gets it.
        text: String,
    },
    /// It goes on once the server has this.
    Wants {
        requests: Vec<Request>,
        /// What the server wants back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
    },
    /// The server wanted this in the middle of the call and was told that there is none.
    Interrupted {
        requests: Vec<Request>,
        /// How the call ended.
        text: String,
    },
}

impl Said {
    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Reads it again. What is no word of ours is a person's, who found out what became of the call.
    pub(super) fn read(value: Value) -> Result<Self, serde_json::Error> {
        if value.get("said").is_some() {
            return serde_json::from_value(value);
        }
        let text = crate::command::text_of(value);
        Ok(Self::Done { text })
    }
}

/// A result as a text, which is what models read. What is no text is named.
pub(super) fn text_of(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    if parts.is_empty()
        && let Some(structured) = &result.structured_content
    {
        parts.push(structured.to_string());
    }
    let text = parts.join("\n");
    if result.is_error == Some(true) {
        return format!("The tool answered with an error: {text}");
    }
    text
}

fn part(block: &ContentBlock) -> String {
    let data = |what: &str, kind: &str, data: &str| {
        // Four characters of base64 are three bytes.
        format!("[{what}, {kind}, {} bytes]", data.len() / 4 * 3)
    };
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => data("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => data("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}\n{text}"),
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                let kind = mime_type.as_deref().unwrap_or("unknown type");
                data(uri, kind, blob)
            }
            _ => "[a resource of a kind that is not known]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
        _ => "[content of a kind that is not known]".to_owned(),
    }
}
