package v1alpha2

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ranking is a list of RankedClusters as text, see PlacementDecision.
type Ranking string

// RankedCluster is a cluster that could be chosen, with what it was compared by.
type RankedCluster struct {
	// Name of the cluster.
	Name string
	// Chosen tells whether it got the object.
	Chosen bool
	// Replicas that it got.
	Replicas int32
	// Available is how many replicas, or sets of components of an object that is placed as a unit, the cluster had room
	// for, those that it had included. Nil if room did not matter.
	Available *int64
	// Score is 100 for clusters that had the object before.
	Score int64
	// Weight of static division.
	Weight int64
	// Tier is the number of the overflow affinity that matches the cluster; 0 if the affinity itself does.
	Tier int32
}

const chosenWord = "chosen"

// NewRanking writes clusters down. Their names must have the form of names in Kubernetes.
func NewRanking(clusters []RankedCluster) Ranking {
	var text []byte
	number := func(key string, n int64) {
		if n != 0 {
			text = strconv.AppendInt(append(text, key...), n, 10)
		}
	}
	for _, c := range clusters {
		text = append(text, c.Name...)
		if c.Chosen {
			text = append(text, ' ')
			text = append(text, chosenWord...)
		}
		number(" replicas=", int64(c.Replicas))
		if c.Available != nil {
			text = strconv.AppendInt(append(text, " available="...), *c.Available, 10)
		}
		number(" score=", c.Score)
		number(" weight=", c.Weight)
		number(" tier=", int64(c.Tier))
		text = append(text, '\n')
	}
	return Ranking(text)
}

// Clusters reads what NewRanking wrote. Its errors name the line, counted from 1.
func (r Ranking) Clusters() ([]RankedCluster, error) {
	clusters := slices.Grow([]RankedCluster(nil), strings.Count(string(r), "\n"))
	line := 0
	for text := range strings.Lines(string(r)) {
		line++
		c, err := parseRanked(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		clusters = append(clusters, c)
	}
	return clusters, nil
}

func parseRanked(line string) (RankedCluster, error) {
	var c RankedCluster
	for word := range strings.FieldsSeq(line) {
		key, value, isNumber := strings.Cut(word, "=")
		var err error
		switch {
		case c.Name == "" && !isNumber:
			c.Name = word
		case c.Name == "":
			return c, fmt.Errorf("%q: the name of a cluster comes first", word)
		case word == chosenWord:
			c.Chosen = true
		case !isNumber:
			return c, fmt.Errorf("%q is not known", word)
		default:
			err = c.set(key, value)
		}
		if err != nil {
			return c, fmt.Errorf("%q: %w", word, err)
		}
	}
	if c.Name == "" {
		return c, errors.New("the name of a cluster is missing")
	}
	return c, nil
}

func (c *RankedCluster) set(key, value string) error {
	size := 64
	if key == "replicas" || key == "tier" {
		size = 32
	}
	n, err := strconv.ParseInt(value, 10, size)
	if err != nil {
		return err
	}
	switch key {
	case "replicas":
		c.Replicas = int32(n)
	case "available":
		c.Available = &n
	case "score":
		c.Score = n
	case "weight":
		c.Weight = n
	case "tier":
		c.Tier = int32(n)
	default:
		return fmt.Errorf("%s is not known", key)
	}
	return nil
}
