package v1beta1

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// A code that is declared without saying what follows from it would be retried for ever.
func TestEveryErrorCodeHasAMeaning(t *testing.T) {
	source, err := os.ReadFile("common_types.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`ErrorCode = "(ERR_\w+)"`).FindAllSubmatch(source, -1)
	if len(declared) != len(errorMeanings) {
		t.Errorf("%d codes are declared, and %d have a meaning", len(declared), len(errorMeanings))
	}
	for _, match := range declared {
		if !slices.ContainsFunc(errorMeanings,
			func(m errorMeaning) bool { return string(m.code) == string(match[1]) }) {
			t.Errorf("%s has no meaning", match[1])
		}
	}
}

func TestMeaningsOfErrorCodes(t *testing.T) {
	for _, test := range []struct {
		code                           ErrorCode
		needsChange, isCertain, forces bool
	}{
		{ErrorInfraUnauthenticated, true, true, true},
		{ErrorInfraQuotaExceeded, true, false, false},
		{ErrorCleanupClusterResources, false, false, true},
		{ErrorInfraResourcesDepleted, false, false, false},
		{"ERR_OF_ANOTHER_VERSION", false, false, false},
	} {
		if test.code.NeedsChange() != test.needsChange || test.code.IsCertain() != test.isCertain ||
			test.code.AllowsForceDeletion() != test.forces {
			t.Errorf("%s means %+v", test.code, test.code.meaning())
		}
	}
}
