//! The machine that was measured on, and how busy it was.

use std::fs;

/// The ticks of `/proc/self/stat`: 100 a second on every Linux that people run.
const TICKS: f64 = 100.0;

/// The machine in one line.
pub(super) fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split('-').next().unwrap_or_default().trim().to_owned();
    let gibibytes = value(&memory, "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .map_or_else(|| "?".to_owned(), |kibibytes| format!("{:.0}", kibibytes / 1_048_576.0));
    let model = value(&cpu, "model name").unwrap_or("a processor that does not say its name");
    let virtual_machine = if cpu.contains(" hypervisor") { ", a virtual machine" } else { "" };
    format!("{} × {model}, {gibibytes} GiB, Linux {kernel}{virtual_machine}", cores())
}

/// How many cores this process may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The value of the first line `key : value`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

/// How busy the processors were with other things while something was measured.
pub(super) struct Load {
    before: Option<Ticks>,
}

/// Ticks of all processors: busy ones, and all.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    busy: f64,
    all: f64,
}

impl Load {
    pub(super) fn begin() -> Self {
        Self { before: ticks() }
    }

    /// What to say about it.
    pub(super) fn end(self) -> String {
        let average = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let average = average.split(' ').next().unwrap_or("?");
        let busy = self.before.zip(ticks()).filter(|(before, after)| after.all > before.all);
        let busy = busy.map_or_else(String::new, |(before, after)| {
            let share = (after.busy - before.busy) / (after.all - before.all);
            format!("processors busy {:.0} % of the time, ", share * 100.0)
        });
        let own = if is_real_time() { ", measured at real-time priority (`chrt`)" } else { "" };
        format!("Meanwhile: {busy}load average {average} on {} cores{own}.", cores())
    }
}

/// Whether this process, and with it everything it starts, goes before all usual ones.
fn is_real_time() -> bool {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    policy(&stat).is_some_and(|policy| matches!(policy, "1" | "2"))
}

/// The scheduling policy, the 41st field.
fn policy(stat: &str) -> Option<&str> {
    after_name(stat)?.split_whitespace().nth(38)
}

/// The fields of `/proc/PID/stat` behind the process's name, which stands in parentheses and may
/// have any character in it. The first of them is the third.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, fields)| fields)
}

fn ticks() -> Option<Ticks> {
    parse_ticks(&fs::read_to_string("/proc/stat").ok()?)
}

fn parse_ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are counted in the first two.
    let all: f64 = numbers.iter().take(8).sum();
    let idle: f64 = numbers.iter().skip(3).take(2).sum();
    Some(Ticks { busy: all - idle, all })
}

/// The seconds of processor time that ended children of this process took.
pub(super) fn children_seconds() -> Option<f64> {
    seconds(&fs::read_to_string("/proc/self/stat").ok()?, 16)
}

/// The seconds of processor time that a process took so far.
pub(super) fn process_seconds(pid: u32) -> Option<f64> {
    seconds(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 14)
}

/// The sum of two fields, user and system time, of which `first` is the number of the first.
fn seconds(stat: &str, first: usize) -> Option<f64> {
    let mut fields = after_name(stat)?.split_whitespace().skip(first.checked_sub(3)?);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let ticks = parse_ticks("cpu  10 1 5 70 4 0 2 8 3 0\ncpu0 1 1\n").unwrap();
        assert_eq!((ticks.busy, ticks.all), (26.0, 100.0));
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 250 125 20 0 1 0 99";
        assert_eq!(seconds(stat, 16), Some(3.75));
        assert_eq!(seconds(stat, 14), Some(1.1));
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        assert_eq!(policy(&format!("7 (a) b) {}", fields.join(" "))), Some("41"));
        assert_eq!(value("a: 1\nmodel name\t: X 9\n", "model name"), Some("X 9"));
    }

    #[test]
    fn this_machine_is_described() {
        let text = describe();
        assert!(text.contains(" × ") && text.contains("Linux "), "{text}");
    }
}
