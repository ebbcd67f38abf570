//! What a token's claims make of whoever carries it.
//!
//! Pure: the time is passed in. Whatever is missing, of another shape or not allowed is a reason to refuse, never
//! something to go on without.

use std::collections::BTreeSet;

use holdpoint_core::{Credential, Principal, PrincipalKind, Timestamp};
use holdpoint_definition::{Issuer, IssuerTenant};
use serde_json::{Map, Value};

use super::Bearer;
use crate::keys;

/// How far an issuer's clock and ours may be apart, in seconds.
const LEEWAY: i64 = 60;

type Claims = Map<String, Value>;

/// Who a token with these claims stands for.
///
/// # Errors
///
/// Nobody, and why.
pub(super) fn bearer(issuer: &Issuer, claims: &Claims, now: Timestamp) -> Result<Bearer, String> {
    if text(claims, "iss")? != issuer.issuer {
        return Err("the token is of another issuer".to_owned());
    }
    if !is_for(claims, &issuer.audience) {
        return Err("the token is for another audience".to_owned());
    }
    let until = valid_until(claims, now)?;
    let tenant = tenant(issuer, claims)?;
    let name = text(claims, &issuer.name_claim)?;
    let mut principal = Principal::new(PrincipalKind::User, tenant, name);
    principal.credential = Credential::Token;
    keys::check(&principal).map_err(|error| format!("the token stands for nobody: {error}"))?;
    if let Some(claim) = &issuer.roles_claim {
        principal.roles = words(claims, claim)?;
    }
    if let Some(claim) = &issuer.permissions_claim {
        principal.permissions = words(claims, claim)?;
        // INVARIANT: whoever may do everything was made so on this server.
        if principal.permissions.contains(Principal::EVERYTHING) {
            return Err(format!(
                "the token's claim `{claim}` has `*`, which no token can give"
            ));
        }
    }
    Ok(Bearer { principal, until })
}

fn is_for(claims: &Claims, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

/// From when on it is not good any more, if it is now.
fn valid_until(claims: &Claims, now: Timestamp) -> Result<Timestamp, String> {
    let now = now.as_micros().div_euclid(1_000_000);
    let ends = seconds(claims, "exp")?.ok_or("the token never expires, which none may")?;
    let ends = ends.saturating_add(LEEWAY);
    if now >= ends {
        return Err("the token has expired".to_owned());
    }
    for claim in ["nbf", "iat"] {
        if seconds(claims, claim)?.is_some_and(|from| from > now.saturating_add(LEEWAY)) {
            return Err(format!("the token is not valid yet (`{claim}`)"));
        }
    }
    Ok(Timestamp::from_micros(ends.saturating_mul(1_000_000)))
}

/// A time as tokens have it: seconds since 1970, perhaps with a fraction.
fn seconds(claims: &Claims, claim: &str) -> Result<Option<i64>, String> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    let whole = value.as_i64();
    // Whatever is beyond the numbers there are is the last of them.
    let near = || value.as_f64().map(|number| number.floor() as i64);
    whole
        .or_else(near)
        .map(Some)
        .ok_or_else(|| format!("the token's claim `{claim}` is no time"))
}

fn tenant<'a>(issuer: &'a Issuer, claims: &'a Claims) -> Result<&'a str, String> {
    match &issuer.tenant {
        IssuerTenant::Fixed(tenant) => Ok(tenant),
        IssuerTenant::Claim { claim, tenants } => {
            let tenant = text(claims, claim)?;
            if !tenants.contains(tenant) {
                return Err("the token's issuer does not speak for its tenant here".to_owned());
            }
            Ok(tenant)
        }
    }
}

fn text<'a>(claims: &'a Claims, claim: &str) -> Result<&'a str, String> {
    let value = claims.get(claim).and_then(Value::as_str);
    value.ok_or_else(|| format!("the token has no text as its claim `{claim}`"))
}

/// A list of words, or words with spaces between them; none where the claim is missing.
fn words(claims: &Claims, claim: &str) -> Result<BTreeSet<String>, String> {
    let bad = || format!("the token's claim `{claim}` is no list of words");
    match claims.get(claim) {
        None => Ok(BTreeSet::new()),
        Some(Value::String(text)) => Ok(text.split_whitespace().map(str::to_owned).collect()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(bad))
            .collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_definition::IssuerKeys;
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn issuer() -> Issuer {
        Issuer {
            issuer: "https://id.example.com".to_owned(),
            audience: "holdpoint".to_owned(),
            keys: IssuerKeys::Discovery,
            tenant: IssuerTenant::Claim {
                claim: "org".to_owned(),
                tenants: BTreeSet::from(["acme".to_owned(), "beta".to_owned()]),
            },
            name_claim: "sub".to_owned(),
            roles_claim: Some("groups".to_owned()),
            permissions_claim: Some("scope".to_owned()),
            allow_private: Vec::new(),
        }
    }

    /// Good claims, with these in their place.
    fn judge(changes: &Value) -> Result<Bearer, String> {
        let mut claims = json!({
            "iss": "https://id.example.com", "aud": "holdpoint", "exp": NOW + 10, "org": "acme", "sub": "ann",
        });
        for (claim, value) in changes.as_object().unwrap() {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(claim);
            } else {
                claims[claim] = value.clone();
            }
        }
        let now = Timestamp::from_micros(NOW * 1_000_000);
        bearer(&issuer(), claims.as_object().unwrap(), now)
    }

    fn words(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn good_claims_make_a_user_until_the_token_ends() {
        let mut principal = Principal::new(PrincipalKind::User, "acme", "ann");
        principal.credential = Credential::Token;
        let until = Timestamp::from_micros((NOW + 70) * 1_000_000);
        let bearer = Bearer {
            principal: principal.clone(),
            until,
        };
        assert_eq!(judge(&json!({})), Ok(bearer.clone()));
        let same = json!({
            "aud": ["other", "holdpoint"], "nbf": NOW + 60, "iat": NOW + 60, "roles": ["*"], "permissions": "*",
            "kind": "local", "tenant": "beta",
        });
        assert_eq!(judge(&same), Ok(bearer));
        principal.roles = words(&["payer", "lead"]);
        principal.permissions = words(&["pay", "read"]);
        let listed = judge(&json!({"groups": ["payer", "lead"], "scope": "pay read"}));
        assert_eq!(listed.unwrap().principal, principal);
    }

    #[test]
    fn the_ends_of_its_time_are_exact() {
        for good in [
            json!({"exp": NOW - 59}),
            json!({"exp": f64::from(i32::try_from(NOW).unwrap()) - 58.5}),
            json!({"exp": 1e300}),
            json!({"exp": u64::MAX}),
            json!({"exp": i64::MAX}),
            json!({"nbf": -5}),
        ] {
            assert!(judge(&good).is_ok(), "{good}");
        }
        for (bad, said) in [
            (json!({"exp": NOW - 60}), "the token has expired"),
            (json!({"exp": -1e300}), "the token has expired"),
            (json!({"exp": i64::MIN}), "the token has expired"),
            (
                json!({"nbf": NOW + 61}),
                "the token is not valid yet (`nbf`)",
            ),
            (
                json!({"iat": NOW + 61}),
                "the token is not valid yet (`iat`)",
            ),
            (json!({"exp": "1e9"}), "the token's claim `exp` is no time"),
            (json!({"nbf": [1]}), "the token's claim `nbf` is no time"),
            (
                json!({"exp": null}),
                "the token never expires, which none may",
            ),
        ] {
            assert_eq!(judge(&bad).unwrap_err(), said, "{bad}");
        }
    }

    #[test]
    fn whatever_is_missing_of_another_shape_or_not_allowed_is_refused() {
        for bad in [
            json!({"iss": "https://id.example.com/"}),
            json!({"iss": ["https://id.example.com"]}),
            json!({"aud": null}),
            json!({"aud": "Holdpoint"}),
            json!({"aud": ["other"]}),
            json!({"aud": {"holdpoint": true}}),
            json!({"org": null}),
            json!({"org": "gamma"}),
            json!({"org": "Acme"}),
            json!({"org": ["acme"]}),
            json!({"org": "*"}),
            json!({"sub": null}),
            json!({"sub": ""}),
            json!({"sub": 7}),
            json!({"sub": "_ann"}),
            json!({"sub": "ann@example.com"}),
            json!({"sub": "holdpoint"}),
            json!({"sub": "system"}),
            json!({"sub": "system.timer"}),
            json!({"sub": "a".repeat(1_000)}),
            json!({"groups": {"payer": true}}),
            json!({"groups": ["payer", 7]}),
            json!({"scope": ["pay", "*"]}),
            json!({"scope": "pay *"}),
            json!({"scope": "*"}),
            json!({"scope": 7}),
        ] {
            assert!(judge(&bad).is_err(), "{bad}");
        }
    }
}
