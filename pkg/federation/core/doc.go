// Package core decides which clusters of a fleet run an object and how many replicas each of them gets.
//
// Everything here is a function over values: no client, no clock, no global, no dependence on the order of maps or of
// the input. The same snapshot and binding always give the same decision, and every cluster that is left out has its
// reason. The model is neutral; the controllers translate the API dialects that people write into it.
package core
