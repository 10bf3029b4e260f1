//! Chat templates: the Jinja text that a GGUF carries, rendered as Hugging
//! Face's transformers would. The context comes as JSON; `now` in it is the
//! clock a template may read, already taken apart into its fields.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State};
use serde_json::Value as Json;

use crate::util::guarded;

/// Instructions a template may run; a conversation of a thousand messages
/// needs under a million, and ten million take about a second.
const FUEL: u64 = 10_000_000;

#[repr(C)]
#[allow(non_camel_case_types)] // named as in the header
pub struct ag_chat_result {
    pub text: *mut c_char,
    pub len: usize,
    pub used_clock: i32,
}

/// Renders a template; 0 and the prompt, or 1 and an error text.
///
/// # Safety
/// The pointers have the lengths given; `out` is writable and later given to
/// `ag_chat_free`.
#[no_mangle]
pub unsafe extern "C" fn ag_chat_render(
    tmpl: *const c_char,
    tmpl_len: usize,
    context: *const c_char,
    context_len: usize,
    out: *mut ag_chat_result,
) -> i32 {
    let used = Arc::new(AtomicBool::new(false));
    let done = guarded(|| {
        let tmpl = text_of(tmpl, tmpl_len, "the chat template")?;
        let context = text_of(context, context_len, "the template's context")?;
        render(tmpl, context, &used)
    });
    let (code, text) = match done {
        Ok(text) => (0, text),
        Err(text) => (1, text),
    };
    let mut bytes = text.into_bytes().into_boxed_slice();
    (*out).len = bytes.len();
    (*out).text = bytes.as_mut_ptr() as *mut c_char;
    (*out).used_clock = used.load(Ordering::Relaxed) as i32;
    std::mem::forget(bytes);
    code
}

/// # Safety
/// `out` was filled by `ag_chat_render`.
#[no_mangle]
pub unsafe extern "C" fn ag_chat_free(out: *mut ag_chat_result) {
    let r = &mut *out;
    if !r.text.is_null() {
        let all = std::ptr::slice_from_raw_parts_mut(r.text as *mut u8, r.len);
        drop(Box::from_raw(all));
        r.text = std::ptr::null_mut();
        r.len = 0;
    }
}

unsafe fn text_of<'a>(ptr: *const c_char, len: usize, what: &str) -> Result<&'a str, String> {
    let bytes = if len == 0 {
        &[][..]
    } else {
        std::slice::from_raw_parts(ptr as *const u8, len)
    };
    std::str::from_utf8(bytes).map_err(|e| format!("{what} is not UTF-8: {e}"))
}

fn render(tmpl: &str, context: &str, used: &Arc<AtomicBool>) -> Result<String, String> {
    let source = without_generation(&tmpl.replace("\r\n", "\n"));
    let mut fields: serde_json::Map<String, Json> =
        serde_json::from_str(context).map_err(|e| format!("the template's context: {e}"))?;
    let now = fields.remove("now").unwrap_or(Json::Null);
    let clock = used.clone();

    let mut env = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    env.set_syntax(syntax.map_err(|e| explain(&e))?);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_fuel(Some(FUEL));
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.set_formatter(|out, state, value| {
        if value.kind() == ValueKind::Number && !value.is_integer() {
            if let Ok(f) = f64::try_from(value.clone()) {
                return out.write_str(&py_float(f)).map_err(Error::from);
            }
        }
        minijinja::escape_formatter(out, state, value)
    });
    env.add_filter("tojson", tojson);
    env.add_function("raise_exception", |msg: String| -> Result<Value, Error> {
        Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("{RAISED}{msg}"),
        ))
    });
    env.add_function("strftime_now", move |format: String| -> String {
        clock.store(true, Ordering::Relaxed);
        strftime(&format, &now)
    });
    let parsed = env
        .template_from_named_str("chat", &source)
        .map_err(|e| explain(&e))?;
    let context = map_of(&fields);
    parsed.render(context).map_err(|e| explain(&e))
}

/// Marks what a template itself raised.
const RAISED: &str = "\u{1}";

fn explain(e: &Error) -> String {
    let mut inner: Option<&dyn std::error::Error> = Some(e);
    while let Some(err) = inner {
        if let Some(e) = err.downcast_ref::<Error>() {
            if let Some(msg) = e.detail().and_then(|d| d.strip_prefix(RAISED)) {
                return format!("the chat template refuses this conversation: {msg}");
            }
        }
        inner = err.source();
    }
    if e.kind() == ErrorKind::OutOfFuel {
        return "the chat template runs on without an end and was stopped".into();
    }
    let line = e.line().map(|l| format!(" (line {l})")).unwrap_or_default();
    let what = e
        .detail()
        .map_or_else(|| e.kind().to_string(), |d| format!("{}: {d}", e.kind()));
    format!("the chat template cannot be rendered: {what}{line}")
}

/// `{% generation %}` marks what an assistant wrote, for training; it is no
/// Jinja of its own and prints its inside.
fn without_generation(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        let Some(end) = tail.find("%}") else {
            rest = tail;
            break;
        };
        let tag = &tail[2..end];
        let word = tag.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        match word {
            "generation" => out.push_str(&format!("{{%{}%}}", tag.replacen(word, "if true", 1))),
            "endgeneration" => out.push_str(&format!("{{%{}%}}", tag.replacen(word, "endif", 1))),
            _ => out.push_str(&tail[..end + 2]),
        }
        rest = &tail[end + 2..];
    }
    out.push_str(rest);
    out
}

fn map_of(fields: &serde_json::Map<String, Json>) -> Value {
    Value::from_pairs(fields.iter().map(|(k, v)| (k.clone(), value_of(v))))
}

fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::Number(n) => {
            let text = n.to_string();
            if let Ok(i) = text.parse::<i128>() {
                Value::from(i)
            } else {
                Value::from(text.parse::<f64>().unwrap_or(f64::NAN))
            }
        }
        Json::String(s) => Value::from(s.as_str()),
        Json::Array(a) => a.iter().map(value_of).collect(),
        Json::Object(o) => map_of(o),
    }
}

/// `tojson` as Python's `json.dumps(x, ensure_ascii=False)` writes it.
fn tojson(_: &State, value: &Value, kwargs: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> =
        kwargs
            .get::<Option<Value>>("indent")?
            .and_then(|v| match v.kind() {
                ValueKind::Number => usize::try_from(v).ok(),
                ValueKind::String => v.as_str().map(str::len),
                _ => None,
            });
    let ascii = kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let sort = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let separators: Option<Vec<String>> = kwargs.get("separators")?;
    kwargs.assert_all_used()?;
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        _ if indent.is_some() => (",".to_string(), ": ".to_string()),
        _ => (", ".to_string(), ": ".to_string()),
    };
    let mut w = JsonWriter {
        out: String::new(),
        indent,
        item,
        key,
        ascii,
        sort,
    };
    w.value(value, 0)?;
    Ok(Value::from(w.out))
}

struct JsonWriter {
    out: String,
    indent: Option<usize>,
    item: String,
    key: String,
    ascii: bool,
    sort: bool,
}

impl JsonWriter {
    fn line(&mut self, depth: usize) {
        if let Some(n) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', n * depth));
        }
    }

    fn value(&mut self, v: &Value, depth: usize) -> Result<(), Error> {
        match v.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self
                .out
                .push_str(if v.is_true() { "true" } else { "false" }),
            ValueKind::Number if v.is_integer() => self.out.push_str(&v.to_string()),
            ValueKind::Number => self.out.push_str(&json_float(f64::try_from(v.clone())?)),
            ValueKind::String => self.string(v.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => {
                self.out.push('[');
                let mut any = false;
                for x in v.try_iter()? {
                    if any {
                        self.out.push_str(&self.item.clone());
                    }
                    any = true;
                    self.line(depth + 1);
                    self.value(&x, depth + 1)?;
                }
                if any {
                    self.line(depth);
                }
                self.out.push(']');
            }
            ValueKind::Map => {
                self.out.push('{');
                let mut keys: Vec<Value> = v.try_iter()?.collect();
                if self.sort {
                    keys.sort_by_key(|k| k.to_string());
                }
                for (i, k) in keys.iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(&self.item.clone());
                    }
                    self.line(depth + 1);
                    match k.kind() {
                        ValueKind::String => self.string(k.as_str().unwrap_or_default()),
                        ValueKind::None => self.out.push_str("\"null\""),
                        ValueKind::Bool => self.string(if k.is_true() { "true" } else { "false" }),
                        _ => self.string(&k.to_string()),
                    }
                    self.out.push_str(&self.key.clone());
                    self.value(&v.get_item(k)?, depth + 1)?;
                }
                if !keys.is_empty() {
                    self.line(depth);
                }
                self.out.push('}');
            }
            kind => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("tojson: a value of kind {kind} has no JSON form"),
                ))
            }
        }
        Ok(())
    }

    fn string(&mut self, s: &str) {
        self.out.push('"');
        for c in s.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if (c as u32) < 0x20 => self.out.push_str(&format!("\\u{:04x}", c as u32)),
                c if self.ascii && !c.is_ascii() => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

fn json_float(f: f64) -> String {
    if f.is_nan() {
        "NaN".into()
    } else if f.is_infinite() {
        if f > 0.0 {
            "Infinity".into()
        } else {
            "-Infinity".into()
        }
    } else {
        py_float(f)
    }
}

/// Python's `repr` of a float: shortest digits, an exponent below 1e-4 and
/// from 1e16 on.
fn py_float(f: f64) -> String {
    if f.is_nan() {
        return "nan".into();
    }
    if f.is_infinite() {
        return if f > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let sci = format!("{f:e}");
    let (mantissa, exp) = sci.split_once('e').unwrap_or((&sci, "0"));
    let exp: i32 = exp.parse().unwrap_or(0);
    if f != 0.0 && !(-4..16).contains(&exp) {
        let sign = if exp < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exp.abs());
    }
    let text = format!("{f}");
    if text.contains('.') {
        text
    } else {
        text + ".0"
    }
}

/// Python's `strftime` over the fields of `now`, in the C locale.
fn strftime(format: &str, now: &Json) -> String {
    const DAYS: [&str; 7] = [
        "Sunday",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
    ];
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let num = |key: &str| now.get(key).and_then(Json::as_i64).unwrap_or(0);
    let (year, month, day) = (num("year"), num("month").clamp(1, 12), num("day"));
    let (hour, minute, second) = (num("hour"), num("minute"), num("second"));
    let weekday = num("weekday").rem_euclid(7);
    let month_name = MONTHS[month as usize - 1];
    let day_name = DAYS[weekday as usize];
    let hour12 = (hour + 11).rem_euclid(12) + 1;
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let plain = chars.next_if_eq(&'-').is_some();
        let two = |n: i64| {
            if plain {
                n.to_string()
            } else {
                format!("{n:02}")
            }
        };
        match chars.next() {
            Some('Y') => out.push_str(&year.to_string()),
            Some('y') => out.push_str(&two(year.rem_euclid(100))),
            Some('m') => out.push_str(&two(month)),
            Some('d') => out.push_str(&two(day)),
            Some('e') => out.push_str(&if plain {
                day.to_string()
            } else {
                format!("{day:2}")
            }),
            Some('H') => out.push_str(&two(hour)),
            Some('I') => out.push_str(&two(hour12)),
            Some('M') => out.push_str(&two(minute)),
            Some('S') => out.push_str(&two(second)),
            Some('f') => out.push_str(&format!("{:06}", num("microsecond"))),
            Some('j') => {
                let n = num("yearday");
                out.push_str(&if plain {
                    n.to_string()
                } else {
                    format!("{n:03}")
                })
            }
            Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('B') => out.push_str(month_name),
            Some('b') | Some('h') => out.push_str(&month_name[..3]),
            Some('A') => out.push_str(day_name),
            Some('a') => out.push_str(&day_name[..3]),
            Some('w') => out.push_str(&weekday.to_string()),
            Some('u') => out.push_str(&(if weekday == 0 { 7 } else { weekday }).to_string()),
            Some('F') => out.push_str(&format!("{year}-{month:02}-{day:02}")),
            Some('T') => out.push_str(&format!("{hour:02}:{minute:02}:{second:02}")),
            Some('R') => out.push_str(&format!("{hour:02}:{minute:02}")),
            Some('D') | Some('x') => {
                out.push_str(&format!("{month:02}/{day:02}/{:02}", year.rem_euclid(100)))
            }
            Some('X') => out.push_str(&format!("{hour:02}:{minute:02}:{second:02}")),
            Some('c') => out.push_str(&format!(
                "{} {} {day:2} {hour:02}:{minute:02}:{second:02} {year}",
                &day_name[..3],
                &month_name[..3]
            )),
            // datetime.now() is naive: Python prints nothing for these two.
            Some('Z') | Some('z') => {}
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('%') => out.push('%'),
            Some(other) => {
                out.push('%');
                out.push(other);
            }
            None => out.push('%'),
        }
    }
    out
}
