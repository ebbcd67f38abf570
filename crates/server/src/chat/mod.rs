//! The chat API: a message in, a stream of the answer out; and where the agent asks, a form.

mod form;
pub(crate) mod routes;
mod state;
pub(crate) mod stream;
mod teller;
