//! `cors`: whose web pages may speak to a server.

use std::net::Ipv6Addr;

use holdpoint_yaml::{Field, Fields, Report, quoted};

const EXAMPLE: &str = "for instance `https://app.example.com`";

/// Reads `cors: {origins: […]}`.
pub(super) fn read_all(field: &Field<'_>, report: &mut Report) -> Option<Vec<String>> {
    let fields = Fields::open(field, &["origins"], report)?;
    let Some(list) = fields.optional("origins") else {
        return Some(Vec::new());
    };
    let items = list.items(&format!("list the origins, {EXAMPLE}"), report)?;
    let origins: Vec<_> = items.iter().map(|item| read(item, report)).collect();
    origins.into_iter().collect()
}

/// Reads one.
pub(super) fn read(field: &Field<'_>, report: &mut Report) -> Option<String> {
    let text = field.some_text(report)?;
    if text == "*" {
        let message = "`*` would let every web page act in the name of whoever looks at it";
        let help = format!("list the origins that may, {EXAMPLE}");
        field.problem(message, &help, report);
        return None;
    }
    if !is_origin(text) {
        let message = format!("{} is not an origin as browsers send it", quoted(text));
        let help = format!(
            "write scheme and host in lower case, a port only if it is not the usual one, and no `/` after it; {EXAMPLE}"
        );
        field.problem(&message, &help, report);
        return None;
    }
    Some(text.to_owned())
}

/// Whether a browser could send this. Origins are compared letter by letter, so anything else would never be found.
fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !rest.ends_with(']') => (host, Some(port)),
        Some(_) | None => (rest, None),
    };
    let is_port = |port: &str| {
        let number = port.parse::<u16>();
        number.is_ok_and(|number| number != usual && number.to_string() == port)
    };
    is_host(host) && port.is_none_or(is_port)
}

fn is_host(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let address = rest.strip_suffix(']').map(str::parse::<Ipv6Addr>);
        return matches!(address, Some(Ok(_)));
    }
    let fits = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
    };
    !host.is_empty() && host.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_an_unusual_port() {
        for origin in [
            "https://app.example.com",
            "http://localhost",
            "http://localhost:3000",
            "https://xn--bcher-kva.example",
            "http://127.0.0.1:8080",
            "http://[::1]",
            "http://[::1]:5173",
            "https://app.example.com:80",
        ] {
            assert!(is_origin(origin), "{origin}");
        }
        for other in [
            "",
            "*",
            "null",
            "app.example.com",
            "ftp://app.example.com",
            "https://",
            "https://*.example.com",
            "https://app.example.com/",
            "https://app.example.com/chat",
            "https://App.example.com",
            "HTTPS://app.example.com",
            "https://app.example.com:443",
            "http://app.example.com:80",
            "https://app.example.com:",
            "https://app.example.com:0080",
            "https://app.example.com:65536",
            "https://user@app.example.com",
            "https://b\u{fc}cher.example",
            "http://[::1",
            "http://[zz]",
        ] {
            assert!(!is_origin(other), "{other}");
        }
    }
}
