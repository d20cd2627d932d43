package status

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestRecoveriesAreDescribed(t *testing.T) {
	const aside = " What was found is kept in /data/damaged-1."
	for _, test := range []struct {
		name     string
		recovery Recovery
		want     string
	}{
		{
			"a snapshot", Recovery{
				Cause: DataDamaged, Reason: "database: page 3 is none", Aside: "/data/damaged-1", Missing: "little",
				Restored: &Restored{BackupDirectory, "full-7.db", 7, noon.Add(-time.Hour)},
			},
			"found its data damaged (database: page 3 is none). At 2026-01-01T12:00:02Z, after 2s, it served again: " +
				"restored from full-7.db of the backup directory, revision 7, taken at 2026-01-01T11:00:00Z. " +
				"Missing: little." + aside,
		},
		{
			"the store", Recovery{Cause: DataLost, Restored: &Restored{BackupStore, "delta-7", 7, noon}},
			"found no data, although there are backups. At 2026-01-01T12:00:02Z, after 2s, it served again: restored " +
				"from delta-7 of the store of backups, revision 7, taken at 2026-01-01T12:00:00Z.",
		},
		{
			"the database", Recovery{
				Cause: LogDamaged, Aside: "/data/damaged-1", Restored: &Restored{From: Database, Revision: 7},
			},
			"found its write-ahead log damaged, but not its database. At 2026-01-01T12:00:02Z, after 2s, it served " +
				"again: restored from its database, revision 7." + aside,
		},
		{
			"other members", Recovery{
				Cause: DataDiffers, Reason: "of revision 7, its hash is 1", Aside: "/data/damaged-1",
				Restored: &Restored{From: Members},
			},
			"found its data different from that of a quorum of the other members (of revision 7, its hash is 1). At " +
				"2026-01-01T12:00:02Z, after 2s, it served again: restored from the other members." + aside,
		},
		{
			"nothing", Recovery{Cause: DataStale, Missing: "all", Restored: &Restored{From: Nothing}},
			"found its data older than the backups. At 2026-01-01T12:00:02Z, after 2s, it began empty. Missing: all.",
		},
		{
			"what is not known", Recovery{Cause: "Moon"},
			"found its data unusable. At 2026-01-01T12:00:02Z, after 2s, it served again: restored, it is not told " +
				"from what.",
		},
	} {
		test.recovery.Found, test.recovery.Finished = noon, noon.Add(2*time.Second)
		if got := test.recovery.Describe(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestWhatHasNotEndedIsAFinding(t *testing.T) {
	begun := Recovery{Cause: DataLost, Found: noon, Restored: &Restored{From: Nothing}}
	if got, want := begun.Describe(), "found no data, although there are backups."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDifferencesAreDescribed(t *testing.T) {
	for _, test := range []struct {
		difference Difference
		want       string
	}{
		{
			Difference{From: Members, Since: noon, Message: "no quorum agrees: of revision 7, its hash is 1"},
			"serves data that differs from that of other members since 2026-01-01T12:00:00Z: no quorum agrees: of " +
				"revision 7, its hash is 1.",
		},
		{
			Difference{
				From: BackupStore, Since: noon, Backup: "delta-7",
				Changed: []Changed{{5, "/registry/a"}, {6, "b\n"}, {7, "c"}, {8, "d"}, {9, "e"}},
			},
			"serves data that differs from delta-7 of the store of backups since 2026-01-01T12:00:00Z: revision 5 of " +
				"key \"/registry/a\", revision 6 of key \"b\", revision 7 of key \"c\", 2 more.",
		},
	} {
		if got := test.difference.Describe(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

func TestTexts(t *testing.T) {
	for text, want := range map[string]string{
		"as it is: ü, 漢, \"q\"":     "as it is: ü, 漢, \"q\"",
		"two\nlines\r\n":            "two lines",
		"\x1b[31mred\x1b[0m":        "[31mred [0m",
		"the other way\u202e round": "the other way  round",
		"no UTF-8 \xff\xfe.":        "no UTF-8  .",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for _, part := range []string{"x", "漢", "\xff"} {
		text := strings.Repeat(part, 10_000)
		if got := Text(text); len(got) > mostText || !utf8.ValidString(got) {
			t.Errorf("%d bytes are left of %.9q…: %q", len(got), text, got)
		}
	}
}

// An event has room for 1024 bytes, of which the name of the etcd needs some.
func FuzzDescriptionsAreShort(f *testing.F) {
	long := strings.Repeat("漢", 1000)
	f.Add(long, long, long, long, int64(-1<<63), int64(1<<62))
	f.Fuzz(func(t *testing.T, reason, aside, missing, backup string, revision, took int64) {
		for _, from := range []Source{BackupDirectory, BackupStore, Database, Members, Nothing, Source(reason)} {
			r := Recovery{
				Cause: LogDamaged, Reason: reason, Aside: aside, Missing: missing, Found: noon,
				Restored: &Restored{from, backup, revision, noon}, Finished: noon.Add(time.Duration(took)),
			}
			if got := r.Describe(); len(got) > 1000 || !utf8.ValidString(got) {
				t.Errorf("it has %d bytes: %q", len(got), got)
			}
			d := Difference{From: from, Message: reason, Backup: backup, Since: r.Finished}
			for _, key := range []string{aside, missing, "\"" + reason, ""} {
				d.Changed = append(d.Changed, Changed{revision, key})
			}
			if got := d.Describe(); len(got) > 1000 || !utf8.ValidString(got) {
				t.Errorf("it has %d bytes: %q", len(got), got)
			}
		}
	})
}
