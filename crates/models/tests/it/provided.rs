//! Models of providers, against a server that says what it is told to.

mod failures;
mod prefixes;
mod replies;
mod requests;
mod routes;

use std::{path::Path, sync::Arc};

use holdpoint_core::{KeyFrom, Message, Provider, Providers as Known, Sampling, Span, ToolSpec};
use holdpoint_models::{Delta, Failure, Model, Providers, Reply, Request};
use holdpoint_test_provider::{Answer, Api, Server};

use crate::conversation::user;

/// A provider of this API, as everybody knows it, but at this server.
pub(crate) fn provider(api: Api, server: &Server) -> Provider {
    let (name, path) = api.provider();
    let known = Known::default();
    let base_url = format!("{}{path}", server.url());
    Provider {
        key: KeyFrom::Nowhere,
        base_url_variable: None,
        base_url,
        ..known.get(name).unwrap().clone()
    }
}

/// With a key, which every test of failures looks for.
pub(crate) fn with_key(provider: Provider, folder: &Path) -> Provider {
    let file = folder.join("key");
    std::fs::write(&file, "sk-very-secret\n").unwrap();
    Provider {
        key: KeyFrom::File(file),
        ..provider
    }
}

pub(crate) fn model(provider: Provider) -> Arc<dyn Model> {
    let known = Known::default().with("it", provider);
    Providers::new(known).resolve("it:test").unwrap()
}

/// What is asked in most tests.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) system: Option<&'static str>,
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) sampling: Sampling,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            system: None,
            messages: vec![user("hi")],
            tools: Vec::new(),
            sampling: Sampling::default(),
        }
    }
}

impl Ask {
    pub(crate) async fn of(&self, model: &dyn Model) -> (Result<Reply, Failure>, String) {
        let mut heard = String::new();
        let mut hear = |delta: Delta| {
            if let Delta::Text(text) = delta {
                heard.push_str(&text);
            }
        };
        let request = Request {
            system: self.system,
            messages: &self.messages,
            tools: &self.tools,
            sampling: &self.sampling,
            attempt: 1,
        };
        let reply = model.turn(request, &mut hear).await;
        (reply, heard)
    }
}

/// What comes of an answer.
pub(crate) async fn answered(api: Api, answer: Answer) -> (Result<Reply, Failure>, String) {
    let server = Server::playing(vec![answer]);
    Ask::default().of(&*model(provider(api, &server))).await
}

/// A provider that is given up soon.
pub(crate) fn impatient(provider: Provider) -> Provider {
    Provider {
        silence: Span::from_millis(150),
        ..provider
    }
}
