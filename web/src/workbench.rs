//! The workbench around the figures: which panels and which tab are shown. The browser remembers the panels.

use leptos::prelude::*;

use crate::browser;
use crate::element_ids::HOLDERS_FILTER;
use crate::messages::{Message, MessageKind};
use crate::session::Feature;

/// A panel of the workbench that the reader may hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkbenchPanel {
    Stage,
    Timeline,
    Map,
    Allocations,
    Side,
}

impl WorkbenchPanel {
    pub(crate) const ALL: [Self; 5] = [Self::Stage, Self::Timeline, Self::Map, Self::Allocations, Self::Side];

    /// The name of the panel in the style sheet and in the browser's storage.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Timeline => "timeline",
            Self::Map => "map",
            Self::Allocations => "lifetimes",
            Self::Side => "side",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Stage => "Memory of the device",
            Self::Timeline => "Memory over time",
            Self::Map => "Segments",
            Self::Allocations => "Allocations over time",
            Self::Side => "Request and tabs",
        }
    }

    /// Whether the panel can be shown alone. Only figures can.
    pub(crate) fn is_figure(self) -> bool {
        !matches!(self, Self::Side)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The panels that the reader has hidden, and the figure that is shown alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PanelLayout {
    /// The hidden panels, a bit for each.
    hidden: u8,
    /// The figure that is shown alone and fills the workbench.
    pub(crate) alone: Option<WorkbenchPanel>,
}

impl PanelLayout {
    pub(crate) fn is_hidden(self, panel: WorkbenchPanel) -> bool {
        self.hidden & panel.bit() != 0
    }

    /// Whether the layout differs from the layout of the first visit.
    pub(crate) fn is_changed(self) -> bool {
        self != Self::default()
    }

    /// The layout with the panel hidden, or shown again. No figure is shown alone any more.
    fn with_toggled(self, panel: WorkbenchPanel) -> Self {
        Self { hidden: self.hidden ^ panel.bit(), alone: None }
    }

    /// The layout with the figure alone, or with all panels that are not hidden if the figure was alone.
    fn with_alone(self, panel: WorkbenchPanel) -> Self {
        let alone = (self.alone != Some(panel) && panel.is_figure()).then_some(panel);
        Self { alone, ..self }
    }

    /// The names of the hidden panels, with spaces between them.
    pub(crate) fn hidden_names(self) -> String {
        let hidden = WorkbenchPanel::ALL.into_iter().filter(|panel| self.is_hidden(*panel));
        hidden.map(WorkbenchPanel::name).collect::<Vec<_>>().join(" ")
    }

    fn written(self) -> String {
        format!("{}|{}", self.hidden_names(), self.alone.map_or("", WorkbenchPanel::name))
    }

    /// Reads the text of [`PanelLayout::written`]. Unknown names are left out.
    fn read(text: &str) -> Self {
        let (hidden, alone) = text.split_once('|').unwrap_or_default();
        let named = |name: &str| WorkbenchPanel::ALL.into_iter().find(|panel| panel.name() == name);
        let hidden = hidden.split(' ').filter_map(named).fold(0, |bits, panel| bits | panel.bit());
        Self { hidden, alone: named(alone).filter(|panel| panel.is_figure()) }
    }

    /// The layout of an earlier visit.
    fn recall() -> Self {
        browser::recall(KEY).map_or_else(Self::default, |text| Self::read(&text))
    }
}

/// A tab beside the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Holders,
    Source,
    Lab,
    Numbers,
}

impl Tab {
    pub(crate) const ALL: [Self; 4] = [Self::Source, Self::Holders, Self::Lab, Self::Numbers];

    /// The name of the tab in the page and in tests.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Holders => "holders",
            Self::Source => "source",
            Self::Lab => "lab",
            Self::Numbers => "numbers",
        }
    }
}

const KEY: &str = "blockyard.panels";

/// Which panels and which tab are shown.
pub(crate) struct WorkbenchSignals {
    /// Which panels are shown.
    pub(crate) panels: RwSignal<PanelLayout>,
    /// The tab that is shown beside the figures.
    pub(crate) tab: RwSignal<Tab>,
}

impl WorkbenchSignals {
    pub(crate) fn new() -> Self {
        Self { panels: RwSignal::new(PanelLayout::recall()), tab: RwSignal::new(Tab::Source) }
    }
}

impl Feature<WorkbenchSignals> {
    /// Hides the panel, or shows it again.
    pub(crate) fn toggle(self, panel: WorkbenchPanel) {
        self.lay_out(self.panels.get_untracked().with_toggled(panel));
        let is_hidden = self.panels.get_untracked().is_hidden(panel);
        self.session.announce(format!("{} {}.", panel.title(), if is_hidden { "hidden" } else { "shown" }));
    }

    /// Shows the figure alone, or shows the other panels again.
    pub(crate) fn toggle_alone(self, panel: WorkbenchPanel) {
        self.lay_out(self.panels.get_untracked().with_alone(panel));
        let is_alone = self.panels.get_untracked().alone.is_some();
        self.session.announce(if is_alone {
            format!("{} alone.", panel.title())
        } else {
            "All figures.".to_owned()
        });
    }

    /// Shows a message about the panel that a key has hidden, since a reader may have meant the digit for a
    /// field.
    pub(crate) fn note_hidden(self, panel: WorkbenchPanel) {
        let layout = self.panels.get_untracked();
        let what = match layout.alone {
            Some(_) => "This panel alone".to_owned(),
            None if layout.is_hidden(panel) => format!("{} hidden", panel.title()),
            None => {
                self.clear_hint();
                return;
            }
        };
        self.session.show_message(format!("{what}; Esc or 0 shows all panels."), MessageKind::HiddenPanels);
    }

    fn clear_hint(self) -> bool {
        let is_hint = |message: &Option<Message>| {
            message.as_ref().is_some_and(|message| message.kind == MessageKind::HiddenPanels)
        };
        let is_hint_shown = self.session.messages().message.with_untracked(is_hint);
        if is_hint_shown {
            self.session.messages().message.set(None);
        }
        is_hint_shown
    }

    /// Shows every panel if the message of [`Self::note_hidden`] is shown. Returns whether it was.
    pub(crate) fn dismiss_hint(self) -> bool {
        let was_shown = self.clear_hint();
        if was_shown {
            self.lay_out(PanelLayout::default());
        }
        was_shown
    }

    /// Shows every panel.
    pub(crate) fn show_all(self) {
        self.clear_hint();
        self.lay_out(PanelLayout::default());
        self.session.announce("All panels shown.".to_owned());
    }

    /// Shows the panel if it is hidden or if another panel is shown alone, because the panel contains
    /// something that the reader asked for.
    pub(crate) fn reveal(self, panel: WorkbenchPanel) {
        let layout = self.panels.get_untracked();
        let shown = if layout.is_hidden(panel) { layout.with_toggled(panel) } else { layout };
        let alone = shown.alone.filter(|alone| *alone == panel);
        self.lay_out(PanelLayout { alone, ..shown });
    }

    fn lay_out(self, layout: PanelLayout) {
        if self.panels.get_untracked() == layout {
            return;
        }
        self.panels.set(layout);
        if layout.is_changed() {
            browser::remember(KEY, &layout.written());
        } else {
            browser::forget(KEY);
        }
    }

    /// Focuses the filter of the table of holders, and shows its panel if it is hidden.
    pub(crate) fn filter_holders(self) {
        self.reveal(WorkbenchPanel::Side);
        self.tab.set(Tab::Holders);
        // The panel exists only after the effects of this change.
        let _ = browser::after_millis(0, || browser::focus(HOLDERS_FILTER));
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn hidden_panels_are_read_again() {
        let layout = PanelLayout::default()
            .with_toggled(WorkbenchPanel::Map)
            .with_toggled(WorkbenchPanel::Side)
            .with_alone(WorkbenchPanel::Stage);
        assert_eq!(layout.written(), "map side|stage");
        assert_eq!(PanelLayout::read(&layout.written()), layout);
        assert_eq!(layout.with_toggled(WorkbenchPanel::Map).written(), "side|");
        assert_eq!(layout.with_alone(WorkbenchPanel::Stage).written(), "map side|");
    }

    #[test]
    fn a_damaged_layout_hides_nothing() {
        for text in ["", "|", "unknown|panel", "map", "|side"] {
            assert_eq!(PanelLayout::read(text), PanelLayout::default(), "{text}");
        }
    }
}
