//! The device's capacity as one bar.

use blockyard_figure::{Size, breakdown_bar, breakdown_text, describe_target};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::session::Session;
use crate::surface::{self, Drawn};
use crate::view::kit::{effect, on, text};
use crate::view::tip::Tip;

pub(crate) fn breakdown(session: Session) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let canvas = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let drawn = Drawn::new();
    let tip = Tip::new();
    effect(move || {
        let (Some(canvas), size) = (canvas.get(), size.get()) else { return };
        if size.width_px < 1.0 {
            return;
        }
        let scene = session.with_state(|_, state| breakdown_bar(state, Size::new(size.width_px, 1.0)));
        if let Some(scene) = scene {
            surface::fit(&canvas, &scene);
            session.draw(&canvas, &scene);
            drawn.keep(scene);
        }
    });
    let label = text(move || session.with_state(|_, state| breakdown_text(state)).unwrap_or_default());
    let hover = on(move |event: ev::PointerEvent| {
        let (x, y) =
            (surface::pixels(f64::from(event.offset_x())), surface::pixels(f64::from(event.offset_y())));
        let target = drawn.look(|scene| scene.hit(x, y).map(|target| target.what));
        let words = target.and_then(|target| {
            session.with_state_now(|run, state| describe_target(target, state, &run.recording)).flatten()
        });
        tip.show(words, &event);
    });
    view! {
        <section class="panel breakdown" aria-label="Memory of the device">
            <div class="canvas-box" node_ref=area>
                <canvas
                    node_ref=canvas
                    role="img"
                    data-testid="breakdown"
                    aria-label=label
                    on:pointermove=hover
                    on:pointerleave=on(move |_: ev::PointerEvent| tip.hide())
                ></canvas>
            </div>
            {tip.view()}
        </section>
    }
    .into_any()
}
