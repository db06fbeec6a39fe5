package sim

import (
	"slices"
	"time"
)

// Shrink returns a smaller Schedule that fails as well: first steps are taken
// out, in halves, quarters and so on, then the times and counts of those that
// stay are made smaller. What it returns has failed, and none of its steps can
// be taken out alone, unless fails was called tries times before that was known.
//
// fails is asked about one Schedule at a time, and is a function: whoever runs a
// node in it uses one seed. It keeps nothing that it is given. A schedule that does
// not fail is returned as it is.
func Shrink(s Schedule, tries int, fails func(Schedule) bool) Schedule {
	h := shrinking{best: slices.Clone(s), tries: tries, fails: fails}
	if !h.try(h.best) {
		return s
	}
	h.halves()
	for h.values() {
		h.halves() // a smaller value may do without a step that the larger one needed
	}
	return h.best
}

// A shrinking is one Shrink under way.
type shrinking struct {
	best  Schedule // has failed
	tries int      // left
	fails func(Schedule) bool
}

// try makes s the best so far if it fails.
func (h *shrinking) try(s Schedule) bool {
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

// halves takes steps out, as many at a time as it can, until none can be taken
// out alone. The last are tried first: what follows the failure is the most
// likely to be of no use.
func (h *shrinking) halves() {
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

// values makes the steps simpler, one value at a time, and reports whether any
// could be.
func (h *shrinking) values() bool {
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

// simplerSteps returns steps that differ from s in one value, which is simpler:
// each is nearer to a step that nothing is simpler than, so that there is an end
// to it. The boldest come first.
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
		vary(func(v *Step) { v.Percent = 100 }) // no luck in it
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
	for _, does := range simplerBehaviours(s.Does) {
		vary(func(v *Step) { v.Does = does })
	}
	return out
}

// smallerTimes returns shorter times than d, zero first, and coarser ones.
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
	for i, c := range s.Containers {
		if c.Policy != "" || len(c.Rules) > 0 {
			vary(func(v *Shape) { v.Containers[i].Policy, v.Containers[i].Rules = "", nil })
		}
		if c.CPU > 0 {
			vary(func(v *Shape) { v.Containers[i].CPU = 0 })
		}
		for _, does := range simplerBehaviours(c.Does) {
			vary(func(v *Shape) { v.Containers[i].Does = does })
		}
	}
	return out
}

func simplerBehaviours(b Behaviour) []Behaviour {
	if b == (Behaviour{}) {
		return nil
	}
	out := []Behaviour{{}}
	vary := func(change func(*Behaviour)) {
		v := b
		change(&v)
		if v != b && v != (Behaviour{}) {
			out = append(out, v)
		}
	}
	vary(func(v *Behaviour) { v.OOM = false })
	vary(func(v *Behaviour) { v.Stubborn = false })
	vary(func(v *Behaviour) { v.Version = 0 })
	vary(func(v *Behaviour) { v.Times = 0 })
	for _, d := range smallerTimes(b.StopDelay) {
		vary(func(v *Behaviour) { v.StopDelay = d })
	}
	for _, d := range smallerTimes(b.StartDelay) {
		vary(func(v *Behaviour) { v.StartDelay = d })
	}
	for _, d := range smallerTimes(b.ReadyAfter) {
		vary(func(v *Behaviour) { v.ReadyAfter = d })
	}
	vary(func(v *Behaviour) { v.Probed = false })
	for _, d := range smallerTimes(b.UpAfter) {
		vary(func(v *Behaviour) { v.UpAfter = d })
	}
	for _, d := range smallerTimes(b.SickAfter) {
		vary(func(v *Behaviour) { v.SickAfter = d })
	}
	for _, d := range smallerTimes(b.ExitAfter) {
		vary(func(v *Behaviour) { v.ExitAfter = d })
	}
	if b.Code > 1 || b.Code < 0 {
		vary(func(v *Behaviour) { v.Code = 1 })
	}
	return out
}
