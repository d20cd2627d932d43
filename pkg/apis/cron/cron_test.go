package cron

import (
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestCronNext(t *testing.T) {
	for _, test := range []struct{ expression, after, want string }{
		{"0 20 * * *", "2026-11-01 19:59", "2026-11-01 20:00"},
		{"0 20 * * *", "2026-11-01 20:00", "2026-11-02 20:00"},
		{"0 8 * * 1-5", "2026-10-30 09:00", "2026-11-02 08:00"}, // Friday to Monday
		{"0 8 * * mon,WED", "2026-11-02 08:00", "2026-11-04 08:00"},
		{"0 8 * * 7", "2026-11-02 00:00", "2026-11-08 08:00"},
		{"*/15 * * * *", "2026-11-01 10:46", "2026-11-01 11:00"},
		{"5/20 * * * *", "2026-11-01 10:26", "2026-11-01 10:45"},
		{"0 0 29 2 *", "2026-11-01 00:00", "2028-02-29 00:00"},
		{"0 0 13 * 5", "2026-11-01 00:00", "2026-11-06 00:00"}, // the 13th, or a Friday
		{"0 0 ? dec *", "2026-11-01 00:00", "2026-12-01 00:00"},
		{"0 0 31 2 *", "2026-11-01 00:00", ""},
		{"0 8 * * 5-7", "2026-10-31 09:00", "2026-11-01 08:00"}, // Saturday to Sunday
		{"0 8 * * 1-7/3", "2026-10-31 09:00", "2026-11-01 08:00"},
	} {
		parsed, err := Parse(test.expression)
		if err != nil {
			t.Errorf("%s: %v", test.expression, err)
			continue
		}
		got := parsed.Next(at(t, test.after))
		if test.want == "" {
			if !got.IsZero() {
				t.Errorf("%s after %s = %s, want never", test.expression, test.after, got)
			}
			continue
		}
		if want := at(t, test.want); !got.Equal(want) {
			t.Errorf("%s after %s = %s, want %s", test.expression, test.after, got, want)
		}
	}
}

func TestCronIsRefused(t *testing.T) {
	for _, text := range []string{"", "0 20 * *", "60 * * * *", "a * * * *", "*/0 * * * *", "0 0 0 * *", "0 0 * * 8",
		"1-x * * * *", "*5 * * * *", "5-2 * * * *",
		"0 0 * * 3-8", "0 0 * * 7-3", "0 0 * * 1-7/0", "TZ=UTC 0 0 * * *", "TZ=0 * * * *", "@every 1s", "@daily"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"@daily": "2026-11-02 00:00", " @hourly": "2026-11-01 11:00", "30 10 * * *": "2026-11-01 10:30",
	} {
		parsed, err := ParseNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Next(at(t, "2026-11-01 10:00")); !got.Equal(at(t, want)) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"@every 1s", "@reboot", "@Daily", ""} {
		if _, err := ParseNamed(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

// Clocks in Berlin went from 2:00 to 3:00 on 29 March 2026, and from 3:00 to 2:00 on 25 October.
func TestClocksAreChanged(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ expression, after, want string }{
		{"30 2 * * *", "2026-03-28T03:00:00Z", "2026-03-29T01:30:00Z"}, // skipped: 3:30
		{"30 2 * * *", "2026-03-29T01:10:00Z", "2026-03-29T01:30:00Z"}, // asked after clocks jumped
		{"30 2 * * *", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"},
		{"30 2 * * *", "2026-10-24T22:00:00Z", "2026-10-25T01:30:00Z"}, // the second 2:30
		{"30 2 * * *", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
		{"0 * * * *", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
	} {
		parsed, err := Parse(test.expression)
		if err != nil {
			t.Fatal(err)
		}
		after, err := time.Parse(time.RFC3339, test.after)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Next(after.In(berlin)).UTC().Format(time.RFC3339); got != test.want {
			t.Errorf("%s after %s = %s, want %s", test.expression, test.after, got, test.want)
		}
	}
}

func FuzzCron(f *testing.F) {
	f.Add("0 20 * * 1-5")
	f.Add("*/7 8-18/2 1,15 jan-mar ?")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			return
		}
		after := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
		if next := parsed.Next(after); !next.IsZero() && !next.After(after) {
			t.Errorf("%q: %s is not after %s", text, next, after)
		}
	})
}
