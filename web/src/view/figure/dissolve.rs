//! The way from one picture of a figure to the next. No mark moves: the first picture turns into the second
//! one in its place, since most marks of two pictures are unrelated. In the middle is a picture that shows
//! the change (see [`Scene::halfway_to`]).

use blockyard_figure::{MapView, Scene};
use leptos::html;
use leptos::prelude::*;
use web_sys::HtmlCanvasElement;

use crate::browser;
use crate::canvas;
use crate::frames::{self, Slot};
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::Session;

/// How long one picture takes to become the next.
const MILLIS: f64 = 480.0;
/// The part of that time after which the picture in the middle is reached.
const MIDDLE: f64 = 0.45;
/// Pictures that follow each other faster than this belong to one change.
const SAME_CHANGE_MILLIS: f64 = 40.0;
/// A player that makes more moves a second than this shows the moments at once.
const FASTEST: f32 = 2.0;

/// The picture that a figure showed last, and the way to the next picture; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Dissolve {
    session: Session,
    slot: Slot,
    canvas: NodeRef<html::Canvas>,
    shown: StoredValue<Option<ShownScene>, LocalStorage>,
}

struct ShownScene {
    scene: Scene,
    /// The rows in sight, and how they are drawn; the default view in a figure without rows.
    view: MapView,
    run: PtrEq<Run>,
    steps: usize,
    way: Option<Way>,
}

/// The pictures at the beginning, in the middle and at the end, each on its own canvas.
struct Way {
    from: Scene,
    pictures: [HtmlCanvasElement; 3],
    begun_millis: f64,
}

impl Dissolve {
    pub(crate) fn new(session: Session, slot: Slot, canvas: NodeRef<html::Canvas>) -> Self {
        Self { session, slot, canvas, shown: StoredValue::new_local(None) }
    }

    /// Shows a picture: at once, or by dissolving from the picture before if both are one step apart.
    pub(crate) fn show(self, view: &MapView, scene: Scene) {
        let run = self.session.run.get_untracked();
        let (steps, speed) = self
            .session
            .player
            .with_untracked(|player| (player.steps, if player.is_playing { player.speed } else { 0.0 }));
        let now = browser::now_millis();
        let before = self.shown.try_update_value(Option::take).flatten();
        let way = before.and_then(|before| {
            if before.run == run && before.steps == steps {
                // Both pictures show the same moment, and only the emphasis has changed.
                let way = before.way.filter(|way| now - way.begun_millis < MILLIS)?;
                self.paint(&way.pictures[2], &scene);
                return Some(way);
            }
            let is_near = before.steps.abs_diff(steps) <= 1
                && speed <= FASTEST
                && is_same_view(&before.view, view)
                && (before.scene.width_px - scene.width_px).abs() < 0.5
                && (before.scene.height_px - scene.height_px).abs() < 0.5;
            // While the reader drags an edge, the edge follows the pointer without a dissolve.
            if !is_near
                || browser::is_motion_reduced()
                || self.session.workload().resizing.with_untracked(Option::is_some)
            {
                return None;
            }
            let just_begun = before.way.filter(|way| now - way.begun_millis < SAME_CHANGE_MILLIS);
            let from = just_begun.map_or(before.scene, |way| way.from);
            self.way(from, &scene, now)
        });
        let is_moving = way.is_some();
        self.shown.set_value(Some(ShownScene { scene, view: view.clone(), run, steps, way }));
        if is_moving {
            return self.tick();
        }
        let Some(canvas) = self.canvas.get_untracked() else { return };
        self.shown.with_value(|shown| {
            if let Some(shown) = shown {
                self.paint(&canvas, &shown.scene);
            }
        });
    }

    fn way(self, from: Scene, to: &Scene, begun_millis: f64) -> Option<Way> {
        let middle = from.halfway_to(to)?;
        let picture = |scene: &Scene| {
            let canvas = canvas::new_canvas()?;
            self.paint(&canvas, scene);
            Some(canvas)
        };
        let pictures = [picture(&from)?, picture(&middle)?, picture(to)?];
        Some(Way { from, pictures, begun_millis })
    }

    fn paint(self, canvas: &HtmlCanvasElement, scene: &Scene) {
        untrack(|| self.session.appearance().draw(canvas, scene));
    }

    /// Draws the picture of the present time, and continues in the next frame until the end is reached.
    fn tick(self) {
        let Some(canvas) = self.canvas.get_untracked() else { return };
        let is_moving = self.shown.try_update_value(|shown| {
            let Some(shown) = shown else { return false };
            let Some(way) = &shown.way else { return false };
            let progress = (browser::now_millis() - way.begun_millis) / MILLIS;
            if progress >= 1.0 {
                shown.way = None;
                self.paint(&canvas, &shown.scene);
                return false;
            }
            let [from, middle, to] = &way.pictures;
            if progress < MIDDLE {
                canvas::blend(&canvas, from, middle, progress / MIDDLE);
            } else {
                canvas::blend(&canvas, middle, to, (progress - MIDDLE) / (1.0 - MIDDLE));
            }
            true
        });
        if is_moving == Some(true) {
            frames::plan(self.slot, move || self.tick());
        }
    }
}

/// Whether both views show the same rows in the same way.
fn is_same_view(one: &MapView, other: &MapView) -> bool {
    let of = |view: &MapView| (view.zoom, view.rows);
    of(one) == of(other) && (one.scroll_px - other.scroll_px).abs() < 0.5
}
