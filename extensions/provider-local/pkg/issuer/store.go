package issuer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// keyOfKeys is the key of the Secret that holds the signing keys.
	keyOfKeys = "signing-keys.json"
	// PasswordPrefix begins the keys of the Secret that hold users' passwords.
	PasswordPrefix = "password-"
	// passwordLength is in characters of six bits.
	passwordLength = 20
)

// Users are the names of those who can log in.
func Users() []string {
	var names []string
	for _, user := range landscapeUsers {
		names = append(names, user.Name)
	}
	return names
}

// Store keeps passwords and signing keys in a Secret, which it makes.
type Store struct {
	Client          client.Client
	Namespace, Name string
	Rotation        Rotation
}

// state is what the Secret holds.
type state struct {
	passwords passwords
	ring      Ring
}

// ensure reads the Secret, makes what is missing, and rotates the keys. A password that is taken out of the Secret is
// replaced.
func (s *Store) ensure(ctx context.Context, now time.Time) (state, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return state{}, fmt.Errorf("Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	kept, changed, err := s.complete(secret, now)
	if err != nil {
		return state{}, fmt.Errorf("Secret %s/%s: %w; delete it to have another one made", s.Namespace, s.Name, err)
	}
	switch {
	case isNew:
		err = s.Client.Create(ctx, secret)
	case changed:
		err = s.Client.Update(ctx, secret) // refused if somebody else wrote it meanwhile
	}
	if err != nil {
		return state{}, fmt.Errorf("Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return kept, nil
}

// complete adds what is missing to the Secret.
func (s *Store) complete(secret *corev1.Secret, now time.Time) (state, bool, error) {
	kept, changed := state{passwords: passwords{}}, false
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for _, user := range landscapeUsers {
		name := PasswordPrefix + user.Name
		if len(secret.Data[name]) == 0 {
			secret.Data[name], changed = []byte(randomText()[:passwordLength]), true
		}
		kept.passwords[user.Name] = string(secret.Data[name])
	}
	ring, err := parseRing(secret.Data[keyOfKeys])
	if err != nil {
		return state{}, false, err
	}
	rotated, isOther, err := ring.rotated(now, s.Rotation)
	if err != nil {
		return state{}, false, err
	}
	if isOther {
		text, err := json.Marshal(rotated)
		if err != nil {
			return state{}, false, err
		}
		secret.Data[keyOfKeys], changed = text, true
	}
	kept.ring = rotated
	return kept, changed, nil
}
