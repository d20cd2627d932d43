package meanings

import (
	"errors"
	"os"
	"regexp"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Every condition, code and phase that the API declares is explained: people would be left alone with it.
func TestEverythingIsExplained(t *testing.T) {
	const api = "../../apis/core/v1beta1/"
	constants, err := os.ReadFile(api + "constants.go")
	common, commonErr := os.ReadFile(api + "common_types.go")
	status, statusErr := os.ReadFile(api + "shoot_status_types.go")
	if err := errors.Join(err, commonErr, statusErr); err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		source    []byte
		pattern   string
		explained int
		meaning   func(value string) string
	}{
		"condition": {
			constants, `(?:Shoot|Seed)\w+ +ConditionType = "(\w+)"`, len(Conditions),
			func(value string) string { return Conditions[gardencorev1beta1.ConditionType(value)] },
		},
		"code": {
			common, `ErrorCode = "(ERR_\w+)"`, len(codes),
			func(value string) string { return Code(gardencorev1beta1.ErrorCode(value)) },
		},
		"phase": {
			status, `CredentialsRotationPhase = "(\w+)"`, len(Phases),
			func(value string) string { return Phases[gardencorev1beta1.CredentialsRotationPhase(value)] },
		},
	} {
		declared := regexp.MustCompile(test.pattern).FindAllSubmatch(test.source, -1)
		if len(declared) != test.explained {
			t.Errorf("%s: %d are declared, %d explained", what, len(declared), test.explained)
		}
		for _, match := range declared {
			if test.meaning(string(match[1])) == "" {
				t.Errorf("%s %s is not explained", what, match[1])
			}
		}
	}
	if got := Code("ERR_OF_TOMORROW"); got != "" {
		t.Errorf("an unknown code means %q", got)
	}
}
