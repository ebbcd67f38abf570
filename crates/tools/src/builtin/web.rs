//! `web_search`: a search engine that the process configures.

use std::time::Duration;

use async_trait::async_trait;
use holdpoint_core::{Outcome, Preview, PreviewForm};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use super::args;
use crate::{
    Call, Tool,
    http::{Fetcher, NotFetched},
};

/// How much of an answer is read.
const MAX_ANSWER: usize = 1 << 20;
/// How many results there are unless the call says how many, and at most.
const RESULTS: usize = 10;
const MAX_RESULTS: usize = 50;
const MARGIN: Duration = Duration::from_millis(500);
/// Stands for the query in the configured address.
const QUERY: &str = "{query}";

#[derive(Debug)]
pub(super) struct WebSearch {
    endpoint: String,
    host: String,
    fetcher: Fetcher,
}

#[derive(Debug, Deserialize)]
struct Args {
    query: String,
    max: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Found {
    title: String,
    url: String,
    #[serde(default)]
    snippet: String,
}

impl WebSearch {
    /// Whoever configures an address may name a private one.
    pub(super) fn new(endpoint: &str) -> Result<Self, String> {
        if !endpoint.contains(QUERY) {
            return Err(format!(
                "the address of the search engine has no `{QUERY}`, which stands for what is looked for"
            ));
        }
        let url = Url::parse(&endpoint.replace(QUERY, "x"))
            .map_err(|error| format!("the address of the search engine is not a URL: {error}"))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        Ok(Self {
            endpoint: endpoint.to_owned(),
            fetcher: Fetcher::new(std::slice::from_ref(&host))?.without_redirects(),
            host,
        })
    }
}

#[async_trait]
impl Tool for WebSearch {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let args: Args = match args(call) {
            Ok(args) => args,
            Err(error) => return Outcome::Failed { error },
        };
        let url = self.endpoint.replace(QUERY, &encoded(&args.query));
        let time = call.remaining.saturating_sub(MARGIN);
        let fetched = match self.fetcher.get(&url, MAX_ANSWER, time).await {
            Ok(fetched) => fetched,
            Err(NotFetched::Refused(error)) => return Outcome::Failed { error },
            Err(NotFetched::Lost(reason)) => return Outcome::Unknown { reason },
        };
        match results(&fetched.bytes) {
            Ok(found) => Outcome::Done {
                content: told(&found, args.max.unwrap_or(RESULTS).clamp(1, MAX_RESULTS)),
            },
            Err(error) => Outcome::Failed {
                error: format!("the search engine did not answer with results: {error}"),
            },
        }
    }

    async fn preview(&self, call: Call<'_>) -> Result<Option<Preview>, String> {
        let args: Args = args(call)?;
        let body = format!("asks {} for: {}\n", self.host, args.query);
        Ok(Some(Preview::new(
            "Search the web",
            body,
            PreviewForm::Text,
        )))
    }
}

/// A list, or an object with a list as its `results`. What is no result in it is passed over, unless there is nothing else.
fn results(bytes: &[u8]) -> Result<Vec<Found>, serde_json::Error> {
    let mut answer: Value = serde_json::from_slice(bytes)?;
    if let Some(results) = answer.get_mut("results") {
        answer = results.take();
    }
    let answers: Vec<Value> = serde_json::from_value(answer)?;
    let read: Vec<_> = answers.into_iter().map(serde_json::from_value).collect();
    if read.iter().any(Result::is_ok) {
        return Ok(read.into_iter().flatten().collect());
    }
    read.into_iter().collect()
}

fn told(found: &[Found], max: usize) -> String {
    if found.is_empty() {
        return "[nothing was found]".to_owned();
    }
    let one = |(number, it): (usize, &Found)| {
        format!(
            "{}. {}\n   {}\n   {}",
            number + 1,
            it.title,
            it.url,
            it.snippet
        )
    };
    let all: Vec<_> = found.iter().take(max).enumerate().map(one).collect();
    all.join("\n")
}

/// A text as it stands within a query of a URL.
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing into a text cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_cannot_change_where_is_asked() {
        assert_eq!(encoded("a b&c=d#/..?é"), "a%20b%26c%3Dd%23%2F..%3F%C3%A9");
        assert!(WebSearch::new("https://find.example.com/").is_err());
        assert!(WebSearch::new("find?q={query}").is_err());
        assert!(WebSearch::new("https://find.example.com/?q={query}").is_ok());
    }

    #[test]
    fn results_are_a_list_or_in_one() {
        let list = r#"[{"title":"T","url":"https://e/","snippet":"S","rank":1}]"#;
        for answer in [list.to_owned(), format!(r#"{{"results":{list}}}"#)] {
            let found = results(answer.as_bytes()).unwrap();
            assert_eq!(told(&found, 5), "1. T\n   https://e/\n   S");
        }
        let odd = r#"[{"title":"T","url":"https://e/"},{"title":null},7]"#;
        let found = results(odd.as_bytes()).unwrap();
        assert_eq!(found.len(), 1, "what is no result is passed over");
        assert!(results(br#"[{"title":null}]"#).is_err());
        assert!(results(b"<html>").is_err());
        assert_eq!(told(&[], 5), "[nothing was found]");
    }
}
