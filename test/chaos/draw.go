package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A round is one fault, or two at once, creations and deletions of pods meanwhile, and the
// recovery afterwards.
type round struct {
	n     int
	steps []step
}

// A step is an action at a time after the beginning of its round.
type step struct {
	at time.Duration

	fault  string        // the kind of the fault, or
	make   string        // the pod that is created, or
	delete string        // the pod that is deleted
	shape  string        // of the created pod
	target string        // the pod that a fault affects
	pick   uint64        // selects among other objects of a fault
	length time.Duration // of the fault
}

// String returns a description of the step.
func (s step) String() string {
	what := "delete " + s.delete
	switch {
	case s.make != "":
		what = "make " + s.make
	case s.fault != "" && s.target != "":
		what = fmt.Sprintf("%s (%s) for %v", s.fault, s.target, s.length)
	case s.fault != "":
		what = fmt.Sprintf("%s for %v", s.fault, s.length)
	}
	return fmt.Sprintf("%v %s", s.at, what)
}

// String returns the round in one line.
func (r round) String() string {
	var steps []string
	for _, s := range r.steps {
		steps = append(steps, s.String())
	}
	return fmt.Sprintf("round %d: %s", r.n, strings.Join(steps, "; "))
}

// names of the round's faults, in order of time.
func (r round) faults() []string {
	var names []string
	for _, s := range r.steps {
		if s.fault != "" {
			names = append(names, s.fault)
		}
	}
	return names
}

// kind returns the kind that the round is counted as.
func (r round) kind() string {
	if names := r.faults(); len(names) != 1 {
		return "two at once"
	}
	return r.faults()[0]
}

// losesContainers reports whether two faults at once make containerd lose containers whose processes
// run: if it starts while its disk is full, containerd 2.4.2 drops each whose state it cannot write
// ("Failed to load container"). No client of it can find them, so that each pod then runs twice.
func losesContainers(a, b string) bool {
	return a == "containerd-killed" && b == "containerd-disk-full" || a == "containerd-disk-full" && b == "containerd-killed"
}

// A drawer draws rounds from a seed. They do not depend on how long rounds take.
type drawer struct {
	rng    *rand.Rand
	kinds  []string
	pods   int
	storms bool // sometimes two faults at once
	short  bool // faults have about their minimal length

	n       int
	bag     []string // kinds that were not drawn since the bag was filled
	named   int
	living  []string // desired pods, in order of creation
	shape   map[string]string
	touched map[string]int // number of faults that affected a pod
}

func newDrawer(seed uint64, kinds []string, pods int) *drawer {
	return &drawer{rng: rand.New(rand.NewPCG(seed, 6)), kinds: kinds, pods: pods, shape: map[string]string{}, touched: map[string]int{}}
}

// first creates all pods, at least one of each shape.
func (d *drawer) first() round {
	r := round{}
	for i := range d.pods {
		s := step{at: time.Duration(i) * 20 * time.Millisecond}
		if i < len(shapes) {
			d.make(&s, shapes[i].name)
		} else {
			d.make(&s, d.drawShape())
		}
		r.steps = append(r.steps, s)
	}
	return r
}

// next draws the following round.
func (d *drawer) next() round {
	d.n++
	r := round{n: d.n}
	f := d.fault(d.kind())
	r.steps = append(r.steps, f)
	if d.storms && d.rng.IntN(4) == 0 {
		if other := d.fault(d.kind()); other.fault != f.fault && !losesContainers(f.fault, other.fault) {
			other.at += d.upTo(f.length + 1)
			r.steps = append(r.steps, other)
		}
	}
	end := f.at + f.length
	for range 1 + d.pods/15 {
		gone, come := step{at: d.upTo(end)}, step{at: d.upTo(end)}
		if d.delete(&gone, r) {
			d.make(&come, d.drawShape())
			r.steps = append(r.steps, gone, come)
		}
	}
	slices.SortStableFunc(r.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return r
}

// kind draws from a bag that is refilled when it is empty, so that all kinds are equally
// frequent.
func (d *drawer) kind() string {
	if len(d.bag) == 0 {
		d.bag = slices.Clone(d.kinds)
		d.rng.Shuffle(len(d.bag), func(i, j int) { d.bag[i], d.bag[j] = d.bag[j], d.bag[i] })
	}
	kind := d.bag[0]
	d.bag = d.bag[1:]
	return kind
}

func (d *drawer) fault(kind string) step {
	k := kindNamed(kind)
	most, begin := k.most, 2*time.Second
	if d.short {
		most, begin = min(most, k.least+time.Second), time.Second/2
	}
	s := step{at: d.upTo(begin), fault: kind, pick: d.rng.Uint64(), length: k.least + d.upTo(most-k.least)}
	if k.about {
		s.target = d.target()
	}
	return s
}

// target returns the running pod that was disturbed least: one that is disturbed often has long
// back-off delays, which hide the effects of faults.
func (d *drawer) target() string {
	var best []string
	for _, name := range d.living {
		if !shapeNamed(d.shape[name]).longRunning {
			continue
		}
		if len(best) > 0 && d.touched[name] < d.touched[best[0]] {
			best = nil
		}
		if len(best) == 0 || d.touched[name] == d.touched[best[0]] {
			best = append(best, name)
		}
	}
	if len(best) == 0 {
		return ""
	}
	name := best[d.rng.IntN(len(best))]
	d.touched[name]++
	return name
}

// delete selects a pod that no fault of the round affects.
func (d *drawer) delete(s *step, r round) bool {
	i := d.rng.IntN(len(d.living))
	name := d.living[i]
	if slices.ContainsFunc(r.steps, func(s step) bool { return s.target == name || s.make == name }) {
		return false
	}
	d.living = slices.Delete(d.living, i, i+1)
	s.delete = name
	return true
}

func (d *drawer) make(s *step, shape string) {
	s.make, s.shape = fmt.Sprintf("%s-%d", shape, d.named), shape
	d.named++
	d.living = append(d.living, s.make)
	d.shape[s.make] = shape
}

func (d *drawer) drawShape() string {
	total := 0
	for _, s := range shapes {
		total += s.weight
	}
	at := d.rng.IntN(total)
	for _, s := range shapes {
		if at -= s.weight; at < 0 {
			return s.name
		}
	}
	return shapes[0].name
}

// upTo draws a time, in whole tenths of seconds.
func (d *drawer) upTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(d.rng.Int64N(int64(most))).Truncate(100 * time.Millisecond)
}
