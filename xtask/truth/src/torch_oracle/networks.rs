//! Whole random programs: a small network, an optimizer, a training loop, views that are kept and deleted.

use std::fmt::Write as _;

use super::calls::{Call, PROGRAMS};
use blockyard_device::Random;

/// Random programs from a seed: each is the body of a function, as a call is.
#[derive(Debug)]
pub struct Networks(Random);

impl Networks {
    /// The programs of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }
}

impl Iterator for Networks {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        Some(network(&mut self.0))
    }
}

/// The random choices for one program.
struct NetworkGenerator<'a> {
    random: &'a mut Random,
    /// Features of a sample.
    width: usize,
}

/// A random program: a network, an optimizer, and some iterations of training.
fn network(random: &mut Random) -> Call {
    let width = random.pick(&[8, 16, 32, 64, 96, 128, 256, 384]);
    let mut drawn = NetworkGenerator { random, width };
    let is_sequence = drawn.random.percent(50);
    let layers = drawn.layers(is_sequence);
    let forward = drawn.forward(layers.len());
    let (sample, classes) = (drawn.sample(is_sequence), drawn.random.pick(&[2, 10, 50, 1000]));
    let optimizer = drawn.optimizer();
    let training = drawn.step(is_sequence);
    let mut text =
        String::from("class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n");
    for (number, layer) in layers.iter().enumerate() {
        let _ = writeln!(text, "        self.l{number} = {layer}");
    }
    let _ = writeln!(text, "        self.head = nn.Linear({width}, {classes})");
    text += "    def forward(self, x):\n";
    for line in &forward {
        let _ = writeln!(text, "        {line}");
    }
    text += "        return self.head(x)\n";
    text += "net = Net().cuda()\n";
    let _ = writeln!(text, "opt = {optimizer}\nkept = []");
    let target = if is_sequence {
        format!("({sample})")
    } else {
        format!("({},)", sample.split(',').next().unwrap_or("1"))
    };
    let _ = writeln!(
        text,
        "def batch():\n    x = torch.randn({sample}, {width}, device='cuda')\n    y = torch.randint(0, {classes}, {target}, device='cuda')\n    return x, y"
    );
    text += "for step in range(1, 5):\n    x, y = batch()\n";
    for line in training {
        let _ = writeln!(text, "    {line}");
    }
    text += "del x, y, kept\nnet.zero_grad()\ndel opt\n";
    let name = optimizer.split('(').next().and_then(|name| name.rsplit('.').next()).unwrap_or_default();
    Call { family: PROGRAMS.to_owned(), operator: format!("program with {name}"), body: text }
}

impl NetworkGenerator<'_> {
    fn layer(&mut self, is_sequence: bool) -> String {
        let width = self.width;
        let hidden = self.random.pick(&[4, 16, 48, 64, 200, 512, 1024]);
        let heads = self.random.pick(&[1, 2, 4]);
        let common = [
            format!("nn.Linear({width}, {width})"),
            format!("nn.Linear({width}, {width}, bias=False)"),
            format!("nn.Sequential(nn.Linear({width}, {hidden}), nn.GELU(), nn.Linear({hidden}, {width}))"),
            format!(
                "nn.Sequential(nn.Linear({width}, {hidden}), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear({hidden}, {width}))"
            ),
            format!("nn.LayerNorm({width})"),
            format!("nn.RMSNorm({width})"),
            "nn.ReLU()".to_owned(),
            "nn.SiLU()".to_owned(),
            "nn.Tanh()".to_owned(),
            "nn.Dropout(0.1)".to_owned(),
            "nn.LeakyReLU(0.1)".to_owned(),
            "nn.Softmax(dim=-1)".to_owned(),
        ];
        let sequence = [
            format!("nn.TransformerEncoderLayer({width}, {heads}, {hidden}, batch_first=True)"),
            format!(
                "nn.TransformerEncoderLayer({width}, {heads}, {hidden}, batch_first=True, norm_first=True, activation='gelu')"
            ),
        ];
        let flat = [
            format!("nn.BatchNorm1d({width})"),
            format!(
                "nn.Sequential(nn.Linear({width}, {hidden}), nn.BatchNorm1d({hidden}), nn.ReLU(), nn.Linear({hidden}, {width}))"
            ),
        ];
        let further = if is_sequence { &sequence } else { &flat };
        let index = self.random.index(common.len() + further.len());
        common.get(index).or_else(|| further.get(index - common.len())).cloned().unwrap_or_default()
    }

    fn layers(&mut self, is_sequence: bool) -> Vec<String> {
        let count = 1 + self.random.index(5);
        (0..count).map(|_| self.layer(is_sequence)).collect()
    }

    fn forward(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for number in 0..count {
            let layer = format!("self.l{number}");
            let line = match self.random.index(8) {
                0 => format!("x = x + {layer}(x)"),
                1 => format!("x = {layer}(x) * 0.5"),
                2 => format!("x = checkpoint({layer}, x, use_reentrant=False)"),
                3 => format!("x = F.relu({layer}(x))"),
                _ => format!("x = {layer}(x)"),
            };
            lines.push(line);
            match self.random.index(12) {
                0 => lines.push("x = torch.cat([x, x], dim=-1).chunk(2, dim=-1)[0]".to_owned()),
                1 => lines.push("x = x.transpose(0, -1).contiguous().transpose(0, -1)".to_owned()),
                2 => lines.push("x = torch.where(x > 0, x, x * 0.1)".to_owned()),
                3 => lines
                    .push("x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)".to_owned()),
                _ => {}
            }
        }
        lines
    }

    fn sample(&mut self, is_sequence: bool) -> String {
        let batch = self.random.pick(&[2, 4, 8, 16, 32, 64]);
        if is_sequence {
            let length = self.random.pick(&[5, 16, 32, 50, 64]);
            return format!("{batch}, {length}");
        }
        batch.to_string()
    }

    fn optimizer(&mut self) -> &'static str {
        self.random.pick(&[
            "torch.optim.SGD(net.parameters(), lr=0.1)",
            "torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)",
            "torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)",
            "torch.optim.Adam(net.parameters(), lr=1e-3)",
            "torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=0.1, amsgrad=True)",
            "torch.optim.AdamW(net.parameters(), lr=1e-3)",
            "torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)",
            "torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)",
            "torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.9)",
            "torch.optim.Adagrad(net.parameters(), lr=1e-2)",
            "torch.optim.Adadelta(net.parameters())",
            "torch.optim.NAdam(net.parameters())",
            "torch.optim.RAdam(net.parameters())",
            "torch.optim.Adamax(net.parameters())",
            "torch.optim.Muon([p for p in net.parameters() if p.ndim == 2], lr=0.02)",
            "torch.optim.Muon([p for p in net.parameters() if p.ndim == 2], nesterov=False, adjust_lr_fn='match_rms_adamw')",
        ])
    }

    fn step(&mut self, is_sequence: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let flat = if is_sequence { ".flatten(0, 1)" } else { "" };
        let labels = if is_sequence { ".flatten()" } else { "" };
        let loss = match self.random.index(4) {
            0 => format!("F.cross_entropy(out{flat}, y{labels}, label_smoothing=0.1)"),
            1 => "(out ** 2).mean()".to_owned(),
            _ => format!("F.cross_entropy(out{flat}, y{labels})"),
        };
        if self.random.index(4) == 0 {
            lines.push("with torch.autocast('cuda', dtype=torch.bfloat16):".to_owned());
            lines.push("    out = net(x)".to_owned());
            lines.push(format!("    loss = {loss}"));
        } else {
            lines.push("out = net(x)".to_owned());
            lines.push(format!("loss = {loss}"));
        }
        if self.random.percent(30) {
            lines.push("kept.append(out.detach()[::2])".to_owned());
        }
        lines.push("loss.backward()".to_owned());
        match self.random.index(4) {
            0 => lines.push("torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)".to_owned()),
            1 => lines.push("del out, loss".to_owned()),
            _ => {}
        }
        lines.push("opt.step()".to_owned());
        lines.push(
            self.random
                .pick(&["opt.zero_grad()", "opt.zero_grad(set_to_none=False)", "net.zero_grad()"])
                .to_owned(),
        );
        if self.random.percent(30) {
            lines.push("if step == 3: kept.clear()".to_owned());
        }
        if self.random.percent(30) {
            lines.push("with torch.no_grad(): net.eval(); v = net(x).argmax(-1); net.train()".to_owned());
        }
        lines
    }
}
