package trellisctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// What is asked of a shoot goes on without the command that asked for it. Who runs a command again that was ended, or
// whose answer was lost, therefore takes up what is under way.

// notDone says that a shoot is not yet, or not known to be, as it is asked to be.
func notDone(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation
	return last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded ||
		shoot.Status.ObservedGeneration < shoot.Generation
}

// takeUpCreation is what follows when there is a shoot already: it is waited for if it is the one that was ordered.
func (s *Session) takeUpCreation(command *cobra.Command, o *creation, ordered *gardencorev1beta1.Shoot) error {
	found := &gardencorev1beta1.Shoot{}
	if err := s.client.Get(command.Context(), client.ObjectKeyFromObject(ordered), found); err != nil {
		return fmt.Errorf("shoot %s/%s exists already, and cannot be read: %w", ordered.Namespace, ordered.Name, err)
	}
	name := found.Namespace + "/" + found.Name
	if found.DeletionTimestamp != nil {
		return fmt.Errorf("shoot %s is being deleted (%s); when it is gone, create it again; see how far it is: "+
			"trellisctl wait shoot %s", name, oneLine(lastOperation(found.Status.LastOperation)), s.inCommands(found))
	}
	differs, err := difference(ordered.Spec, found.Spec)
	if err != nil {
		return err
	}
	if differs != "" {
		return fmt.Errorf("shoot %s exists already (%s), and is not what is asked for: %s; nothing is changed; choose "+
			"another name, or change this one: trellisctl edit shoot %s", name,
			oneLine(lastOperation(found.Status.LastOperation)), oneLine(differs), s.inCommands(found))
	}
	fmt.Fprintf(command.OutOrStdout(), "Shoot %s exists already, as it is asked for (%s)\n", name,
		oneLine(lastOperation(found.Status.LastOperation)))
	return s.await(command, o.waiting, s.goalOf(found))
}

// difference is where something is not as it is wanted, in words; empty if all that is wanted is there. What is there
// beside it are defaults.
func difference(wanted, found any) (string, error) {
	var decoded [2]any
	for i, value := range []any{wanted, found} {
		text, err := json.Marshal(value)
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(text, &decoded[i]); err != nil {
			return "", err
		}
	}
	return differenceAt("spec", decoded[0], decoded[1]), nil
}

func differenceAt(path string, wanted, found any) string {
	switch wanted := wanted.(type) {
	case map[string]any:
		fields, ok := found.(map[string]any)
		if !ok && found != nil {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			if differs := differenceAt(path+"."+name, wanted[name], fields[name]); differs != "" {
				return differs
			}
		}
		return ""
	case []any:
		items, ok := found.([]any)
		if !ok && found != nil || len(items) != len(wanted) {
			break
		}
		for i := range wanted {
			if differs := differenceAt(fmt.Sprintf("%s[%d]", path, i), wanted[i], items[i]); differs != "" {
				return differs
			}
		}
		return ""
	default:
		unsaid := wanted == nil || wanted == "" || found == nil && (wanted == 0.0 || wanted == false)
		if unsaid || wanted == found {
			return ""
		}
	}
	return fmt.Sprintf("%s is %s, and not %s", path, asText(found), asText(wanted))
}

func asText(value any) string {
	text, err := json.Marshal(value)
	if err != nil || value == nil {
		return "not set"
	}
	return string(text)
}

// stepUnderWay is how far a step of a rotation is that was asked for before and goes on; empty where it does not.
func stepUnderWay(shoot *gardencorev1beta1.Shoot, operation string) string {
	rotation, isComplete := strings.CutSuffix(operation, "-"+stepComplete)
	isStart := false
	if !isComplete {
		rotation, _, isStart = strings.Cut(operation, "-"+stepStart)
	}
	var phases []string
	for _, state := range rotationsOf(shoot) {
		if rotation != "rotate-"+state.what && rotation != "rotate-credentials" {
			continue
		}
		var goesOn bool
		switch {
		case isComplete:
			goesOn = state.phase == gardencorev1beta1.RotationCompleting
		case isStart:
			goesOn = state.phase == gardencorev1beta1.RotationPreparing ||
				state.phase == gardencorev1beta1.RotationPreparingWithoutWorkersRollout
		default:
			goesOn = state.goesOn()
		}
		if goesOn {
			phases = append(phases, fmt.Sprintf("%s is %s", state.what,
				oneLine(cmp.Or(string(state.phase), "under way"))))
		}
	}
	return strings.Join(phases, ", ")
}

// askToRotate asks for a step of a rotation, unless it is under way. Then it tells how far that is.
func (s *Session) askToRotate(ctx context.Context, operation func(*gardencorev1beta1.Shoot) (string, error)) (
	shoot *gardencorev1beta1.Shoot, asked, underWay string, err error) {
	_, shoot, err = s.changeShoot(ctx, func(shoot *gardencorev1beta1.Shoot) error {
		asked, err = operation(shoot)
		if err != nil {
			return err
		}
		if underWay = stepUnderWay(shoot, asked); underWay != "" {
			return nil
		}
		if err := addOperation(shoot, asked, s.inCommands(shoot)); err != nil {
			return fmt.Errorf("%w; how far it is: trellisctl rotate status %s", err, s.inCommands(shoot))
		}
		return nil
	})
	return shoot, asked, underWay, err
}
