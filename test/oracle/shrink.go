package oracle

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/test/internal/cli"
)

// shrink returns a part of a violating scenario that violates, too: without pods, then without steps, then without
// containers, as far as removals keep the violation. As a try takes minutes, it makes several at
// the same time: tries is called with candidates and returns the index of one that violates, or -1.
func shrink(s Scenario, first string, tries func([]Scenario) int) Scenario {
	// Usually only the pod of the violation, and the faults of the node, matter.
	if alone := only(s, first); first != "" && len(alone) < len(s) && tries([]Scenario{alone}) == 0 {
		s = alone
	}
	for size := max(len(s)/2, 1); ; {
		var candidates []Scenario
		for i := 0; i < len(s) && len(s) > 1; i += size {
			candidates = append(candidates, without(s, i, min(i+size, len(s))))
		}
		if i := tries(candidates); i >= 0 {
			s = candidates[i]
			size = min(size, max(len(s)/2, 1))
			continue
		}
		if size == 1 {
			break
		}
		size = max(size/2, 1)
	}
	for {
		candidates := simpler(s)
		i := tries(candidates)
		if i < 0 {
			return s
		}
		s = candidates[i]
	}
}

// only returns the steps about a pod, and those about the node.
func only(s Scenario, pod string) Scenario {
	return slices.DeleteFunc(slices.Clone(s), func(step Step) bool { return step.Pod != "" && step.Pod != pod })
}

// without returns a scenario without some steps.
func without(s Scenario, from, to int) Scenario { return slices.Delete(slices.Clone(s), from, to) }

// simpler returns scenarios with a pod that has one container, hook or property less.
func simpler(s Scenario) (out []Scenario) {
	vary := func(i int, change func(*Step)) {
		next := slices.Clone(s)
		next[i].Shape.Containers = slices.Clone(next[i].Shape.Containers)
		change(&next[i])
		out = append(out, next)
	}
	for i, step := range s {
		if step.Do != sim.Add {
			continue
		}
		for n := range step.Shape.Containers {
			others := slices.Delete(slices.Clone(step.Shape.Containers), n, n+1)
			hasMain := slices.ContainsFunc(others, func(c sim.Container) bool { return c.Kind == sim.Main })
			if hasMain && !slices.Contains(step.Clean, step.Shape.Containers[n].Name) {
				vary(i, func(v *Step) { v.Shape.Containers = others })
			}
			if step.Shape.Containers[n].Hook > 0 {
				vary(i, func(v *Step) { v.Shape.Containers[n].Hook = 0 })
			}
			plain := fake.Behavior{}
			if exit := step.Shape.Containers[n].Behavior.Exit; exit != nil {
				plain.Exit = &fake.Exit{After: exit.After, Code: exit.Code}
			}
			if plain.String() != step.Shape.Containers[n].Behavior.String() {
				vary(i, func(v *Step) { v.Shape.Containers[n].Behavior = plain })
			}
		}
		if len(step.Clean) > 0 {
			vary(i, func(v *Step) { v.Clean = nil })
		}
		if step.Shape.Deadline > 0 {
			vary(i, func(v *Step) { v.Shape.Deadline = 0 })
		}
	}
	return out
}

// shrinkCommand makes a violating scenario smaller.
func shrinkCommand(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("shrink", flag.ContinueOnError)
	var o playOptions
	o.flags(fs)
	invariant := fs.String("invariant", "", "`name` of the invariant (default: the first that is violated)")
	result := fs.String("result", "", "`file` to write the smaller scenario to")
	lanes := fs.Int("lanes", 4, "`number` of tries at the same time")
	files, err := parse(fs, args, 1, out)
	if err != nil {
		return err
	}
	if err := o.complete(); err != nil {
		return err
	}
	s, err := readScenario(files[0])
	if err != nil {
		return err
	}
	say := cli.NewPrinter(out)
	t := &trier{ctx: ctx, o: o, lanes: *lanes, invariant: *invariant, say: say}
	first, err := t.violation(s)
	if err != nil {
		return err
	}
	if first == nil {
		return fmt.Errorf("%s does not violate an invariant now", files[0])
	}
	t.invariant = first.Invariant
	say("%s", first)
	s = shrink(s, first.Pod, t.tries)
	if err := ctx.Err(); err != nil {
		return err
	}
	text := fmt.Sprintf("# Violates %s.\n%s", t.invariant, s)
	if *result != "" {
		return os.WriteFile(*result, []byte(text), 0o644)
	}
	_, err = fmt.Fprint(out, text)
	return err
}

// A trier plays scenarios until one violates an invariant.
type trier struct {
	ctx       context.Context
	o         playOptions
	lanes     int
	invariant string
	say       func(format string, args ...any)
}

// violation plays a scenario, and returns the first violation of the invariant, nil if there is none.
func (t *trier) violation(s Scenario) (*Violation, error) {
	run, err := playIsolated(t.ctx, s, t.o)
	if err != nil {
		return nil, err
	}
	violations, err := check(run)
	if err != nil {
		return nil, err
	}
	for _, v := range violations {
		if t.invariant == "" || v.Invariant == t.invariant {
			return &v, nil
		}
	}
	return nil, nil
}

// tries plays candidates, several at the same time, and returns the index of the first that violates the invariant.
func (t *trier) tries(candidates []Scenario) int {
	for batch := 0; batch < len(candidates); batch += t.lanes {
		group := candidates[batch:min(batch+t.lanes, len(candidates))]
		violates := make([]bool, len(group))
		var wg sync.WaitGroup
		for i, s := range group {
			wg.Go(func() {
				v, err := t.violation(s)
				if err != nil {
					t.say("a try has failed: %v", err)
				}
				violates[i] = v != nil
			})
		}
		wg.Wait()
		if i := slices.Index(violates, true); i >= 0 {
			t.say("%d steps", len(group[i]))
			return batch + i
		}
		if t.ctx.Err() != nil {
			return -1
		}
	}
	return -1
}
