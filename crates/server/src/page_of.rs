//! Which page of a list is wanted.

use std::str::FromStr;

use crate::problem::Problem;

/// The longest page.
const MAX_PAGE: usize = 200;
const USUAL_PAGE: usize = 50;

/// How long it is.
///
/// # Errors
///
/// It is no length of a page.
pub(crate) fn limit(text: Option<&str>) -> Result<usize, Problem> {
    let Some(text) = text else {
        return Ok(USUAL_PAGE);
    };
    let number = text.parse().ok().filter(|it| (1..=MAX_PAGE).contains(it));
    number.ok_or_else(|| {
        Problem::new(
            "bad_request",
            format!("`limit` must be a number from 1 to {MAX_PAGE}"),
        )
    })
}

/// After what it begins.
///
/// # Errors
///
/// No page ended there.
pub(crate) fn cursor<T: FromStr>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| {
        Problem::new(
            "bad_cursor",
            "`cursor` must be what `next_cursor` of the page before said",
        )
    })
}
