//! Two fingers that zoom.

use leptos::ev::PointerEvent;
use leptos::prelude::*;

use crate::surface;

/// The fingers on an element, with their places from its left edge; a handle that is copied freely.
#[derive(Clone, Copy)]
pub(crate) struct Pinch(StoredValue<Vec<(i32, f32)>>);

/// What two fingers did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pinched {
    /// The place between them.
    pub(crate) x_px: f32,
    /// How much farther apart they are than before.
    pub(crate) factor: f64,
}

/// Fingers that are closer together than this give no sensible factor.
const LEAST_PX: f32 = 12.0;

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

    /// Whether two fingers are down, so that neither of them drags.
    pub(crate) fn is_on(self) -> bool {
        self.0.with_value(|fingers| fingers.len() > 1)
    }

    pub(crate) fn moved(self, event: &PointerEvent) -> Option<Pinched> {
        let (id, x_px) = (event.pointer_id(), surface::offset_px(event).0);
        self.0.try_update_value(|fingers| {
            let before = distance(fingers);
            fingers.iter_mut().filter(|(finger, _)| *finger == id).for_each(|(_, x)| *x = x_px);
            let [(_, one), (_, other)] = fingers.as_slice() else { return None };
            let factor = f64::from(distance(fingers) / before);
            Some(Pinched { x_px: f32::midpoint(*one, *other), factor })
        })?
    }
}

fn distance(fingers: &[(i32, f32)]) -> f32 {
    match fingers {
        [(_, one), (_, other)] => (one - other).abs().max(LEAST_PX),
        _ => LEAST_PX,
    }
}
