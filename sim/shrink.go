package sim

import (
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Shrink returns a smaller Schedule that fails as well. First it removes steps, in
// halves, quarters and smaller groups, then it reduces the times and counts of the
// remaining steps. The result has failed, and removing any single step makes it pass,
// unless fails was called tries times before.
//
// fails is not called concurrently. It must be deterministic, so a fails that runs a
// node must always use the same seed, and it must not retain the schedule. A schedule
// that does not fail is returned unchanged.
func Shrink(s Schedule, tries int, fails func(Schedule) bool) Schedule {
	h := shrinker{best: slices.Clone(s), tries: tries, fails: fails}
	if !h.try(h.best) {
		return s
	}
	h.removeSteps()
	for h.simplifySteps() {
		h.removeSteps() // with a smaller value, another step may be removable
	}
	return h.best
}

// A shrinker is the state of one Shrink.
type shrinker struct {
	best  Schedule // the smallest schedule that has failed
	tries int      // remaining calls of fails
	fails func(Schedule) bool
}

// try calls fails with s; if it fails, s becomes the best schedule.
func (h *shrinker) try(s Schedule) bool {
	if h.tries <= 0 {
		return false
	}
	h.tries--
	if !h.fails(slices.Clone(s)) {
		return false
	}
	h.best = s
	return true
}

// removeSteps removes steps, as many at a time as possible, until no single step can
// be removed. The last steps are tried first, because those after the failure are most
// likely irrelevant.
func (h *shrinker) removeSteps() {
	for size := max(len(h.best)/2, 1); ; size = max(size/2, 1) {
		removed := false
		for end := len(h.best); end > 0 && h.tries > 0; end -= size {
			end = min(end, len(h.best))
			if h.try(slices.Delete(slices.Clone(h.best), max(end-size, 0), end)) {
				removed = true
			}
		}
		if size == 1 && !removed || h.tries <= 0 {
			return
		}
	}
}

// simplifySteps simplifies the steps, one value at a time, and reports whether it
// changed any.
func (h *shrinker) simplifySteps() bool {
	some := false
	for i := 0; i < len(h.best); i++ {
		for again := true; again; {
			again = false
			for _, simpler := range simplerSteps(h.best[i]) {
				if i > 0 && simpler.At < h.best[i-1].At || h.tries <= 0 {
					continue // the order of the steps is part of the schedule
				}
				next := slices.Clone(h.best)
				next[i] = simpler
				if h.try(next) {
					some, again = true, true
					break
				}
			}
		}
	}
	return some
}

// simplerSteps returns steps that differ from s in one value, which is simpler. The
// largest simplifications are first. Repeated simplification terminates, because each
// step is closer to one that cannot be simplified.
func simplerSteps(s Step) []Step {
	var out []Step
	vary := func(change func(*Step)) {
		v := s
		change(&v)
		out = append(out, v)
	}
	for _, d := range smallerTimes(s.At) {
		vary(func(v *Step) { v.At = d })
	}
	for _, d := range smallerTimes(s.For) {
		vary(func(v *Step) { v.For = d })
	}
	for _, d := range smallerTimes(s.Delay) {
		vary(func(v *Step) { v.Delay = d })
	}
	for _, d := range smallerTimes(s.Down) {
		vary(func(v *Step) { v.Down = d })
	}
	if s.Count > 0 {
		vary(func(v *Step) { v.Count = 0 })
		vary(func(v *Step) { v.Count /= 2 })
		vary(func(v *Step) { v.Count-- })
	}
	if s.After {
		vary(func(v *Step) { v.After = false })
	}
	if s.Do == Fault && s.Percent < 100 {
		vary(func(v *Step) { v.Percent = 100 }) // without randomness
	}
	if s.Code > 1 || s.Code < 0 {
		vary(func(v *Step) { v.Code = 1 })
	}
	if s.Grace > 0 {
		vary(func(v *Step) { v.Grace = 0 })
	}
	for _, shape := range simplerShapes(s.Shape) {
		vary(func(v *Step) { v.Shape = shape })
	}
	for _, does := range simplerBehaviors(s.Behavior) {
		vary(func(v *Step) { v.Behavior = does })
	}
	return out
}

// smallerTimes returns shorter durations than d, zero first, and rounded ones.
func smallerTimes(d time.Duration) []time.Duration {
	if d <= 0 {
		return nil
	}
	out := []time.Duration{0}
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond} {
		if whole := d.Truncate(unit); whole > 0 && whole < d {
			out = append(out, whole)
		}
		if half := (d / 2).Truncate(unit); half > 0 {
			out = append(out, half)
		}
	}
	return out
}

func simplerShapes(s Shape) []Shape {
	var out []Shape
	vary := func(change func(*Shape)) {
		v := s
		v.Containers = slices.Clone(s.Containers)
		change(&v)
		out = append(out, v)
	}
	if len(s.Containers) > 1 {
		for i := range s.Containers {
			vary(func(v *Shape) { v.Containers = slices.Delete(v.Containers, i, i+1) })
		}
	}
	if s.Policy != "" {
		vary(func(v *Shape) { v.Policy = "" })
	}
	if s.Static {
		vary(func(v *Shape) { v.Static = false })
	}
	if s.Deadline > 0 {
		vary(func(v *Shape) { v.Deadline = 0 })
	}
	if s.Grace > 0 {
		vary(func(v *Shape) { v.Grace = 0 })
	}
	if s.Volumes > 0 {
		vary(func(v *Shape) { v.Volumes = 0 })
	}
	if len(s.Claims) > 0 {
		vary(func(v *Shape) { v.Claims = nil })
	}
	for i, c := range s.Containers {
		if c.Policy != "" || len(c.Rules) > 0 {
			vary(func(v *Shape) { v.Containers[i].Policy, v.Containers[i].Rules = "", nil })
		}
		if c.CPU > 0 {
			vary(func(v *Shape) { v.Containers[i].CPU = 0 })
		}
		if c.Hook > 0 {
			vary(func(v *Shape) { v.Containers[i].Hook = 0 })
		}
		for _, does := range simplerBehaviors(c.Behavior) {
			vary(func(v *Shape) { v.Containers[i].Behavior = does })
		}
	}
	return out
}

func simplerBehaviors(b fake.Behavior) []fake.Behavior {
	text, zero := b.String(), fake.Behavior{}.String()
	if text == zero {
		return nil
	}
	out := []fake.Behavior{{}}
	vary := func(change func(*fake.Behavior)) {
		v := b
		if b.Exit != nil {
			v.Exit = new(*b.Exit)
		}
		change(&v)
		if t := v.String(); t != text && t != zero {
			out = append(out, v)
		}
	}
	shorten := func(field func(*fake.Behavior) *time.Duration) {
		for _, d := range smallerTimes(*field(&b)) {
			vary(func(v *fake.Behavior) { *field(v) = d })
		}
	}
	vary(func(v *fake.Behavior) { v.IgnoreTERM = false })
	vary(func(v *fake.Behavior) { v.Version = 0 })
	vary(func(v *fake.Behavior) { v.Liveness = false })
	shorten(func(v *fake.Behavior) *time.Duration { return &v.StopDelay })
	shorten(func(v *fake.Behavior) *time.Duration { return &v.StartDelay })
	shorten(func(v *fake.Behavior) *time.Duration { return &v.ReadyAfter })
	shorten(func(v *fake.Behavior) *time.Duration { return &v.StartedAfter })
	shorten(func(v *fake.Behavior) *time.Duration { return &v.UnhealthyAfter })
	if e := b.Exit; e != nil {
		vary(func(v *fake.Behavior) { v.Exit.Reason = "" })
		vary(func(v *fake.Behavior) { v.Exit.Crashes = 0 })
		shorten(func(v *fake.Behavior) *time.Duration { return &v.Exit.After })
		if e.Code > 1 && e.Reason == "" {
			vary(func(v *fake.Behavior) { v.Exit.Code = 1 })
		}
	}
	return out
}
