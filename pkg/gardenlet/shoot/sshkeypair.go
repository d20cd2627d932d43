package shoot

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
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// sshKeypairName is the configuration name of the key pair with which the users of a shoot log in to its machines, and the
	// suffix of its Secret in the garden.
	sshKeypairName = "ssh-keypair"
	// oldSSHKeypairName is the suffix of the Secret with the pair of before the last rotation, which machines accept as well.
	oldSSHKeypairName = sshKeypairName + ".old"
	sshKeyBits        = 3072
)

// addSSHKeypair adds the task that gives users the key to the machines, or takes it away.
func (o *Operation) addSSHKeypair(g *flow.Graph, f foundation) {
	g.Add(flow.Task{
		Name: "Publishing SSH key pair to the garden", Fn: retried(o.publishSSHKeypair), SkipIf: o.Plan.Workerless, Dependencies: []flow.TaskID{f.secrets},
	})
}

// generateSSHKeypair makes the key pair. The one of before a rotation is kept.
func (o *Operation) generateSSHKeypair(ctx context.Context, manager secrets.Manager) error {
	if !o.Plan.SSHAccess {
		return nil
	}
	_, err := manager.Generate(ctx, secrets.KeyConfig{Name: sshKeypairName, Bits: sshKeyBits}, secrets.KeepOld())
	return err
}

// authorizedKeys are the public keys that machines let in, as lines of authorized_keys.
func (o *Operation) authorizedKeys() ([]string, error) {
	if !o.Plan.SSHAccess {
		return nil, nil
	}
	current, found := o.secrets.Get(sshKeypairName)
	if !found {
		return nil, fmt.Errorf("key pair %s has not been generated", sshKeypairName)
	}
	pairs := []*corev1.Secret{current}
	if old, found := o.secrets.Get(sshKeypairName, secrets.Old); found {
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
func (o *Operation) publishSSHKeypair(ctx context.Context) error {
	if !o.Plan.SSHAccess {
		return o.withdrawSSHKeypair(ctx)
	}
	current, found := o.secrets.Get(sshKeypairName)
	if !found {
		return fmt.Errorf("key pair %s has not been generated", sshKeypairName)
	}
	if err := o.publishPair(ctx, sshKeypairName, current); err != nil {
		return err
	}
	old, found := o.secrets.Get(sshKeypairName, secrets.Old)
	if !found {
		return component.Delete(ctx, o.Garden, &corev1.Secret{ObjectMeta: o.gardenMeta(oldSSHKeypairName)})
	}
	return o.publishPair(ctx, oldSSHKeypairName, old)
}

// publishPair writes one pair to the garden, the public key as a line of authorized_keys.
func (o *Operation) publishPair(ctx context.Context, suffix string, pair *corev1.Secret) error {
	line, err := authorizedKey(pair.Data[secrets.DataKeyRSAPublicKey])
	if err != nil {
		return fmt.Errorf("Secret %s: %w", client.ObjectKeyFromObject(pair), err)
	}
	secret := &corev1.Secret{ObjectMeta: o.gardenMeta(suffix)}
	_, err = controllerutil.CreateOrPatch(ctx, o.Garden, secret, func() error {
		secret.Labels = component.Merge(secret.Labels, o.gardenLabels(sshKeypairName))
		secret.Data = map[string][]byte{
			secrets.DataKeyRSAPrivateKey: pair.Data[secrets.DataKeyRSAPrivateKey], secrets.DataKeyRSAPublicKey: []byte(line),
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("Secret %s of the garden: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// withdrawSSHKeypair deletes what publishSSHKeypair wrote.
func (o *Operation) withdrawSSHKeypair(ctx context.Context) error {
	return component.Delete(ctx, o.Garden,
		&corev1.Secret{ObjectMeta: o.gardenMeta(sshKeypairName)}, &corev1.Secret{ObjectMeta: o.gardenMeta(oldSSHKeypairName)})
}
