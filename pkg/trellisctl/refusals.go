package trellisctl

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// checkShootName refuses names that no shoot can have before anything is asked for its sake. How long one may be, the
// garden knows.
func checkShootName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("the name %q is none of a shoot: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// explainCreation says what the garden refuses, and what to do.
func (s *Session) explainCreation(err error, ordered *gardencorev1beta1.Shoot) error {
	name := ordered.Namespace + "/" + ordered.Name
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return fmt.Errorf("the garden does not take shoot %s, and nothing was created: %w; correct what it names, and "+
			"create it again", name, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the garden forbids shoot %s, and nothing was created: %w; where that is for lack of "+
			"rights, ask an owner of the project to add you as a member", name, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("shoot %s cannot be created, as something that it needs is not there: %w; `trellisctl "+
			"describe project %s` shows how the project is", name, err, s.Target.Project)
	}
	return fmt.Errorf("creating shoot %s: %w; where it is not known whether it was created, run the same again", name,
		explainKinds(err))
}
