//! What the figures show: a preset, the reader's own workload, or an opened recording.

use blockyard_figure::{MapView, Player, PlayerAction};
use blockyard_workload::presets::Preset;
use leptos::prelude::*;

use super::{NOTHING, OpenedFile, Session, SettingsTexts};
use crate::ptr_eq::PtrEq;

impl Session {
    /// Shows the opened recording or the workload; each keeps its place.
    pub(crate) fn show_opened(self, is_shown: bool) {
        if self.shows_opened.get_untracked() == is_shown {
            return;
        }
        let player = self.player.get_untracked();
        let other = self.other_player.get_value();
        self.other_player.set_value(Player { is_playing: false, ..player });
        self.shows_opened.set(is_shown);
        self.player.set(other);
        self.forget_views();
        self.dispatch(PlayerAction::Loaded { keep_at_end: false });
    }

    /// Takes in another recording: at its first difference, or at its end where it is identical.
    pub(crate) fn open(self, opened: OpenedFile) {
        if !self.shows_opened.get_untracked() {
            let player = self.player.get_untracked();
            self.other_player.set_value(Player { is_playing: false, ..player });
        }
        let recording = opened.run.recording.clone();
        let said = opened.run.opened.as_ref();
        let difference = said.and_then(|said| said.comparison.first_difference.as_ref()?.step);
        self.opened.set(Some(PtrEq::new(opened)));
        self.shows_opened.set(true);
        self.player.set(Player { speed: 60.0, ..Player::at_end(&recording) });
        if let Some(step) = difference {
            self.dispatch(PlayerAction::SeekStep(step as usize + 1));
        }
        self.forget_views();
        self.message.set(None);
    }

    /// Starts another workload, from its start.
    pub(crate) fn load_preset(self, preset: &Preset) {
        self.load(preset.text.to_owned(), SettingsTexts::of(preset));
    }

    /// Starts the workload of a file, with the allocator's settings and on the device of the one before.
    pub(crate) fn load_text(self, title: String, text: String) {
        let settings = self.settings.get_untracked();
        self.load(text, SettingsTexts { title, ..settings });
    }

    fn load(self, text: String, settings: SettingsTexts) {
        self.show_opened(false);
        let before = self.settings.get_untracked();
        self.history.update(|history| history.replace(text, &before));
        self.settings.set(settings);
        self.player.set(Player::default());
        self.forget_views();
        self.message.set(None);
        self.run_first();
    }

    /// Starts a workload of nothing, on a device of some size.
    pub(crate) fn load_empty(self) {
        self.load_preset(&NOTHING);
    }

    fn forget_views(self) {
        self.timeline_view.set(None);
        self.map_view
            .update(|view| *view = MapView { scale: view.scale, order: view.order, ..MapView::default() });
    }
}
