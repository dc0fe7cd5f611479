//! The icons of buttons. The label of a button says the same in words.

use leptos::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Icon {
    Start,
    Back,
    Play,
    Pause,
    Forward,
    End,
    PreviousFailedStep,
    NextFailedStep,
    Undo,
    Redo,
    Save,
    Close,
    ZoomToRange,
}

impl Icon {
    fn path(self) -> &'static str {
        match self {
            Self::Start => "M1 2h2.4v12H1zM15 2v12L4.6 8z",
            Self::Back => "M8.8 2v12L1 8zM11 2h3v12h-3z",
            Self::Play => "M3.4 1.6v12.8L14 8z",
            Self::Pause => "M3 2h3.6v12H3zM9.4 2H13v12H9.4z",
            Self::Forward => "M7.2 2v12L15 8zM2 2h3v12H2z",
            Self::End => "M12.6 2H15v12h-2.4zM1 2v12l10.4-6z",
            Self::PreviousFailedStep => {
                "M6 2 0 8l6 6zM10.5 2h2.6l-.4 7.6h-1.8zM11.8 11a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z"
            }
            Self::NextFailedStep => {
                "M10 2l6 6-6 6zM2.9 2h2.6l-.4 7.6H3.3zM4.2 11a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z"
            }
            Self::Undo => "M6 1 1 5.5 6 10V7h4a2.5 2.5 0 0 1 0 5H5v2h5a4.5 4.5 0 0 0 0-9H6z",
            Self::Redo => "M10 1l5 4.5L10 10V7H6a2.5 2.5 0 0 0 0 5h5v2H6a4.5 4.5 0 0 1 0-9h4z",
            Self::Save => "M7 1h2v7l2.6-2.6L13 6.8l-5 5-5-5 1.4-1.4L7 8zM2 13h12v2H2z",
            Self::ZoomToRange => "M1 2h2v12H1zM13 2h2v12h-2zM7.4 4v8L4 8zM8.6 4v8L12 8z",
            Self::Close => {
                "M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z"
            }
        }
    }

    pub(crate) fn view(self) -> AnyView {
        view! {
            <svg viewBox="0 0 16 16" aria-hidden="true">
                <path d=self.path() />
            </svg>
        }
        .into_any()
    }
}
