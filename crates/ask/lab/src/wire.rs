//! A forecast on its way to a worker and back. Its JSON names the variant by a field, which a format without
//! names of fields cannot read.

use blockyard_record::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Forecast;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Forecast")]
enum PlainForecast {
    Finishes,
    Fails {
        iteration: u64,
        at_upper_bound: Option<u64>,
        size: Option<Bytes>,
        line: Option<String>,
        is_estimate: bool,
    },
    Passes {
        iteration: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct Plain(#[serde(with = "PlainForecast")] Forecast);

#[expect(clippy::ref_option, reason = "serde asks for a reference to the field")]
pub(crate) fn serialize<S: Serializer>(forecast: &Option<Forecast>, to: S) -> Result<S::Ok, S::Error> {
    forecast.clone().map(Plain).serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Forecast>, D::Error> {
    Ok(Option::<Plain>::deserialize(from)?.map(|plain| plain.0))
}
