package errorcodes

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	quota = gardencorev1beta1.ErrorInfraQuotaExceeded
	auth  = gardencorev1beta1.ErrorInfraUnauthenticated
)

// reported is an error of another package that knows its codes.
type reported struct{ codes []gardencorev1beta1.ErrorCode }

func (reported) Error() string { return "reported" }

func (r reported) ErrorCodes() []gardencorev1beta1.ErrorCode { return r.codes }

func TestOf(t *testing.T) {
	inner := With(errors.New("quota"), quota)
	for name, test := range map[string]struct {
		err  error
		want []gardencorev1beta1.ErrorCode
	}{
		"no error": {nil, nil},
		"none":     {errors.New("x"), nil},
		"wrapped":  {fmt.Errorf("machine: %w", inner), []gardencorev1beta1.ErrorCode{quota}},
		"joined": {
			errors.Join(inner, With(errors.New("y"), auth), inner), []gardencorev1beta1.ErrorCode{quota, auth},
		},
		"nested": {With(inner, auth), []gardencorev1beta1.ErrorCode{auth, quota}},
		"others": {
			fmt.Errorf("task: %w", reported{[]gardencorev1beta1.ErrorCode{quota}}),
			[]gardencorev1beta1.ErrorCode{quota},
		},
	} {
		if got := Of(test.err); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if With(nil, quota) != nil {
		t.Error("no error must stay none")
	}
}

func TestWithKeepsTheCause(t *testing.T) {
	cause := errors.New("cause")
	if err := With(cause, quota); !errors.Is(err, cause) || err.Error() != "cause" {
		t.Errorf("error %v", err)
	}
	if With(cause) != cause {
		t.Error("without codes the error stays as it is")
	}
}

func TestAnswersOfInfrastructures(t *testing.T) {
	for status, want := range map[int]gardencorev1beta1.ErrorCode{
		400: gardencorev1beta1.ErrorConfigurationProblem, 401: auth, 403: gardencorev1beta1.ErrorInfraUnauthorized,
		429: "", 500: "",
	} {
		got := Of(WithStatus(errors.New("x"), status))
		if want == "" && got != nil || want != "" && !slices.Equal(got, []gardencorev1beta1.ErrorCode{want}) {
			t.Errorf("status %d: got %v, want %q", status, got, want)
		}
	}
	if code, found := OfDriver("ResourceExhausted"); !found || code != gardencorev1beta1.ErrorInfraResourcesDepleted {
		t.Errorf("got %q", code)
	}
	if code, found := OfDriver("Internal"); found {
		t.Errorf("got %q", code)
	}
}

func TestWhatFollows(t *testing.T) {
	if !NeedChange([]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraResourcesDepleted, quota}) ||
		NeedChange(nil) {
		t.Error("a quota stays until somebody raises it")
	}
	if AreCertain([]gardencorev1beta1.ErrorCode{quota}) || !AreCertain([]gardencorev1beta1.ErrorCode{quota, auth}) {
		t.Error("wrong credentials do not become right, what a quota counts may go")
	}
}
