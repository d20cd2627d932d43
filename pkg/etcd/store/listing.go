package store

import (
	"fmt"
	"slices"
	"strings"
)

// What a listing has at most. An etcd that saves a delta each ten seconds for a month has 260,000 objects.
const (
	maxObjects = 500_000
	maxNames   = 64 << 20
	// maxEmptyPages bounds pages with nothing in them, one after the other; some stores have them.
	maxEmptyPages = 100
)

// listing collects the pages of a listing, and bounds what a store makes us hold and how long it keeps us asking.
type listing struct {
	prefix  string
	objects []Object
	// names is how many bytes the names have, before how many objects there were a page ago, empty how many pages had
	// none.
	names, before, empty int
}

func (l *listing) add(object Object) error {
	switch l.names += len(object.Name); {
	case !strings.HasPrefix(object.Name, l.prefix):
		return fmt.Errorf("%w: a listing has names that do not begin as they were asked for", errAnswer)
	case object.Size < 0:
		return fmt.Errorf("%w: a listing has an object of less than no bytes", errAnswer)
	case len(l.objects) == maxObjects || l.names > maxNames:
		return fmt.Errorf("%w: a listing has more than %d objects or %d bytes of names", errAnswer, maxObjects,
			maxNames)
	}
	l.objects = append(l.objects, object)
	return nil
}

// endPage is called after each page that another is to follow.
func (l *listing) endPage() error {
	l.empty++
	if len(l.objects) > l.before {
		l.empty = 0
	}
	if l.before = len(l.objects); l.empty > maxEmptyPages {
		return fmt.Errorf("%w: a listing has more than %d empty pages", errAnswer, maxEmptyPages)
	}
	return nil
}

func (l *listing) sorted() []Object {
	slices.SortFunc(l.objects, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return l.objects
}
