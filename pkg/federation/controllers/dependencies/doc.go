// Package dependencies lets what an object refers to (ConfigMaps, Secrets, …) follow it to its clusters, when its
// policy says propagateDeps. Whoever refers to something is the referrer; the binding of what it refers to lists it,
// with its clusters, in spec.requiredBy. That list is all the state there is: it is made anew from the objects at every
// start.
//
// The bindings of objects that no policy selects are made here and removed by the propagation controller once nobody
// requires them. They take over from their referrers how conflicts are resolved, whether objects are preserved, and
// where dispatching is suspended.
package dependencies
