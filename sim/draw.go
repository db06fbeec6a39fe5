package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Options configure Draw. A number that is not positive is drawn from the seed.
type Options struct {
	Pods     int           // number of pod names
	Steps    int           // number of steps other than the first addition of each pod
	Duration time.Duration // until the last step

	NoFaults bool // no Fault steps
	NoKills  bool // no Kill and Reboot steps

	Checkpoints bool // pods are restored from checkpoints of others, with faults and kills meanwhile
}

// Draw returns the schedule of a seed. Equal arguments give equal schedules in one
// version of the package.
func Draw(seed uint64, o Options) Schedule {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0x5eed)), pods: map[string]*drawnPod{}}
	if o.Pods <= 0 {
		o.Pods = 1 + d.IntN(6)
	}
	if o.Steps <= 0 {
		o.Steps = 3 + d.IntN(25)
	}
	if o.Duration <= 0 {
		o.Duration = time.Duration(1+d.IntN(10)) * time.Minute
		if d.IntN(12) == 0 {
			o.Duration = time.Duration(1+d.IntN(3)) * time.Hour // few events, so that the relist period grows to minutes
		}
	}
	var out Schedule
	at := func() time.Duration {
		return time.Duration(d.Int64N(max(1, int64(o.Duration/time.Millisecond)))) * time.Millisecond
	}
	var times []time.Duration
	for range o.Steps {
		times = append(times, at())
	}
	slices.Sort(times)
	for i := range o.Pods {
		name := fmt.Sprint("pod-", i)
		p := &drawnPod{name: name, uid: types.UID(name)}
		p.shape = d.shape()
		d.pods[name] = p
		d.names = append(d.names, name)
		out = append(out, d.add(p, time.Duration(d.Int64N(max(1, int64(o.Duration/time.Millisecond/4))))*time.Millisecond))
	}
	for _, t := range times {
		s := d.step(t, o)
		out = append(out, s)
		if s.Down > 2*time.Second && d.IntN(3) == 0 { // another client may mark pods as failed meanwhile
			p := d.pods[pick(d, d.names...)]
			out = append(out, Step{At: t + s.Down/2, Do: Fail, Pod: p.name, UID: p.uid})
		}
	}
	slices.SortStableFunc(out, func(a, b Step) int { return int(a.At - b.At) })
	out = withClaims(seed, o, withResizes(seed, o, withCollections(seed, withVolumes(seed, o, withProbes(seed, o, withHooks(seed, withLateEvictions(seed, o, out)))))))
	return withCheckpoints(seed, o, out)
}

type draw struct {
	*rand.Rand
	pods  map[string]*drawnPod
	names []string
}

// A drawnPod is a pod name in a schedule, with its present UID and shape.
type drawnPod struct {
	name     string
	uid      types.UID
	uidCount int
	shape    Shape
}

func (d *draw) add(p *drawnPod, at time.Duration) Step {
	return Step{At: at, Do: Add, Pod: p.name, UID: p.uid, Shape: p.shape}
}

func pick[T any](d *draw, of ...T) T { return of[d.IntN(len(of))] }

func (d *draw) seconds(most int) time.Duration { return time.Duration(1+d.IntN(most)) * time.Second }

// shape draws a pod.
func (d *draw) shape() Shape {
	s := Shape{
		Policy: pick(d, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever),
		Grace:  pick[int64](d, 1, 2, 5, 10, 30),
		Static: d.IntN(5) == 0,
	}
	if d.IntN(8) == 0 {
		s.Deadline = int64(10 + d.IntN(120))
	}
	for i := range pick(d, 0, 0, 0, 1, 2, 3) {
		if d.IntN(2) == 0 {
			s.Containers = append(s.Containers, Container{Kind: Sidecar, Name: fmt.Sprint("s", i), Behavior: d.behavior(false)})
			continue
		}
		c := Container{Kind: Init, Name: fmt.Sprint("i", i), Behavior: fake.Behavior{Exit: &fake.Exit{After: d.seconds(5)}}}
		if d.IntN(6) == 0 {
			c.Behavior.Exit.Code = 1
		}
		s.Containers = append(s.Containers, c)
	}
	for i := range 1 + d.IntN(3) {
		c := Container{Kind: Main, Name: fmt.Sprint("c", i), Behavior: d.behavior(s.Policy != v1.RestartPolicyAlways || d.IntN(3) == 0)}
		if d.IntN(8) == 0 {
			c.Policy = pick(d, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)
			if d.IntN(2) == 0 {
				var code int32
				if e := c.Behavior.Exit; e != nil {
					code = e.Code
				}
				c.Rules = []Rule{{code, pick(d, v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers)}}
			}
		}
		s.Containers = append(s.Containers, c)
	}
	return s
}

func (d *draw) behavior(ends bool) fake.Behavior {
	var b fake.Behavior
	if ends {
		b.Exit = &fake.Exit{After: d.seconds(60)}
		if d.IntN(8) == 0 {
			b.Exit.After = 10*time.Minute + d.seconds(120) // long enough to reset the back-off
		}
		b.Exit.Code = pick[int32](d, 0, 0, 1, 3)
		if d.IntN(10) == 0 {
			b.Exit.Code, b.Exit.Reason = 137, fake.OOMKilled
		}
		if d.IntN(5) == 0 {
			b.Exit.Crashes = 1 + d.IntN(4)
		}
	}
	switch d.IntN(8) {
	case 0:
		b.IgnoreTERM = true
	case 1:
		b.StopDelay = time.Duration(100+d.IntN(6000)) * time.Millisecond
	case 2:
		b.StartDelay = d.seconds(4)
	case 3:
		b.ReadyAfter = d.seconds(10)
	}
	return b
}

// step draws a step.
func (d *draw) step(at time.Duration, o Options) Step {
	p := d.pods[pick(d, d.names...)]
	s := Step{At: at, Pod: p.name, UID: p.uid}
	container := pick(d, p.shape.Containers...)
	for {
		switch n := d.IntN(22); {
		case n < 3:
			s.Do = Delete
			s.Grace = pick[int64](d, 0, 0, 1, 3, 20)
		case n == 3:
			s.Do = Vanish
		case n < 8: // added again, with the same or another UID
			if d.IntN(2) == 0 {
				p.uidCount++
				p.uid = types.UID(fmt.Sprint(p.name, "-", p.uidCount))
				static := p.shape.Static
				p.shape = d.shape()
				p.shape.Static = static
			}
			return d.add(p, at)
		case n == 8:
			s.Do, s.Container, s.Behavior = Change, container.Name, container.Behavior
			s.Behavior.Version = 1 + d.IntN(9)
		case n < 11:
			s.Do, s.Container, s.Code = Exit, container.Name, pick[int32](d, 0, 1, 3)
		case n == 11:
			s.Do, s.Container = pick(d, OOM, Hang), container.Name
		case n == 12:
			s.Do = pick(d, Crash, Crash, Remove)
		case n == 13:
			s.Do, s.Grace = Evict, pick[int64](d, 0, 1, 5)
		case n < 17:
			if o.NoFaults {
				continue
			}
			return d.fault(at, o)
		case n == 17:
			return Step{At: at, Do: Room, Count: d.IntN(5)}
		case o.NoKills:
			continue
		case n == 18:
			return Step{At: at, Do: Reboot, Down: d.seconds(60)}
		default:
			return Step{At: at, Do: Kill, Count: d.IntN(12), After: d.IntN(2) == 0, Down: time.Duration(1+d.IntN(40_000)) * time.Millisecond}
		}
		return s
	}
}

func (d *draw) fault(at time.Duration, o Options) Step {
	if d.IntN(12) == 0 {
		return Step{At: at, Do: Fault, Calls: "runtime", Kind: pick(d, Error, Hung), Percent: 100, For: 6*time.Minute + d.seconds(180)}
	}
	s := Step{
		At: at, Do: Fault, Percent: pick(d, 10, 50, 100), For: d.seconds(60),
		Calls: pick(d, "runtime", "runtime", "sink", "hints", "Pods", "PodStatus", "SyncPod", "KillPod", "CollectGarbage", "UpdatePodStatus", "DeletePod", "Check"),
		Kind:  pick(d, Error, Error, Lost, Lost, Slow, Hung),
	}
	switch s.Calls {
	case "hints":
		s.Kind = pick(d, Lost, Slow)
		if o.Duration >= time.Hour {
			s.For = d.seconds(3600)
		}
	case "sink":
		s.Kind = pick(d, s.Kind, Conflict, Missing)
	case "runtime", "Pods":
		s.Kind = pick(d, s.Kind, s.Kind, Stale)
	}
	if s.Kind == Slow || s.Kind == Stale {
		s.Delay = d.seconds(20)
	}
	return s
}
