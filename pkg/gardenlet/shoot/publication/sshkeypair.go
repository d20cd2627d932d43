package publication

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// oldSSHKeypairName is the suffix of the Secret with the pair of before the last rotation, which machines accept
	// as well.
	oldSSHKeypairName = plan.SSHKeypairName + ".old"
	sshKeyBits        = 3072
)

// AddSSHKeypair adds the task that gives users the key to the machines, or takes it away.
func (p *Publication) AddSSHKeypair(g *flow.Graph, after flow.TaskID) {
	g.Add(flow.Task{
		Name: "Publishing SSH key pair to the garden", Fn: tasks.Retried(p.publishSSHKeypair), SkipIf: p.Workerless,
		Dependencies: []flow.TaskID{after},
	})
}

// GenerateSSHKeypair makes the key pair. The one of before a rotation is kept.
func (p *Publication) GenerateSSHKeypair(ctx context.Context, manager secrets.Manager) error {
	if !p.SSHAccess {
		return nil
	}
	_, err := manager.Generate(ctx, secrets.KeyConfig{Name: plan.SSHKeypairName, Bits: sshKeyBits}, secrets.KeepOld())
	return err
}

// AuthorizedKeys are the public keys that machines let in, as lines of authorized_keys.
func (p *Publication) AuthorizedKeys() ([]string, error) {
	if !p.SSHAccess {
		return nil, nil
	}
	current, found := p.Secrets.Get(plan.SSHKeypairName)
	if !found {
		return nil, fmt.Errorf("key pair %s has not been generated", plan.SSHKeypairName)
	}
	pairs := []*corev1.Secret{current}
	if old, found := p.Secrets.Get(plan.SSHKeypairName, secrets.Old); found {
		pairs = append(pairs, old)
	}
	var lines []string
	for _, pair := range pairs {
		line, err := authorizedKey(pair.Data[secrets.DataKeyRSAPublicKey])
		if err != nil {
			return nil, fmt.Errorf("Secret %s: %w", client.ObjectKeyFromObject(pair), err)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// authorizedKey turns a public key in PEM into a line of authorized_keys.
func authorizedKey(public []byte) (string, error) {
	block, _ := pem.Decode(public)
	if block == nil {
		return "", errors.New("the public key is not in PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("the public key: %w", err)
	}
	key, err := ssh.NewPublicKey(parsed)
	if err != nil {
		return "", fmt.Errorf("the public key: %w", err)
	}
	return string(ssh.MarshalAuthorizedKey(key)), nil
}

// publishSSHKeypair gives users the key to the machines where they are allowed to log in, and takes it away where not.
func (p *Publication) publishSSHKeypair(ctx context.Context) error {
	if !p.SSHAccess {
		return p.withdrawSSHKeypair(ctx)
	}
	current, found := p.Secrets.Get(plan.SSHKeypairName)
	if !found {
		return fmt.Errorf("key pair %s has not been generated", plan.SSHKeypairName)
	}
	if err := p.publishPair(ctx, plan.SSHKeypairName, current); err != nil {
		return err
	}
	old, found := p.Secrets.Get(plan.SSHKeypairName, secrets.Old)
	if !found {
		return component.Delete(ctx, p.Garden, &corev1.Secret{ObjectMeta: p.Shoot.GardenMeta(oldSSHKeypairName)})
	}
	return p.publishPair(ctx, oldSSHKeypairName, old)
}

// publishPair writes one pair to the garden, the public key as a line of authorized_keys.
func (p *Publication) publishPair(ctx context.Context, suffix string, pair *corev1.Secret) error {
	line, err := authorizedKey(pair.Data[secrets.DataKeyRSAPublicKey])
	if err != nil {
		return fmt.Errorf("Secret %s: %w", client.ObjectKeyFromObject(pair), err)
	}
	secret := &corev1.Secret{ObjectMeta: p.Shoot.GardenMeta(suffix)}
	_, err = controllerutil.CreateOrPatch(ctx, p.Garden, secret, func() error {
		secret.Labels = component.Merge(secret.Labels, p.Shoot.GardenLabels(plan.SSHKeypairName))
		secret.Data = map[string][]byte{
			secrets.DataKeyRSAPrivateKey: pair.Data[secrets.DataKeyRSAPrivateKey],
			secrets.DataKeyRSAPublicKey:  []byte(line),
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("Secret %s of the garden: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// withdrawSSHKeypair deletes what publishSSHKeypair wrote.
func (p *Publication) withdrawSSHKeypair(ctx context.Context) error {
	return component.Delete(ctx, p.Garden,
		&corev1.Secret{ObjectMeta: p.Shoot.GardenMeta(plan.SSHKeypairName)},
		&corev1.Secret{ObjectMeta: p.Shoot.GardenMeta(oldSSHKeypairName)})
}
