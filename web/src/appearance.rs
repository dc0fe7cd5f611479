//! How the page looks: its theme, the colors of its figures, its width, and whether it is being printed.

mod theme;

pub(crate) use theme::ThemeChoice;

use std::cell::RefCell;

use blockyard_figure::{Role, Scene, Theme};
use leptos::prelude::*;
use web_sys::HtmlCanvasElement;

use crate::browser;
use crate::canvas::Paints;
use crate::session::Feature;

/// How the page looks.
#[derive(Default)]
pub(crate) struct AppearanceSignals {
    pub(crate) theme: RwSignal<ThemeChoice>,
    /// Counts the changes of colors and of the pixel ratio.
    pub(crate) version: RwSignal<u32>,
    /// Whether the window is narrow, so that the page has one column.
    pub(crate) is_narrow: RwSignal<bool>,
    /// Whether the page is being printed.
    pub(crate) is_on_paper: RwSignal<bool>,
    /// The colors, with the version that they were read for.
    paints: StoredValue<RefCell<Option<(u32, Paints)>>, LocalStorage>,
}

impl AppearanceSignals {
    pub(crate) fn new() -> Self {
        Self { theme: RwSignal::new(ThemeChoice::recall()), ..Self::default() }
    }
}

impl Feature<AppearanceSignals> {
    /// Lets every figure be drawn again, since colors, pixels or letters have changed.
    pub(crate) fn redraw(self) {
        self.version.update(|version| *version += 1);
    }

    /// Calls `paint` with the page's present colors. Reads signals.
    fn with_paints<T>(self, paint: impl FnOnce(&mut Paints) -> T) -> T {
        let now = self.version.get();
        self.paints.with_value(|paints| {
            let mut paints = paints.borrow_mut();
            let kept = paints.take().filter(|(version, _)| *version == now);
            let (_, paints) = paints.insert(kept.unwrap_or_else(|| (now, Paints::read())));
            paint(paints)
        })
    }

    /// Draws the scene in the page's present colors. Reads signals.
    pub(crate) fn draw(self, canvas: &HtmlCanvasElement, scene: &Scene) {
        self.with_paints(|paints| paints.draw(canvas, scene));
    }

    /// Draws the scene so many times as large, letters and lines too. Reads signals.
    pub(crate) fn draw_enlarged(self, canvas: &HtmlCanvasElement, scene: &Scene, factor: f32) {
        self.version.track();
        Paints::read_for(browser::canvas_ratio() * f64::from(factor)).draw(canvas, scene);
    }

    /// The theme of the page's present colors. Reads signals.
    pub(crate) fn shown_theme(self) -> Theme {
        let ground: u32 = self.rgb(&[Role::Background]).concat().into_iter().map(u32::from).sum();
        if ground < 3 * 128 { Theme::Dark } else { Theme::Light }
    }

    /// The page's present colors of these roles as red, green and blue. Reads signals.
    pub(crate) fn rgb(self, roles: &[Role]) -> Vec<[u8; 3]> {
        self.with_paints(|paints| roles.iter().map(|role| paints.rgb(*role)).collect())
    }
}
