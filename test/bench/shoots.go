package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// demoNamespace is that of project demo, which all shoots of the measurements belong to.
	demoNamespace = "garden-demo"
	// shootPause is the time between two looks at a Shoot: each is a process, and takes from what is measured.
	shootPause = time.Second
)

// technicalNamespace is that of a shoot's control plane in the seed.
func technicalNamespace(name string) string { return "shoot--demo--" + name }

func (l landscape) gardenKubeconfig() string  { return filepath.Join(l.state, "garden.kubeconfig") }
func (l landscape) runtimeKubeconfig() string { return filepath.Join(l.state, "runtime.kubeconfig") }

// garden runs kubectl for what is in the project.
func (l landscape) garden(ctx context.Context, input string, arguments ...string) (string, error) {
	return l.kubectl(ctx, l.gardenKubeconfig(), input, append([]string{"-n", demoNamespace}, arguments...)...)
}

// shootLikeMember1 is the manifest of a shoot like member1 that has this name and stays out of the fleet.
func shootLikeMember1(name string) (string, error) {
	example, err := os.ReadFile("landscape/local/examples/shoot-member1.yaml")
	return strings.NewReplacer("name: member1", "name: "+name, "10.180.1.0/24", "10.180.8.0/24",
		"  labels:\n", "  labels:\n    federation.trellis.garden/join: \"false\"\n").Replace(string(example)), err
}

func (l landscape) applyShoots(ctx context.Context, manifest string) error {
	_, err := l.garden(ctx, manifest, "apply", "-f", "-")
	return err
}

// waitForShoot waits until what a Shoot says is done, by an operation of this type.
func (l landscape) waitForShoot(ctx context.Context, name string, operation gardencorev1beta1.LastOperationType,
	timeout time.Duration) error {
	err := eventually(ctx, timeout, shootPause, func(ctx context.Context) error {
		out, err := l.garden(ctx, "", "get", "shoot", name, "-o", "json")
		if err != nil {
			return err
		}
		var shoot gardencorev1beta1.Shoot
		if err := json.Unmarshal([]byte(out), &shoot); err != nil {
			return err
		}
		return succeeded(&shoot, operation)
	})
	if err != nil {
		return fmt.Errorf("%s of Shoot %s: %w", operation, name, err)
	}
	return nil
}

// succeeded says why what a Shoot says is not done, by an operation of this type or, where that is empty, of any.
func succeeded(shoot *gardencorev1beta1.Shoot, operation gardencorev1beta1.LastOperationType) error {
	last := shoot.Status.LastOperation
	switch {
	case last == nil:
		return errors.New("nothing was done yet")
	case last.State != gardencorev1beta1.LastOperationStateSucceeded,
		shoot.Status.ObservedGeneration != shoot.Generation, operation != "" && last.Type != operation:
		return fmt.Errorf("generation %d of %d: %s %s (%d%%): %s; errors: %v", shoot.Status.ObservedGeneration,
			shoot.Generation, last.Type, last.State, last.Progress, last.Description, shoot.Status.LastErrors)
	}
	return nil
}

// healthy says why a shoot is not: what it says must be done, and all its conditions true.
func healthy(shoot *gardencorev1beta1.Shoot) error {
	if err := succeeded(shoot, ""); err != nil {
		return fmt.Errorf("shoot %s: %w", shoot.Name, err)
	}
	if len(shoot.Status.Conditions) == 0 {
		return fmt.Errorf("shoot %s: it has no conditions yet", shoot.Name)
	}
	for _, c := range shoot.Status.Conditions {
		if c.Status != gardencorev1beta1.ConditionTrue {
			return fmt.Errorf("shoot %s: %s is %s: %s", shoot.Name, c.Type, c.Status, c.Message)
		}
	}
	return nil
}

// listShoots returns all shoots of the project, or those of a label.
func (l landscape) listShoots(ctx context.Context, selector string) ([]gardencorev1beta1.Shoot, error) {
	out, err := l.garden(ctx, "", "get", "shoots", "-l", selector, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list gardencorev1beta1.ShootList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("listing shoots: %w", err)
	}
	return list.Items, nil
}

// writeKubeconfig asks for a kubeconfig of a shoot as users do, and writes it to a file.
func (l landscape) writeKubeconfig(ctx context.Context, name, path string) error {
	out, err := exec.CommandContext(ctx, "bin/trellisctl", "--config", filepath.Join(l.state, "trellisctl.yaml"),
		"kubeconfig", "--garden", l.name, "--project", "demo", "--shoot", name).Output()
	if err != nil {
		return fmt.Errorf("kubeconfig of shoot %s: %w", name, err)
	}
	return os.WriteFile(path, out, 0o600)
}

// waitForAPI waits until a shoot has an API server that is ready, with a kubeconfig that is then in a file.
func (l landscape) waitForAPI(ctx context.Context, name, kubeconfig string) error {
	err := until(ctx, "ok", func(ctx context.Context) (string, error) {
		if err := l.writeKubeconfig(ctx, name, kubeconfig); err != nil {
			return "", err
		}
		return l.kubectl(ctx, kubeconfig, "", "get", "--raw", "/readyz")
	})
	if err != nil {
		return fmt.Errorf("API server of shoot %s: %w", name, err)
	}
	return nil
}

// deleteShoots deletes shoots and waits until they are gone.
func (l landscape) deleteShoots(ctx context.Context, timeout time.Duration, names ...string) error {
	confirm := append([]string{"annotate", "--overwrite", "shoot"}, names...)
	if _, err := l.garden(ctx, "", append(confirm, gardencorev1beta1.ConfirmationDeletion+"=true")...); err != nil {
		return err
	}
	_, err := l.garden(ctx, "", append([]string{"delete", "--timeout=" + timeout.String(), "shoot"}, names...)...)
	return err
}
