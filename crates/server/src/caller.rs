//! Who makes a request, and whether they may.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use holdpoint_core::{Principal, PrincipalKind, Timestamp};
use holdpoint_definition::MetricsAccess;

use crate::{
    jwt::{TokenError, Tokens},
    keys::{self, Keys},
    metrics,
    problem::Problem,
    token::Keyring,
    world::World,
};

/// How requests are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody who reaches this machine's loopback address is the user `dev`. For trying things out.
    Dev,
    /// Whoever has a key, or a token of an issuer that the configuration names.
    Keys,
}

/// Who is let in, and by what they are known.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) access: Access,
    pub(crate) keys: Keys,
    pub(crate) tokens: Tokens,
    /// What resume tokens are signed with.
    pub(crate) keyring: Option<Keyring>,
    /// Who may read what is counted.
    pub(crate) metrics_access: MetricsAccess,
}

/// Who makes a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    /// What says so.
    pub(crate) pass: Pass,
}

/// By what somebody was let in. It may hold no longer than this request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Everybody is.
    Open,
    /// The key with this id, which may be revoked.
    Key(String),
    /// A token that is good until then.
    Token(Timestamp),
}

impl Pass {
    /// The id of the key, where it is one.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Key(id) => Some(id),
            Self::Open | Self::Token(_) => None,
        }
    }

    /// Whether it still holds.
    pub(crate) async fn holds(&self, world: &World) -> bool {
        match self {
            Self::Open => true,
            Self::Key(id) => world.keys.is_good(id).await.unwrap_or(false),
            Self::Token(until) => world.tokens.is_good(*until),
        }
    }
}

impl Caller {
    fn dev() -> Self {
        let mut principal = Principal::new(PrincipalKind::User, Principal::LOCAL_TENANT, "dev");
        let everything = Principal::EVERYTHING.to_owned();
        principal.permissions.insert(everything);
        Self {
            principal,
            pass: Pass::Open,
        }
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.principal.actor.tenant
    }

    /// By what their streams are counted.
    pub(crate) fn name(&self) -> String {
        match &self.pass {
            Pass::Key(id) => id.clone(),
            Pass::Open | Pass::Token(_) => {
                format!("{}/{}", self.tenant(), self.principal.actor)
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // INVARIANT: no route is reached but through `admit`.
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::new("unauthorized", "an API key is needed"))
    }
}

/// What needs no key: whether the server lives, and how to speak with it.
const OPEN: [&str; 5] = ["/healthz", "/readyz", "/openapi.json", "/docs", "/docs/"];

fn is_open(world: &World, path: &str) -> bool {
    let metrics = world.metrics_access == MetricsAccess::Open && path == metrics::PATH;
    // A link is its own leave.
    let is_link = ["/decide", "/waiting"].iter().any(|it| {
        let rest = path.strip_prefix(it);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    metrics || is_link || OPEN.contains(&path)
}

/// Lets a request in, or not.
pub(crate) async fn admit(
    State(world): State<Arc<World>>,
    mut request: Request,
    next: Next,
) -> Response {
    if world.closing.is_cancelled() && request.uri().path() != "/healthz" {
        return Problem::shutting_down().into_response();
    }
    if world.access == Access::Dev
        && let Err(problem) = is_local(request.headers(), world.address())
    {
        return problem.into_response();
    }
    if is_open(&world, request.uri().path()) {
        return next.run(request).await;
    }
    match identify(&world, request.headers()).await {
        Ok(_) if is_too_large(request.headers(), world.limits.body) => {
            Problem::too_large().into_response()
        }
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Whether a body is announced that would not be read to its end: nobody has to wait for it.
fn is_too_large(headers: &HeaderMap, most: u64) -> bool {
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    announced.is_some_and(|length| length > most)
}

async fn identify(world: &World, headers: &HeaderMap) -> Result<Caller, Problem> {
    if world.access == Access::Dev {
        return Ok(Caller::dev());
    }
    let refused = || {
        Problem::new(
            "unauthorized",
            "an API key is needed: `Authorization: Bearer hp_…`",
        )
    };
    let given = headers.get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok());
    let (scheme, key) = given
        .and_then(|given| given.split_once(' '))
        .ok_or_else(refused)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused());
    }
    let key = key.trim();
    if Tokens::is_token(key) && !key.starts_with(keys::BEGINNING) && !world.tokens.is_empty() {
        let bearer = world.tokens.bearer(key).await.map_err(Problem::from)?;
        return Ok(Caller {
            principal: bearer.principal,
            pass: Pass::Token(bearer.until),
        });
    }
    let found = world.keys.principal(key).await;
    let found = found.map_err(|error| Problem::from(holdpoint_engine::Error::from(error)))?;
    let (id, principal) = found.ok_or_else(|| {
        let error = "this API key is unknown here, was revoked, or has ended; `holdpoint keys list` on the server's store says which hold";
        Problem::new("unauthorized", error)
    })?;
    Ok(Caller {
        principal,
        pass: Pass::Key(id),
    })
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Self {
        let code = match error {
            TokenError::Refused(_) => "unauthorized",
            TokenError::Unavailable => "issuer_unavailable",
        };
        Self::new(code, error.to_string())
    }
}

/// Without keys, a web page of another site must not speak in the developer's name: neither under another name of this
/// address, nor from another origin.
fn is_local(headers: &HeaderMap, address: SocketAddr) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let port = address.port();
    let hosts = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("{host}:{port}"));
    let own = |host: &str| hosts.iter().any(|it| it.eq_ignore_ascii_case(host));
    if !text(header::HOST).is_some_and(own) {
        return Err(Problem::new(
            "misdirected",
            format!("with `--dev`, ask for `http://127.0.0.1:{port}`"),
        ));
    }
    let foreign = |origin: &str| {
        let host = origin.strip_prefix("http://");
        !host.is_some_and(own)
    };
    if headers.contains_key(header::ORIGIN) && text(header::ORIGIN).is_none_or(foreign) {
        return Err(Problem::new(
            "foreign_origin",
            "with `--dev`, pages of other origins are not listened to",
        ));
    }
    Ok(())
}
