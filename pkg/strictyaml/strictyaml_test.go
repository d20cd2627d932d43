package strictyaml

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type store struct {
	Name   string            `json:"name"`
	Period metav1.Duration   `json:"period"`
	Labels map[string]string `json:"labels,omitempty"`
}

type config struct {
	Count  int32                      `json:"count"`
	Store  *store                     `json:"store,omitempty"`
	Others []store                    `json:"others,omitempty"`
	Ports  map[string]int32           `json:"ports,omitempty"`
	Ages   map[string]metav1.Duration `json:"ages,omitempty"`
}

// The error names the field, and says no more of Go's types than which numbers and texts are meant.
func TestUnmarshal(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"YAML":              {"count: 3\nstore: {name: a, period: 1m}\nothers: [{name: b}]\nports: {a: 1}\n", ""},
		"JSON":              {`{"count":3,"store":{"labels":{"a":"b"}}}`, ""},
		"nothing":           {"", ""},
		"unknown":           {"cuont: 3", "cuont: Forbidden: there is no such field"},
		"unknown within":    {"store: {peroid: 1m}", "store.peroid: Forbidden: there is no such field"},
		"unknown in a list": {"others: [{}, {nmae: a}]", "others[1].nmae: Forbidden: there is no such field"},
		"duration": {
			"store: {period: soon}", `store.period: Invalid value: "soon": time: invalid duration "soon"`,
		},
		"duration in a list": {
			"others: [{}, {name: a}, {period: 1}]", "others[2].period: Invalid value: 1: must be of type string",
		},
		"text": {"count: many", `count: Invalid value: "many": must be of type int32, not string`},
		"large number": {
			"count: 9007199254740993", "count: Invalid value: 9007199254740993: must be of type int32, not number",
		},
		"in a map":          {"ports: {a: 1, b: c}", `ports[b]: Invalid value: "c": must be of type int32, not string`},
		"duration in a map": {"ages: {a: soon}", `ages[a]: Invalid value: "soon": time: invalid duration "soon"`},
		"no object":         {"store: [1]", "store: Invalid value: must be an object, not array"},
		"no map":            {"ports: 1", "ports: Invalid value: 1: must be an object, not number"},
		"no list":           {"others: {a: b}", "others: Invalid value: must be a list, not object"},
		"another object":    {"[1]", "must be an object, not array"},
		"the first of two":  {"ports: {a: b}\ncount: many", "count: Invalid value"},
		"twice":             {"count: 3\ncount: 4", `error converting YAML to JSON: yaml: unmarshal errors:`},
		"no YAML":           {"count: [", "error converting YAML to JSON: yaml: "},
	} {
		requireError(t, name, Unmarshal([]byte(test.text), &config{}, nil), test.want)
		if test.want == "" {
			continue
		}
		err := Unmarshal([]byte(test.text), &config{}, field.NewPath("spec"))
		separator := "."
		if strings.HasPrefix(test.want, "error") || strings.HasPrefix(test.want, "must") {
			separator = ": "
		}
		requireError(t, name+", within", err, "spec"+separator+test.want)
	}
	requireError(t, "of a list", Unmarshal([]byte("[{count: 1}, {count: a}]"), &[]config{}, nil), "[1].count: Invalid")
}

// requireError fails unless an error begins as it should; there is none if that is empty.
func requireError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

func TestWhatIsDecoded(t *testing.T) {
	var got config
	if err := Unmarshal([]byte("count: 3\nstore: {period: 1m}"), &got, nil); err != nil || got.Count != 3 ||
		got.Store.Period.Minutes() != 1 {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// Whatever is refused is refused with the path that it was given.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("store: {period: soon}"))
	f.Add([]byte("others: [{}, {labels: {a: 1}}]\nports: {a: []}"))
	f.Add([]byte(`{"count": 1e99, "ports": {"": null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := Unmarshal(text, &config{}, field.NewPath("spec")); err != nil &&
			!strings.HasPrefix(err.Error(), "spec") {
			t.Errorf("the error has no path: %v", err)
		}
	})
}
