//! Signatures of the Standard Webhooks specification.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::secret::hmac;

const PREFIX: &str = "whsec_";

/// What messages to one endpoint are signed with. Where there are several secrets, all of them sign, so that the receiver can
/// change from one to the other.
#[derive(Clone)]
pub(super) struct Signer(Vec<Vec<u8>>);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({} secrets)", self.0.len())
    }
}

impl Signer {
    /// The secrets in a text; nothing if one of them is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let secrets: Option<Vec<Vec<u8>>> = text.split_whitespace().map(read).collect();
        secrets.filter(|it| !it.is_empty()).map(Self)
    }

    /// The value of `webhook-signature`.
    pub(super) fn sign(&self, id: &str, timestamp: &str, body: &str) -> String {
        let parts = [id, ".", timestamp, ".", body].map(str::as_bytes);
        let signatures = self
            .0
            .iter()
            .map(|secret| format!("v1,{}", STANDARD.encode(hmac(secret, &parts))));
        signatures.collect::<Vec<_>>().join(" ")
    }
}

fn read(text: &str) -> Option<Vec<u8>> {
    let secret = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
    (24..=64).contains(&secret.len()).then_some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_signed_as_the_specification_says() {
        // The example of the specification's own libraries.
        let signer = Signer::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = signer.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn every_secret_signs_and_what_is_none_is_refused() {
        let (one, two) = (STANDARD.encode([1; 24]), STANDARD.encode([2; 64]));
        let both = Signer::parse(&format!(" whsec_{one}  whsec_{two}\n")).unwrap();
        let signed = both.sign("msg_1", "1", "{}");
        let alone = Signer::parse(&format!("whsec_{two}")).unwrap();
        let alone = alone.sign("msg_1", "1", "{}");
        assert!(signed.ends_with(&format!(" {alone}")), "{signed}");
        assert_eq!(signed.split(' ').count(), 2);
        let (short, long) = (STANDARD.encode([1; 23]), STANDARD.encode([1; 65]));
        for text in [
            String::new(),
            " ".to_owned(),
            one.clone(),
            format!("whsec_{short}"),
            format!("whsec_{long}"),
            "whsec_!".to_owned(),
            format!("whsec_{one} {two}"),
        ] {
            assert!(Signer::parse(&text).is_none(), "{text}");
        }
        assert_eq!(format!("{both:?}"), "Signer(2 secrets)");
    }
}
