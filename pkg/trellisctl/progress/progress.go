// Package progress tells how far an operation on a Shoot is: what is known of the Shoot in, lines out. It has no
// connection and no clock; who has them tells it what the Shoot is like, and when.
package progress

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/meanings"
	"github.com/trellis-garden/trellis/pkg/trellisctl/shown"
)

// Goal is what is waited for.
type Goal struct {
	// Key is the Shoot's namespace and name.
	Key types.NamespacedName
	// Command is how the Shoot is named in commands, such as "member1 --project demo".
	Command string
	// UID is the Shoot's: another one of its name is not waited for.
	UID types.UID
	// Generation is what has to be brought about. What an earlier one ended with does not count.
	Generation int64
	// Operations are those asked for by annotation. They have to be carried out, and gone from there.
	Operations []string
	// Gone: the Shoot is to be deleted.
	Gone bool
	// Reached, unless nil, is what has to be true of the Shoot as well.
	Reached func(*gardencorev1beta1.Shoot) bool
}

// GoalOf is to bring about the Shoot as it is.
func GoalOf(shoot *gardencorev1beta1.Shoot, command string) Goal {
	return Goal{
		Key:     types.NamespacedName{Namespace: shoot.Namespace, Name: shoot.Name},
		Command: command, UID: shoot.UID, Generation: shoot.Generation,
	}
}

// Sight is what one look at the Shoot tells.
type Sight struct {
	// Head is what is done and how far it is, Detail what runs now or is waited for; both are one line.
	Head, Detail string
	// Ended: there is nothing to wait for any more. Err says why the goal is not reached; nil if it is.
	Ended bool
	Err   error
}

// Look tells how far the Shoot is. No Shoot is one that does not exist any more.
func (g Goal) Look(shoot *gardencorev1beta1.Shoot) Sight {
	if shoot == nil || shoot.UID != g.UID {
		return g.lookAtNone()
	}
	if waits := g.waitsFor(shoot); waits != "" {
		return Sight{Head: "Waiting", Detail: waits}
	}
	last := shoot.Status.LastOperation
	sight := Sight{
		Head:   fmt.Sprintf("%s %d%%", shown.Text(string(last.Type)), last.Progress),
		Detail: detailOf(last),
	}
	switch {
	case last.State == gardencorev1beta1.LastOperationStateFailed:
		sight.Ended, sight.Err = true, g.failure(shoot)
	case last.State == gardencorev1beta1.LastOperationStateSucceeded && !g.Gone:
		sight.Ended = g.Reached == nil || g.Reached(shoot)
	}
	return sight
}

func (g Goal) lookAtNone() Sight {
	sight := Sight{Head: "Gone", Detail: "the shoot does not exist any more", Ended: true}
	if !g.Gone {
		sight.Err = fmt.Errorf("shoot %s was deleted meanwhile; nothing is left to wait for", g.Key)
	}
	return sight
}

// waitsFor says why what is asked for has not begun; empty when it has.
func (g Goal) waitsFor(shoot *gardencorev1beta1.Shoot) string {
	last, seed := shoot.Status.LastOperation, shoot.Spec.SeedName
	begun := last != nil && shoot.Status.ObservedGeneration >= g.Generation
	asked := g.askedFor(shoot)
	if begun && len(asked) == 0 && (len(g.Operations) == 0 || shoot.Status.ObservedGeneration >= shoot.Generation) {
		return ""
	}
	switch {
	case shoot.Annotations[gardencorev1beta1.ShootIgnore] == "true":
		return "the shoot is left alone until annotation " + gardencorev1beta1.ShootIgnore + " is removed"
	case begun && len(asked) > 0 && last.State == gardencorev1beta1.LastOperationStateProcessing:
		return strings.Join(asked, ", ") + " follows; now: " + detailOf(last)
	case begun && len(asked) > 0:
		return "for " + strings.Join(asked, ", ") + " to begin"
	case seed == nil && last != nil && last.Description != "":
		return "for a seed: " + shown.Text(last.Description)
	case seed == nil:
		return "for a seed"
	}
	return "for the gardenlet of seed " + shown.Text(*seed)
}

// askedFor returns the operations of the goal that wait in the annotation.
func (g Goal) askedFor(shoot *gardencorev1beta1.Shoot) []string {
	waiting := gardencorev1beta1.SplitOperations(shoot.Annotations[gardencorev1beta1.GardenerOperation])
	return slices.DeleteFunc(slices.Clone(g.Operations), func(operation string) bool {
		return !slices.Contains(waiting, operation)
	})
}

// detailOf is what runs now. An operation that is tried again says why.
func detailOf(last *gardencorev1beta1.LastOperation) string {
	text := strings.TrimSpace(shown.Text(last.Description))
	if last.State == gardencorev1beta1.LastOperationStateProcessing {
		return text
	}
	return strings.TrimSuffix(shown.Text(string(last.State))+": "+text, ": ")
}

// failure tells why an operation failed for good, and what to do.
func (g Goal) failure(shoot *gardencorev1beta1.Shoot) error {
	last := shoot.Status.LastOperation
	var text strings.Builder
	fmt.Fprintf(&text, "shoot %s: %s failed at %d%%, and is not tried again by itself", g.Key,
		shown.Text(string(last.Type)), last.Progress)
	var codes []gardencorev1beta1.ErrorCode
	for _, one := range shoot.Status.LastErrors {
		fmt.Fprintf(&text, "\n  %s", errorLine(one))
		codes = append(codes, one.Codes...)
	}
	if len(shoot.Status.LastErrors) == 0 {
		fmt.Fprintf(&text, "\n  %s", shown.Text(last.Description))
	}
	for _, code := range slices.Compact(slices.Sorted(slices.Values(codes))) {
		if meaning := meanings.Code(code); meaning != "" {
			fmt.Fprintf(&text, "\n%s: %s", code, meaning)
		}
	}
	fmt.Fprintf(&text, "\nThen: trellisctl retry shoot %s --wait", g.Command)
	return errors.New(text.String())
}

// errorLine is "task deployInfrastructure: no quota left (ERR_INFRA_QUOTA_EXCEEDED)".
func errorLine(one gardencorev1beta1.LastError) string {
	line := shown.Text(one.Description)
	if one.TaskID != nil && *one.TaskID != "" {
		line = "task " + shown.Text(*one.TaskID) + ": " + line
	}
	if len(one.Codes) == 0 {
		return line
	}
	codes := make([]string, len(one.Codes))
	for i, code := range one.Codes {
		codes[i] = shown.Text(string(code))
	}
	return line + " (" + strings.Join(codes, ", ") + ")"
}

// TimeIsOver says that the wait has ended, the operation not.
func (g Goal) TimeIsOver(after time.Duration, sight Sight) error {
	return fmt.Errorf("shoot %s is not done after %s (%s: %s); it goes on; wait longer by: trellisctl wait shoot %s",
		g.Key, after, sight.Head, sight.Detail, g.Command)
}

// Interrupted is the line for people who end the wait.
func (g Goal) Interrupted() string {
	return fmt.Sprintf("The operation on shoot %s goes on without this command; see how far it is: trellisctl wait "+
		"shoot %s", g.Key, g.Command)
}
