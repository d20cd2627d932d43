package manifests

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		// want has the kinds, in order; err a part of the error.
		want, err string
	}{
		"nothing":             {"", "", ""},
		"one":                 {"kind: A", "A", ""},
		"two, and empty ones": {"---\nkind: A\n---\n# nothing\n---\n\n---\nkind: B\n", "A B", ""},
		"JSON":                {`{"kind":"A"}` + "\n" + `{"kind":"B"}`, "A B", ""},
		"no YAML":             {"kind: A\n---\nkind: [", "", "document 2: "},
		"no object":           {"- a", "", "document 1: "},
	} {
		objects, err := Decode([]byte(test.stream))
		var kinds []string
		for _, object := range objects {
			kinds = append(kinds, object.GetKind())
		}
		if strings.Join(kinds, " ") != test.want || (err == nil) != (test.err == "") ||
			err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %q, error %v", name, kinds, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("kind: A\n---\nkind: B\nmetadata: {name: x}\n")
	f.Add("---\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := Decode([]byte(text))
		if err != nil {
			return
		}
		for _, object := range objects {
			if len(object.Object) == 0 {
				t.Error("an empty object would be applied")
			}
			_, _ = object.GetKind(), object.GetName()
		}
	})
}
