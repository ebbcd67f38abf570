//! Whether a form comes from a page of ours.

use axum::http::{HeaderMap, HeaderName, header};

/// Refuses a form that does not come from a page of ours, in a browser that says so. Every browser of the last years names the
/// origin of a form that is posted; whatever is no browser has an API to speak with.
///
/// # Errors
///
/// Why it is refused.
pub(super) fn expect_own_page(headers: &HeaderMap, own: &[String]) -> Result<(), &'static str> {
    let only = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => value.to_str().map(Some).map_err(|_| "a header is no text"),
            (Some(_), Some(_)) => Err("a header is there twice"),
        }
    };
    let site = only(&HeaderName::from_static("sec-fetch-site"))?;
    if site.is_some_and(|site| site != "same-origin") {
        return Err("it comes from a page of another site");
    }
    let mode = only(&HeaderName::from_static("sec-fetch-mode"))?;
    if mode.is_some_and(|mode| mode != "navigate") {
        return Err("it was not sent by a form");
    }
    match only(&header::ORIGIN)? {
        None => Err("it does not say where it comes from"),
        Some(origin) if own.iter().any(|it| it == origin) => Ok(()),
        Some(_) => Err("it comes from a page of another site"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(headers: &[(&str, &str)]) -> Option<&'static str> {
        let own = ["https://approve.example.com".to_owned()];
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        expect_own_page(&map, &own).err()
    }

    #[test]
    fn only_a_form_of_our_own_page_is_taken() {
        let ours = ("origin", "https://approve.example.com");
        assert_eq!(refusal(&[ours]), None);
        let fetched = ("sec-fetch-site", "same-origin");
        let navigated = ("sec-fetch-mode", "navigate");
        assert_eq!(refusal(&[ours, fetched, navigated]), None);
        for headers in [
            &[][..],
            &[("referer", "https://approve.example.com/decide/x")],
            &[("origin", "null")],
            &[("origin", "")],
            &[("origin", "https://evil.example")],
            &[("origin", "http://approve.example.com")],
            &[("origin", "https://approve.example.com:8443")],
            &[("origin", "https://approve.example.com.evil.example")],
            &[("origin", "https://approve.example.com/")],
            &[("origin", "HTTPS://APPROVE.EXAMPLE.COM")],
            &[ours, ("origin", "https://evil.example")],
            &[ours, ("sec-fetch-site", "cross-site")],
            &[ours, ("sec-fetch-site", "same-site")],
            &[ours, ("sec-fetch-site", "none")],
            &[ours, fetched, ("sec-fetch-mode", "cors")],
            &[ours, fetched, ("sec-fetch-mode", "no-cors")],
        ] {
            assert!(refusal(headers).is_some(), "{headers:?}");
        }
    }
}
