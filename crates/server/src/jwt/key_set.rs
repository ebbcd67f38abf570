//! The public keys of an issuer, as a JSON Web Key Set has them.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::Value;

/// How many characters a modulus of 2048 bits has; shorter keys of RSA are no good.
const SHORTEST_MODULUS: usize = 342;

/// The keys of a set that tokens can be checked with.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    /// INVARIANT: what fits the key; never one whose key is a shared secret.
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// Why no key of a set checks a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoKey {
    #[error("the token is signed with a key that its issuer does not have")]
    Unknown,
    #[error(
        "the token does not say with which key it is signed (`kid`), and its issuer has several"
    )]
    Unnamed,
    #[error("the token is signed with a key of which its issuer has several")]
    Ambiguous,
    #[error("the token is signed in a way (`alg`) that its issuer's key is not for")]
    Algorithm,
}

impl KeySet {
    /// Reads a set. Keys for other purposes, and such that cannot be used, are passed over.
    ///
    /// # Errors
    ///
    /// It is no set.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_str(text)
            .map_err(|error| format!("not a JSON Web Key Set: {error}"))?;
        let keys = set.keys.into_iter().filter_map(Key::read).collect();
        Ok(Self { keys })
    }

    /// Whether no token can be checked with it.
    pub(super) const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a newer set could not help a token that names this key.
    pub(super) fn has(&self, kid: Option<&str>) -> bool {
        kid.is_none_or(|kid| self.keys.iter().any(|key| key.id.as_deref() == Some(kid)))
    }

    /// The key that a token names, if it is for such signatures. One that names none has the only key there is.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn choose(&self, kid: Option<&str>, by: Algorithm) -> Result<&DecodingKey, NoKey> {
        let named: Vec<&Key> = match (kid, self.keys.as_slice()) {
            (Some(kid), keys) => {
                let named = |key: &&Key| key.id.as_deref() == Some(kid);
                keys.iter().filter(named).collect()
            }
            (None, [only]) => vec![only],
            (None, []) => Vec::new(),
            (None, _) => return Err(NoKey::Unnamed),
        };
        if named.is_empty() {
            return Err(NoKey::Unknown);
        }
        let mut fitting = named.into_iter().filter(|key| key.algorithms.contains(&by));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(&key.key),
            (Some(_), Some(_)) => Err(NoKey::Ambiguous),
            (None, _) => Err(NoKey::Algorithm),
        }
    }
}

impl Key {
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let common = &jwk.common;
        let signs = |purpose: &PublicKeyUse| *purpose == PublicKeyUse::Signature;
        let verifies = |all: &Vec<KeyOperations>| all.contains(&KeyOperations::Verify);
        if !common.public_key_use.as_ref().is_none_or(signs)
            || !common.key_operations.as_ref().is_none_or(verifies)
        {
            return None;
        }
        let mut algorithms = fitting(&jwk.algorithm);
        if let Some(named) = common.key_algorithm {
            let named = Algorithm::try_from(named).ok()?;
            algorithms.retain(|algorithm| *algorithm == named);
        }
        if algorithms.is_empty() {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self {
            id: jwk.common.key_id,
            algorithms,
            key,
        })
    }
}

/// The signatures that can be checked with such a key.
fn fitting(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    match parameters {
        AlgorithmParameters::RSA(rsa) if rsa.n.len() >= SHORTEST_MODULUS => {
            AlgorithmFamily::Rsa.algorithms().to_vec()
        }
        AlgorithmParameters::EllipticCurve(point) if point.curve == EllipticCurve::P256 => {
            vec![Algorithm::ES256]
        }
        AlgorithmParameters::EllipticCurve(point) if point.curve == EllipticCurve::P384 => {
            vec![Algorithm::ES384]
        }
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            vec![Algorithm::EdDSA]
        }
        AlgorithmParameters::RSA(_)
        | AlgorithmParameters::EllipticCurve(_)
        | AlgorithmParameters::OctetKeyPair(_)
        | AlgorithmParameters::OctetKey(_)
        | AlgorithmParameters::Other(_)
        | _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(keys: &[Value]) -> KeySet {
        KeySet::read(&json!({ "keys": keys }).to_string()).unwrap()
    }

    /// A point of P-256 need not be on the curve to be chosen.
    fn point(kid: Option<&str>) -> Value {
        let mut key = json!({"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"});
        if let Some(kid) = kid {
            key["kid"] = json!(kid);
        }
        key
    }

    fn modulus(kid: &str, length: usize) -> Value {
        json!({"kty": "RSA", "kid": kid, "n": "A".repeat(length), "e": "AQAB"})
    }

    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    #[test]
    fn the_key_that_is_named_is_chosen_and_only_for_its_own_signatures() {
        let keys = set(&[point(Some("a")), modulus("b", 342), point(None)]);
        assert!(keys.choose(Some("a"), Algorithm::ES256).is_ok());
        assert!(keys.choose(Some("b"), Algorithm::RS256).is_ok());
        assert!(keys.choose(Some("b"), Algorithm::PS512).is_ok());
        for (kid, by, why) in [
            (Some("a"), Algorithm::ES384, NoKey::Algorithm),
            (Some("a"), Algorithm::HS256, NoKey::Algorithm),
            (Some("b"), Algorithm::HS256, NoKey::Algorithm),
            (Some("b"), Algorithm::ES256, NoKey::Algorithm),
            (Some("c"), Algorithm::ES256, NoKey::Unknown),
            (Some(""), Algorithm::ES256, NoKey::Unknown),
            (None, Algorithm::ES256, NoKey::Unnamed),
        ] {
            assert_eq!(keys.choose(kid, by).unwrap_err(), why, "{kid:?} {by:?}");
        }
        assert!(keys.has(Some("a")) && keys.has(None) && !keys.has(Some("c")));
    }

    #[test]
    fn the_only_key_needs_no_name_and_two_of_one_name_are_none() {
        assert!(
            set(&[point(Some("a"))])
                .choose(None, Algorithm::ES256)
                .is_ok()
        );
        let twins = set(&[point(Some("a")), point(Some("a")), modulus("a", 400)]);
        let chosen = twins.choose(Some("a"), Algorithm::ES256);
        assert_eq!(chosen.unwrap_err(), NoKey::Ambiguous);
        assert!(twins.choose(Some("a"), Algorithm::RS256).is_ok());
        assert_eq!(
            set(&[]).choose(None, Algorithm::ES256).unwrap_err(),
            NoKey::Unknown
        );
    }

    #[test]
    fn keys_that_are_shared_short_or_for_something_else_are_passed_over() {
        for other in [
            json!({"kty": "oct", "kid": "a", "k": "c2VjcmV0", "alg": "HS256"}),
            json!({"kty": "EC", "kid": "a", "crv": "P-521", "x": "AAAA", "y": "AAAA"}),
            json!({"kty": "OKP", "kid": "a", "crv": "X25519", "x": "AAAA"}),
            json!({"kty": "unheard-of", "kid": "a"}),
            json!({"kid": "a"}),
            json!("a"),
            modulus("a", 341),
            with(point(Some("a")), "use", json!("enc")),
            with(point(Some("a")), "key_ops", json!(["sign"])),
            with(point(Some("a")), "alg", json!("HS256")),
            with(point(Some("a")), "alg", json!("ES384")),
            with(point(Some("a")), "alg", json!("none")),
            with(point(Some("a")), "x", json!("no base64!")),
        ] {
            let keys = set(std::slice::from_ref(&other));
            assert!(keys.is_empty(), "{other}");
            let beside = set(&[other, point(Some("b"))]);
            assert!(beside.choose(Some("b"), Algorithm::ES256).is_ok());
        }
        let one = set(&[with(modulus("a", 342), "alg", json!("RS256"))]);
        assert!(one.choose(Some("a"), Algorithm::RS256).is_ok());
        assert_eq!(
            one.choose(Some("a"), Algorithm::RS512).unwrap_err(),
            NoKey::Algorithm
        );
        for text in ["", "[]", "{}", r#"{"keys": {}}"#, "<html>"] {
            assert!(KeySet::read(text).is_err(), "{text}");
        }
    }
}
