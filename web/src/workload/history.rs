//! The former texts of the workload, for undo and redo. Typed edits and requests by hand share one history.

use crate::workload::SettingsTexts;

/// A text with its past and its future, each text with the settings that it ran under.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    past: Vec<(String, SettingsTexts)>,
    present: String,
    future: Vec<(String, SettingsTexts)>,
    /// The change that the next one may continue, with its time in milliseconds.
    last: Option<(Change, f64)>,
}

/// A kind of change. Changes of one kind without a pause between them are one step of undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Text was typed.
    Text,
    /// Settings were typed.
    Settings,
    /// A key changed a size.
    Size,
}

/// The past has at most this many texts.
const MAX_TEXTS: usize = 300;
/// The texts of the past have at most this many bytes in all.
const MAX_BYTES: usize = 16 << 20;
/// A longer pause between two keys begins another step of undo.
const TYPING_PAUSE_MILLIS: f64 = 900.0;

impl History {
    /// A history that begins with `text`.
    pub(crate) fn new(text: String) -> Self {
        Self { present: text, ..Self::default() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.present
    }

    pub(crate) fn can_undo(&self) -> bool {
        !self.past.is_empty()
    }

    pub(crate) fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }

    /// Replaces the text, as one step of undo.
    ///
    /// `settings` are the settings of the former text. Undo restores both.
    pub(crate) fn replace(&mut self, text: String, settings: &SettingsTexts) {
        self.last = None;
        self.push(text, settings);
    }

    /// Replaces the text that [`History::replace`] put there: both are one step of undo.
    pub(crate) fn amend(&mut self, text: String) {
        self.present = text;
        self.future.clear();
    }

    /// Notes a change. Returns whether it belongs to the step of the change before.
    fn continues(&mut self, change: Change, now_millis: f64) -> bool {
        let before = self.last.replace((change, now_millis));
        before.is_some_and(|(kind, last)| kind == change && now_millis - last < TYPING_PAUSE_MILLIS)
    }

    /// Takes a text in which a key changed a size. Keys without a pause between them share one step of undo.
    pub(crate) fn change_size(&mut self, text: String, now_millis: f64, settings: &SettingsTexts) {
        if self.continues(Change::Size, now_millis) {
            self.amend(text);
        } else {
            self.push(text, settings);
        }
    }

    /// Takes the last step of undo back without a way to redo it.
    pub(crate) fn withdraw(&mut self) {
        if let Some((text, _)) = self.past.pop() {
            self.present = text;
            self.last = None;
        }
    }

    /// Changes the settings and the text that belongs to them, as one step of undo. Keys without a pause
    /// between them share one step.
    ///
    /// `before` are the former settings.
    pub(crate) fn change_settings(&mut self, text: String, now_millis: f64, before: &SettingsTexts) {
        if self.continues(Change::Settings, now_millis) && !self.past.is_empty() {
            self.amend(text);
        } else {
            self.push_step(text, before);
        }
    }

    /// Takes a text that was typed at this time. Keys without a pause between them share one step of undo.
    pub(crate) fn type_text(&mut self, text: String, now_millis: f64, settings: &SettingsTexts) {
        if self.continues(Change::Text, now_millis) {
            self.amend(text);
        } else {
            self.push(text, settings);
        }
    }

    /// Goes back one step. Takes the present settings and returns the settings of the restored text; `None`
    /// without a past.
    pub(crate) fn undo(&mut self, settings: &SettingsTexts) -> Option<SettingsTexts> {
        let (text, then) = self.past.pop()?;
        self.future.push((std::mem::replace(&mut self.present, text), settings.clone()));
        self.last = None;
        Some(then)
    }

    /// Goes forward one step, after [`History::undo`]. Takes the present settings and returns the settings of
    /// the restored text; `None` without a future.
    pub(crate) fn redo(&mut self, settings: &SettingsTexts) -> Option<SettingsTexts> {
        let (text, then) = self.future.pop()?;
        self.past.push((std::mem::replace(&mut self.present, text), settings.clone()));
        self.last = None;
        Some(then)
    }

    fn push(&mut self, text: String, settings: &SettingsTexts) {
        if text != self.present {
            self.push_step(text, settings);
        }
    }

    fn push_step(&mut self, text: String, settings: &SettingsTexts) {
        self.past.push((std::mem::replace(&mut self.present, text), settings.clone()));
        self.future.clear();
        let mut bytes: usize = self.past.iter().map(|(text, _)| text.len()).sum();
        while self.past.len() > MAX_TEXTS || (bytes > MAX_BYTES && self.past.len() > 1) {
            bytes -= self.past.remove(0).0.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn keystrokes_without_a_pause_are_undone_together() {
        let mut history = History::new("a".to_owned());
        history.type_text("ab".to_owned(), 1000.0, &SettingsTexts::default());
        history.type_text("abc".to_owned(), 1200.0, &SettingsTexts::default());
        history.type_text("abcd".to_owned(), 5000.0, &SettingsTexts::default());
        history.undo(&SettingsTexts::default());
        assert_eq!(history.text(), "abc");
        history.undo(&SettingsTexts::default());
        assert_eq!(history.text(), "a");
        assert!(!history.can_undo());
    }

    #[test]
    fn a_request_by_hand_is_a_step_of_its_own_even_while_typing() {
        let mut history = History::new(String::new());
        history.type_text("x".to_owned(), 0.0, &SettingsTexts::default());
        history.replace("x\ny".to_owned(), &SettingsTexts::default());
        history.type_text("x\nyz".to_owned(), 10.0, &SettingsTexts::default());
        history.undo(&SettingsTexts::default());
        assert_eq!(history.text(), "x\ny");
        history.undo(&SettingsTexts::default());
        assert_eq!(history.text(), "x");
    }

    #[test]
    fn redo_comes_back_until_something_new_is_done() {
        let mut history = History::new("1".to_owned());
        history.replace("2".to_owned(), &SettingsTexts::default());
        history.undo(&SettingsTexts::default());
        assert!(history.can_redo());
        history.redo(&SettingsTexts::default());
        assert_eq!(history.text(), "2");
        history.undo(&SettingsTexts::default());
        history.replace("3".to_owned(), &SettingsTexts::default());
        assert!(!history.can_redo());
    }

    #[test]
    fn settings_come_back_with_the_text_that_they_belong_to() {
        let small = SettingsTexts { capacity: "64 MiB".to_owned(), ..SettingsTexts::default() };
        let large = SettingsTexts { capacity: "80 GiB".to_owned(), ..SettingsTexts::default() };
        let mut history = History::new("1".to_owned());
        history.replace("2".to_owned(), &small);
        assert_eq!(history.undo(&large), Some(small.clone()));
        assert_eq!(history.redo(&small), Some(large));
        assert_eq!(history.redo(&small), None);
    }

    #[test]
    fn other_settings_are_a_step_even_where_the_text_stays() {
        let small = SettingsTexts { capacity: "64 MiB".to_owned(), ..SettingsTexts::default() };
        let large = SettingsTexts { capacity: "80 GiB".to_owned(), ..SettingsTexts::default() };
        let mut history = History::new("1".to_owned());
        history.change_settings("1".to_owned(), 0.0, &small);
        history.change_settings("1".to_owned(), 300.0, &SettingsTexts::default());
        assert_eq!(history.undo(&large), Some(small.clone()), "typing without a pause is one step");
        assert!(!history.can_undo());
        assert_eq!(history.redo(&small), Some(large.clone()));
        history.change_settings("1".to_owned(), 5000.0, &large);
        assert_eq!(history.undo(&small), Some(large));
        assert!(history.can_undo());
    }

    #[test]
    fn a_drag_is_one_step_and_can_be_withdrawn() {
        let mut history = History::new("1".to_owned());
        history.replace("2".to_owned(), &SettingsTexts::default());
        history.amend("3".to_owned());
        history.amend("4".to_owned());
        history.undo(&SettingsTexts::default());
        assert!(history.text() == "1" && !history.can_undo() && history.can_redo());
        history.replace("2".to_owned(), &SettingsTexts::default());
        history.amend("3".to_owned());
        history.withdraw();
        history.type_text("12".to_owned(), 0.0, &SettingsTexts::default());
        history.change_size("5".to_owned(), 10.0, &SettingsTexts::default());
        history.change_size("6".to_owned(), 20.0, &SettingsTexts::default());
        history.undo(&SettingsTexts::default());
        assert_eq!(history.text(), "12", "keys that change a size share a step, but not with typed text");
        history.undo(&SettingsTexts::default());
        history.change_size("7".to_owned(), 30.0, &SettingsTexts::default());
        history.withdraw();
        assert!(history.text() == "1" && !history.can_undo() && !history.can_redo());
    }

    #[test]
    fn the_same_text_again_is_no_step() {
        let mut history = History::new("1".to_owned());
        history.replace("1".to_owned(), &SettingsTexts::default());
        assert!(!history.can_undo());
    }
}
