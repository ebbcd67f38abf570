//! Who provides models, as data: where they are reached, how they are spoken to, and where the key is found.
//!
//! No key stands here, and nothing of it is part of a definition: a definition says `openai:gpt-4o`, and what `openai` is
//! may differ from one machine to the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::PathBuf,
};

use crate::{AddressKind, HttpHeader, Span, UrlTemplate, Usage};

/// One provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// How it is spoken to.
    pub api: Api,
    /// What the paths of the API are appended to.
    pub base_url: String,
    /// The variable of the environment that says so instead, where it is set.
    pub base_url_variable: Option<&'static str>,
    /// Whether a host that is none of this network may be spoken to without encryption.
    pub insecure: bool,
    /// Where the key is found.
    pub key: KeyFrom,
    /// The header that carries the key as it is. Unsaid it goes where the API has it.
    pub key_header: Option<String>,
    /// What is sent beside.
    pub headers: BTreeMap<String, HttpHeader>,
    /// What is appended to every URL.
    pub query: BTreeMap<String, String>,
    /// How chat completions are told how much may be written.
    pub limit_field: LimitField,
    /// For how long it may send nothing at all.
    pub silence: Span,
    /// What its models cost.
    pub prices: BTreeMap<String, Price>,
}

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `POST /chat/completions`, as OpenAI has it and most others too.
    OpenAiChat,
    /// `POST /responses` of OpenAI.
    OpenAiResponses,
    /// `POST /v1/messages` of Anthropic.
    Anthropic,
}

impl Api {
    /// Every API, by the word that configurations have for it.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("openai-chat", Self::OpenAiChat),
        ("openai-responses", Self::OpenAiResponses),
        ("anthropic", Self::Anthropic),
    ];

    /// How much a model thinks, in the words that this API has for it; `None` where that is the model's own business.
    #[must_use]
    pub const fn efforts(self) -> Option<&'static [&'static str]> {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => None,
            Self::Anthropic => Some(&["low", "medium", "high"]),
        }
    }
}

/// Where a key is found. It is read whenever it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFrom {
    /// None is needed.
    Nowhere,
    /// In this variable of the environment.
    Variable(String),
    /// In this file. The path is absolute; space around the key does not count.
    File(PathBuf),
}

/// The field of a chat completion's request that says how much may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitField {
    /// `max_completion_tokens`: OpenAI's own models want it.
    MaxCompletionTokens,
    /// `max_tokens`: everybody else knows it.
    MaxTokens,
}

/// What a model costs, in millionths of a US dollar for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read that the provider knew from before.
    pub cached_input: u64,
}

impl Price {
    /// What this costs, in billionths of a US dollar, rounded up.
    #[must_use]
    pub fn of(self, usage: &Usage) -> u64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let new = usage.input_tokens - cached;
        let parts = [
            (new, self.input),
            (cached, self.cached_input),
            (usage.output_tokens, self.output),
        ];
        // Millionths for a million tokens are trillionths for one.
        let trillionths = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens) * u128::from(*price))
        });
        u64::try_from(trillionths.div_ceil(1_000)).unwrap_or(u64::MAX)
    }
}

/// How long a provider may send nothing at all, unless it is said otherwise.
pub const PROVIDER_SILENCE: Span = Span::from_secs(120);

impl Provider {
    /// A provider that is reached here, and needs no key.
    #[must_use]
    pub fn new(api: Api, base_url: impl Into<String>) -> Self {
        Self {
            api,
            base_url: base_url.into(),
            base_url_variable: None,
            insecure: false,
            key: KeyFrom::Nowhere,
            key_header: None,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            limit_field: LimitField::MaxTokens,
            silence: PROVIDER_SILENCE,
            prices: BTreeMap::new(),
        }
    }

    /// With a key in this variable of the environment.
    #[must_use]
    pub fn with_key_variable(mut self, variable: impl Into<String>) -> Self {
        self.key = KeyFrom::Variable(variable.into());
        self
    }

    fn with_base_variable(mut self, variable: &'static str) -> Self {
        self.base_url_variable = Some(variable);
        self
    }

    /// Why this is no URL to append the API's paths to; `None` if it is one. Nothing of it is repeated: a password may stand
    /// in it.
    #[must_use]
    pub fn base_flaw(text: &str, insecure: bool) -> Option<BadBase> {
        let url = match UrlTemplate::parse(text) {
            Ok(url) => url,
            Err(error) => return Some(BadBase::NoUrl(error.to_string())),
        };
        if text.contains(['{', '}', '?', '#']) {
            return Some(BadBase::More);
        }
        if !insecure && !url.is_encrypted() && !is_near(url.host()) {
            return Some(BadBase::Bare(url.host().to_owned()));
        }
        None
    }
}

/// Why a base URL is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadBase {
    /// It is no URL, and why.
    NoUrl(String),
    /// More stands in it than where it is.
    More,
    /// Everybody on the way to this host could read the key and all that is said.
    Bare(String),
}

/// Whether a host is of this machine or this network, as far as its name says: a private address, or a name without a dot.
fn is_near(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => AddressKind::of(address) == AddressKind::Private,
        Err(_) => !name.contains('.') || name.ends_with(".localhost"),
    }
}

/// The providers that there are, by the names that stand before the colon of `openai:gpt-4o`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Providers(BTreeMap<String, Provider>);

impl Default for Providers {
    /// Those that everybody knows.
    fn default() -> Self {
        let openai = |api| {
            Provider::new(api, "https://api.openai.com/v1")
                .with_base_variable("OPENAI_BASE_URL")
                .with_key_variable("OPENAI_API_KEY")
        };
        let chat = Provider {
            limit_field: LimitField::MaxCompletionTokens,
            ..openai(Api::OpenAiChat)
        };
        let anthropic = Provider::new(Api::Anthropic, "https://api.anthropic.com")
            .with_base_variable("ANTHROPIC_BASE_URL")
            .with_key_variable("ANTHROPIC_API_KEY");
        let ollama = Provider::new(Api::OpenAiChat, "http://127.0.0.1:11434/v1");
        let known = [
            ("openai", chat),
            ("openai-responses", openai(Api::OpenAiResponses)),
            ("anthropic", anthropic),
            ("ollama", ollama),
        ];
        Self(known.map(|(name, it)| (name.to_owned(), it)).into())
    }
}

impl Providers {
    /// With this one, in place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, provider: Provider) -> Self {
        self.0.insert(name.into(), provider);
        self
    }

    /// The provider with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.0.get(name)
    }

    /// What a reference such as `openai:gpt-4o` names: a provider, with its name, and what it is asked for.
    #[must_use]
    pub fn named<'a>(&'a self, reference: &'a str) -> Option<(&'a str, &'a Provider, &'a str)> {
        let (name, model) = reference.split_once(':')?;
        let (name, provider) = self.0.get_key_value(name)?;
        (!model.is_empty()).then_some((name.as_str(), provider, model))
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The variables of the environment that hold what only they should see: those of the providers that everybody knows,
    /// whether they are used or not, and of these.
    #[must_use]
    pub fn secret_variables(&self) -> BTreeSet<String> {
        let usual = Self::default();
        let all = usual.0.values().chain(self.0.values());
        all.flat_map(Provider::secret_variables).collect()
    }
}

impl Provider {
    fn secret_variables(&self) -> impl Iterator<Item = String> {
        let key = match &self.key {
            KeyFrom::Variable(name) => Some(name.clone()),
            KeyFrom::Nowhere | KeyFrom::File(_) => None,
        };
        let headers = self.headers.values().filter_map(|header| match header {
            HttpHeader::Secret { name, .. } => Some(name.clone()),
            HttpHeader::Text(_) => None,
        });
        key.into_iter().chain(headers)
    }
}

/// The longest name of a tool that providers take.
pub const MAX_OFFERED_NAME: usize = 64;

/// Whether every provider takes a tool of this name.
#[must_use]
pub fn can_be_offered(tool: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_OFFERED_NAME).contains(&tool.len()) && tool.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_first_colon_is_a_provider() {
        let known = Providers::default();
        let named = |reference| known.named(reference).map(|(name, _, model)| (name, model));
        assert_eq!(named("ollama:llama3:8b"), Some(("ollama", "llama3:8b")));
        for nobody in ["llama3:8b", "gpt-4o", "openai:", ":x", ""] {
            assert_eq!(named(nobody), None, "{nobody}");
        }
    }

    #[test]
    fn without_encryption_only_what_is_near_is_spoken_to() {
        let flaw = |text| Provider::base_flaw(text, false);
        for fine in [
            "https://api.example.com/v1",
            "http://127.0.0.1:11434/v1",
            "http://localhost:8000",
            "http://[::1]:8000/v1",
            "http://10.1.2.3/v1",
            "http://vllm:8000/v1",
        ] {
            assert_eq!(flaw(fine), None, "{fine}");
        }
        let bare = |host: &str| Some(BadBase::Bare(host.to_owned()));
        assert_eq!(flaw("http://api.example.com/v1"), bare("api.example.com"));
        assert_eq!(flaw("http://8.8.8.8/v1"), bare("8.8.8.8"));
        assert_eq!(Provider::base_flaw("http://8.8.8.8/v1", true), None);
        assert_eq!(flaw("https://api.example.com/v1?a=b"), Some(BadBase::More));
        for none in [
            "",
            "api.example.com",
            "file:///etc/passwd",
            "https://ann:pw@api.example.com/",
        ] {
            let flaw = flaw(none);
            let Some(BadBase::NoUrl(why)) = &flaw else {
                panic!("{none}: {flaw:?}");
            };
            assert!(!why.contains("pw"), "{why}");
        }
    }

    #[test]
    fn a_price_is_for_a_million_tokens_and_what_was_known_costs_less() {
        let price = Price {
            input: 2_500_000,
            output: 10_000_000,
            cached_input: 1_250_000,
        };
        let usage = Usage {
            input_tokens: 1_000,
            output_tokens: 100,
            cached_tokens: 400,
            cost_nano_usd: 0,
        };
        // 600 · $2.5 + 400 · $1.25 + 100 · $10, a million each: $0.003.
        assert_eq!(price.of(&usage), 3_000_000);
        let usage = Usage {
            input_tokens: u64::MAX,
            output_tokens: u64::MAX,
            ..usage
        };
        let dear = Price {
            input: u64::MAX,
            ..price
        };
        assert_eq!(dear.of(&usage), u64::MAX);
    }

    #[test]
    fn variables_with_keys_are_known_even_where_the_provider_was_replaced() {
        let own = Provider::new(Api::OpenAiChat, "https://models.example.com/v1")
            .with_key_variable("OWN_KEY");
        let known = Providers::default().with("openai", own);
        let expected = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OWN_KEY"];
        assert!(known.secret_variables().iter().eq(expected));
    }
}
