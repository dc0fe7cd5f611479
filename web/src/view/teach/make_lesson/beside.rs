//! The figure beside the text: the memory at the end of the card that is written.

use blockyard_figure::{Size, StageForm, StageView};
use blockyard_lessons::card_stage;
use leptos::html;
use leptos::prelude::*;

use super::LessonEditor;
use crate::surface;
use crate::view::figure::stage::SMALL_PX;
use crate::view::kit::{flag, text};

/// The card that the caret is in, counted from 0.
pub(super) fn card_at_caret(area: NodeRef<html::Textarea>) -> usize {
    let Some(area) = area.get_untracked() else { return 0 };
    let caret = area.selection_start().ok().flatten().unwrap_or_default() as usize;
    // Text fields count in UTF-16.
    let before: Vec<u16> = area.value().encode_utf16().take(caret).collect();
    let before = String::from_utf16_lossy(&before);
    before.lines().filter(|line| line.starts_with("## ")).count().saturating_sub(1)
}

/// The figure of that card, with its title.
pub(super) fn figure(editor: LessonEditor) -> AnyView {
    let (area, canvas) = (NodeRef::<html::Div>::new(), NodeRef::<html::Canvas>::new());
    let size = surface::size_of(area);
    let shown = Memo::new(move |_| {
        let card = editor.card.get();
        editor.checked.with(|checked| {
            let lesson = checked.lesson.as_ref()?;
            let card = card.min(lesson.cards.len().saturating_sub(1));
            let (stage, words) = card_stage(lesson, card, false).ok()??;
            Some((stage, words, checked.cards.get(card).cloned().unwrap_or_default()))
        })
    });
    surface::keep_drawn(editor.session, canvas, size, move |size: Size| {
        let form = if size.width_px < SMALL_PX { StageForm::Small } else { StageForm::Compact };
        let view = StageView { form, ..StageView::default() };
        shown.with(|shown| shown.as_ref().map(|(stage, ..)| stage.scene(&view, size.width_px)))
    });
    let words =
        text(move || shown.with(|shown| shown.as_ref().map(|shown| shown.1.clone())).unwrap_or_default());
    let title =
        text(move || shown.with(|shown| shown.as_ref().map(|shown| shown.2.clone())).unwrap_or_default());
    view! {
        <div hidden=flag(move || shown.with(Option::is_none))>
            <p class="quiet">{title}</p>
            <div class="chapter-figure" node_ref=area>
                <canvas node_ref=canvas role="img" data-testid="card-figure" aria-label=words></canvas>
            </div>
        </div>
    }
    .into_any()
}
