//! How a model is asked to write its tool calls.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the model is asked to write tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyMode {
    /// The provider's tool calls.
    #[default]
    Native,
    /// Text with `<response><narrative>…</narrative><tools>[…]</tools></response>`, or its JSON forms.
    Xml,
}

impl ReplyMode {
    /// The name in JSON and in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Xml => "xml",
        }
    }
}

impl fmt::Display for ReplyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reply mode that is neither `native` nor `xml`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a reply mode must be `native` or `xml`")]
pub struct UnknownReplyMode;

impl FromStr for ReplyMode {
    type Err = UnknownReplyMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Native, Self::Xml]
            .into_iter()
            .find(|mode| text.trim().eq_ignore_ascii_case(mode.as_str()))
            .ok_or(UnknownReplyMode)
    }
}
