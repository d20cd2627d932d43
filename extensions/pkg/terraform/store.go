package terraform

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// keyState holds the gzipped state: states of large infrastructures exceed what an object may hold otherwise.
	keyState  = "terraform.tfstate.gz"
	keyConfig = "main.tf"
)

func (r *Runner) stateKey() types.NamespacedName {
	return types.NamespacedName{Namespace: r.options.Namespace, Name: r.options.Name + ".infra.tf-state"}
}

func (r *Runner) configKey() types.NamespacedName {
	return types.NamespacedName{Namespace: r.options.Namespace, Name: r.options.Name + ".infra.tf-config"}
}

func (r *Runner) loadConfig(ctx context.Context) (string, error) {
	data, err := r.loadSecret(ctx, r.configKey(), keyConfig)
	return string(data), err
}

func (r *Runner) saveConfig(ctx context.Context, configuration string) error {
	return r.saveSecret(ctx, r.configKey(), keyConfig, []byte(configuration))
}

func (r *Runner) loadState(ctx context.Context) ([]byte, error) {
	data, err := r.loadSecret(ctx, r.stateKey(), keyState)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("terraform: state in Secret %s: %w", r.stateKey(), err)
	}
	state, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("terraform: state in Secret %s: %w", r.stateKey(), err)
	}
	return state, nil
}

func (r *Runner) saveState(ctx context.Context, state []byte) error {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write(state); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return r.saveSecret(ctx, r.stateKey(), keyState, buffer.Bytes())
}

func (r *Runner) loadSecret(ctx context.Context, name types.NamespacedName, key string) ([]byte, error) {
	var secret corev1.Secret
	err := r.options.Client.Get(ctx, name, &secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("terraform: reading Secret %s: %w", name, err)
	}
	return secret.Data[key], nil
}

// saveSecret writes the one key when it differs from what is stored.
func (r *Runner) saveSecret(ctx context.Context, name types.NamespacedName, key string, value []byte) error {
	var secret corev1.Secret
	err := r.options.Client.Get(ctx, name, &secret)
	switch {
	case apierrors.IsNotFound(err):
		secret = corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
			Data:       map[string][]byte{key: value},
		}
		err = r.options.Client.Create(ctx, &secret)
	case err != nil:
	case bytes.Equal(secret.Data[key], value):
		return nil
	default:
		patch := client.MergeFrom(secret.DeepCopy())
		secret.Data = map[string][]byte{key: value}
		err = r.options.Client.Patch(ctx, &secret, patch)
	}
	if err != nil {
		return fmt.Errorf("terraform: writing Secret %s: %w", name, err)
	}
	return nil
}

func (r *Runner) deleteStored(ctx context.Context) error {
	// The configuration goes last: while it is there, an interrupted Destroy is repeated with it.
	for _, name := range []types.NamespacedName{r.stateKey(), r.configKey()} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		if err := client.IgnoreNotFound(r.options.Client.Delete(ctx, secret)); err != nil {
			return fmt.Errorf("terraform: deleting Secret %s: %w", name, err)
		}
	}
	return nil
}
