//! Where a database is, and how it is reached.

use std::{fmt, fs, str::FromStr as _, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::line::Manner;
use crate::OpenError;

/// How long it may take to reach the database.
const CONNECTING: Duration = Duration::from_secs(5);
/// What a connection is called in the database's own lists, unless the url says something else.
const NAME: &str = "holdpoint";

/// How a database is reached.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    pub(super) manner: Manner,
    /// For people, without user and password.
    pub(super) shown: Arc<str>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Address {
    /// Reads a url: what PostgreSQL's own clients take, as far as it is about where the database is, and `sslrootcert`,
    /// a file with certificates to trust instead of the system's. A certificate is always checked where TLS is used.
    /// `pooling=transaction` says that a pooler stands between that gives away a connection for a transaction at a time.
    pub(super) fn parse(url: &str) -> Result<Self, OpenError> {
        let unusable = |what: String| OpenError::Unusable {
            reason: format!("the url of the PostgreSQL store cannot be used: {what}"),
        };
        if url
            .split('?')
            .next()
            .unwrap_or_default()
            .matches('@')
            .count()
            > 1
        {
            return Err(unusable(
                "an `@` in the user's name or the password is written `%40`, a `/` is `%2F`, a `:` is `%3A`".to_owned(),
            ));
        }
        let (url, roots) = without(url, "sslrootcert");
        let (url, pooling) = without(&url, "pooling");
        let manner = match pooling.as_deref() {
            None | Some("session") => Manner::Directly,
            Some("transaction") => Manner::Pooled,
            Some(other) => {
                return Err(unusable(format!(
                    "`pooling` is `transaction` or `session`, not `{other}`"
                )));
            }
        };
        let (url, mode) = without(&url, "sslmode");
        let mode = match mode.as_deref() {
            None | Some("prefer") => SslMode::Prefer,
            Some("disable") => SslMode::Disable,
            // Whoever asks for the certificate to be checked asks for what is done anyway.
            Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some(other) => {
                return Err(unusable(format!(
                    "`sslmode` is `disable`, `prefer`, `require`, `verify-ca` or `verify-full`, not `{other}`"
                )));
            }
        };
        let mut config = Config::from_str(&url).map_err(|error| unusable(error.to_string()))?;
        config.ssl_mode(mode);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECTING);
        }
        if config.get_application_name().is_none() {
            config.application_name(NAME);
        }
        if config.get_hosts().is_empty() {
            return Err(unusable("it names no host".to_owned()));
        }
        if config.get_dbname().is_none() {
            return Err(unusable("it names no database".to_owned()));
        }
        let roots = match (config.get_ssl_mode(), roots) {
            (SslMode::Disable, _) => RootCertStore::empty(),
            (_, Some(file)) => read_roots(&file).map_err(unusable)?,
            (_, None) => system_roots(),
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let shown = show(&config).into();
        Ok(Self {
            config,
            tls: MakeRustlsConnect::new(tls),
            manner,
            shown,
        })
    }
}

/// The url without a parameter that is ours alone, and what it says.
fn without(url: &str, name: &str) -> (String, Option<String>) {
    let Some((place, query)) = url.split_once('?') else {
        return (url.to_owned(), None);
    };
    let (mut kept, mut said) = (Vec::new(), None);
    for part in query.split('&') {
        match part.split_once('=') {
            Some((other, value)) if other == name => said = Some(value.to_owned()),
            Some(_) | None => kept.push(part),
        }
    }
    if kept.is_empty() {
        return (place.to_owned(), said);
    }
    (format!("{place}?{}", kept.join("&")), said)
}

fn read_roots(file: &str) -> Result<RootCertStore, String> {
    let pem = fs::read(file).map_err(|error| format!("`sslrootcert`: `{file}`: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate =
            certificate.map_err(|error| format!("`sslrootcert`: `{file}`: {error}"))?;
        roots
            .add(certificate)
            .map_err(|error| format!("`sslrootcert`: `{file}`: {error}"))?;
    }
    if roots.is_empty() {
        return Err(format!("`sslrootcert`: `{file}` has no certificate in it"));
    }
    Ok(roots)
}

/// The certificates that this machine trusts; where there are none, no certificate is good.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn show(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().unwrap_or_default();
    format!("PostgreSQL, database `{database}` at {host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password_and_says_what_is_missing() {
        let address = Address::parse("postgres://ann:secret@db.example:6432/runs?sslmode=disable");
        let shown = format!("{:?}", address.unwrap());
        assert_eq!(shown, "PostgreSQL, database `runs` at db.example:6432");
        for (url, missing) in [
            ("postgres://ann@db.example", "it names no database"),
            ("postgres:///runs", "it names no host"),
            ("postgres://ann:sec@ret@db/runs", "is written `%40`"),
            (
                "postgres://db/runs?pooling=statement",
                "`pooling` is `transaction` or `session`",
            ),
            (
                "postgres://db/runs?sslmode=bogus",
                "`sslmode` is `disable`, `prefer`,",
            ),
            (
                "postgres://db/runs?sslrootcert=/nowhere.pem",
                "`sslrootcert`: `/nowhere.pem`",
            ),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(missing), "{error}");
        }
    }
}
