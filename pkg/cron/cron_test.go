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
	for _, text := range []string{"", "0 20 * *", "60 * * * *", "a * * * *", "*/0 * * * *", "0 0 0 * *", "0 0 * * 8", "1-x * * * *"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is accepted", text)
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
