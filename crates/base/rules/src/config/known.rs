//! The settings of a recorded run, as far as they are known here.

use super::keys::parts;
use super::{AllocatorConfig, ConfigError};
use crate::Release;

/// The settings without those that a release does not have, and the names of these: later releases of PyTorch
/// have more settings.
///
/// A text that is wrong in another way stays as it is.
#[must_use]
pub fn known_config(text: &str, release: Release) -> (String, Vec<String>) {
    let mut settings = parts(text);
    let (mut known, mut left_out) = (text.to_owned(), Vec::new());
    while let Err(ConfigError::UnrecognizedKey { key, .. } | ConfigError::UnrecognizedOption { key }) =
        AllocatorConfig::parse(&known, release)
    {
        let count = settings.len();
        settings.retain(|setting| name(setting) != key);
        if settings.len() == count {
            return (text.to_owned(), Vec::new());
        }
        left_out.push(key);
        known = settings.join(",");
    }
    (known, left_out)
}

/// The text of `PYTORCH_CUDA_ALLOC_CONF` as people read it: `default settings` for an empty text, else the
/// text itself.
///
/// ```
/// use blockyard_rules::conf_text;
///
/// assert_eq!(conf_text(""), "default settings");
/// assert_eq!(conf_text("expandable_segments:True"), "expandable_segments:True");
/// ```
#[must_use]
pub fn conf_text(conf: &str) -> &str {
    if conf.is_empty() { "default settings" } else { conf }
}

/// The line of a shell that gives these settings to programs: `export`, or `unset` for the default settings. In
/// quotes where the shell would read a part of the text itself.
///
/// ```
/// use blockyard_rules::shell_line;
///
/// let list = "roundup_power2_divisions:[256:1,>:8]";
/// assert_eq!(shell_line(list), format!("export PYTORCH_CUDA_ALLOC_CONF='{list}'"));
/// ```
#[must_use]
pub fn shell_line(conf: &str) -> String {
    // A crate for this quotes commas too, and most texts of settings have one.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_:,.-".contains(letter);
    match conf {
        "" => "unset PYTORCH_CUDA_ALLOC_CONF".to_owned(),
        conf if conf.chars().all(is_plain) => format!("export PYTORCH_CUDA_ALLOC_CONF={conf}"),
        conf => format!("export PYTORCH_CUDA_ALLOC_CONF='{}'", conf.replace('\'', r"'\''")),
    }
}

/// A sentence about settings that are left out.
#[must_use]
pub fn left_out_note(left_out: &[String]) -> Option<String> {
    let names = left_out.join(", ");
    (!left_out.is_empty()).then(|| format!("settings of later releases are left out of the replay: {names}"))
}

fn name(setting: &str) -> String {
    let name = setting.split(':').next().unwrap_or_default();
    name.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_has_a_name_for_people() {
        assert_eq!(conf_text(""), "default settings");
        assert_eq!(conf_text("max_split_size_mb:64"), "max_split_size_mb:64");
    }

    #[test]
    fn settings_of_later_releases_are_left_out_by_name() {
        let text = "expandable_segments:True, expandable_segments_reserve_by_class:[a:1,b:2],max_split_size_mb:64,later:1";
        let (known, left_out) = known_config(text, Release::V2_14);
        assert_eq!(known, "expandable_segments:True,max_split_size_mb:64");
        assert_eq!(left_out, ["expandable_segments_reserve_by_class", "later"]);
        assert_eq!(
            left_out_note(&left_out).unwrap(),
            "settings of later releases are left out of the replay: expandable_segments_reserve_by_class, later"
        );
        assert_eq!(known_config(text, Release::V2_15).1, ["later"]);
        // What is known, and what is wrong, stays.
        for text in ["", "roundup_power2_divisions:[64:8,>:4]", "max_split_size_mb:x"] {
            assert_eq!(known_config(text, Release::V2_11), (text.to_owned(), Vec::new()), "{text}");
        }
    }
}
