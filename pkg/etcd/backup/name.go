// Package backup is the format of etcd's backups in an object store, and what can be said of them without etcd.
//
// A full snapshot is a database at a revision. A delta has the events of the revisions from one to another, and names
// what it continues: a full snapshot, or the delta before it. All deltas that continue each other are a log, which
// full snapshots do not interrupt: one taken in passing stands beside the log, at the end of a delta, and the next
// delta continues both. So a full snapshot that turns out to be damaged costs nothing, as long as an older one is
// left and the deltas after that. Two writers at once make a log that forks, of which either branch is right.
//
// Each object ends in a digest of all before it, and has the digest of what it continues, so that what is missing,
// exchanged, cut off or changed is found. Where objects are is for pkg/etcd/store.
package backup

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// Kind of an object.
type Kind string

// The kinds of objects.
const (
	// Full is a snapshot of the database.
	Full Kind = "full"
	// Delta has the events of a range of revisions.
	Delta Kind = "delta"
)

// ID names an object among all others. It is random, so that no writer has to know of another.
type ID [8]byte

// NewID returns an ID that no object has.
func NewID() ID {
	var id ID
	_, _ = rand.Read(id[:])
	return id
}

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error { return unhex(id[:], text) }

// unhex fills target with what text has in hexadecimal, no more and no less.
func unhex(target, text []byte) error {
	if len(text) != hex.EncodedLen(len(target)) || strings.ToLower(string(text)) != string(text) {
		return fmt.Errorf("%q is not %d bytes in small hexadecimal digits", text, len(target))
	}
	_, err := hex.Decode(target, text)
	return err
}

// Name is what an object's name tells. Names of one kind sort by revisions, then by time.
type Name struct {
	Kind Kind
	// First and Last are the revisions it has; First of a full snapshot is 0.
	First, Last int64
	// Taken is when it was, in seconds and UTC.
	Taken time.Time
	ID    ID
	// Parent is what it continues: its events follow those of Parent. That of a full snapshot is the delta that ends
	// at its revision; zero if there is none, as for the first of a log.
	Parent ID
}

const (
	// folder has all objects of this format, so that another format can be beside it.
	folder     = "v1/"
	timeLayout = "20060102T150405Z"
)

// String is the object's name in a store.
func (n Name) String() string {
	return fmt.Sprintf("%s%s-%019d-%019d-%s-%s-%s", folder, n.Kind, n.First, n.Last,
		n.Taken.UTC().Format(timeLayout), n.ID, n.Parent)
}

// ParseName reads a name. What is no object of this format is an error.
func ParseName(text string) (Name, error) {
	parts := strings.Split(strings.TrimPrefix(text, folder), "-")
	if len(parts) != 6 {
		return Name{}, fmt.Errorf("%q is not the name of a backup", text)
	}
	first, err1 := strconv.ParseInt(parts[1], 10, 64)
	last, err2 := strconv.ParseInt(parts[2], 10, 64)
	taken, err3 := time.Parse(timeLayout, parts[3])
	n := Name{Kind: Kind(parts[0]), First: first, Last: last, Taken: taken}
	err := cmp.Or(err1, err2, err3, n.ID.UnmarshalText([]byte(parts[4])), n.Parent.UnmarshalText([]byte(parts[5])))
	if err == nil {
		err = n.validate()
	}
	if err == nil && n.String() != text {
		err = fmt.Errorf("it would be written %s", n)
	}
	if err != nil {
		return Name{}, fmt.Errorf("%q is not the name of a backup: %w", text, err)
	}
	return n, nil
}

func (n Name) validate() error {
	switch {
	case n.Kind != Full && n.Kind != Delta:
		return fmt.Errorf("kind %q is neither %s nor %s", n.Kind, Full, Delta)
	case n.Kind == Full && (n.First != 0 || n.Last < 1):
		return fmt.Errorf("a full snapshot has no revisions %d to %d", n.First, n.Last)
	case n.Kind == Delta && (n.First < 1 || n.Last < n.First):
		return fmt.Errorf("a delta has no revisions %d to %d", n.First, n.Last)
	case n.Kind == Delta && n.Parent == ID{}:
		return fmt.Errorf("delta %s continues nothing", n.ID)
	case n.ID == ID{} || n.ID == n.Parent:
		return fmt.Errorf("%s is no ID of its own", n.ID)
	case !n.Taken.Equal(n.Taken.Truncate(time.Second)) || n.Taken.Year() < 1 || n.Taken.Year() > 9999:
		return fmt.Errorf("time %s is not in whole seconds of four-digit years", n.Taken)
	}
	return nil
}

// Object is a backup that a listing has.
type Object struct {
	Name
	// Size in bytes, as it is stored.
	Size int64
}

// Objects are the backups among what a store lists. Others are ignored: they are not ours to judge.
func Objects(listed []store.Object) []Object {
	var all []Object
	for _, object := range listed {
		if name, err := ParseName(object.Name); err == nil {
			all = append(all, Object{Name: name, Size: object.Size})
		}
	}
	return all
}
