//! The theme: light, dark, or that of the system. The browser remembers the choice.

use crate::browser;

/// The reader's choice of a theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ThemeChoice {
    /// The theme of the system.
    #[default]
    System,
    Light,
    Dark,
}

const KEY: &str = "blockyard.theme";

impl ThemeChoice {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The theme that the page's address names, or the choice of an earlier visit.
    pub(crate) fn recall() -> Self {
        let asked =
            browser::query("theme").map(|name| if name == "auto" { "system".to_owned() } else { name });
        asked.or_else(|| browser::recall(KEY)).map_or(Self::System, |name| Self::from_name(&name))
    }

    pub(crate) fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|choice| choice.name() == name).unwrap_or_default()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Light => "Light",
            Self::Dark => "Dark",
        }
    }

    /// Remembers the choice for the next visit.
    pub(crate) fn remember(self) {
        browser::remember(KEY, self.name());
    }

    /// Gives the page the chosen theme.
    pub(crate) fn apply(self) {
        let Some(root) = browser::root() else { return };
        let _ = match self {
            Self::System => root.remove_attribute("data-theme"),
            chosen => root.set_attribute("data-theme", chosen.name()),
        };
    }
}
