//! Every key of `PYTORCH_CUDA_ALLOC_CONF` as a form.

use blockyard_rules::{SETTING_KEYS, SettingKey, setting_values, shell_line, with_setting};
use leptos::ev;
use leptos::prelude::*;

use crate::browser;
use crate::view::kit::{button, click, on, text};

/// A control for each key of the settings `conf`, folded at first. `change` gets the whole new text of the
/// settings.
pub(crate) fn form(
    id: &'static str,
    conf: Signal<String>,
    change: impl Fn(String) + Copy + Send + Sync + 'static,
) -> AnyView {
    let is_open = RwSignal::new(false);
    let rows = move || {
        is_open
            .get()
            .then(|| SETTING_KEYS.iter().map(|entry| row(id, entry, conf, change)).collect::<Vec<_>>())
    };
    let toggled = on(move |event: ev::Event| {
        is_open.set(browser::is_details_open(&event));
    });
    let line = text(move || shell_line(conf.get().trim()));
    view! {
        <details class="settings" data-testid=format!("{id}-settings") on:toggle=toggled>
            <summary>"All settings"</summary>
            <div class="cluster copy">
                <code class="line">{line}</code>
                {button("", "copy-settings", "Copy", "", click(move || browser::copy(&line.get_untracked())))}
            </div>
            <div class="keys">{rows}</div>
        </details>
    }
    .into_any()
}

fn value_of(conf: &str, key: &str) -> String {
    let found = setting_values(conf).find(|(other, _)| *other == key);
    found.map(|(_, value)| value.to_owned()).unwrap_or_default()
}

fn row(
    id: &'static str,
    entry: &'static SettingKey,
    conf: Signal<String>,
    change: impl Fn(String) + Copy + Send + Sync + 'static,
) -> AnyView {
    let value = Memo::new(move |_| conf.with(|conf| value_of(conf, entry.key)));
    let set = move |value: String| {
        let value = value.trim();
        let value = (!value.is_empty()).then_some(value);
        change(conf.with_untracked(|conf| with_setting(conf, entry.key, value)));
    };
    let changed = on(move |event: ev::Event| set(event_target_value(&event)));
    let name = format!("{id}-{}", entry.key);
    let control = if entry.is_choice {
        let options =
            entry.values.iter().map(|value| view! { <option value=*value>{*value}</option> }.into_any());
        view! {
            <select id=name.clone() data-testid=name.clone() prop:value=text(move || value.get()) on:change=changed>
                <option value="">{format!("{} (default)", entry.default)}</option>
                {options.collect::<Vec<_>>()}
            </select>
        }
        .into_any()
    } else {
        let list = format!("{name}-values");
        let options = entry.values.iter().map(|value| view! { <option value=*value></option> }.into_any());
        view! {
            <input
                id=name.clone()
                class="field mono"
                data-testid=name.clone()
                list=list.clone()
                autocomplete="off"
                spellcheck="false"
                placeholder=entry.default
                prop:value=text(move || value.get())
                on:change=changed
            />
            <datalist id=list>{options.collect::<Vec<_>>()}</datalist>
        }
        .into_any()
    };
    let unused = (!entry.is_modeled).then_some(" It changes nothing that is modeled here.");
    view! {
        <div class="key">
            <label class="mono" for=name>{entry.key}</label>
            {control}
            <p class="quiet">{entry.meaning}{unused}</p>
        </div>
    }
    .into_any()
}
