//! Zooming with two fingers.

use leptos::ev::PointerEvent;
use leptos::prelude::*;

use crate::surface;

/// The fingers on an element: pointer id and distance from the left edge in pixels; a handle that is copied
/// freely.
#[derive(Clone, Copy)]
pub(crate) struct Pinch(StoredValue<Vec<(i32, f32)>>);

/// A move of one of two fingers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PinchMove {
    /// The middle between the fingers, from the left edge of the element.
    pub(crate) x_px: f32,
    /// The distance of the fingers divided by their distance before the move.
    pub(crate) factor: f64,
}

/// Smaller distances count as this one, because a small distance would make the factor extreme.
const MIN_PX: f32 = 12.0;

impl Pinch {
    pub(crate) fn new() -> Self {
        Self(StoredValue::new(Vec::new()))
    }

    pub(crate) fn down(self, event: &PointerEvent) {
        if event.pointer_type() == "touch" {
            let finger = (event.pointer_id(), surface::offset_px(event).0);
            self.0.update_value(|fingers| fingers.push(finger));
        }
    }

    pub(crate) fn up(self, event: &PointerEvent) {
        let id = event.pointer_id();
        self.0.update_value(|fingers| fingers.retain(|(finger, _)| *finger != id));
    }

    /// Whether two fingers are down. Then neither of them drags.
    pub(crate) fn is_on(self) -> bool {
        self.0.with_value(|fingers| fingers.len() > 1)
    }

    pub(crate) fn moved(self, event: &PointerEvent) -> Option<PinchMove> {
        let (id, x_px) = (event.pointer_id(), surface::offset_px(event).0);
        self.0.try_update_value(|fingers| {
            let before = distance(fingers);
            fingers.iter_mut().filter(|(finger, _)| *finger == id).for_each(|(_, x)| *x = x_px);
            let [(_, one), (_, other)] = fingers.as_slice() else { return None };
            let factor = f64::from(distance(fingers) / before);
            Some(PinchMove { x_px: f32::midpoint(*one, *other), factor })
        })?
    }
}

fn distance(fingers: &[(i32, f32)]) -> f32 {
    match fingers {
        [(_, one), (_, other)] => (one - other).abs().max(MIN_PX),
        _ => MIN_PX,
    }
}
