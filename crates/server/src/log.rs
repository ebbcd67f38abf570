//! A line for each request, for whoever runs the server.

use axum::{extract::Request, middleware::Next, response::Response};
use tokio::time::Instant;

/// A path without what is secret in it: whoever has a link can use it.
fn shown(path: &str) -> String {
    let links = ["/decide/", "/waiting/"];
    let link = links.iter().find(|link| path.starts_with(**link));
    link.map_or_else(|| path.to_owned(), |link| format!("{link}…"))
}

/// Says what was asked and how it was answered, once the answer begins. Neither keys nor bodies are named.
pub(crate) async fn log(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = shown(request.uri().path());
    let begun = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    if response.status().is_server_error() {
        tracing::error!(%method, path, status, ms, "request");
    } else {
        tracing::info!(%method, path, status, ms, "request");
    }
    response
}
