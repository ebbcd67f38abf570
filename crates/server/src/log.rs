//! A line for each request, for whoever runs the server.

use axum::{extract::Request, middleware::Next, response::Response};
use tokio::time::Instant;

/// Says what was asked and how it was answered, once the answer begins. Neither keys nor bodies are named.
pub(crate) async fn log(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
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
