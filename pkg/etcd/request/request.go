// Package request is what gardenlet and etcd-steward say to each other about a point in time that is to be restored.
// It is apart from both, as gardenlet does not contain an etcd.
package request

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Restore asks an etcd for the state that it had at a time. The zero value asks for nothing.
type Restore struct {
	// To is the time, in RFC 3339.
	To string
	// ID tells requests apart: each is carried out or refused once, however often the etcd starts with it.
	ID string
}

const (
	toFlag = "restore-to"
	idFlag = "restore-request"
	// maxID is the most characters of an ID.
	maxID = 63
)

// AddFlags binds the request to flags.
func (r *Restore) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.To, toFlag, r.To,
		"time (RFC 3339) whose state is restored from the store once, whatever was written since; see --"+idFlag)
	flags.StringVar(&r.ID, idFlag, r.ID, "name of the request to restore --"+toFlag+", which no other has had")
}

// Arguments are the flags of a request; none if nothing is asked for.
func (r Restore) Arguments() []string {
	if r == (Restore{}) {
		return nil
	}
	return []string{"--" + toFlag + "=" + r.To, "--" + idFlag + "=" + r.ID}
}

// String names a request: two that have the same name ask for the same.
func (r Restore) String() string { return r.ID + " to " + r.To }

// Time is the time that is asked for.
func (r Restore) Time() (time.Time, error) { return time.Parse(time.RFC3339, r.To) }

// Validate returns every mistake.
func (r Restore) Validate() error {
	if r == (Restore{}) {
		return nil
	}
	var all []error
	if _, err := r.Time(); err != nil {
		all = append(all, fmt.Errorf("--%s: %q is no time such as 2006-01-02T15:04:05Z", toFlag, r.To))
	}
	if strings.Trim(r.ID, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || r.ID == "" || len(r.ID) > maxID {
		all = append(all,
			fmt.Errorf("--%s: %q is not of 1 to %d small letters, digits and dashes", idFlag, r.ID, maxID))
	}
	return errors.Join(all...)
}

// refused begins the error with which etcd-steward ends, once, when it refuses a request.
func (r Restore) refused() string { return fmt.Sprintf("restore request %s is refused", r.ID) }

// Refusal is the error that tells why a request is refused.
func (r Restore) Refusal(why error) error { return fmt.Errorf("%s: %w", r.refused(), why) }

// FindRefusal returns what a refusal says, if there is one in what a container ended with.
func (r Restore) FindRefusal(message string) (string, bool) {
	at := strings.LastIndex(message, r.refused())
	if at < 0 {
		return "", false
	}
	line, _, _ := strings.Cut(message[at:], "\n")
	return line, true
}
