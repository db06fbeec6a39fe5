package imagegc

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Space is the size of the image file system, in bytes.
type Space struct {
	Capacity, Available uint64
}

// usage returns the usage in percent (rule ig-12).
func (s Space) usage() int {
	return 100 - int(mulDiv(min(s.Available, s.Capacity), 100, s.Capacity))
}

// target returns the number of bytes that must be available for a usage of low percent.
func (s Space) target(low int32) uint64 {
	return mulDiv(s.Capacity, uint64(100-low), 100)
}

// mulDiv returns a*b/c without overflow in between; the result must fit.
func mulDiv(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	quotient, _ := bits.Div64(high, low, c)
	return quotient
}

// Inputs are the inputs of a plan. Equal inputs give equal plans.
type Inputs struct {
	// Records of the images.
	Records []Record

	// Space of the image file system. If its capacity is zero, it is unknown and no image
	// is removed to free space, unless All is set.
	Space Space

	// Policy; its defaults are filled in.
	Policy Policy

	// Since is when image garbage collection first ran on the node. No image is removed for
	// its age until the maximum age has passed since then (rule ig-10).
	Since time.Time

	// All removes all candidates, regardless of the thresholds.
	All bool

	Now time.Time
}

// A Class of an image determines whether it is removed. Images of the first five classes are
// kept. The zero value is no class.
type Class string

// The classes of images.
const (
	ClassInUse     Class = "in use"    // a container uses it, or a pod that starts
	ClassPinned    Class = "pinned"    // by the runtime
	ClassKept      Class = "kept"      // by Policy.Keep or Policy.KeepTags
	ClassTooYoung  Class = "too young" // detected less than Policy.MinAge ago
	ClassJustUsed  Class = "just used" // in use at the beginning of this pass
	ClassCandidate Class = "candidate" // removed in rank order if space is needed
	ClassAged      Class = "aged"      // removed: unused for Policy.MaxAge
	ClassDenied    Class = "denied"    // removed: matches Policy.Deny
)

// A Decision is the decision on one image.
type Decision struct {
	Record Record

	// Class determines whether the image is kept, removed in any case, or removed when space
	// is needed.
	Class Class

	// Reason is the reason for the class. May be empty.
	Reason string

	// RankReason is the reason why the image precedes the next one of the ranking. It is
	// empty for the last, and for images that are kept.
	RankReason string

	// Remove reports whether the image is removed, estimated by its size. Candidates are
	// removed in rank order until enough space is available. Shared layers free less, so more candidates may be removed.
	Remove bool
}

// String returns the decision as text: "nginx:1: remove (aged, unused for 48h0m0s)".
func (d Decision) String() string {
	action := "keep"
	if d.Remove {
		action = "remove"
	}
	s := fmt.Sprintf("%s: %s (%s", d.Record.name(), action, d.Class)
	if d.Reason != "" {
		s += ", " + d.Reason
	}
	return s + ")"
}

// A Plan contains the decisions on the images of a node.
type Plan struct {
	// UsagePercent is the usage of the file system; 0 if its capacity is unknown.
	UsagePercent int

	// Free is the number of bytes to free. Zero if no space is needed.
	Free uint64

	// Target is the number of bytes that must be available after that.
	Target uint64

	// Estimated is the total size of the images to remove, in bytes.
	Estimated uint64

	// Decisions on all images: first the aged and denied ones, then the candidates, both in
	// rank order, then those that are kept, by name.
	Decisions []Decision
}

// maxBytes exceeds the capacity of any disk.
const maxBytes = 1<<63 - 1

// Plan decides which images are removed. It is a pure function. It returns an error if the
// policy is invalid.
func (in Inputs) Plan() (Plan, error) {
	policy, err := in.Policy.validated()
	if err != nil {
		return Plan{}, fmt.Errorf("imagegc: %w", err)
	}
	var plan Plan
	if in.Space.Capacity > 0 {
		plan.UsagePercent = in.Space.usage()
		if available := min(in.Space.Available, in.Space.Capacity); plan.UsagePercent >= int(*policy.HighPercent) {
			plan.Target = in.Space.target(*policy.LowPercent)
			plan.Free = plan.Target - min(available, plan.Target)
		}
	}
	if in.All {
		plan.Free, plan.Target = maxBytes, maxBytes
	}
	plan.Decisions = in.decisions(&policy)
	need := plan.Free
	for i := range plan.Decisions {
		d := &plan.Decisions[i]
		switch {
		case groupOf(d.Class) == unconditional:
			d.Remove = true
		case d.Class == ClassCandidate && need > 0:
			d.Remove = true
		default:
			continue
		}
		plan.Estimated += d.Record.Image.Size
		need -= min(need, d.Record.Image.Size)
	}
	return plan, nil
}

// decisions returns the decisions in the order of Plan.Decisions, without Remove.
func (in *Inputs) decisions(policy *Policy) []Decision {
	newest := latest(in.Records, policy.KeepTags)
	sorted := make([]*Decision, len(in.Records)) // by pointer: they are large
	for i := range in.Records {
		d := &Decision{Record: in.Records[i]}
		d.Class, d.Reason = classify(&d.Record, policy, newest, in.Since, in.Now)
		sorted[i] = d
	}
	slices.SortStableFunc(sorted, func(a, b *Decision) int {
		order := cmp.Compare(groupOf(a.Class), groupOf(b.Class))
		switch {
		case order != 0:
			return order
		case groupOf(a.Class) == kept:
			return cmp.Or(cmp.Compare(a.Record.name(), b.Record.name()), cmp.Compare(a.Record.key(), b.Record.key()))
		default:
			order, _ = in.compare(&a.Record, &b.Record)
			return order
		}
	})
	decisions := make([]Decision, len(sorted))
	for i, d := range sorted {
		decisions[i] = *d
		if i+1 < len(sorted) && groupOf(d.Class) != kept && groupOf(d.Class) == groupOf(sorted[i+1].Class) {
			_, decisions[i].RankReason = in.compare(&d.Record, &sorted[i+1].Record)
		}
	}
	return decisions
}

// compare ranks by Rank, then by defaultRank, then by ID.
func (in *Inputs) compare(a, b *Record) (order int, reason string) {
	if in.Policy.Rank != nil {
		if order, reason := in.Policy.Rank(a, b); order != 0 {
			return order, cmp.Or(reason, "custom rank")
		}
	}
	if order, reason := defaultRank(a, b); order != 0 {
		return order, reason
	}
	return cmp.Compare(a.key(), b.key()), "ID"
}

// The groups of classes, in the order of a plan.
const (
	unconditional = iota // removed in any case
	candidate
	kept
)

// groupOf returns the group of a class.
func groupOf(class Class) int {
	switch class {
	case ClassAged, ClassDenied:
		return unconditional
	case ClassCandidate:
		return candidate
	default:
		return kept
	}
}

// defaultRank ranks images as the kubelet does: the least recently used first, then those
// that were detected first.
func defaultRank(a, b *Record) (order int, reason string) {
	if order := a.LastUsed.Compare(b.LastUsed); order != 0 {
		return order, "last used"
	}
	if order := a.FirstDetected.Compare(b.FirstDetected); order != 0 {
		return order, "first detected"
	}
	return 0, ""
}

// classify returns the class of one image, and the reason.
func classify(r *Record, p *Policy, newest map[string]string, since, now time.Time) (class Class, reason string) {
	if len(r.Users) > 0 {
		const few = 3
		users := strings.Join(r.Users[:min(few, len(r.Users))], ", ")
		if more := len(r.Users) - few; more > 0 {
			users += fmt.Sprintf(" and %d more", more)
		}
		return ClassInUse, "by " + users
	}
	if r.Image.Pinned {
		return ClassPinned, "by the runtime"
	}
	if pattern, ok := firstMatch(r, p.Keep); ok {
		return ClassKept, fmt.Sprintf("as %q", pattern)
	}
	if pattern, ok := firstMatch(r, p.Deny); ok {
		return ClassDenied, fmt.Sprintf("as %q", pattern)
	}
	if repo, ok := newest[r.key()]; ok {
		return ClassKept, fmt.Sprintf("among the last %d of %s", p.KeepTags, repo)
	}
	if !r.LastUsed.Before(now) {
		return ClassJustUsed, ""
	}
	// The age of an image that was never used starts with its detection.
	unused := now.Sub(later(r.LastUsed, r.FirstDetected))
	if after, pattern := p.maxAge(r); after > 0 && unused > after && now.Sub(since) >= after {
		reason := fmt.Sprintf("unused for %v, more than %v", unused.Round(time.Second), after)
		if pattern != "" {
			reason += fmt.Sprintf(" of %q", pattern)
		}
		return ClassAged, reason
	}
	if age := now.Sub(r.FirstDetected); age < p.MinAge {
		return ClassTooYoung, fmt.Sprintf("detected %v ago, less than %v", age.Round(time.Second), p.MinAge)
	}
	if r.LastUsed.IsZero() {
		return ClassCandidate, "never used"
	}
	return ClassCandidate, fmt.Sprintf("unused for %v", now.Sub(r.LastUsed).Round(time.Second))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// latest returns the images that are among the n most recently detected ones of a repository,
// by key, with that repository.
func latest(records []Record, n int) map[string]string {
	if n == 0 {
		return nil
	}
	byRepo := map[string][]*Record{}
	for i := range records {
		r := &records[i]
		added := map[string]bool{}
		for _, tag := range r.Image.Tags {
			if repo := repository(tag); !added[repo] {
				added[repo] = true
				byRepo[repo] = append(byRepo[repo], r)
			}
		}
	}
	newest := map[string]string{}
	for repo, list := range byRepo {
		slices.SortFunc(list, func(a, b *Record) int {
			return cmp.Or(b.FirstDetected.Compare(a.FirstDetected), cmp.Compare(a.key(), b.key()))
		})
		for _, r := range list[:min(n, len(list))] {
			if other, ok := newest[r.key()]; !ok || repo < other {
				newest[r.key()] = repo
			}
		}
	}
	return newest
}
