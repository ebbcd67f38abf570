//! `auth.jwt`: whose tokens stand for users.
//!
//! A token is worth what its issuer is trusted with: which tenants, and under which claims a name, roles and permissions
//! are found. All of it is said here, and nothing is guessed.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use holdpoint_yaml::{Content, Field, Fields, Report, quoted};

use super::{
    outbound::{Purpose, check_url},
    tenant,
};
use crate::{command::Base, http};

const KEYS: [&str; 10] = [
    "issuer",
    "audience",
    "keys",
    "tenant",
    "tenant_claim",
    "tenants",
    "name_claim",
    "roles_claim",
    "permissions_claim",
    "allow_private",
];
const NAME_CLAIM: &str = "sub";
const ISSUER_HELP: &str = "write what the `iss` of its tokens says, letter by letter, for instance https://id.example.com";
const AUDIENCE_HELP: &str =
    "write what the `aud` of tokens for this server says, for instance holdpoint";
const KEYS_HELP: &str =
    "write `discovery`, {file: jwks.json} or {url: \"https://id.example.com/jwks\"}";
const TENANT_HELP: &str =
    "write `tenant: acme` for all its tokens, or `tenant_claim: org` with `tenants: [acme, beta]`";
const TENANTS_HELP: &str = "list the tenants that it may speak for, for instance [acme, beta]";
const TENANTS: tenant::Words = tenant::Words {
    help: TENANTS_HELP,
    star: "`*` would let the issuer speak for every tenant",
};
const FETCHING: Purpose = Purpose {
    cannot: "keys cannot be fetched from here",
    never: "so no keys would be fetched",
    bare: "keys that come without encryption are anybody's on the way",
    query: false,
    example: "for instance https://id.example.com",
};

/// Whose tokens stand for users, and for which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The `aud` of tokens that are meant for this server.
    pub audience: String,
    /// Where the keys are by which its tokens are checked.
    pub keys: IssuerKeys,
    /// Whose users its tokens stand for.
    pub tenant: IssuerTenant,
    /// The claim that is the user's name: `sub` when unsaid.
    pub name_claim: String,
    /// The claim that lists the user's roles; nobody has any when unsaid.
    pub roles_claim: Option<String>,
    /// The claim that lists what the user may do; nothing when unsaid.
    pub permissions_claim: Option<String>,
    /// Hosts whose addresses need not be public ones.
    pub allow_private: Vec<String>,
}

/// Where an issuer's keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerKeys {
    /// Where the issuer says, at its `/.well-known/openid-configuration`.
    Discovery,
    /// In a file. Absolute, and there when it was read.
    File(PathBuf),
    /// At this URL.
    Url(String),
}

/// Whose users an issuer's tokens stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerTenant {
    /// All of them of this tenant.
    Fixed(String),
    /// What a claim says.
    Claim {
        /// The claim.
        claim: String,
        /// What it may say.
        tenants: BTreeSet<String>,
    },
}

impl IssuerTenant {
    /// Every tenant that it can be.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let (one, more) = match self {
            Self::Fixed(tenant) => (Some(tenant), None),
            Self::Claim { tenants, .. } => (None, Some(tenants)),
        };
        one.into_iter()
            .chain(more.into_iter().flatten())
            .map(String::as_str)
    }
}

/// Reads `auth: {jwt: […]}`.
pub(super) fn read_all(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<Vec<Issuer>> {
    let fields = Fields::open(field, &["jwt"], report)?;
    let Some(list) = fields.optional("jwt") else {
        return Some(Vec::new());
    };
    let items = list.items("list the issuers, each with `- issuer: …`", report)?;
    let mut seen = BTreeSet::new();
    let mut issuers = Vec::new();
    for item in items {
        let issuer = read(&item, base, report);
        if let Some(issuer) = &issuer
            && !seen.insert(issuer.issuer.clone())
        {
            let message = format!("{} is listed twice", quoted(&issuer.issuer));
            item.follow("/issuer")
                .problem(&message, "keep one of them", report);
        }
        issuers.push(issuer);
    }
    issuers.into_iter().collect()
}

fn read(field: &Field<'_>, base: &Base, report: &mut Report) -> Option<Issuer> {
    let fields = Fields::open(field, &KEYS, report)?;
    let issuer = fields
        .required("issuer", ISSUER_HELP, report)
        .and_then(|field| field.some_text(report).map(str::to_owned));
    let audience = fields
        .required("audience", AUDIENCE_HELP, report)
        .and_then(|field| field.some_text(report).map(str::to_owned));
    let allow_private = match fields.optional("allow_private") {
        None => Some(Vec::new()),
        Some(field) => http::read_allowed(&field, report),
    };
    let keys = match fields.optional("keys") {
        None => Some(IssuerKeys::Discovery),
        Some(field) => read_keys(&field, allow_private.as_deref(), base, report),
    };
    if let (Some(IssuerKeys::Discovery), Some(text)) = (&keys, &issuer)
        && let Some(field) = fields.optional("issuer")
    {
        check_url(&field, text, allow_private.as_deref(), &FETCHING, report);
    }
    let tenant = read_tenant(&fields, report);
    let name_claim = match fields.optional("name_claim") {
        None => Some(NAME_CLAIM.to_owned()),
        Some(field) => field.some_text(report).map(str::to_owned),
    };
    let mut claim = |key: &str| match fields.optional(key) {
        None => Some(None),
        Some(field) => field.some_text(report).map(|claim| Some(claim.to_owned())),
    };
    let roles_claim = claim("roles_claim");
    let permissions_claim = claim("permissions_claim");
    Some(Issuer {
        issuer: issuer?,
        audience: audience?,
        keys: keys?,
        tenant: tenant?,
        name_claim: name_claim?,
        roles_claim: roles_claim?,
        permissions_claim: permissions_claim?,
        allow_private: allow_private?,
    })
}

fn read_keys(
    field: &Field<'_>,
    allow_private: Option<&[String]>,
    base: &Base,
    report: &mut Report,
) -> Option<IssuerKeys> {
    match &field.node.content {
        Content::Map(_) => {}
        Content::Text(text) if text == "discovery" => return Some(IssuerKeys::Discovery),
        Content::Null
        | Content::Bool(_)
        | Content::Number(_)
        | Content::Text(_)
        | Content::List(_) => {
            let message = format!("must say where the keys are, not {}", field.node.describe());
            field.problem(&message, KEYS_HELP, report);
            return None;
        }
    }
    let fields = Fields::open(field, &["file", "url"], report)?;
    match (fields.optional("file"), fields.optional("url")) {
        (Some(file), None) => {
            let path = base.resolve(file.some_text(report)?);
            if !Path::new(&path).is_file() {
                let message = format!("there is no file `{path}`");
                let help = "relative paths are seen from the folder of this YAML file";
                file.problem(&message, help, report);
                return None;
            }
            Some(IssuerKeys::File(path.into()))
        }
        (None, Some(url)) => {
            let text = url.some_text(report)?;
            check_url(&url, text, allow_private, &FETCHING, report)?;
            Some(IssuerKeys::Url(text.to_owned()))
        }
        (Some(_), Some(_)) => {
            field.problem(
                "the keys are in a file or at a URL, not both",
                KEYS_HELP,
                report,
            );
            None
        }
        (None, None) => {
            // A misspelt key is one problem, not two.
            if !fields.is_misspelt("file") && !fields.is_misspelt("url") {
                field.problem("must say where the keys are", KEYS_HELP, report);
            }
            None
        }
    }
}

fn read_tenant(fields: &Fields<'_>, report: &mut Report) -> Option<IssuerTenant> {
    let (fixed, claim, tenants) = (
        fields.optional("tenant"),
        fields.optional("tenant_claim"),
        fields.optional("tenants"),
    );
    match (fixed, claim) {
        (Some(fixed), None) => {
            let tenant = tenant::read(&fixed, &TENANTS, report);
            if let Some(tenants) = tenants {
                let message = "goes with `tenant_claim`, and here all tokens are of one tenant";
                tenants.problem(message, "remove it, or `tenant`", report);
                return None;
            }
            tenant.map(IssuerTenant::Fixed)
        }
        (None, Some(claim)) => {
            let claim = claim.some_text(report).map(str::to_owned);
            let tenants = fields
                .required("tenants", TENANTS_HELP, report)
                .and_then(|field| read_tenants(&field, report));
            let (claim, tenants) = (claim?, tenants?);
            Some(IssuerTenant::Claim { claim, tenants })
        }
        (Some(_), Some(claim)) => {
            let message = "a token's tenant is fixed or what a claim says, not both";
            claim.problem(message, TENANT_HELP, report);
            None
        }
        (None, None) => {
            if !fields.is_misspelt("tenant_claim") {
                fields.required("tenant", TENANT_HELP, report);
            }
            None
        }
    }
}

fn read_tenants(field: &Field<'_>, report: &mut Report) -> Option<BTreeSet<String>> {
    let tenants = tenant::read_all(field, &TENANTS, report)?;
    if tenants.is_empty() {
        let message = "must not be empty: no token would be good";
        field.problem(message, TENANTS_HELP, report);
        return None;
    }
    Some(tenants)
}
