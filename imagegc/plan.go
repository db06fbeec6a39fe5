package imagegc

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Space is how full the file system of the images is, in bytes.
type Space struct {
	Capacity, Available uint64
}

// usage returns how much of it is used, in percent (ig-11, ig-12).
func (s Space) usage() int {
	return 100 - int(share(min(s.Available, s.Capacity), 100, s.Capacity))
}

// target returns how much has to be available for low percent to be in use.
func (s Space) target(low int32) uint64 {
	return share(s.Capacity, uint64(100-low), 100)
}

// share returns a*b/c without losing a bit on the way; the result has room.
func share(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	quotient, _ := bits.Div64(high, low, c)
	return quotient
}

// Input is all that a plan is made from.
type Input struct {
	// Records of the images, as [Detect] returns them.
	Records []Record

	// Space there is. Capacity 0: it is not known, and nothing goes for it.
	Space Space

	// Policy; its defaults are filled in.
	Policy Policy

	// Since when images have been looked after on this node: nothing goes for its
	// age before the time has passed once since then (ig-10).
	Since time.Time

	// All: as much is to be freed as can be, whatever the thresholds say (ig-16).
	All bool

	// Rank orders what may go, first to go first. Nil: [Rank].
	Rank func(a, b *Record) int

	Now time.Time
}

// A Verdict is what is decided of an image.
type Verdict string

// The verdicts, those of images that stay first.
const (
	InUse     Verdict = "in use"
	Pinned    Verdict = "pinned"
	Kept      Verdict = "kept"
	TooYoung  Verdict = "too young"
	JustUsed  Verdict = "just used"
	Candidate Verdict = "candidate" // it goes when there is a need for space, in its turn
	Aged      Verdict = "aged"      // it goes
	Denied    Verdict = "denied"    // it goes
)

// A Decision is what is decided of one image, and why.
type Decision struct {
	Record  Record
	Verdict Verdict
	Why     string

	// Goes: it is removed if the sizes of images are what they take. An Aged or
	// Denied image goes in any case. A Candidate goes after those before it, until
	// there is space; what is shared with others frees less, so that more go.
	Goes bool
}

// String says it in words: "nginx:1 goes: aged, unused for 48h0m0s".
func (d Decision) String() string {
	goes := "stays"
	if d.Goes {
		goes = "goes"
	}
	s := fmt.Sprintf("%s %s: %s", d.Record.name(), goes, d.Verdict)
	if d.Why != "" {
		s += ", " + d.Why
	}
	return s
}

// A Plan is what is to be done about the images of a node.
type Plan struct {
	// UsagePercent of the file system; 0 if its capacity is not known.
	UsagePercent int

	// Free is how many bytes are to become available; 0: there is no need.
	Free uint64

	// Target is how many bytes are to be available then.
	Target uint64

	// Estimated is how many bytes would, by the sizes of those that go.
	Estimated uint64

	// Decisions on all images: first those that go for their own sake, then the
	// candidates in their turn, then those that stay, by name.
	Decisions []Decision
}

// everything is more than any disk has.
const everything = 1<<63 - 1

// MakePlan decides which images go and which stay, and why (F-29). It is a pure
// function: equal inputs give equal plans.
func MakePlan(in Input) (Plan, error) {
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
		plan.Free, plan.Target = everything, everything
	}
	rank := in.Rank
	if rank == nil {
		rank = Rank
	}

	newest := latest(in.Records, policy.KeepTags)
	decisions := make([]*Decision, len(in.Records)) // sorted by pointer: they are large
	for i := range in.Records {
		d := &Decision{Record: in.Records[i]}
		d.Verdict, d.Why = judge(&d.Record, &policy, newest, in.Since, in.Now)
		decisions[i] = d
	}
	slices.SortStableFunc(decisions, func(a, b *Decision) int {
		switch c := cmp.Compare(order(a.Verdict), order(b.Verdict)); {
		case c != 0:
			return c
		case order(a.Verdict) == 2:
			return cmp.Or(cmp.Compare(a.Record.name(), b.Record.name()), cmp.Compare(a.Record.key(), b.Record.key()))
		default:
			return cmp.Or(rank(&a.Record, &b.Record), cmp.Compare(a.Record.key(), b.Record.key()))
		}
	})
	plan.Decisions = make([]Decision, len(decisions))
	for i, d := range decisions {
		plan.Decisions[i] = *d
	}
	need := plan.Free
	for i := range plan.Decisions {
		d := &plan.Decisions[i]
		switch {
		case order(d.Verdict) == 0:
			d.Goes = true
		case d.Verdict == Candidate && need > 0:
			d.Goes = true
		default:
			continue
		}
		plan.Estimated += d.Record.Image.Size
		need -= min(need, d.Record.Image.Size)
	}
	return plan, nil
}

// order is where decisions of a verdict come in a plan.
func order(v Verdict) int {
	switch v {
	case Aged, Denied:
		return 0
	case Candidate:
		return 1
	default:
		return 2
	}
}

// Rank orders images as the kubelet does: those first whose last use is longest
// ago, and of these those that have been here longest (ig-8).
func Rank(a, b *Record) int {
	return cmp.Or(a.LastUsed.Compare(b.LastUsed), a.FirstDetected.Compare(b.FirstDetected))
}

// judge decides on one image, but for whether a candidate goes.
func judge(r *Record, p *Policy, newest map[string]string, since, now time.Time) (Verdict, string) {
	if len(r.Users) > 0 {
		const few = 3
		who := strings.Join(r.Users[:min(few, len(r.Users))], ", ")
		if more := len(r.Users) - few; more > 0 {
			who += fmt.Sprintf(" and %d more", more)
		}
		return InUse, "by " + who
	}
	if r.Image.Pinned {
		return Pinned, "by the runtime"
	}
	if pattern, ok := listed(r, p.Keep); ok {
		return Kept, fmt.Sprintf("as %q", pattern)
	}
	if pattern, ok := listed(r, p.Deny); ok {
		return Denied, fmt.Sprintf("as %q", pattern)
	}
	if repo, ok := newest[r.key()]; ok {
		return Kept, fmt.Sprintf("among the last %d of %s", p.KeepTags, repo)
	}
	if !r.LastUsed.Before(now) {
		return JustUsed, ""
	}
	// An image that nobody has used yet is as old as it is here.
	unused := now.Sub(later(r.LastUsed, r.FirstDetected))
	if after, pattern := p.maxAge(r); after > 0 && unused > after && now.Sub(since) >= after {
		why := fmt.Sprintf("unused for %v, more than %v", unused.Round(time.Second), after)
		if pattern != "" {
			why += fmt.Sprintf(" of %q", pattern)
		}
		return Aged, why
	}
	if age := now.Sub(r.FirstDetected); age < p.MinAge {
		return TooYoung, fmt.Sprintf("seen for %v, less than %v", age.Round(time.Second), p.MinAge)
	}
	if r.LastUsed.IsZero() {
		return Candidate, "never used"
	}
	return Candidate, fmt.Sprintf("unused for %v", now.Sub(r.LastUsed).Round(time.Second))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// latest returns the images that are among the last n of a repository of theirs,
// with that repository.
func latest(records []Record, n int) map[string]string {
	if n == 0 {
		return nil
	}
	of := map[string][]*Record{}
	for i := range records {
		r := &records[i]
		seen := map[string]bool{}
		for _, tag := range r.Image.Tags {
			if repo := repository(tag); !seen[repo] {
				seen[repo] = true
				of[repo] = append(of[repo], r)
			}
		}
	}
	kept := map[string]string{}
	for repo, list := range of {
		slices.SortFunc(list, func(a, b *Record) int {
			return cmp.Or(b.FirstDetected.Compare(a.FirstDetected), cmp.Compare(a.key(), b.key()))
		})
		for _, r := range list[:min(n, len(list))] {
			if other, ok := kept[r.key()]; !ok || repo < other {
				kept[r.key()] = repo
			}
		}
	}
	return kept
}
