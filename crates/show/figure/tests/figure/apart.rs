use blockyard_figure::{Mark, Rect, Scene};

/// No two texts share a pixel, and none leaves the scene.
pub(crate) fn assert_texts_are_apart(scene: &Scene) {
    let texts: Vec<_> = scene.marks.iter().filter(|mark| matches!(mark, Mark::Text { .. })).collect();
    let visible = |mark: &Mark| {
        let bounds = mark.bounds();
        match mark {
            Mark::Text { clip: Some(clip), .. } => {
                let right = bounds.right_px().min(clip.right_px());
                Rect { width_px: right - bounds.x_px, ..bounds }
            }
            _ => bounds,
        }
    };
    for (index, text) in texts.iter().enumerate() {
        let bounds = visible(text);
        assert!(bounds.x_px >= -0.5 && bounds.right_px() <= scene.width_px + 0.5, "{text} leaves the scene");
        for other in &texts[..index] {
            assert!(!bounds.overlaps(&visible(other)), "{text} lies over {other}");
        }
    }
}
