package budget_test

import (
	"maps"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/budget"
)

func TestDecide(t *testing.T) {
	settings := budget.Default()
	settings.AtLeast = 10
	now := time.Unix(10_000, 0)
	long, short := now.Add(-time.Minute), now.Add(-time.Second)
	for _, test := range []struct {
		name  string
		count budget.Count
		want  budget.Decision
	}{
		{"one of one", budget.Count{Total: 1, Pending: 1, Newest: short}, budget.Decision{Go: true}},
		{"all of ten", budget.Count{Total: 10, Pending: 10, Newest: short}, budget.Decision{Go: true}},
		{"eleven of eleven", budget.Count{Total: 11, Pending: 11, Newest: long}, budget.Decision{Hold: true}},
		{
			"a fifth of a hundred, settled", budget.Count{Total: 100, Pending: 20, Newest: long},
			budget.Decision{Go: true},
		},
		{
			"a fifth of a hundred, more may come", budget.Count{Total: 100, Pending: 20, Newest: short},
			budget.Decision{Wait: 2 * time.Second},
		},
		{"more than a fifth", budget.Count{Total: 100, Pending: 21, Newest: short}, budget.Decision{Hold: true}},
		{
			"recent ones count", budget.Count{Total: 90, Pending: 11, Recent: 10, Newest: long},
			budget.Decision{Hold: true},
		},
		{
			"recent ones count as objects too", budget.Count{Total: 90, Pending: 10, Recent: 10, Newest: long},
			budget.Decision{Go: true},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := settings.Decide(test.count, now); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	off := budget.Default()
	off.Percent = 100
	if !off.Decide(budget.Count{Total: 1000, Pending: 1000, Newest: now}, now).Go {
		t.Error("100 percent turns the budget off")
	}
}

func TestBoth(t *testing.T) {
	g, h, w := budget.Decision{Go: true}, budget.Decision{Hold: true}, budget.Decision{Wait: time.Second}
	for _, test := range []struct{ a, b, want budget.Decision }{{g, g, g}, {g, h, h}, {h, w, h}, {w, g, w}} {
		if got := budget.Both(test.a, test.b); got != test.want {
			t.Errorf("%+v and %+v give %+v", test.a, test.b, got)
		}
	}
}

func TestRecent(t *testing.T) {
	start := time.Unix(600_000, 0)
	r := budget.Recent{}
	r.Note(3, start)
	r.Note(2, start.Add(5*time.Minute))
	again := budget.ParseRecent(r.String())
	if !maps.Equal(r, again) {
		t.Errorf("%s became %s", r, again)
	}
	for _, test := range []struct {
		after time.Duration
		want  int
	}{{5 * time.Minute, 5}, {10 * time.Minute, 5}, {12 * time.Minute, 2}, {time.Hour, 0}} {
		if got := again.Within(10*time.Minute, start.Add(test.after)); got != test.want {
			t.Errorf("after %s: %d, want %d", test.after, got, test.want)
		}
	}
	if len(again) != 0 {
		t.Errorf("old ones are kept: %v", again)
	}
	for _, text := range []string{"", "[]", `{"a":1}`, `{"1":-1}`, "\x00"} {
		if got := budget.ParseRecent(text); len(got) != 0 {
			t.Errorf("%q gives %v", text, got)
		}
	}
}
