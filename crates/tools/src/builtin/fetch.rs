//! `fetch_url`: one document, over a connection that only public addresses are given.

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::{Outcome, Preview, PreviewForm};
use serde::Deserialize;

use super::{args, html, reading::MAX_TEXT, shown};
use crate::{
    Call, Tool,
    http::{Fetched, Fetcher, NotFetched},
};

/// How much of a document is read.
const MAX_DOCUMENT: usize = 2 << 20;
/// How long before its deadline a call gives up, so that there is time to tell.
const MARGIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Fetch {
    fetcher: Fetcher,
}

#[derive(Debug, Deserialize)]
struct Args {
    url: String,
}

impl Fetch {
    pub(super) fn new(allow_private: &[String]) -> Result<Self, String> {
        Ok(Self {
            fetcher: Fetcher::new(allow_private)?,
        })
    }
}

#[async_trait]
impl Tool for Fetch {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let args: Args = match args(call) {
            Ok(args) => args,
            Err(error) => return Outcome::Failed { error },
        };
        let time = call.remaining.saturating_sub(MARGIN);
        match self.fetcher.get(&args.url, MAX_DOCUMENT, time).await {
            Ok(fetched) => told(&fetched),
            Err(NotFetched::Refused(error)) => Outcome::Failed { error },
            Err(NotFetched::Lost(reason)) => Outcome::Unknown { reason },
        }
    }

    async fn preview(&self, call: Call<'_>) -> Result<Option<Preview>, String> {
        let args: Args = args(call)?;
        let url = self.fetcher.check(&args.url)?;
        let body = format!("GET {}\n", shown::name(url.as_str()));
        Ok(Some(Preview::new(
            "Fetch a document",
            body,
            PreviewForm::Text,
        )))
    }
}

fn told(fetched: &Fetched) -> Outcome {
    let kind = fetched.kind.as_str();
    let is_html = matches!(kind, "text/html" | "application/xhtml+xml");
    let is_text = is_html
        || kind.is_empty()
        || kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(
            kind,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/x-ndjson"
                | "application/yaml"
                | "application/toml"
        );
    if !is_text || fetched.bytes.contains(&0) {
        return Outcome::Failed {
            error: format!(
                "the document is no text: {}, {} bytes",
                if kind.is_empty() {
                    "of an unknown kind"
                } else {
                    kind
                },
                fetched.bytes.len()
            ),
        };
    }
    let source = String::from_utf8_lossy(&fetched.bytes);
    let mut text = if is_html {
        html::text(&source)
    } else {
        source.into_owned()
    };
    let mut cut = fetched.is_cut;
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        cut = true;
    }
    if text.trim().is_empty() {
        text = "[the document has no text]".to_owned();
    }
    if cut {
        text.push_str("\n[cut off here: the document is longer]");
    }
    Outcome::Done {
        content: format!("[{}]\n{text}", shown::name(&fetched.url)),
    }
}
