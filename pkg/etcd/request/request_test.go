package request

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// What one side makes flags of, the other reads.
func TestFlagsRoundTrip(t *testing.T) {
	for _, want := range []Restore{{}, {To: "2026-01-02T03:04:05Z", ID: "one-2"}} {
		var got Restore
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		got.AddFlags(flags)
		if err := flags.Parse(want.Arguments()); err != nil || got != want {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
}

func TestValidate(t *testing.T) {
	const now = "2026-01-02T03:04:05Z"
	for _, test := range []struct {
		Restore
		want []string
	}{
		{Restore{}, nil},
		{Restore{To: now, ID: "a"}, nil},
		{Restore{To: now}, []string{"--restore-request"}},
		{Restore{ID: "a"}, []string{"--restore-to"}},
		{Restore{To: "yesterday", ID: "../a"}, []string{"--restore-to", "--restore-request"}},
		{Restore{To: now, ID: strings.Repeat("a", 64)}, []string{"--restore-request"}},
		{Restore{To: now, ID: "a/b"}, []string{"--restore-request"}},
	} {
		err := test.Validate()
		if (err == nil) != (len(test.want) == 0) {
			t.Errorf("%+v: %v", test.Restore, err)
		}
		for _, flag := range test.want {
			if err == nil || !strings.Contains(err.Error(), flag) {
				t.Errorf("%+v: %v does not name %s", test.Restore, err, flag)
			}
		}
	}
}

func TestRefusalsAreFound(t *testing.T) {
	one, two := Restore{ID: "one"}, Restore{ID: "two"}
	message := "{\"msg\":\"closed\"}\nError: " + one.Refusal(errors.New("it is too old")).Error() + "\n"
	if got, found := one.FindRefusal(message); !found || got != "restore request one is refused: it is too old" {
		t.Errorf("got %q, %t", got, found)
	}
	if got, found := two.FindRefusal(message); found {
		t.Errorf("a refusal of another request is taken for %q", got)
	}
	if !slices.Equal(one.Arguments(), []string{"--restore-to=", "--restore-request=one"}) {
		t.Errorf("got %q", one.Arguments())
	}
}
