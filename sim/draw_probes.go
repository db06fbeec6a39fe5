package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// withProbes adds probes to the containers of one seed in three, and a fault of probes.
// The probes of a container depend on its name and the pod's UID, so that a pod that is
// added again with the same UID has the same probes. A separate random source keeps the
// schedules of other seeds unchanged.
func withProbes(seed uint64, o Options, s Schedule) Schedule {
	if seed%3 != 1 || o.Duration >= time.Hour {
		return s
	}
	first := slices.IndexFunc(s, func(step Step) bool { return step.Do == Add })
	for i := range s {
		if s[i].Do != Add {
			continue
		}
		if seed%9 == 1 && s[i].podUID() == s[first].podUID() {
			s[i].Shape = slowRestart(s[i].Shape)
			continue
		}
		s[i].Shape.Containers = slices.Clone(s[i].Shape.Containers)
		for j := range s[i].Shape.Containers {
			c := &s[i].Shape.Containers[j]
			roll := hash(seed, 11, 0, 0, string(s[i].podUID()), c.Name)
			if c.Kind == Init {
				continue
			}
			in := func(most uint64) time.Duration { return time.Duration(1+roll>>8%most) * time.Second }
			switch roll % 8 {
			case 0:
				c.Behavior.Liveness = true
			case 1:
				c.Behavior.UnhealthyAfter = in(90)
			case 2:
				c.Behavior.StartedAfter = in(20)
			case 3:
				c.Behavior.StartedAfter, c.Behavior.Liveness, c.Behavior.ReadyAfter = in(10), true, in(30)
			case 4:
				c.Behavior.ReadyAfter = in(30)
			}
		}
	}
	if o.NoFaults {
		return s
	}
	d := draw{Rand: rand.New(rand.NewPCG(seed, 0x9205e))}
	fault := Step{
		At: d.at(o), Do: Fault, Calls: probeCall,
		Kind: pick(&d, Sick, Sick, Sick, Error, Lost, Slow, Hung), Percent: pick(&d, 50, 100), For: d.seconds(60),
	}
	if fault.Kind == Slow {
		fault.Delay = d.seconds(3)
	}
	return s.with(fault)
}

// slowRestart returns a pod with a container that becomes ready while another one is
// restarted because of its liveness probe, which takes 30 seconds. The other shapes
// contain this case once in hundreds of seeds.
func slowRestart(s Shape) Shape {
	return Shape{Policy: s.Policy, Grace: 30, Static: s.Static, Containers: []Container{
		{Kind: Main, Name: "c0", Behavior: fake.Behavior{IgnoreTERM: true, UnhealthyAfter: 8 * time.Second}},
		{Kind: Main, Name: "c1", Behavior: fake.Behavior{ReadyAfter: 15 * time.Second}},
	}}
}

// at draws the time of a step.
func (d *draw) at(o Options) time.Duration {
	return time.Duration(d.Int64N(int64(o.Duration/time.Millisecond)+1)) * time.Millisecond
}

// with returns s with more steps, in order of time.
func (s Schedule) with(more ...Step) Schedule {
	s = append(s, more...)
	slices.SortStableFunc(s, func(a, b Step) int { return int(a.At - b.At) })
	return s
}
