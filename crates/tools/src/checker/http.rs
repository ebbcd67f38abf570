//! Checkers that are servers: the case is the body of a `POST`, and a 200 has the finding in its body.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use holdpoint_core::{Case, Finding, HttpHeader};

use super::{
    Checker,
    answer::{MAX_ANSWER, document, finding},
};
use crate::{
    Outbound, Patience,
    http::{check_headers, filled_headers},
};

#[derive(Debug)]
pub(super) struct HttpChecker {
    url: String,
    headers: BTreeMap<String, HttpHeader>,
    outbound: Outbound,
    timeout: Duration,
}

impl HttpChecker {
    pub(super) fn new(
        url: &str,
        headers: &BTreeMap<String, HttpHeader>,
        allow_private: &[String],
        timeout: Duration,
    ) -> Result<Self, String> {
        let outbound = Outbound::new(allow_private).map_err(|error| error.to_string())?;
        // What it may never ask shows at once, and not when something must be checked.
        outbound.check_url(url).map_err(|error| error.to_string())?;
        check_headers(headers)?;
        Ok(Self {
            url: url.to_owned(),
            headers: headers.clone(),
            outbound,
            timeout,
        })
    }
}

#[async_trait]
impl Checker for HttpChecker {
    async fn check(&self, case: &Case) -> Result<Finding, String> {
        let (headers, scrub) = filled_headers(&self.headers)?;
        let patience = Patience {
            bytes: MAX_ANSWER,
            time: self.timeout,
        };
        let answer = self
            .outbound
            .ask(&self.url, headers, document(case)?, patience)
            .await;
        match answer {
            // A server may repeat what it was sent, in any spelling of JSON, and what it says is stored and shown.
            Ok(text) => match finding(&text) {
                Ok(Finding::Review { reason }) => Ok(Finding::review(scrub.clean(reason))),
                Ok(Finding::Pass) => Ok(Finding::Pass),
                Err(error) => Err(scrub.clean(error)),
            },
            Err(error) => Err(scrub.clean(error.to_string())),
        }
    }
}
