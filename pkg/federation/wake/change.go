package wake

import (
	"reflect"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// change of a cluster, by what it may mean.
type change struct {
	name          string
	before, after *core.Cluster
	// features are everything that placements look at except APIs and room.
	features, apis, room bool
	// known: something came to be known of a cluster of which nothing was.
	known bool
}

func compare(before, after *core.Cluster) change {
	c := change{before: before, after: after, features: true, apis: true, room: true}
	switch {
	case before == nil && after == nil:
		return change{}
	case before == nil:
		c.name = after.Name
	case after == nil:
		c.name = before.Name
	default:
		c.name = after.Name
		c.apis = !reflect.DeepEqual(before.APIs, after.APIs)
		c.room = !reflect.DeepEqual(before.Room, after.Room)
		c.known = before.AwaitedUntil.IsZero() != after.AwaitedUntil.IsZero()
		c.features = !reflect.DeepEqual(features(before), features(after))
	}
	return c
}

// features of a cluster without what changes often or is large.
func features(cluster *core.Cluster) core.Cluster {
	reduced := *cluster
	reduced.APIs, reduced.Room = nil, nil
	return reduced
}
