//! `--terminal`: a picture of the running program in the lower rows of the terminal.
//!
//! The program writes to the same terminal by itself. Its output scrolls in the rows above, which are made the
//! terminal's scrolling region, and each drawing is one write that leaves the cursor where it was.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{IsTerminal as _, Write as _, stdout};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use blockyard_record::{Bytes, grouped};
use blockyard_watch::{DeviceStep, Watched};
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::terminal;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, Borders, Paragraph, Sparkline, Widget, Wrap};

/// The rows of the picture.
const ROWS: u16 = 12;
/// The rows that are left for the program at least.
const MIN_PROGRAM_ROWS: u16 = 6;
/// How many steps have a bar.
const STEPS: u16 = 24;
/// The rows of the bars of an only device.
const BAR_ROWS: u16 = 3;
const FORECAST_ROWS: u16 = 2;
const LINES: u16 = 3;
/// The most notes that are kept.
const MAX_NOTES: usize = 3;
/// Between two drawings.
const PAUSE: Duration = Duration::from_millis(300);

/// What the picture shows. Readers of processes change it, and never wait for the terminal.
#[derive(Debug, Default)]
pub(super) struct Picture {
    shown: Mutex<Shown>,
}

#[derive(Clone, Debug, Default)]
struct Shown {
    /// By process and device.
    devices: BTreeMap<(String, usize), Device>,
    /// The forecast of each process, and whether a step fails in it.
    forecasts: BTreeMap<String, (String, bool)>,
    notes: VecDeque<String>,
    is_new: bool,
}

#[derive(Clone, Debug, Default)]
struct Device {
    step: u64,
    /// The true peaks of the last steps, allocated and reserved.
    peaks: VecDeque<[Bytes; 2]>,
    /// The most that can be reserved.
    limit: Bytes,
    /// The lines that hold most, and their bytes.
    lines: Vec<(String, u64)>,
}

impl Picture {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a step of a process, on each device that is used.
    pub(super) fn add_step(&self, name: &str, watched: &Watched, steps: &[DeviceStep]) {
        let mut shown = self.lock();
        shown.is_new = true;
        for step in steps.iter().filter(|step| !step.has_gap) {
            let device = shown.devices.entry((name.to_owned(), step.device)).or_default();
            device.step = watched.step;
            device.peaks.push_back([step.peak_allocated, step.peak_reserved]);
            if device.peaks.len() > usize::from(STEPS) {
                device.peaks.pop_front();
            }
            let limits = [step.memory.available, step.memory.limit].into_iter().filter(|limit| *limit > 0);
            device.limit = limits.min().map(Bytes::new).unwrap_or_default();
            device.lines = watched.largest_lines(step.device, usize::from(LINES));
        }
    }

    pub(super) fn set_forecast(&self, name: &str, text: &str, fails: bool) {
        let mut shown = self.lock();
        shown.is_new = true;
        shown.forecasts.insert(name.to_owned(), (text.to_owned(), fails));
    }

    pub(super) fn note(&self, text: String) {
        let mut shown = self.lock();
        shown.is_new = true;
        shown.notes.push_back(text);
        if shown.notes.len() > MAX_NOTES {
            shown.notes.pop_front();
        }
    }
}

/// The rows of one drawing, from above.
struct Rows<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
}

impl Rows<'_> {
    /// So many rows, or those that are left.
    fn take(&mut self, rows: u16) -> Rect {
        let height = rows.min(self.area.height);
        let taken = Rect { height, ..self.area };
        self.area.y += height;
        self.area.height -= height;
        taken
    }

    fn text(&mut self, text: &str, style: Style) {
        let row = self.take(1);
        if row.height > 0 {
            self.buffer.set_stringn(row.x, row.y, text, row.width.into(), style);
        }
    }
}

impl Widget for &Shown {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let mut rows = Rows { area, buffer };
        let title = rows.take(1);
        Block::new().borders(Borders::TOP).title(" blockyard watch ").render(title, rows.buffer);
        let has_several = self.devices.keys().any(|(_, device)| *device > 0);
        // What comes below the devices, with the row that counts the others.
        let below = FORECAST_ROWS + LINES + 1;
        let room = rows.area.height.saturating_sub(below).max(1);
        let height = if self.devices.len() == 1 { BAR_ROWS } else { 1 };
        for ((name, index), device) in self.devices.iter().take(room.into()) {
            let cuda = if has_several { format!(" cuda:{index}") } else { String::new() };
            let row = rows.take(height);
            device.render(format!("{name}{cuda}").trim_start(), row, rows.buffer);
        }
        let others = self.devices.len().saturating_sub(room.into());
        if others > 0 {
            rows.text(&format!("and {others} more"), Style::new());
        }
        let failing = self.forecasts.iter().find(|(_, (_, fails))| *fails);
        if let Some((name, (text, fails))) = failing.or_else(|| self.forecasts.iter().next()) {
            let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
            let style = if *fails { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
            let forecast = rows.take(FORECAST_ROWS);
            let text = Paragraph::new(format!("forecast: {name}{text}")).style(style);
            text.wrap(Wrap { trim: true }).render(forecast, rows.buffer);
        }
        let largest = self.devices.values().max_by_key(|device| device.peaks.back());
        for (line, bytes) in largest.into_iter().flat_map(|device| &device.lines) {
            rows.text(&format!("{:>12}  {line}", Bytes::new(*bytes).to_string()), Style::new());
        }
        for note in &self.notes {
            rows.text(note, Style::new().add_modifier(Modifier::DIM));
        }
    }
}

impl Device {
    /// The bars of the last steps under the limit, and the last step in words.
    fn render(&self, name: &str, area: Rect, buffer: &mut Buffer) {
        let bars = Rect { width: STEPS.min(area.width), ..area };
        let peaks = self.peaks.iter().map(|[allocated, _]| allocated.get());
        let most = self.peaks.iter().map(|[_, reserved]| reserved.get()).max().unwrap_or_default();
        Sparkline::default().data(peaks).max(self.limit.get().max(most)).render(bars, buffer);
        let Some([allocated, reserved]) = self.peaks.back() else { return };
        let name = if name.is_empty() { String::new() } else { format!("{name} ") };
        let step = grouped(self.step);
        let limit = if self.limit.is_zero() { String::new() } else { format!(" of {}", self.limit) };
        let text = format!("{name}step {step}: peak {allocated}, {reserved} reserved{limit}");
        let left = area.width.saturating_sub(STEPS + 1);
        if left > 0 && area.height > 0 {
            buffer.set_stringn(area.x + STEPS + 1, area.y, text, left.into(), Style::new());
        }
    }
}

/// The terminal while it has the picture.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) picture: Arc<Picture>,
    terminal: File,
    /// The columns and rows.
    size: (u16, u16),
    drawn: Option<Instant>,
}

impl Screen {
    /// Moves what the terminal shows up and keeps the lower rows.
    pub(super) fn open() -> anyhow::Result<Self> {
        if !stdout().is_terminal() {
            bail!("`--terminal` needs a terminal, and standard output is none: leave the option out");
        }
        let size = terminal::size().context("the size of the terminal")?;
        if size.1 < ROWS + MIN_PROGRAM_ROWS {
            bail!("`--terminal` needs {} rows, and this terminal has {}", ROWS + MIN_PROGRAM_ROWS, size.1);
        }
        let terminal = File::from(stdout().as_fd().try_clone_to_owned().context("the terminal")?);
        let mut screen = Self { picture: Arc::default(), terminal, size, drawn: None };
        let lines = "\n".repeat(ROWS.into());
        screen.write(format!("{lines}\x1b[{ROWS}A{}", region(size.1 - ROWS)).as_bytes());
        Ok(screen)
    }

    /// Draws what is new, a few times a second at most.
    pub(super) fn draw(&mut self) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= PAUSE) {
            self.draw_now();
        }
    }

    fn draw_now(&mut self) {
        let shown = {
            let mut shown = self.picture.lock();
            let shown_now = shown.is_new.then(|| shown.clone());
            shown.is_new = false;
            shown_now
        };
        let size = terminal::size().unwrap_or(self.size);
        let Some(shown) = shown.or_else(|| (size != self.size).then(|| self.picture.lock().clone())) else {
            return;
        };
        let Some(top) = size.1.checked_sub(ROWS).filter(|top| *top > 0) else { return };
        if size != self.size {
            // The terminal has moved the rows: the program goes on at the end of one.
            self.write(format!("{}\x1b[{top};1H", region(top)).as_bytes());
            self.size = size;
        }
        self.write(&drawing(&shown, Rect::new(0, top, size.0, ROWS)));
        self.drawn = Some(Instant::now());
    }

    /// One write, which no output of the program comes between.
    fn write(&mut self, bytes: &[u8]) {
        // A terminal that is gone shows nothing.
        let _ = self.terminal.write_all(bytes);
    }
}

impl Drop for Screen {
    /// Leaves the last picture and gives all rows back; what follows is below.
    fn drop(&mut self) {
        self.draw_now();
        self.write(format!("\x1b[r\x1b[{};1H\r\n", self.size.1).as_bytes());
    }
}

/// Lets the upper rows alone scroll, and leaves the cursor where it was.
fn region(rows: u16) -> String {
    format!("\x1b7\x1b[1;{rows}r\x1b8")
}

/// The picture for a place of the terminal.
fn drawing(shown: &Shown, area: Rect) -> Vec<u8> {
    let mut buffer = Buffer::empty(area);
    shown.render(area, &mut buffer);
    let mut bytes = b"\x1b7".to_vec();
    let cells = buffer.content.iter().enumerate().map(|(index, cell)| {
        let (x, y) = buffer.pos_of(index);
        (x, y, cell)
    });
    // Nothing fails that is written into memory.
    let _ = CrosstermBackend::new(&mut bytes).draw(cells);
    bytes.extend_from_slice(b"\x1b8");
    bytes
}

#[cfg(test)]
mod tests {
    use blockyard_watch::DeviceMemory;
    use expect_test::expect;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(picture: &Picture) -> String {
        let mut terminal = Terminal::new(TestBackend::new(78, ROWS)).unwrap();
        let shown = picture.lock().clone();
        terminal.draw(|frame| frame.render_widget(&shown, frame.area())).unwrap();
        terminal.backend().to_string()
    }

    fn at(step: u64) -> Watched {
        let mut watched = Watched::default();
        watched.step = step;
        watched
    }

    fn step(device: usize, allocated: u64) -> DeviceStep {
        let memory = DeviceMemory { available: 800 << 20, total: 1 << 30, limit: 0 };
        let [peak_allocated, peak_reserved] = [Bytes::mib(allocated), Bytes::mib(allocated + 20)];
        DeviceStep { device, peak_allocated, peak_reserved, memory, ..DeviceStep::default() }
    }

    #[test]
    fn an_only_process_has_bars_under_the_limit_its_forecast_lines_and_notes() {
        let picture = Picture::default();
        for number in 1..=8 {
            picture.add_step("", &at(number), &[step(0, number * 100)]);
        }
        let lines = vec![("main train.py:45".to_owned(), 3 << 20)];
        picture.lock().devices.values_mut().for_each(|device| device.lines.clone_from(&lines));
        let text = "at this growth step 9 fails: 100 MiB for main train.py:45; with expandable_segments:True no step fails";
        picture.set_forecast("", text, true);
        picture.note("7 events of cuda:0 were lost".into());
        expect![[r#"
            " blockyard watch ─────────────────────────────────────────────────────────────"
            "     ▁▄▇                 step 8: peak 800 MiB, 820 MiB reserved of 800 MiB    "
            "   ▃▆███                                                                      "
            "▂▅██████                                                                      "
            "forecast: at this growth step 9 fails: 100 MiB for main train.py:45; with     "
            "expandable_segments:True no step fails                                        "
            "       3 MiB  main train.py:45                                                "
            "7 events of cuda:0 were lost                                                  "
            "                                                                              "
            "                                                                              "
            "                                                                              "
            "                                                                              "
        "#]]
        .assert_eq(&drawn(&picture));
    }

    #[test]
    fn ranks_have_a_row_each_as_far_as_there_is_room() {
        let picture = Picture::default();
        for rank in 0..9 {
            picture.add_step(&format!("rank{rank}"), &at(4), &[step(0, 100 + 50 * rank), step(1, 700)]);
        }
        picture.set_forecast("rank0", "not periodic yet", false);
        expect![[r#"
            " blockyard watch ─────────────────────────────────────────────────────────────"
            "▁                        rank0 cuda:0 step 4: peak 100 MiB, 120 MiB reserved o"
            "▇                        rank0 cuda:1 step 4: peak 700 MiB, 720 MiB reserved o"
            "▁                        rank1 cuda:0 step 4: peak 150 MiB, 170 MiB reserved o"
            "▇                        rank1 cuda:1 step 4: peak 700 MiB, 720 MiB reserved o"
            "▂                        rank2 cuda:0 step 4: peak 200 MiB, 220 MiB reserved o"
            "and 13 more                                                                   "
            "forecast: rank0: not periodic yet                                             "
            "                                                                              "
            "                                                                              "
            "                                                                              "
            "                                                                              "
        "#]]
        .assert_eq(&drawn(&picture));
    }

    #[test]
    fn a_drawing_leaves_the_cursor_where_it_was() {
        let bytes = drawing(&Shown::default(), Rect::new(0, 12, 20, ROWS));
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("\x1b7") && text.ends_with("\x1b8"), "{text:?}");
        // It moves the cursor to rows, and writes no line ends, which would scroll.
        assert!(text.contains("\x1b[13;1H") && !text.contains('\n'), "{text:?}");
    }
}
