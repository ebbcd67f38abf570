//! Text with places for what was said before.

use super::Position;

/// Text in which `{user}` and `{result}` stand for the last user message and the last tool result.
#[derive(Debug)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, Copy)]
enum Place {
    User,
    Result,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Place(Place),
}

impl Place {
    const ALL: [Self; 2] = [Self::User, Self::Result];

    const fn name(self) -> &'static str {
        match self {
            Self::User => "{user}",
            Self::Result => "{result}",
        }
    }
}

impl Template {
    /// Other braces are text.
    pub(super) fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((at, place)) = first_place(rest) {
            parts.push(Part::Text(rest[..at].to_owned()));
            parts.push(Part::Place(place));
            rest = &rest[at + place.name().len()..];
        }
        parts.push(Part::Text(rest.to_owned()));
        Self(parts)
    }

    /// Says which place has nothing to stand for.
    pub(crate) fn fill(&self, position: &Position<'_>) -> Result<String, &'static str> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(words) => text.push_str(words),
                Part::Place(place) => {
                    let words = match place {
                        Place::User => position.user,
                        Place::Result => position.last_result(),
                    };
                    text.push_str(words.ok_or(place.name())?);
                }
            }
        }
        Ok(text)
    }
}

fn first_place(text: &str) -> Option<(usize, Place)> {
    Place::ALL
        .into_iter()
        .filter_map(|place| Some((text.find(place.name())?, place)))
        .min_by_key(|(at, _)| *at)
}
