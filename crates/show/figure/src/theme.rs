//! Themes: a color for each role.

use crate::role::Role;

/// The source of the colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Concrete colors on white.
    Light,
    /// Concrete colors on white, as the page has them for a file: hues belong to lines, streams or pools, and the
    /// states of memory are grey.
    LightFile,
    /// Concrete colors on near black.
    Dark,
    /// The page's CSS variables, see [`theme_css`].
    Page,
}

impl Theme {
    /// The role's color as CSS writes it.
    pub fn color(self, role: Role) -> String {
        match self {
            Self::Light => colors(role).0.to_owned(),
            Self::LightFile => {
                let grey = GREY_STATES.iter().find(|(known, ..)| *known == role);
                grey.map_or(colors(role).0, |(_, light, _)| light).to_owned()
            }
            Self::Dark => colors(role).1.to_owned(),
            Self::Page => format!("var({})", role.css_variable()),
        }
    }
}

fn colors(role: Role) -> (&'static str, &'static str) {
    let role = role.known();
    let found = COLORS.iter().find(|(known, ..)| *known == role);
    found.map_or(("#000000", "#ffffff"), |(_, light, dark)| (light, dark))
}

impl Role {
    /// Every role that has a color: indexed ones up to the number of their colors.
    pub fn all() -> impl Iterator<Item = Self> {
        COLORS.iter().map(|(role, ..)| *role)
    }
}

/// The colors as CSS: the variables of every role for light, and for dark where the system or `data-theme`
/// says so.
///
/// `<html data-theme="light">` and `<html data-theme="dark">` overrule the system. With `data-grey-states` the
/// states of memory are grey, as in [`Theme::LightFile`].
pub fn theme_css() -> String {
    let block = |theme: Theme, indent: &str| {
        Role::all().fold(String::new(), |text, role| {
            format!("{text}{indent}{}: {};\n", role.css_variable(), theme.color(role))
        })
    };
    let [light, dark] = [0, 1].map(|place| {
        GREY_STATES.iter().fold(String::new(), |text, (role, light, dark)| {
            format!("{text}  {}: {};\n", role.css_variable(), if place == 0 { light } else { dark })
        })
    });
    format!(
        ":root {{\n{}}}\n@media (prefers-color-scheme: dark) {{\n  :root:not([data-theme=\"light\"]) {{\n{}  }}\n}}\n\
         :root[data-theme=\"dark\"] {{\n{}}}\n:root[data-grey-states] {{\n{light}}}\n\
         :root[data-grey-states][data-theme=\"dark\"] {{\n{dark}}}\n@media (prefers-color-scheme: dark) {{\n\
         :root[data-grey-states]:not([data-theme=\"light\"]) {{\n{dark}}}\n}}\n",
        block(Theme::Light, "  "),
        block(Theme::Dark, "    "),
        block(Theme::Dark, "  "),
    )
}

/// The states of memory on white and on near black while hues belong to groups of allocations; their patterns
/// tell the states apart.
const GREY_STATES: [(Role, &str, &str); 3] = [
    (Role::Requested, "#64748b", "#8190a5"),
    (Role::Rounding, "#475569", "#cbd5e1"),
    (Role::PeakAllocated, "#334155", "#e2e8f0"),
];

// Each role on white and on near black. Hues after Okabe and Ito, darkened on white where the original has a
// contrast below 3:1. The tests measure the contrast.
const COLORS: [(Role, &str, &str); 50] = [
    (Role::Requested, "#0072b2", "#56b4e9"),
    (Role::Rounding, "#c85200", "#f08a3c"),
    (Role::Pending, "#b0558a", "#d992bb"),
    (Role::Cached, "#008f68", "#1fb587"),
    (Role::Free, "#7d848c", "#8b939c"),
    (Role::SplitEdge, "#1b1f24", "#f2f4f6"),
    (Role::PeakAllocated, "#00476f", "#9bd4f5"),
    (Role::PeakReserved, "#00573f", "#7fe0c0"),
    (Role::Limit, "#8a3300", "#ffb37a"),
    (Role::Failure, "#b00020", "#ff6b7d"),
    (Role::Cursor, "#1b1f24", "#f2f4f6"),
    (Role::Selection, "#000000", "#ffffff"),
    (Role::Hover, "#4a525b", "#b9c0c8"),
    (Role::Changed, "#b87400", "#ffb938"),
    (Role::Text, "#1b1f24", "#eceff2"),
    (Role::TextMuted, "#5b636c", "#a7afb8"),
    (Role::TextOnRequested, "#ffffff", "#0b1116"),
    (Role::Grid, "#d5d9de", "#3a4149"),
    (Role::Background, "#ffffff", "#161b22"),
    (Role::PoolSmall, "#dfe6ee", "#27303a"),
    (Role::PoolLarge, "#f1f3f5", "#1c2127"),
    (Role::Stream(0), "#5b636c", "#a7afb8"),
    (Role::Stream(1), "#0072b2", "#56b4e9"),
    (Role::Stream(2), "#c85200", "#f08a3c"),
    (Role::Stream(3), "#b0558a", "#d992bb"),
    (Role::Stream(4), "#008f68", "#1fb587"),
    (Role::Stream(5), "#8a6d00", "#f0e442"),
    // Groups and sites may lie beside each other in a stack. A search chose them: each has one hue in both
    // themes, and `tests/figure/palette.rs` measures that and how far apart they are for people who see all
    // colors and for those who do not. Eight groups have a separate hue, and all others share the grey.
    // The first is for what a verdict blames: it is the only orange. The grey of the rest is as far from the
    // grey of allocations without a stack as the groups allow.
    (Role::Group(0), "#c85000", "#ea5d18"),
    (Role::Group(1), "#5b53f9", "#8f8efd"),
    (Role::Group(2), "#8e6c39", "#e59f00"),
    (Role::Group(3), "#00515d", "#56e4f6"),
    (Role::Group(4), "#c224a2", "#db66c4"),
    (Role::Group(5), "#3a5300", "#b1b047"),
    (Role::Group(6), "#24a728", "#7eba63"),
    (Role::Group(7), "#8750cd", "#e48aec"),
    (Role::Group(8), "#6b6763", "#9aa2aa"),
    // Categories: violet, orange brown, magenta, ochre, and nearly no hue for other memory; the last grey is
    // for allocations without a stack, and is the nearest to the background. Blue and green are the hues of
    // live and cached memory, and red is the hue of a failure, so that no hue here is blue, green or red; no
    // color is as dark as text. They lie on each other in a stack, and so are far apart.
    (Role::Category(0), "#3b267f", "#a37ce8"),
    (Role::Category(1), "#602800", "#fcbe77"),
    (Role::Category(2), "#8f4187", "#d26dba"),
    (Role::Category(3), "#7d663e", "#a39258"),
    (Role::Category(4), "#53615a", "#f0f9e5"),
    (Role::Category(5), "#a68d95", "#74888d"),
    (Role::Category(6), "#3e3f46", "#d4cfc2"),
    (Role::Category(7), "#949494", "#63676d"),
    // One hue whose lightness says the order.
    (Role::Step(0), "#c07ca8", "#95608a"),
    (Role::Step(1), "#a85f93", "#ac739f"),
    (Role::Step(2), "#8e437c", "#c389b4"),
    (Role::Step(3), "#702a63", "#d8a2c8"),
    (Role::Step(4), "#511549", "#eabedb"),
    (Role::Step(5), "#2e062b", "#fadcf0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(text: &str) -> f64 {
        let value = f64::from(u8::from_str_radix(text, 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    }

    fn luminance(color: &str) -> f64 {
        0.2126 * channel(&color[1..3]) + 0.7152 * channel(&color[3..5]) + 0.0722 * channel(&color[5..7])
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// `color` at `opacity` on `ground`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a channel is at most 255")]
    fn mixed(color: &str, ground: &str, opacity: f64) -> String {
        let part = |range: std::ops::Range<usize>| {
            let value = |text: &str| f64::from(u8::from_str_radix(&text[range.clone()], 16).unwrap());
            format!("{:02x}", (value(color) * opacity + value(ground) * (1.0 - opacity)).round() as u8)
        };
        format!("#{}{}{}", part(1..3), part(3..5), part(5..7))
    }

    const GROUNDS: [Role; 5] = [Role::Text, Role::TextMuted, Role::Grid, Role::PoolSmall, Role::PoolLarge];

    #[test]
    fn marks_stand_out_three_to_one_from_the_background() {
        for theme in [Theme::Light, Theme::Dark] {
            let background = theme.color(Role::Background);
            for role in Role::all() {
                if GROUNDS.contains(&role) || matches!(role, Role::Background | Role::TextOnRequested) {
                    continue;
                }
                let ratio = contrast(&theme.color(role), &background);
                assert!(ratio >= 3.0, "{role:?} has {ratio:.2}:1 in {theme:?}");
            }
        }
    }

    #[test]
    fn text_stands_out_four_and_a_half_to_one_from_every_ground_it_is_put_on() {
        for theme in [Theme::Light, Theme::Dark] {
            let background = theme.color(Role::Background);
            for ground in [Role::Background, Role::PoolSmall, Role::PoolLarge] {
                for text in
                    [Role::Text, Role::TextMuted, Role::Failure, Role::PeakAllocated, Role::PeakReserved]
                {
                    let ratio = contrast(&theme.color(text), &theme.color(ground));
                    assert!(ratio >= 4.5, "{text:?} on {ground:?} has {ratio:.2}:1 in {theme:?}");
                }
            }
            // Blocks have the colors of categories, too.
            let of_blocks = (0..5).map(Role::Category);
            for ground in std::iter::once(Role::Requested).chain(of_blocks) {
                let ratio = contrast(&theme.color(Role::TextOnRequested), &theme.color(ground));
                assert!(ratio >= 4.5, "text on {ground:?} has {ratio:.2}:1 in {theme:?}");
            }
            for class in crate::BreakdownClass::ALL {
                let fill = crate::Fill::of(class);
                let tint = f64::from(fill.pattern.tile().tint);
                if tint < 1.0 {
                    let ground = mixed(&theme.color(fill.role), &background, tint);
                    let ratio = contrast(&theme.color(Role::Text), &ground);
                    assert!(ratio >= 4.5, "text on {class:?} has {ratio:.2}:1 in {theme:?}");
                }
            }
        }
    }

    #[test]
    fn every_role_has_its_colors() {
        let indexed = (0..=u8::MAX).flat_map(|index| {
            [Role::Stream(index), Role::Group(index), Role::Category(index), Role::Step(index)]
        });
        assert!(indexed.map(Role::known).all(|known| Role::all().any(|role| role == known)));
        assert_eq!(Theme::Light.color(Role::Stream(Role::STREAMS + 1)), Theme::Light.color(Role::Stream(1)));
    }

    #[test]
    fn the_css_names_every_role_in_both_themes() {
        let css = theme_css();
        for role in Role::all() {
            let greys = GREY_STATES.iter().filter(|(known, ..)| *known == role).count() * 3;
            assert_eq!(css.matches(&format!("{}:", role.css_variable())).count(), 3 + greys, "{role:?}");
        }
    }
}
