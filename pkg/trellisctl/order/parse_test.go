package order

import (
	"reflect"
	"strings"
	"testing"
)

func TestParsePool(t *testing.T) {
	for text, want := range map[string]Pool{
		"pool:small:1-3":     {Name: "pool", Type: "small", Minimum: 1, Maximum: 3},
		"pool:small:2":       {Name: "pool", Type: "small", Minimum: 2, Maximum: 2},
		"pool:small:0-0:a,b": {Name: "pool", Type: "small", Zones: []string{"a", "b"}},
	} {
		if got, err := ParsePool(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"pool":                       "is not NAME:TYPE:MIN-MAX",
		"pool:small:1:a:b":           "is not NAME:TYPE:MIN-MAX",
		"pool:small:3-1":             "3, is larger than the most, 1",
		"pool:small:-1-3":            "is not a number of machines",
		"pool:small:1-99999999999":   "too large",
		"pool:small:99999999999-1":   "too large",
		"pool:small:1-3:a,,b":        "a part is empty",
		":small:1-3":                 "a part is empty",
		"pool:small:1-3 and 4":       "is not a number of machines",
		"pool:small:":                "is not a number of machines",
		"pool:small:1-2147483648":    "too large",
		"pool:small:1-2147483647:a,": "a part is empty",
	} {
		if _, err := ParsePool(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// What is read can be written, and read again.
func FuzzParsePool(f *testing.F) {
	f.Add("pool:small:1-3:a,b")
	f.Add("pool:small:007")
	f.Fuzz(func(t *testing.T, text string) {
		pool, err := ParsePool(text)
		if err != nil {
			return
		}
		if pool.Minimum < 0 || pool.Minimum > pool.Maximum {
			t.Fatalf("%q has %d to %d machines", text, pool.Minimum, pool.Maximum)
		}
		again, err := ParsePool(pool.String())
		if err != nil || !reflect.DeepEqual(again, pool) {
			t.Fatalf("%q is %+v and again %+v, %v", text, pool, again, err)
		}
	})
}

func TestParseSchedule(t *testing.T) {
	for text, want := range map[string]string{
		"0 20 * * 1-5;0 7 * * 1-5;Europe/Berlin": "0 20 * * 1-5|0 7 * * 1-5|Europe/Berlin",
		"0 20 * * *":                             "0 20 * * *||",
		";0 7 * * *":                             "|0 7 * * *|", ";;UTC": "error", "": "error", "1;2;3;4": "error",
	} {
		schedule, err := ParseSchedule(text)
		var parts []string
		for _, part := range []*string{schedule.Start, schedule.End, schedule.Location} {
			if part == nil {
				part = new("")
			}
			parts = append(parts, *part)
		}
		got := strings.Join(parts, "|")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
}

func TestParseWindow(t *testing.T) {
	window, err := ParseWindow("220000-0130-003000+0100")
	if err != nil || window.Begin != "220000-0130" || window.End != "003000+0100" {
		t.Errorf("got %+v, %v", window, err)
	}
	for _, text := range []string{"", "22-23", "220000+0100", "990000+0100-230000+0100", "220000-230000"} {
		if _, err := ParseWindow(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestParseProfile(t *testing.T) {
	for text, want := range map[string]string{
		"local": "CloudProfile/local", "NamespacedCloudProfile/ours": "NamespacedCloudProfile/ours",
	} {
		if got := ParseProfile(text); got.Kind+"/"+got.Name != want {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}
