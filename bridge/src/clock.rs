//! Two clocks: the processor time of this thread, which bounds a rendering, and the caller's, which
//! strftime_now(format) writes as Python's strftime would, in English.

use std::time::Duration;

use minijinja::{Error, ErrorKind};

use crate::meter::{self, BoundedText};

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
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// Processor time that this thread has used so far.
pub fn thread_time() -> Duration {
    const CLOCK_THREAD_CPUTIME_ID: i32 = 3; // Linux
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the C library's function; on 64-bit Linux both fields have 64 bits.
    let failed = unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut time) } != 0;
    if failed {
        return Duration::MAX; // without a clock nothing may run for long
    }
    Duration::new(time.seconds as u64, time.nanoseconds as u32)
}

struct Civil {
    year: i64,
    month: i64,       // 1 … 12
    day: i64,         // 1 … 31
    weekday: usize,   // 0 is Sunday
    day_of_year: i64, // 1 … 366
    second_of_day: i64,
}

/// The proleptic Gregorian date of a count of seconds since 1970-01-01, without leap seconds.
fn civil(unix_s: i64) -> Civil {
    let days = unix_s.div_euclid(86_400);
    // Years that begin in March put the leap day last; eras of 400 years are all alike.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let march_day = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * march_day + 2) / 153;
    let day = march_day - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][(month - 1) as usize];
    Civil {
        year,
        month,
        day,
        weekday: (days + 4).rem_euclid(7) as usize,
        day_of_year: before + day + i64::from(leap && month > 2),
        second_of_day: unix_s.rem_euclid(86_400),
    }
}

fn field(letter: char, t: &Civil) -> Option<String> {
    let hour = t.second_of_day / 3600;
    let minute = t.second_of_day / 60 % 60;
    let second = t.second_of_day % 60;
    let hour12 = (hour + 11) % 12 + 1;
    let month = MONTHS[(t.month - 1) as usize];
    let day = DAYS[t.weekday];
    Some(match letter {
        'Y' => t.year.to_string(),
        'y' => format!("{:02}", t.year.rem_euclid(100)),
        'm' => format!("{:02}", t.month),
        'd' => format!("{:02}", t.day),
        'e' => format!("{:2}", t.day),
        'j' => format!("{:03}", t.day_of_year),
        'B' => month.to_string(),
        'b' | 'h' => month[..3].to_string(),
        'A' => day.to_string(),
        'a' => day[..3].to_string(),
        'H' => format!("{hour:02}"),
        'I' => format!("{hour12:02}"),
        'M' => format!("{minute:02}"),
        'S' => format!("{second:02}"),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_string(),
        'F' => format!("{}-{:02}-{:02}", t.year, t.month, t.day),
        'T' => format!("{hour:02}:{minute:02}:{second:02}"),
        'Z' => "UTC".to_string(),
        'z' => "+0000".to_string(),
        '%' => "%".to_string(),
        _ => return None,
    })
}

pub fn strftime_now(format: &str) -> Result<String, Error> {
    let unix_s = meter::now_unix_s().clamp(-62_000_000_000, 250_000_000_000); // years 5 … 9892
    let now = civil(unix_s);
    let mut out = BoundedText::default();
    let mut letters = format.chars();
    while let Some(c) = letters.next() {
        if c != '%' {
            out.push(c.encode_utf8(&mut [0; 4]))?;
            continue;
        }
        // "%-d" writes the number without padding.
        let mut letter = letters.next();
        let unpadded = letter == Some('-');
        if unpadded {
            letter = letters.next();
        }
        let text = letter.and_then(|l| field(l, &now)).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidOperation,
                format!("strftime_now: %{} is not known", letter.unwrap_or(' ')),
            )
        })?;
        let trimmed = text.trim_start_matches(['0', ' ']);
        match (unpadded, trimmed) {
            (true, "") => out.push("0")?,
            (true, number) => out.push(number)?,
            (false, _) => out.push(&text)?,
        }
    }
    Ok(out.into_string())
}
