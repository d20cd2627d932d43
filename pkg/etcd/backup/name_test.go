package backup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

var (
	fullName  = Name{Kind: Full, Last: 1234567, Taken: noon, ID: ID{1}}
	deltaName = Name{
		Kind: Delta, First: 1234568, Last: 2000000, Taken: noon.Add(time.Minute), ID: ID{0xab, 0xcd}, Parent: ID{1},
	}
)

func TestNames(t *testing.T) {
	for rest, name := range map[string]Name{
		"full-0000000000000000000-0000000000001234567-20261125T120000Z-0100000000000000-0000000000000000":  fullName,
		"delta-0000000000001234568-0000000000002000000-20261125T120100Z-abcd000000000000-0100000000000000": deltaName,
	} {
		want := "v1/" + rest
		if got := name.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, err := ParseName(want); err != nil || got != name {
			t.Errorf("%s is read as %+v, %v", want, got, err)
		}
	}
}

func TestNamesThatAreNone(t *testing.T) {
	full, delta := fullName.String(), deltaName.String()
	for why, text := range map[string]string{
		"empty":                  "",
		"another format":         "v2/Full-00000000-00000001-1518427675",
		"no folder":              strings.TrimPrefix(full, folder),
		"two folders":            folder + full,
		"a partial file":         full + ".part",
		"another kind":           strings.Replace(full, "full", "half", 1),
		"a full from a revision": strings.Replace(full, "0000000000000000000-", "0000000000000000001-", 1),
		"a full of nothing":      strings.Replace(full, "1234567", "0000000", 1),
		"a delta backwards":      strings.Replace(delta, "2000000", "1000000", 1),
		"a delta of nothing":     strings.Replace(delta, "0100000000000000", "0000000000000000", 1),
		"its own parent":         strings.Replace(delta, "0100000000000000", "abcd000000000000", 1),
		"no ID":                  strings.Replace(full, "0100000000000000", "0000000000000000", 1),
		"capital letters":        strings.Replace(delta, "abcd", "ABCD", 1),
		"fewer digits":           strings.Replace(delta, "0000000000001234568", "1234568", 1),
		"a sign":                 strings.Replace(delta, "0000000000001234568", "+000000000001234568", 1),
		"another zone":           strings.Replace(full, "120000Z", "120000X", 1),
		"no such time":           strings.Replace(full, "120000Z", "126000Z", 1),
	} {
		if got, err := ParseName(text); err == nil {
			t.Errorf("%s: %q is read as %+v", why, text, got)
		}
	}
}

func TestNamesSortByKindAndRevision(t *testing.T) {
	later := fullName
	later.Taken = later.Taken.Add(time.Hour)
	higher := fullName
	higher.Last = 99999999
	next := deltaName
	next.First, next.Last = deltaName.Last+1, deltaName.Last+10
	want := []string{deltaName.String(), next.String(), fullName.String(), later.String(), higher.String()}
	if got := slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("sorted are %q", got)
	}
}

func TestObjectsOfOthersAreIgnored(t *testing.T) {
	got := Objects([]store.Object{{Name: "README"}, {Name: fullName.String(), Size: 7}, {Name: "v2/full"}})
	if len(got) != 1 || got[0] != (Object{fullName, 7}) {
		t.Errorf("got %+v", got)
	}
}

func FuzzParseName(f *testing.F) {
	f.Add(fullName.String())
	f.Add(deltaName.String())
	f.Fuzz(func(t *testing.T, text string) {
		name, err := ParseName(text)
		if err == nil && name.String() != text {
			t.Errorf("%q is written %q", text, name)
		}
	})
}
