//! Blocks of the segment map slide from where they were to where they are after a step, or after a change of their sizes.

use blockyard_figure::{MapView, Scene, SceneMotion};
use leptos::prelude::*;
use web_sys::HtmlCanvasElement;

use crate::browser;
use crate::frames::{self, Slot};
use crate::surface;
use crate::view::map_actions::MapActions;

/// How long blocks slide.
const MOTION_MILLIS: f64 = 250.0;
/// While a size is dragged the next picture comes before this one is reached: a motion that begins anew is this far already.
const HEAD_START_MILLIS: f64 = 90.0;
/// A player that makes more moves a second than this shows the moments without motion between them.
const FASTEST_WITH_MOTION: f32 = 2.5;

/// What was drawn last, and the motion that leads to what is to be seen; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct MapMotion(StoredValue<Option<Shown>, LocalStorage>);

struct Shown {
    /// What the canvas shows.
    scene: Scene,
    /// The rows in sight, and how they are drawn.
    view: MapView,
    /// How many steps were done.
    steps: usize,
    motion: Option<(SceneMotion, f64)>,
}

impl MapMotion {
    pub(crate) fn new() -> Self {
        Self(StoredValue::new_local(None))
    }

    /// Shows a picture of the map: in motion where the same rows are one step away, or a size is dragged.
    pub(crate) fn show(self, actions: MapActions, canvas: &HtmlCanvasElement, view: &MapView, scene: Scene) {
        // What the pointer is on is where it will be.
        actions.drawn.keep(scene.clone());
        let session = actions.session;
        let (steps, speed) = session
            .player
            .with_untracked(|player| (player.steps, if player.is_playing { player.speed } else { 0.0 }));
        let is_dragged = session.resizing.with_untracked(Option::is_some);
        let now = browser::now_millis();
        let begun = if is_dragged { now - HEAD_START_MILLIS } else { now };
        let motion = self.0.with_value(|shown| {
            let before = shown.as_ref()?;
            let is_near = before.steps.abs_diff(steps) <= 1
                && speed <= FASTEST_WITH_MOTION
                && is_same_view(&before.view, view)
                && (before.scene.width_px - scene.width_px).abs() < 0.5;
            if !is_near || browser::is_motion_reduced() {
                return None;
            }
            SceneMotion::new(&before.scene, scene.clone()).map(|motion| (motion, begun))
        });
        let is_moving = motion.is_some();
        let shown = Shown { scene, view: view.clone(), steps, motion };
        self.0.set_value(Some(shown));
        if is_moving {
            self.tick(actions);
        } else {
            self.0.with_value(|shown| {
                if let Some(shown) = shown {
                    session.draw(canvas, &shown.scene);
                }
            });
        }
    }

    /// Draws the picture of now, and goes on in the next frame until the motion has ended.
    fn tick(self, actions: MapActions) {
        let Some(canvas) = actions.canvas.get_untracked() else { return };
        let now = browser::now_millis();
        let is_moving = self.0.try_update_value(|shown| {
            let Some(shown) = shown else { return false };
            let Some((motion, begun)) = &shown.motion else { return false };
            let progress = (now - begun) / MOTION_MILLIS;
            if progress >= 1.0 {
                shown.scene = motion.end().clone();
                shown.motion = None;
            } else {
                shown.scene = motion.at(surface::pixels(progress));
            }
            untrack(|| actions.session.draw(&canvas, &shown.scene));
            shown.motion.is_some()
        });
        if is_moving == Some(true) {
            frames::plan(Slot::Map, move || self.tick(actions));
        }
    }
}

/// Whether both show the same rows in the same way.
fn is_same_view(one: &MapView, other: &MapView) -> bool {
    let of = |view: &MapView| (view.zoom, view.scale, view.order, view.rows);
    of(one) == of(other) && (one.scroll_px - other.scroll_px).abs() < 0.5
}
