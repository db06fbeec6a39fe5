package main

import (
	"cmp"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
)

// A ranking orders pods of a node that is short of something, those first that go
// first. What a plan knows of each pod is in its Rank.
type ranking struct {
	name  string
	order func(a, b eviction.Rank) int // nil: the plan's own
}

// rankings are compared with each other; the first is the kubelet's.
var rankings = []ranking{
	{name: "kubelet"},
	// Of those that use more than they asked for, the one with the least priority
	// goes, as with the kubelet; but of several such the youngest, and not the one
	// that is furthest above its request: it has least work to lose.
	{name: "least work", order: func(a, b eviction.Rank) int {
		return cmp.Or(
			first(a.Excess > 0, b.Excess > 0),
			cmp.Compare(a.Priority, b.Priority),
			b.Created.Compare(a.Created),
		)
	}},
}

// A collector chooses images.
type collector struct {
	name   string
	policy imagegc.Policy
	rank   func(a, b *imagegc.Record) int // nil: longest unused first
}

// collectors are compared with each other; the first is the kubelet's.
var collectors = []collector{
	{name: "kubelet"},
	// What has cost the disk most, in bytes and hours without use, goes first: a
	// small image may stay for longer than a large one.
	{name: "idle bytes", rank: func(a, b *imagegc.Record) int { return cmp.Compare(idle(b), idle(a)) }},
}

// idle is how much an image has cost since it was used last. All records are looked
// at at the same moment, so that the difference to a fixed one will do.
func idle(r *imagegc.Record) float64 {
	used := r.LastUsed
	if used.Before(r.FirstDetected) {
		used = r.FirstDetected
	}
	return float64(r.Image.Size) * monday.AddDate(0, 0, days).Sub(used).Hours()
}

// first puts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
