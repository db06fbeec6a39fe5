package oracle

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim"
)

// drawOptions determine the size of drawn scenarios.
type drawOptions struct {
	pods     int
	duration time.Duration
}

func (o *drawOptions) flags(fs *flag.FlagSet) {
	fs.IntVar(&o.pods, "pods", 40, "`number` of pods of a drawn scenario")
	fs.DurationVar(&o.duration, "duration", 45*time.Second, "`time` of its last step")
}

// draw returns the scenario of a seed. Pods live for seconds, so that many live in an hour of real time; four in ten
// scenarios have no faults, so that latencies can be checked.
func draw(seed uint64, o drawOptions) Scenario {
	d := &drawing{Rand: rand.New(rand.NewPCG(seed, 0x0ac1e)), o: o}
	var out Scenario
	for i := range o.pods {
		out = append(out, d.pod(fmt.Sprint("p", i))...)
	}
	if d.IntN(10) >= 4 {
		for range 1 + d.IntN(3) {
			out = append(out, d.fault())
		}
	}
	slices.SortStableFunc(out, func(a, b Step) int { return int(a.At - b.At) })
	return out
}

type drawing struct {
	*rand.Rand
	o drawOptions
}

func choose[T any](d *drawing, of ...T) T { return of[d.IntN(len(of))] }

// chance returns true in one of n cases.
func (d *drawing) chance(n int) bool { return d.IntN(n) == 0 }

func (d *drawing) seconds(most int) time.Duration { return time.Duration(1+d.IntN(most)) * time.Second }

// within returns a time between two, in tenths of a second.
func (d *drawing) within(from, to time.Duration) time.Duration {
	return from + (time.Duration(d.Int64N(max(1, int64(to-from))))).Truncate(100*time.Millisecond)
}

// pod draws a pod and what happens to it.
func (d *drawing) pod(name string) Scenario {
	add := Step{Step: sim.Step{At: d.within(0, d.o.duration/2), Do: sim.Add, Pod: name, Shape: d.shape()}}
	var mains []string
	for _, c := range add.Shape.Containers {
		if c.Kind == sim.Main {
			mains = append(mains, c.Name)
		}
	}
	if d.chance(6) {
		took := choose(d, time.Second, 4*time.Second, 10*time.Second)
		if d.chance(5) {
			took = 70 * time.Second
		}
		hooked := choose(d, mains...)
		for i := range add.Shape.Containers {
			if c := &add.Shape.Containers[i]; c.Name == hooked {
				c.Hook = took
			}
		}
	}
	if d.chance(4) {
		add.Clean = []string{choose(d, mains...)}
	}
	out := Scenario{add}
	for range choose(d, 0, 0, 1, 1, 1, 2, 3) {
		out = append(out, d.step(add, choose(d, add.Shape.Containers...)))
	}
	if d.chance(3) {
		out = append(out, Step{Step: sim.Step{At: d.within(add.At+time.Second, d.o.duration), Do: sim.Delete, Pod: name, Grace: choose[int64](d, 0, 0, 0, 1, 3, 10)}})
	}
	return out
}

func (d *drawing) shape() sim.Shape {
	s := sim.Shape{
		Policy: choose(d, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever, v1.RestartPolicyNever),
		Grace:  choose[int64](d, 1, 2, 2, 5),
	}
	if d.chance(8) {
		s.Deadline = int64(4 + d.IntN(20))
	}
	for i := range choose(d, 0, 0, 0, 1, 1, 2) {
		if d.chance(3) {
			s.Containers = append(s.Containers, sim.Container{Kind: sim.Sidecar, Name: fmt.Sprint("s", i), Behavior: d.behavior(false)})
			continue
		}
		b := fake.Behavior{Exit: &fake.Exit{After: d.seconds(4)}, Version: 1 + d.IntN(99)}
		if d.chance(15) {
			b.Exit.Reason = fake.OOMKilled
		}
		if d.chance(6) {
			b.Exit.Code = 1
		}
		s.Containers = append(s.Containers, sim.Container{Kind: sim.Init, Name: fmt.Sprint("i", i), Behavior: b})
	}
	for i := range choose(d, 1, 1, 1, 2) {
		c := sim.Container{Kind: sim.Main, Name: fmt.Sprint("c", i), Behavior: d.behavior(s.Policy != v1.RestartPolicyAlways || d.chance(3))}
		if d.chance(12) {
			c.Policy = choose(d, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)
		}
		s.Containers = append(s.Containers, c)
	}
	return s
}

func (d *drawing) behavior(ends bool) fake.Behavior {
	b := fake.Behavior{Version: 1 + d.IntN(99)}
	if ends {
		b.Exit = &fake.Exit{After: d.seconds(12), Code: choose[int32](d, 0, 0, 0, 1, 3)}
		if d.chance(4) {
			b.Exit.Crashes = 1 + d.IntN(2)
		}
	}
	switch d.IntN(12) {
	case 0:
		b.IgnoreTERM = true
	case 1:
		b.StopDelay = time.Duration(100+d.IntN(3000)) * time.Millisecond
	case 2:
		b.StartDelay = d.seconds(3)
	case 3, 4:
		b.ReadyAfter = d.seconds(5)
	case 5:
		b.StartedAfter = d.seconds(5)
	case 6:
		b.UnhealthyAfter = d.seconds(8)
	case 7:
		b.Liveness, b.ReadyAfter = true, d.seconds(3)
	}
	return b
}

// step draws a step about a container of a pod.
func (d *drawing) step(add Step, c sim.Container) Step {
	s := Step{Step: sim.Step{At: d.within(add.At, min(add.At+15*time.Second, d.o.duration)), Pod: add.Pod}}
	switch d.IntN(16) {
	case 0, 1, 2:
		s.Do, s.Container, s.Code = sim.Exit, c.Name, choose[int32](d, 0, 1, 3)
	case 3:
		s.Do, s.Container = sim.OOM, c.Name
	case 4:
		s.Do, s.Container = sim.Hang, c.Name
	case 5, 6, 7:
		s.Do = sim.Crash
	case 8:
		s.Do, s.Container = sim.Remove, c.Name
	case 9:
		s.Do = sim.Remove
	case 10:
		s.Do = sim.Vanish
	case 11:
		s.Do = sim.Fail
	case 12, 13:
		s.Do, s.Container, s.Behavior = sim.Change, c.Name, c.Behavior
		s.Behavior.Version = 100 + d.IntN(9)
	case 14:
		s.Do, s.Attach, s.Container = sim.Change, true, "debug"
		s.Behavior = fake.Behavior{Exit: &fake.Exit{After: d.seconds(4), Code: choose[int32](d, 0, 1)}}
	default:
		s.Do, s.Grace = sim.Delete, choose[int64](d, 0, 1, 20)
	}
	return s
}

// fault draws a fault of the node.
func (d *drawing) fault() Step {
	s := sim.Step{At: d.within(time.Second, d.o.duration*3/4)}
	switch n := d.IntN(10); {
	case n < 3:
		s.Do, s.Count, s.After, s.Down = sim.Kill, choose(d, 0, 0, 1+d.IntN(6)), d.chance(2), d.seconds(4)
	case n == 3:
		s.Do, s.Down = sim.Reboot, d.seconds(4)
	case n < 6:
		s.Do, s.Calls, s.Percent, s.For = sim.Fault, apiCalls, choose(d, 100, 100, 30), d.seconds(12)
		s.Kind, s.Delay = choose(d, sim.Error, sim.Slow, sim.Lost, sim.Hung), time.Second
	default:
		s.Do, s.Percent, s.For = sim.Fault, choose(d, 100, 50, 30), d.seconds(8)
		s.Calls = choose(d, criCalls, "RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "StopPodSandbox", "PullImage", "ContainerStatus", "PodSandboxStatus", "ListContainers", "ListPodSandbox", "ExecSync")
		s.Kind, s.Delay = choose(d, sim.Error, sim.Lost, sim.Slow, sim.Hung, sim.Stale), d.seconds(6)
		if s.Kind == sim.Stale {
			s.Calls = choose(d, "ListContainers", "ListPodSandbox")
		}
	}
	if s.Kind != sim.Slow && s.Kind != sim.Stale {
		s.Delay = 0
	}
	return Step{Step: s}
}

// drawCommand prints the scenario of a seed.
func drawCommand(_ context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("draw", flag.ContinueOnError)
	var o drawOptions
	o.flags(fs)
	seed := fs.Uint64("seed", 1, "`number` of the scenario")
	if _, err := parse(fs, args, 0, out); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, draw(*seed, o))
	return err
}
