package few

import "testing"

func TestJoined(t *testing.T) {
	for want, texts := range map[string][]string{
		"": nil, "a": {"a"}, "a; b": {"a", "b"},
		"a; b and 1 more": {"a", "b", "c"}, "a; b and 2 more": {"a", "b", "c", "d"},
	} {
		if got := Joined(texts, 2, "; "); got != want {
			t.Errorf("%q is joined to %q, want %q", texts, got, want)
		}
	}
}
