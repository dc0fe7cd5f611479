//! A flame graph of the call stacks whose allocations hold the bytes of a moment.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_figure::{AxisRange, ColorBy, FlameGraph, Point, Role, Size, TargetId, flame_scene, percent};
use blockyard_record::{StackId, Stacks};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use web_sys::MouseEvent;

use crate::effect::effect;
use crate::numbers::grouped_count;
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::surface::{self, DrawnScene};
use crate::view::figure::gesture::{self, Gesture};
use crate::view::figure::holders::HolderList;
use crate::view::figure::tip::Tip;
use crate::view::kit::{on, text};

/// The parts of a flame graph that its handlers share.
#[derive(Clone)]
struct Flame {
    session: Session,
    list: PtrEq<HolderList>,
    graph: PtrEq<FlameGraph>,
    /// The node that the arrow keys are on.
    chosen: RwSignal<usize>,
    /// The part of the width of the whole that is shown.
    part: RwSignal<AxisRange>,
    size: RwSignal<Size>,
    drawn: DrawnScene,
    tip: Tip,
}

pub(crate) fn flame(session: Session, list: &PtrEq<HolderList>) -> AnyView {
    let area = NodeRef::<html::Div>::new();
    let canvas = NodeRef::<html::Canvas>::new();
    let size = surface::size_of(area);
    let tip = Tip::new();
    let (allocations, recording) = (&list.columns.allocations, &list.columns.recording);
    let flame = Flame {
        session,
        list: list.clone(),
        graph: PtrEq::new(FlameGraph::new(allocations, recording, &list.rows)),
        chosen: RwSignal::new(0),
        part: RwSignal::new(AxisRange::WHOLE),
        size,
        drawn: DrawnScene::new(),
        tip,
    };
    let shown = flame.clone();
    let of_list = list.clone();
    let roles = Memo::new(move |_| PtrEq::new(colors(session, &of_list)));
    effect(move || {
        let (Some(canvas), size) = (canvas.get(), size.get()) else { return };
        if size.width_px >= 1.0 {
            let roles = roles.get();
            let role_of = |stack| roles.get(&stack).copied();
            let scene = flame_scene(
                &shown.graph,
                shown.stacks(),
                shown.part.get(),
                shown.chosen.get(),
                size.width_px,
                &role_of,
            );
            surface::show(session, &canvas, &scene);
            shown.drawn.keep(scene);
        }
    });
    let (pointed, keyed, spoken) = (flame.clone(), flame.clone(), flame);
    gesture::listen(area, move |gesture, at, event| pointed.act(gesture, at, event));
    let key = on(move |event: ev::KeyboardEvent| {
        if keyed.key(&event.key()) {
            event.prevent_default();
            event.stop_propagation();
        }
    });
    let label = text(move || spoken.label());
    view! {
        <div class="flame" node_ref=area tabindex="0" role="application" aria-label=label data-testid="flame"
            on:keydown=key
        >
            <canvas node_ref=canvas aria-hidden="true"></canvas>
            {tip.view()}
        </div>
    }
    .into_any()
}

/// The color of each stack: that of its line in the other figures. Reads signals.
fn colors(session: Session, list: &HolderList) -> BTreeMap<StackId, Role> {
    let (allocations, recording) = (&list.columns.allocations, &list.columns.recording);
    let Some(groups) = session.figures().kept_groups(&list.columns, ColorBy::Line) else {
        return BTreeMap::new();
    };
    let role = |row: &usize| Some((recording.allocation_stack(allocations.id(*row)?), groups.role(*row)));
    list.rows.iter().filter_map(role).collect()
}

impl Flame {
    fn stacks(&self) -> &Stacks {
        self.list.columns.recording.stacks()
    }

    /// Does what the gesture means. Returns whether the figure changed.
    fn act(&self, gesture: Gesture, at: Point, event: &MouseEvent) -> bool {
        let width = self.size.with_untracked(|size| size.width_px).max(1.0);
        let place = |x_px: f32| f64::from(x_px / width);
        if gesture != Gesture::Hover {
            // The tooltip would stay at the old place of its node.
            self.tip.hide();
        }
        match gesture {
            Gesture::Hover => self.tip.show(self.node_at(at).and_then(|node| self.frame_text(node)), event),
            Gesture::Zoom(factor) => return self.show(|part| part.zoomed(place(at.x_px), factor)),
            Gesture::Pan(by) => return self.show(|part| part.panned(-place(by.x_px))),
            Gesture::Choose => self.choose(self.node_at(at).unwrap_or(0)),
            Gesture::Brushed(from) => self.choose_between(from.x_px, at.x_px),
            Gesture::Whole => return self.show(|_| AxisRange::WHOLE),
            _ => return false,
        }
        true
    }

    /// Shows another part. Returns whether it is another one.
    fn show(&self, change: impl FnOnce(AxisRange) -> AxisRange) -> bool {
        let before = self.part.get_untracked();
        let after = change(before);
        if after != before {
            self.part.set(after);
        }
        after != before
    }

    /// The middle of the chosen node in the shown part, from 0 to 1; one half while it is not in sight.
    fn place_of_chosen(&self) -> f64 {
        let chosen = TargetId::FlameNode(u32::try_from(self.chosen.get_untracked()).unwrap_or(u32::MAX));
        let center = self.drawn.look(|scene| {
            let target = scene.targets.iter().find(|target| target.what == chosen)?;
            Some(target.rect.center().x_px / scene.width_px.max(1.0))
        });
        f64::from(center.unwrap_or(0.5))
    }

    fn node_at(&self, at: Point) -> Option<usize> {
        match self.drawn.look(|scene| scene.hit(at.x_px, at.y_px).map(|target| target.what)) {
            Some(TargetId::FlameNode(node)) => Some(node as usize),
            _ => None,
        }
    }

    /// Chooses the allocations of the stacks that end between two places.
    fn choose_between(&self, one_px: f32, other_px: f32) {
        let (left, right) = (one_px.min(other_px), one_px.max(other_px));
        let nodes: BTreeSet<usize> = self.drawn.look(|scene| {
            let is_within =
                |target: &&blockyard_figure::Target| (left..=right).contains(&target.rect.center().x_px);
            let node = |target: &blockyard_figure::Target| match target.what {
                TargetId::FlameNode(node) => Some(node as usize).filter(|node| *node > 0),
                _ => None,
            };
            scene.targets.iter().filter(is_within).filter_map(node).collect()
        });
        let columns = &self.list.columns;
        let below = nodes.iter().flat_map(|node| {
            self.graph.rows_below(&columns.allocations, &columns.recording, &self.list.rows, *node)
        });
        let rows: BTreeSet<usize> = below.collect();
        self.session.figures().pick("brushed frames".to_owned(), rows.into_iter().collect());
        self.session.figures().show_choice();
    }

    fn frame_text(&self, place: usize) -> Option<String> {
        let node = self.graph.node(place)?;
        let share = percent(node.bytes, self.list.bytes);
        let name = self.graph.text(self.stacks(), place);
        let mut words =
            format!("{name}\n{} ({share}) in {} allocations", node.bytes, grouped_count(node.count));
        let passed = self.graph.passed_above(place);
        if !passed.is_empty() {
            let names = passed.iter().rev().map(|above| self.graph.text(self.stacks(), *above));
            words = format!("{words}\ncalled by {}", names.collect::<Vec<_>>().join("\n"));
        }
        Some(words)
    }

    /// Chooses a node and the allocations below it; none for the whole.
    fn choose(&self, place: usize) {
        self.chosen.set(place);
        let columns = &self.list.columns;
        let rows = if place == 0 {
            Vec::new()
        } else {
            self.graph.rows_below(&columns.allocations, &columns.recording, &self.list.rows, place)
        };
        self.session.figures().pick(self.graph.text(self.stacks(), place), rows);
        self.session.figures().show_choice();
    }

    /// An arrow key goes to a node, and others show another part. Returns whether the key means anything
    /// here.
    fn key(&self, key: &str) -> bool {
        let at = self.chosen.get_untracked();
        let parent = self.graph.node(at).map_or(0, |node| node.parent);
        let beside = |by: isize| {
            let siblings = self.graph.children(parent);
            let place = siblings.iter().position(|sibling| *sibling == at)?;
            siblings.get(place.checked_add_signed(by)?).copied()
        };
        let to = match key {
            "ArrowDown" => self.graph.children(at).first().copied().unwrap_or(at),
            "ArrowUp" => parent,
            "ArrowRight" => beside(1).unwrap_or(at),
            "ArrowLeft" => beside(-1).unwrap_or(at),
            "Escape" if at > 0 => 0,
            "+" | "=" | "-" | "_" | "0" => {
                let place = self.place_of_chosen();
                self.show(|part| match key {
                    "0" => AxisRange::WHOLE,
                    "-" | "_" => part.zoomed(place, 0.5),
                    _ => part.zoomed(place, 2.0),
                });
                return true;
            }
            _ => return false,
        };
        self.choose(to);
        true
    }

    fn label(&self) -> String {
        let place = self.chosen.get();
        let bytes = self.graph.node(place).map(|node| node.bytes).unwrap_or_default();
        let below: Vec<String> = self
            .graph
            .children(place)
            .iter()
            .take(5)
            .filter_map(|child| Some((child, self.graph.node(*child)?)))
            .map(|(child, node)| format!("{}: {}", self.graph.text(self.stacks(), *child), node.bytes))
            .collect();
        let name = self.graph.text(self.stacks(), place);
        format!(
            "Flame graph at {name}, {bytes}. Below: {}. Arrow keys go from frame to frame, plus and minus zoom.",
            below.join("; ")
        )
    }
}
