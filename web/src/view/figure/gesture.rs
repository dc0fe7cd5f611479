//! The grammar of gestures, the same for every figure with an axis of time or of addresses.
//!
//! The wheel zooms at the pointer, and so do two fingers. A drag moves the shown part. A drag with Shift
//! brushes a range, and so does a drag of the mouse over time where the whole is shown. A click chooses, and a
//! double click shows the whole again. A press on a thing that
//! follows the pointer, as the end of a block or the cursor, takes hold of that thing instead.
//!
//! The wheel never keeps a reader from the rest of the page: a turn that began on the page goes on scrolling
//! over a figure, and a turn outwards scrolls where the figure shows the whole. A turn ends with a pause or
//! with a move of the pointer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use blockyard_figure::Point;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{MouseEvent, PointerEvent, WheelEvent};

use crate::browser;
use crate::effect::effect;
use crate::surface::offset_px;
use crate::view::kit::capture;

/// What the pointer does on a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gesture {
    /// The pointer moves without a button.
    Hover,
    /// The pointer left the figure, or a drag began.
    Leave,
    /// The button went down. A figure takes hold of the thing under the pointer, if it follows the pointer.
    /// `is_brush` is whether Shift is down.
    Grab { is_brush: bool },
    /// The thing follows the pointer.
    Hold,
    /// The button went up, and the thing stays where it is.
    Drop,
    /// The browser took the pointer away: the thing returns, or the range is as it was.
    Cancel,
    /// A drag of the mouse begins: whether it brushes, since there is no part to move.
    Begin,
    /// The part that is shown becomes smaller by this factor, or larger if the factor is below 1.
    Zoom(f64),
    /// The figure follows the pointer, which moved by this many pixels.
    Pan(Point),
    /// A range from this place to the pointer is brushed.
    Brush(Point),
    /// The range from this place to the pointer is complete.
    Brushed(Point),
    /// The thing under the pointer is chosen.
    Choose,
    /// The whole is shown again.
    Whole,
}

/// A press becomes a drag when the pointer has moved farther than this.
const DRAG_PX: f32 = 4.0;
/// A finger is less steady.
const FINGER_DRAG_PX: f32 = 10.0;
/// Smaller distances of two fingers count as this one, because a small distance would make the factor
/// extreme.
const MIN_PINCH_PX: f32 = 12.0;
/// A pause that ends a turn of the wheel.
const PAUSE_MILLIS: f64 = 250.0;

/// The events that gestures are made of.
const EVENTS: [&str; 8] = [
    "pointerdown",
    "pointermove",
    "pointerup",
    "pointercancel",
    "pointerleave",
    "click",
    "dblclick",
    "wheel",
];

/// A press of the button.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Press {
    #[default]
    None,
    /// The pointer has not moved far enough for a drag.
    Waiting {
        from: Point,
        reach_px: f32,
        is_brush: bool,
    },
    Panning {
        at: Point,
    },
    Brushing {
        from: Point,
    },
    /// A thing of the figure follows the pointer.
    Holding {
        from: Point,
        has_moved: bool,
    },
    /// Two fingers are down or one of them went up: what is left of the press has no meaning.
    Over,
}

/// The fingers and the button over a figure.
#[derive(Debug, Default)]
struct Hand {
    /// The fingers that are down: pointer id and place.
    fingers: Vec<(i32, Point)>,
    press: Press,
    /// Whether the click that follows belongs to a drag.
    is_dragged: bool,
}

impl Hand {
    /// The button went down. `holds` is whether the figure took hold of a thing.
    fn down(&mut self, at: Point, finger: Option<i32>, is_brush: bool, holds: bool) {
        self.is_dragged = false;
        self.fingers.extend(finger.map(|id| (id, at)));
        self.press = match (self.fingers.len(), holds) {
            (2.., _) => Press::Over,
            (_, true) => Press::Holding { from: at, has_moved: false },
            _ => {
                let reach_px = if finger.is_some() { FINGER_DRAG_PX } else { DRAG_PX };
                Press::Waiting { from: at, reach_px, is_brush }
            }
        };
    }

    /// The pointer moved, with the button down or not. The place belongs to the gesture: of two fingers it is
    /// the middle. `brushes` is whether a drag brushes without Shift too.
    fn moved(
        &mut self,
        at: Point,
        finger: Option<i32>,
        is_pressed: bool,
        brushes: impl FnOnce() -> bool,
    ) -> Option<(Gesture, Point)> {
        let before = self.spread();
        self.fingers.iter_mut().filter(|(id, _)| Some(*id) == finger).for_each(|(_, place)| *place = at);
        if let (Some((_, before)), Some((middle, now))) = (before, self.spread()) {
            return Some((Gesture::Zoom(f64::from(now / before)), middle));
        }
        if !is_pressed {
            self.press = Press::None;
        }
        let (press, gesture) = match self.press {
            Press::None => (Press::None, Gesture::Hover),
            Press::Over => return None,
            Press::Waiting { from, reach_px, is_brush } => {
                if (at.x_px - from.x_px).hypot(at.y_px - from.y_px) < reach_px {
                    return None;
                }
                if is_brush || finger.is_none() && brushes() {
                    (Press::Brushing { from }, Gesture::Brush(from))
                } else {
                    (Press::Panning { at }, Gesture::Pan(between(from, at)))
                }
            }
            Press::Panning { at: before } => (Press::Panning { at }, Gesture::Pan(between(before, at))),
            Press::Brushing { from } => (self.press, Gesture::Brush(from)),
            Press::Holding { from, has_moved } => {
                let has_moved = has_moved || (at.x_px - from.x_px).hypot(at.y_px - from.y_px) >= DRAG_PX;
                (Press::Holding { from, has_moved }, Gesture::Hold)
            }
        };
        self.press = press;
        Some((gesture, at))
    }

    /// The button went up, or the browser took the pointer away.
    fn up(&mut self, finger: Option<i32>, is_cancelled: bool) -> Option<Gesture> {
        self.fingers.retain(|(id, _)| Some(*id) != finger);
        let press = if self.fingers.is_empty() { Press::None } else { Press::Over };
        let (gesture, is_dragged) = match std::mem::replace(&mut self.press, press) {
            Press::None | Press::Waiting { .. } => (None, false),
            Press::Over | Press::Panning { .. } => (None, true),
            Press::Brushing { from } => (Some(Gesture::Brushed(from)), true),
            Press::Holding { has_moved, .. } => (Some(Gesture::Drop), has_moved),
        };
        self.is_dragged = is_dragged;
        gesture.map(|gesture| if is_cancelled { Gesture::Cancel } else { gesture })
    }

    /// The middle between two fingers and their distance sideways; `None` for another number of fingers.
    fn spread(&self) -> Option<(Point, f32)> {
        let [(_, one), (_, other)] = self.fingers.as_slice() else { return None };
        let middle = Point::new(f32::midpoint(one.x_px, other.x_px), f32::midpoint(one.y_px, other.y_px));
        Some((middle, (one.x_px - other.x_px).abs().max(MIN_PINCH_PX)))
    }
}

fn between(from: Point, to: Point) -> Point {
    Point::new(to.x_px - from.x_px, to.y_px - from.y_px)
}

/// A turn of the wheel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Turn {
    last_millis: f64,
    /// Whether the turn zooms a figure; else it scrolls.
    is_zoom: bool,
    /// The place of the pointer in the window.
    at: (i32, i32),
}

thread_local! {
    static TURN: Cell<Turn> = Cell::default();
}

impl Turn {
    /// Whether an event of the wheel belongs to this turn.
    fn goes_on(self, now_millis: f64, at: (i32, i32)) -> bool {
        now_millis - self.last_millis < PAUSE_MILLIS && self.at == at
    }
}

/// Notes to whom each turn of the wheel belongs, as long as the page lives.
pub(crate) fn follow_wheel() {
    let Some(document) = browser::document() else { return };
    browser::listen(&document, "wheel", |event: WheelEvent| {
        let at = (event.client_x(), event.client_y());
        let (now, turn) = (browser::now_millis(), TURN.get());
        let is_zoom = event.default_prevented();
        if !turn.goes_on(now, at) || turn.is_zoom == is_zoom {
            TURN.set(Turn { last_millis: now, is_zoom, at });
        }
    });
}

/// Calls `act` with each gesture on the element, its place in pixels of the figure and the event. The answer
/// of `act` says whether the figure did anything: whether it took hold of a thing, or shows another part.
pub(crate) fn listen(node: NodeRef<html::Div>, act: impl Fn(Gesture, Point, &MouseEvent) -> bool + 'static) {
    listen_boxed(node, Rc::new(act));
}

type Act = Rc<dyn Fn(Gesture, Point, &MouseEvent) -> bool>;

fn listen_boxed(node: NodeRef<html::Div>, act: Act) {
    effect(move || {
        let Some(element) = node.get() else { return };
        let (hand, act) = (RefCell::new(Hand::default()), act.clone());
        browser::listen_to_all(
            &element,
            &EVENTS,
            Box::new(move |event| {
                let event: PointerEvent = event.unchecked_into();
                handle(&hand, &act, &event);
            }),
        );
    });
}

fn handle(hand: &RefCell<Hand>, act: &Act, event: &PointerEvent) {
    let at = place(event);
    let name = event.type_();
    // An event of the wheel has no pointer.
    let is_finger = name.starts_with("pointer") && event.pointer_type() == "touch";
    let finger = is_finger.then(|| event.pointer_id());
    match name.as_str() {
        "pointerdown" if event.button() == 0 => {
            let is_first = hand.borrow().fingers.is_empty();
            let holds = is_first && act(Gesture::Grab { is_brush: event.shift_key() }, at, event);
            if holds {
                event.prevent_default();
                capture(event);
            }
            hand.borrow_mut().down(at, finger, event.shift_key(), holds);
        }
        "pointermove" => {
            let was_waiting = matches!(hand.borrow().press, Press::Waiting { .. });
            let brushes = || act(Gesture::Begin, at, event);
            let moved = hand.borrow_mut().moved(at, finger, event.buttons() & 1 != 0, brushes);
            let Some((gesture, at)) = moved else { return };
            if was_waiting && matches!(gesture, Gesture::Pan(_) | Gesture::Brush(_)) {
                capture(event);
                act(Gesture::Leave, at, event);
            }
            act(gesture, at, event);
        }
        name @ ("pointerup" | "pointercancel") => {
            let ended = hand.borrow_mut().up(finger, name == "pointercancel");
            if let Some(gesture) = ended {
                act(gesture, at, event);
            }
        }
        "pointerleave" => {
            act(Gesture::Leave, at, event);
        }
        // The second click of a double click shows the whole, and the browser sends a click after a drag too.
        "click" => {
            let is_dragged = std::mem::take(&mut hand.borrow_mut().is_dragged);
            if is_dragged {
                // A button around the figure would take it for a press.
                event.stop_propagation();
            } else if event.detail() < 2 {
                act(Gesture::Choose, at, event);
            }
        }
        "dblclick" => {
            act(Gesture::Whole, at, event);
        }
        "wheel" => turned(act, at, event.unchecked_ref()),
        _ => {}
    }
}

/// A wheel that turns sideways moves the shown part.
fn turned(act: &Act, at: Point, event: &WheelEvent) {
    let turn = TURN.get();
    let goes_on = turn.goes_on(browser::now_millis(), (event.client_x(), event.client_y()));
    // With Ctrl, the browser would make all letters of the page larger. Two fingers on a touchpad come as
    // this event.
    let is_ours = event.ctrl_key() || event.meta_key();
    if goes_on && !turn.is_zoom && !is_ours {
        return;
    }
    let gesture = if event.delta_x().abs() > event.delta_y().abs() {
        Gesture::Pan(Point::new(-crate::surface::pixels(event.delta_x()), 0.0))
    } else {
        Gesture::Zoom(zoom_factor(event))
    };
    let is_done = act(gesture, at, event);
    if is_done || is_ours || goes_on {
        event.prevent_default();
    }
}

/// The factor by which an event of the wheel zooms: about the same for mice, which count lines, and for
/// touchpads, which count pixels.
fn zoom_factor(event: &WheelEvent) -> f64 {
    let pixels = if event.delta_mode() == 0 { event.delta_y() } else { event.delta_y() * 30.0 };
    (-pixels.clamp(-150.0, 150.0) / 250.0).exp()
}

fn place(event: &MouseEvent) -> Point {
    let (x_px, y_px) = offset_px(event);
    Point::new(x_px, y_px)
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    const fn at(x_px: f32) -> Point {
        Point { x_px, y_px: 0.0 }
    }

    #[test]
    fn a_drag_pans_by_each_move_and_is_no_click() {
        let mut hand = Hand::default();
        assert_eq!(hand.moved(at(5.0), None, false, || false), Some((Gesture::Hover, at(5.0))));
        hand.down(at(10.0), None, false, false);
        assert_eq!(hand.moved(at(12.0), None, true, || false), None);
        assert_eq!(hand.moved(at(20.0), None, true, || false), Some((Gesture::Pan(at(10.0)), at(20.0))));
        assert_eq!(hand.moved(at(15.0), None, true, || false), Some((Gesture::Pan(at(-5.0)), at(15.0))));
        assert_eq!((hand.up(None, false), hand.is_dragged), (None, true));
    }

    #[test]
    fn a_short_press_is_a_click() {
        let mut hand = Hand::default();
        hand.down(at(10.0), None, false, false);
        assert_eq!(hand.moved(at(12.0), None, true, || false), None);
        assert_eq!((hand.up(None, false), hand.is_dragged), (None, false));
    }

    #[test]
    fn a_drag_with_shift_brushes_from_where_it_began() {
        let mut hand = Hand::default();
        hand.down(at(10.0), None, true, false);
        assert_eq!(hand.moved(at(30.0), None, true, || false), Some((Gesture::Brush(at(10.0)), at(30.0))));
        assert_eq!(hand.up(None, false), Some(Gesture::Brushed(at(10.0))));
        hand.down(at(10.0), None, true, false);
        hand.moved(at(30.0), None, true, || false);
        assert_eq!(hand.up(None, true), Some(Gesture::Cancel));
    }

    #[test]
    fn a_drag_brushes_without_shift_where_there_is_no_part_to_move() {
        let mut hand = Hand::default();
        hand.down(at(10.0), None, false, false);
        assert_eq!(hand.moved(at(30.0), None, true, || true), Some((Gesture::Brush(at(10.0)), at(30.0))));
        assert_eq!(hand.up(None, false), Some(Gesture::Brushed(at(10.0))));
        // A finger that slides over the page brushes nothing.
        hand.down(at(10.0), Some(1), false, false);
        assert_eq!(hand.moved(at(30.0), Some(1), true, || true), Some((Gesture::Pan(at(20.0)), at(30.0))));
    }

    #[test]
    fn a_thing_follows_the_pointer_until_the_button_goes_up() {
        let mut hand = Hand::default();
        hand.down(at(10.0), None, false, true);
        assert_eq!(hand.moved(at(11.0), None, true, || false), Some((Gesture::Hold, at(11.0))));
        assert_eq!((hand.up(None, false), hand.is_dragged), (Some(Gesture::Drop), false));
        hand.down(at(10.0), None, false, true);
        hand.moved(at(40.0), None, true, || false);
        assert_eq!((hand.up(None, false), hand.is_dragged), (Some(Gesture::Drop), true));
    }

    #[test]
    fn two_fingers_zoom_at_their_middle_and_the_last_finger_does_nothing() {
        let mut hand = Hand::default();
        hand.down(at(100.0), Some(1), false, false);
        hand.down(at(200.0), Some(2), false, false);
        assert_eq!(hand.moved(at(300.0), Some(2), true, || false), Some((Gesture::Zoom(2.0), at(200.0))));
        assert_eq!(hand.up(Some(2), false), None);
        assert_eq!(hand.moved(at(160.0), Some(1), true, || false), None);
        assert_eq!((hand.up(Some(1), false), hand.is_dragged), (None, true));
    }

    #[test]
    fn a_turn_of_the_wheel_ends_with_a_pause_or_a_move() {
        let turn = Turn { last_millis: 1000.0, is_zoom: false, at: (3, 4) };
        assert!(turn.goes_on(1100.0, (3, 4)));
        assert!(!turn.goes_on(1100.0, (3, 5)));
        assert!(!turn.goes_on(1000.0 + PAUSE_MILLIS, (3, 4)));
    }
}
